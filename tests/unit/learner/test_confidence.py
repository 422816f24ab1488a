import math

import pytest

from rareswitch.learner.confidence import independent_intervals, self_normalized_intervals


def test_tight_is_the_lemma_with_a_union_bound_over_arms() -> None:
    level = independent_intervals(
        "tight", dim=10, arms=20, horizon=1000, batches=4, delta=0.1, noise=0.5, norm=0.7, ridge=2.0
    )
    expected = 0.5 * math.sqrt(2 * math.log(2 * 20 * 1000 * 3 / 0.1)) + math.sqrt(2.0) * 0.7
    assert level.multiplier == pytest.approx(expected)


def test_the_net_of_directions_is_counted_in_full() -> None:
    """An ε-net of the unit sphere has at most (1 + 2/ε)^d points, and loses a factor 1 - ε."""
    level = independent_intervals("tight", dim=2, arms=10**9, horizon=10**7, batches=4, delta=0.05, noise=1.0, norm=1.0)
    best = min(
        math.sqrt(2 * math.log(2 * (1 + 2 / e) ** 2 * 3 / 0.05)) / (1 - e) for e in (k / 100 for k in range(5, 96, 5))
    )
    assert level.multiplier == pytest.approx(best + 1.0)


def test_intervals_do_not_depend_on_units() -> None:
    """Rewards in cents and features in metres: widths scale as rewards do, whatever the units of the features."""
    sizes = {"dim": 3, "arms": 4, "horizon": 100, "batches": 2}
    plain = independent_intervals("tight", **sizes, noise=0.5, norm=1.0)
    rewards, features = 100.0, 7.0
    scaled = independent_intervals("tight", **sizes, noise=0.5 * rewards, norm=rewards / features)
    assert scaled.ridge == pytest.approx(plain.ridge * features**2)
    assert scaled.multiplier == pytest.approx(plain.multiplier * rewards)


def test_self_normalized_intervals_are_their_formula() -> None:
    level = self_normalized_intervals("tight", dim=10, horizon=1000, delta=0.1, noise=0.5, norm=0.7, ridge=2.0)
    assert level.multiplier(3.0) == pytest.approx(0.5 * math.sqrt(2 * math.log(10) + 3.0) + math.sqrt(2.0) * 0.7)
    assert level.multiplier(4.0) > level.multiplier(3.0)
    paper = self_normalized_intervals("paper", dim=10, horizon=1000, delta=0.1, noise=0.5)
    assert paper.ridge == 1.0
    assert paper.multiplier(3.0) == paper.multiplier(9.0) == pytest.approx(2 * math.sqrt(10 * math.log(2e4)))
    assert self_normalized_intervals(1.5, dim=10, horizon=1000).multiplier(7.0) == 1.5
    assert self_normalized_intervals("tight", dim=2, horizon=10, noise=0.2, norm=0.5).ridge == pytest.approx(0.16)
