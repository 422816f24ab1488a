"""Whether contexts look unlike those that a policy was learned from."""

import numpy as np
import pytest

from rareswitch.core import FloatArray, normals
from rareswitch.learner import Foresight, State, novelty
from reference.loop import rows_for

pytestmark = pytest.mark.usefixtures("short_plans")
DIM, ARMS = 6, 8


def contexts(count: int, *, first: int, block: slice = slice(None)) -> FloatArray:
    """Directions in some of the features."""
    x = np.zeros((count, ARMS, DIM))
    width = len(range(DIM)[block])
    z = normals(3, "contexts", first, count, ARMS * width).reshape(count, ARMS, width)
    x[:, :, block] = z / np.linalg.norm(z, axis=2, keepdims=True)
    return x


def learned(intercept: bool = False, block: slice = slice(None)) -> State:
    learner = Foresight(dim=DIM, intercept=intercept)
    state, theta = learner.begin(), normals(4, "theta", 0, 1, DIM)[0]
    for first, count in ((0, 100), (100, 300), (400, 600)):
        x = contexts(count, first=first, block=block)
        rows = rows_for(state, x, theta, 0.3 * normals(5, "noise", first, count)[:, 0], first=first)
        state = learner.next(state, learner.summarize(state, rows))
    return state


@pytest.mark.parametrize("intercept", [False, True])
def test_contexts_as_before_are_not_unlike(intercept: bool) -> None:
    found = novelty(learned(intercept), contexts(500, first=2000))
    assert not found.unlike
    assert 0.5 < found.value < 1.5
    assert str(found).startswith("Requests resemble those learned from: ")


@pytest.mark.parametrize("intercept", [False, True])
def test_features_that_were_never_seen_are_unlike_even_where_they_are_few(intercept: bool) -> None:
    state = learned(intercept, block=slice(0, 3))
    old, new = contexts(450, first=2000, block=slice(0, 3)), contexts(50, first=2500, block=slice(3, 6))
    assert not novelty(state, old).unlike
    found = novelty(state, np.concatenate([old, new]))
    assert found.unlike
    assert found.value > 10.0
    assert str(found).startswith("New kinds of requests: ")


def test_a_single_odd_set_is_no_change() -> None:
    state = learned(block=slice(0, 3))
    old, new = contexts(499, first=2000, block=slice(0, 3)), contexts(1, first=2500, block=slice(3, 6))
    assert not novelty(state, np.concatenate([old, new])).unlike


def test_the_unit_of_the_features_does_not_matter() -> None:
    learner = Foresight(dim=DIM)
    values = []
    for unit in (1.0, 1e-3):
        state, x = learner.begin(), unit * contexts(300, first=0)
        rows = rows_for(state, x, np.eye(DIM)[0] / unit, normals(5, "noise", 0, 300)[:, 0])
        state = learner.next(state, learner.summarize(state, rows))
        values.append(novelty(state, unit * contexts(200, first=900)).value)
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_nothing_is_unlike_before_anything_was_learned() -> None:
    found = novelty(Foresight(dim=DIM).begin(baseline=0.2), contexts(5, first=0))
    assert (found.value, found.unlike) == (1.0, False)
