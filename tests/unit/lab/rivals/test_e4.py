import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.errors import InputError, ParameterError, UnsuitableError
from rareswitch.lab.rivals import E4, Allocation, cheapest_allocation
from rareswitch.lab.worlds import ActionsWorld, GaussianNoise, World, make_world
from rareswitch.learner import Learner, State, make_learner
from rareswitch.planning import known_regret
from rareswitch.policy import Policy
from reference.loop import rows_of
from reference.refusals import raises

HORIZON = 10_000
PLANE = make_world("end-of-optimism:2", noise=1.0)


def of(world: World, **settings: Any) -> E4:
    told: dict[str, Any] = {"dim": world.dim, "arms": world.arms, "horizon": HORIZON} | settings
    return E4(**told)


def states(learner: Learner, world: World, seed: int) -> list[State]:
    """The states of a run before each of its batches."""
    state, found = learner.begin(), []
    while not state.done:
        found.append(state)
        state = learner.next(state, learner.summarize(state, rows_of(state, world, seed)))
    return found


def weights(state: State) -> Any:
    assert isinstance(state.policy.sampler, Allocation)
    return state.policy.sampler.weights


@pytest.mark.parametrize("seed", range(4))
def test_three_policies_find_the_best_of_a_published_instance(seed: int) -> None:
    """The exploited action is wrong with a probability of the order 1/T."""
    learner = of(PLANE)
    first, second, third = states(learner, PLANE, seed)
    assert first.batch_sizes == (200, 9800)
    assert first.policy.probabilities(np.eye(2)).tolist() == [0.5, 0.5]
    assert third.batch_sizes == (9800 - second.batch_sizes[0],)
    assert weights(third).tolist() == [1.0, 0.0, 0.0]


def test_the_second_batch_is_the_cheapest_that_tells_the_best_action() -> None:
    learner = of(PLANE)
    _, second, _ = states(learner, PLANE, 3)
    actions = PLANE.draw(1, seed=3).contexts[0]
    means = actions @ second.sums[0].estimate(ridge=1.0)
    plays = cheapest_allocation(actions, means.max() - means)
    # the published program's constants
    log, loglog = math.log(HORIZON), math.log(math.log(HORIZON))
    wanted = np.ceil(np.minimum(plays * (1 + 1 / loglog) * (1 + 2 * loglog / log) * log, HORIZON / 6))
    assert second.batch_sizes[0] == wanted.sum()
    np.testing.assert_allclose(weights(second), wanted / wanted.sum())


@pytest.mark.filterwarnings("ignore::rareswitch.errors.OutlierWarning")  # an arm that is hardly played
def test_without_noise_the_plays_are_those_of_the_truth() -> None:
    """With e_2 eight units of information are needed (see the tests of the allocation), times σ²·α·ln T."""
    quiet = make_world("end-of-optimism:2", noise=1e-3)
    _, second, _ = states(of(quiet, noise=1e-3, ridge=1e-9), quiet, 1)
    assert (weights(second) * second.batch_sizes[0])[1:].max() == pytest.approx(1.0)
    loud = of(PLANE, ridge=1e-9)
    state = loud.begin()
    rows = rows_of(state, quiet, 1)
    second = loud.next(state, loud.summarize(state, rows))
    log, loglog = math.log(HORIZON), math.log(math.log(HORIZON))
    units = (1 + 1 / loglog) * (1 + 2 * loglog / log) * log
    plays = weights(second) * second.batch_sizes[0]
    # rounded up, 2 % over the least cost, and estimated from noise of 0.001
    assert 8.0 * units * 0.99 <= plays @ [0.0, 1.0, 0.2] <= 8.0 * units * 1.03 + 2.0


def test_where_the_second_batch_does_not_tell_surviving_actions_are_explored_on() -> None:
    world = make_world("random-actions:9x5", noise=1.0)
    found = states(of(world, gamma=1.5, norm=longest(world)), world, 1000)
    assert 4 <= len(found) <= 8
    kept = [state.rule_state["left"] for state in found[1:]]
    assert all((later <= before).all() for before, later in pairwise(kept))
    assert kept[-1].sum() < kept[0].sum() == 9
    assert all(left[0] for left in kept)  # the best one stays
    for state in found[2:]:
        assert not weights(state)[state.rule_state["left"] == 0.0].any()


