import math

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.lab.report.runs import FEWEST, LEVEL, Ratio, regret_ratio, resolution


def draw(rng: np.random.Generator, seeds: int) -> tuple[FloatArray, FloatArray]:
    """Regrets of two learners in two worlds, skewed, and alike in the same seed."""
    shared = 0.3 * rng.standard_normal((seeds, 1))
    own, other = (np.exp(shared + spread * rng.standard_normal((seeds, 2))) for spread in (0.5, 0.4))
    return 50.0 * own, 40.0 * other


def true_ratio() -> float:
    """Of the above: E exp(N(0, s²)) = exp(s²/2)."""
    own, other = (math.exp((0.09 + spread**2) / 2.0) for spread in (0.5, 0.4))
    return (50.0 * own + 10.0) / (40.0 * other + 10.0)


@pytest.mark.parametrize("worlds", [1, 2])
def test_intervals_hold_as_often_as_they_say(worlds: int) -> None:
    """In 1,500 experiments of 60 seeds; Hoeffding: false alarm at most 1e-6 if the coverage is 90 %."""
    rng, truth, count = np.random.default_rng(worlds), true_ratio(), 1500
    held = 0
    for _ in range(count):
        own, other = draw(rng, 60)
        found = regret_ratio(own[:, :worlds], other[:, :worlds])
        held += found.low <= truth <= found.high
    assert abs(held / count - LEVEL) <= math.sqrt(math.log(2e6) / (2 * count))


def test_few_seeds_have_wide_intervals_and_fewer_none() -> None:
    """Five seeds were seen to hold 86 %, on other draws, and 76 % at a level that is not widened; Hoeffding again."""
    rng, truth, count = np.random.default_rng(3), true_ratio(), 1500
    found = [regret_ratio(*(side[:, 0] for side in draw(rng, FEWEST))) for _ in range(count)]
    held = sum(one.low <= truth <= one.high for one in found)
    assert held / count >= 0.86 - math.sqrt(math.log(1e6) / (2 * count))
    alone = regret_ratio(np.array([90.0]), np.array([40.0]))
    assert (alone.value, alone.median) == pytest.approx((2.0, 2.0))
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    assert (alone.resolved, alone.seeds_needed, alone.interval) == (False, None, "")
    assert alone.summary()["interval"] is None
    assert "there is one" in resolution([alone])
    assert math.isnan(regret_ratio(np.ones(FEWEST - 1), np.ones(FEWEST - 1)).low)


def test_the_same_regrets_give_the_same_interval_and_seeds_stay_paired() -> None:
    own, other = (side[:, 0] for side in draw(np.random.default_rng(4), 30))
    assert regret_ratio(own, other) == regret_ratio(own, other)
    level = np.exp(np.random.default_rng(5).standard_normal(30)) * 100.0
    paired = regret_ratio(2.0 * level + 10.0, level)  # 2·(r + 10) and r + 10 in every seed
    assert (paired.low, paired.value, paired.high) == pytest.approx((2.0, 2.0, 2.0))
    assert regret_ratio(2.0 * level + 10.0, level[::-1]).high > 2.2


def test_a_geometric_mean_is_that_of_the_worlds() -> None:
    own, other = draw(np.random.default_rng(6), 20)
    values = [regret_ratio(own[:, k], other[:, k]).value for k in (0, 1)]
    assert regret_ratio(own, other).value == pytest.approx(math.sqrt(values[0] * values[1]))
    assert regret_ratio(other, own).value == pytest.approx(1.0 / regret_ratio(own, other).value)


def test_what_is_not_resolved_says_how_many_seeds_it_needs() -> None:
    wide = Ratio(seeds=10, value=2.0, low=1.0, high=1.5**3)
    assert (wide.resolved, wide.seeds_needed, wide.cells) == (False, 90, ["2.00", "1.00 to 3.38 ?", "1.00"])
    assert Ratio(seeds=10, value=1.2, low=1.0, high=1.5).resolved
    said = resolution([wide, Ratio(seeds=10, value=1.1, low=1.0, high=1.2)])
    assert said.startswith("? marks 1 of 2 ratios as not resolved")
    assert "about 90 seeds" in said
    assert resolution([Ratio(seeds=10)]) == ""
