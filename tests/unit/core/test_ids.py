import hashlib
import uuid
from typing import Any

import numpy as np
import pytest

from rareswitch.core import id_keys, one_key
from rareswitch.errors import ParameterError, ShapeError
from reference.refusals import raises


def hashed(text: str) -> tuple[int, int]:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1 << 63


def test_numbers_are_their_own_keys_and_strings_their_hash() -> None:
    assert one_key(12) == (12, 0)
    assert one_key(np.int32(12)) == one_key(np.uint64(12)) == (12, 0)
    assert one_key(2**63 - 1) == (2**63 - 1, 0)
    for text in ("12", "a", "ü" * 64, "x" * 128, str(uuid.UUID(int=5)), "\0"):
        assert one_key(text) == one_key(np.str_(text)) == hashed(text)
    assert one_key("12")[1] >> 63 == 1


def test_the_keys_never_change() -> None:
    """Decisions that were logged must replay in years to come."""
    assert one_key("request-1") == (12173249154781411912, 13511998237512996067)


RANGES = [range(3, 9, 2), range(9, 3, -3), range(0), range(2**63 - 2, 2**63), range(5, 6, 10**40)]
LISTS: list[Any] = [[4, 2, 4], (1, 2**63 - 1), [], [np.int64(7), 8], ["a", "b"], ("a",), [12, "12"]]
ARRAYS = [
    *(np.array([7, 8], dtype=dtype) for dtype in (np.int8, np.uint64, object)),
    *(np.array([7, 8, 9])[::-2], np.array([], dtype=np.int64)),
    *(np.array(["a", "bcd"], dtype=dtype) for dtype in (None, object)),
]


@pytest.mark.parametrize("ids", [*RANGES, *LISTS, *ARRAYS], ids=str)
def test_every_collection_gives_the_keys_of_its_members(ids: Any) -> None:
    keys = id_keys(ids, len(list(ids)))
    assert keys.dtype == np.uint64
    assert keys.shape == (len(list(ids)), 2)
    assert list(map(tuple, keys.tolist())) == [one_key(id) for id in ids]  # noqa: A001
    with pytest.raises(ValueError, match="read-only"):
        keys.flat[:] = 0
    np.testing.assert_array_equal(id_keys(keys, len(keys)), keys)


def test_keys_are_not_those_of_an_array_that_changes() -> None:
    numbers = np.arange(3)
    given = np.array(id_keys(numbers))
    keys, again = id_keys(numbers), id_keys(given)
    numbers[0], given[0, 0] = 5, 5
    assert keys[0, 0] == again[0, 0] == 0
    assert id_keys(keys) is keys


HUGE = "x" * 10_000_000


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (-1, r"at least 0 and below 2\^63; got -1"),
        (2**63, "below 2"),
        (10**5000, r"below 2\^63; got a number of 16610 bits"),
        (1.0, r"got float 1\.0. Pass str\(id\)"),
        (np.float64(1.0), "got float64"),
        (True, "got bool True"),
        (np.True_, "whole number or a string"),
        (None, "got NoneType None.*Pass .*own name or number"),
        ("", "1 to 128 bytes; got 0 characters.*Pass .*own name or number"),
        (HUGE, "1 to 128 bytes; got 10000000 characters"),
        ("ü" * 65, "1 to 128 bytes; got 65 characters"),
        ("a\ud800", "lone surrogate.*Pass .*hash"),
        (b"a", r"got bytes b'a'.*id.decode\(\)"),
        (uuid.UUID(int=5), r"got UUID .*Pass str\(id\)"),
        ((1, 0), "got tuple"),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, int) or value < 2**64 else "huge",
)
def test_what_is_no_id_is_refused_alone_and_among_others(bad: Any, match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bad is HUGE:  # refused by its length, not hashed
        monkeypatch.setattr(hashlib, "blake2b", None)
    for call in (lambda: one_key(bad), lambda: id_keys([bad]), lambda: id_keys([bad, 1])):
        with pytest.raises(ParameterError, match=match) as caught:
            call()
        assert len(str(caught.value)) < 250
    raises(ParameterError, None, id_keys, np.array([bad, 1, "a"], dtype=object))


@pytest.mark.parametrize(
    ("ids", "rule"),
    [
        *((ids, "at least 0 and below 2") for ids in (range(-1, 3), range(2**63 - 1, 2**63 + 1), np.array([5, -1]))),
        (np.array([1, 2**63], dtype=np.uint64), "at least 0 and below 2"),
        *((np.array(ids), "whole number or a string") for ids in ([0.0, 1.0], [True], [b"a"])),
        *((np.array([(5, 0), row], dtype=np.uint64), "row 1 is") for row in ((5, 3), (2**63, 0), (0, 2**63 - 1))),
    ],
    ids=str,
)
def test_collections_with_what_is_no_id_are_refused(ids: Any, rule: str) -> None:
    raises(ParameterError, rule, id_keys, ids)


def test_collections_of_another_form_are_refused() -> None:
    others: list[Any] = ["abc", 5, iter([1]), {1, 2}, HUGE, None]
    for bad in others:
        with pytest.raises(ShapeError, match="list, tuple, range or NumPy array") as caught:
            id_keys(bad)
        assert len(str(caught.value)) < 250
    for shape in ((), (2, 3), (2, 2, 2)):
        raises(ShapeError, "one-dimensional", id_keys, np.zeros(shape, dtype=np.uint64))
    with pytest.raises(ShapeError, match="one-dimensional"):
        id_keys(np.zeros((3, 2), dtype=np.int64))  # keys are of uint64 alone
    for ids in ([1, 2], range(10**15), ["a"] * 4, id_keys(range(2))):
        raises(ShapeError, "3 sets take 3 ids; got", id_keys, ids, 3)
