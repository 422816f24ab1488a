import numpy as np
import pytest

from rareswitch.log.marks import BLOCKS, Marks


@pytest.mark.parametrize("spread", [1, 3, 500])
def test_marks_are_a_set_of_decisions(spread: int) -> None:
    rng = np.random.default_rng(1)
    start, stop = 1003, 1003 + 2011 * spread
    marks, seen = Marks(start, stop), set[int]()
    for _ in range(5):
        decisions = rng.integers(start, stop, 200)
        again = marks.add(decisions).tolist()
        for decision, repeated in zip(decisions.tolist(), again, strict=True):
            assert repeated == (decision in seen)
            seen.add(decision)
    assert marks.count == len(seen)
    assert marks.holds(np.arange(start, stop)).tolist() == [d in seen for d in range(start, stop)]
    missing = [d for d in range(start, stop) if d not in seen]
    assert marks.absent(7) == missing[:7]
    assert marks.absent(len(missing) + 9) == missing


@pytest.mark.parametrize("spread", [1, 1000])
def test_what_travels_is_all_there_is(spread: int) -> None:
    """Few marks travel by their places, many as they are."""
    start, stop = 17, 17 + 5000 * spread
    left, right = Marks(start, stop), Marks(start, stop)
    one, other = np.arange(100, 4000, 3), np.arange(103, 5000, 5)
    left.add(one)
    right.add(other)
    travelling = right.stretch()
    assert travelling.bits.nbytes < 1000
    total, both = Marks(start, stop), Marks(start, stop)
    total.merge(left.stretch())
    both.merge(total.merge(travelling))
    assert total.count == len(set(one.tolist()) | set(other.tolist()))
    common = sorted(set(one.tolist()) & set(other.tolist()))
    assert both.count == len(common)
    assert both.holds(np.array(common)).all()


def test_blocks_tell_roughly_where_marks_are() -> None:
    start, stop = 5, 5 + 8 * BLOCKS * 3
    for decisions in (np.arange(5, 2000), np.array([40, 24_500]), np.array([], dtype=np.int64)):
        marks = Marks(start, stop)
        marks.add(decisions)
        expected = np.zeros(BLOCKS, dtype=bool)
        expected[(decisions - start) // 24] = True
        np.testing.assert_array_equal(marks.blocks(marks.stretch()), expected)
        np.testing.assert_array_equal(marks.blocks(marks.everything()), expected)
