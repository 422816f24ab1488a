"""Compiled steps are the loop, and the loop holds to its cap."""

from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.errors import ParameterError
from rareswitch.lab.compiled import find_walker
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import OFUL, LinUCB, SupLinUCB, ThompsonSampling, make_learner
from reference.refusals import raises
from reference.watch import watched

NOISE = 0.4
WALKING = [LinUCB, ThompsonSampling, SupLinUCB]


def place(name: str = "gaussian") -> World:
    return make_world(name, dim=4, arms=6, noise=NOISE)


def sized(make: Any, horizon: int = 400, **settings: Any) -> Any:
    return make(dim=4, arms=6, horizon=horizon, noise=NOISE, **settings)


@pytest.mark.parametrize("make", WALKING)
def test_walking_is_the_loop(make: Any) -> None:
    """The compiled steps decide as the frozen policies would, and change them when the clock says."""
    world, learner = place("varying"), sized(make, 300, confidence=0.3)
    assert find_walker(learner) is not None
    found, expected = watched(learner, world, 4), watched(learner, world, 4, walks=False)
    assert found.arms == expected.arms
    assert found.run.policies == expected.run.policies == len(expected.switches) + 1
    assert found.switches == []
    assert found.state.done
    assert expected.state.done
    for one, other in zip(found.state.sums, expected.state.sums, strict=True):
        assert one.count == other.count
        np.testing.assert_allclose(one.gram, other.gram, atol=1e-9)
        np.testing.assert_allclose(one.moment, other.moment, atol=1e-9)
        assert one.square_sum == pytest.approx(other.square_sum)


def test_settings_without_compiled_steps_are_stepped() -> None:
    assert find_walker(sized(ThompsonSampling, draws=2)) is None
    assert find_walker(make_learner("foresight", dim=3)) is None

    class Own(LinUCB):
        """Not the class that was compiled for."""

    assert find_walker(sized(Own)) is None


@pytest.mark.parametrize("cap", [1, 2, 7, 60])
@pytest.mark.parametrize("name", ["linucb", "thompson", "suplinucb", "oful", "rarely-switch-suplinucb", "linucb-grid"])
def test_the_loop_holds_to_the_cap(name: str, cap: int) -> None:
    world, learner = place(), make_learner(name, dim=4, arms=6, horizon=400, noise=NOISE)
    free, capped = watched(learner, world, 1), watched(learner, world, 1, cap=cap)
    assert capped.run.policies == min(cap, free.run.policies)
    # up to the last policy nothing differs, and its first decision comes after the same number of them
    same = capped.state.start
    assert capped.arms[:same] == free.arms[:same]
    assert (same == 0) == (cap == 1)
    assert len(capped.arms) == 400


@pytest.mark.parametrize("cap", [0, -1, 2.5, True])
def test_caps_below_one_are_refused(cap: Any) -> None:
    raises(ParameterError, "cap must be", simulate, sized(OFUL), place(), seed=1, cap=cap)