def longest(world: Any) -> float:
    """‖θ‖, which is that of the longest action before they were shortened."""
    return float(np.linalg.norm(world.theta(0)))


def test_sets_that_change_are_refused_by_name() -> None:
    learner, here = of(PLANE), make_world("gaussian", dim=2, arms=3, noise=1.0)
    with pytest.raises(UnsuitableError, match="e4 is for one action set that never changes; these sets differ"):
        simulate(learner, here, seed=1)
    turned = ActionsWorld(actions=np.eye(3)[:, :2] + 0.1, hidden=np.array([1.0, 0.0]))
    _, state, _ = states(learner, PLANE, 1)
    with pytest.raises(UnsuitableError, match="e4 is for one action set"):
        learner.next(state, learner.summarize(state, rows_of(state, turned, 1, count=50)))


def test_batches_end_when_the_user_says_so_and_forecasts_are_kept() -> None:
    learner = of(PLANE)
    state = learner.begin()
    summary = learner.summarize(state, rows_of(state, PLANE, 1, count=60))
    found = learner.next(state, summary)
    assert found.start == 60
    assert sum(found.batch_sizes) == HORIZON - 60
    assert learner.next(state, summary, forecast=[70, 80]).batch_sizes == (70, 80)
    assert "√(dT), one fixed set" in str(known_regret(learner, found))


def test_a_copy_of_the_best_action_and_a_single_one_need_no_telling() -> None:
    twins = ActionsWorld(actions=np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), hidden=np.array([1.0, 0.0]))
    run = simulate(of(twins), twins, seed=1)
    assert run.policies == 3
    alone = ActionsWorld(actions=np.ones((1, 2)), hidden=np.ones(2), noise=GaussianNoise(0.1))
    assert simulate(of(alone, arms=1), alone, seed=1).policies == 2


@pytest.mark.parametrize(("horizon", "noise"), [(2, 1.0), (3, 0.0), (10, 0.0), (40, 5.0)])
def test_short_and_noiseless_runs_come_to_their_end(horizon: int, noise: float) -> None:
    world = make_world("end-of-optimism:3", noise=noise)
    run = simulate(of(world, horizon=horizon, noise=noise), world, seed=1)
    assert run.times[-1] == horizon


def test_bad_settings_are_refused() -> None:
    for bad in (0.0, -1.0, math.inf):
        raises(ParameterError, "gamma", of, PLANE, gamma=bad)
    with pytest.raises(ParameterError, match="g_optimal must be of type GOptimal"):
        make_learner("e4", dim=2, arms=3, horizon=100, g_optimal=1.0)


def test_shares_of_missing_arms_go_to_the_others() -> None:
    shares = Allocation(weights=np.array([0.5, 0.3, 0.2, 0.0]))
    x = np.ones((4, 2))
    assert shares.probabilities(x).tolist() == [0.5, 0.3, 0.2, 0.0]
    np.testing.assert_allclose(shares.probabilities(x, [False, True, True, True]), [0.0, 0.6, 0.4, 0.0])
    assert shares.probabilities(x, [False, False, False, True]).tolist() == [0.0, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(shares.probabilities(np.ones((2, 2))), [0.625, 0.375])
    assert shares.probabilities(np.ones((1, 6, 2))).tolist() == [[0.5, 0.3, 0.2, 0.0, 0.0, 0.0]]


def test_arms_that_have_no_share_are_alike() -> None:
    shares = Allocation(weights=np.array([1.0, 0.0, 0.0]))
    assert shares.probabilities(np.ones((3, 1)), [False, True, True]).tolist() == [0.0, 0.5, 0.5]


def test_the_id_of_a_policy_tells_shares_apart() -> None:
    made = [Policy(dim=2, sampler=Allocation(weights=np.array(w))) for w in ([0.5, 0.5], [0.25, 0.75], [0.5, 0.5])]
    assert made[0].id == made[2].id != made[1].id


@pytest.mark.parametrize("weights", [[0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0], [], [[1.0]]])
def test_what_is_no_distribution_is_refused(weights: Any) -> None:
    raises(InputError, "weights", Allocation, weights=np.array(weights))
