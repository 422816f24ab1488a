"""What a log's rewards say that no θ says: found where it is there, and only there."""

import numpy as np
import pytest

from rareswitch.core import ContextSets, FloatArray, normals, uniforms
from rareswitch.decisions import DecisionLog
from rareswitch.planning import plan
from rareswitch.planning.evidence import evidence_of, metric_of
from rareswitch.planning.plans import WORTH, Option, PlannedRegret, recommended

NOTHING_SAID = metric_of(None, None, None, None)
SETS, ARMS = 2000, 2


def users(seed: int, distinct: int = SETS) -> FloatArray:
    """(n, K, 3K) a level and two features of a user, in the block of each arm."""
    z = normals(seed, "users", 0, distinct, 2)[np.arange(SETS) % distinct]
    blocks = np.zeros((SETS, ARMS, ARMS, 3))
    for arm in range(ARMS):
        blocks[:, arm, arm] = np.column_stack([np.ones(SETS), z]) / 4.0
    return blocks.reshape(SETS, ARMS, -1)


def log_of(contexts: FloatArray, means: FloatArray, *, clicks: bool, noise: float, seed: int) -> DecisionLog:
    """Uniform choice."""
    arms = (uniforms(seed, "arms", 0, SETS)[:, 0] * ARMS).astype(np.int64)
    paid = means[np.arange(SETS), arms]
    if clicks:
        paid = (uniforms(seed, "clicks", 0, SETS)[:, 0] < paid).astype(np.float64)
    else:
        paid = paid + noise * normals(seed, "noise", 0, SETS)[:, 0]
    return DecisionLog(arm_indices=arms, propensities=np.full(SETS, 1.0 / ARMS), rewards=paid, contexts=contexts)


def truths_of(log: DecisionLog, seed: int = 0):  # type: ignore[no-untyped-def]
    return evidence_of(dim=None, arms=None, sample=None, features=None, log=log, metric=NOTHING_SAID, seed=seed).truths


def linear(contexts: FloatArray, clicks: bool) -> FloatArray:
    values = contexts @ np.array([0.0, 2.0, -2.0, 1.0, -3.0, 1.0])
    return np.asarray(1.0 / (1.0 + np.exp(-values)) if clicks else values)


def bent(contexts: FloatArray) -> FloatArray:
    """The second arm is right where the product of both features is positive, of which no plane knows."""
    product = contexts[:, 0, 1] * contexts[:, 0, 2] > 0.0
    return np.column_stack([np.where(product, 0.2, 0.8), np.where(product, 0.8, 0.2)])


@pytest.mark.parametrize("clicks", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_where_a_plane_says_all_nothing_is_added(clicks: bool, seed: int) -> None:
    contexts = users(seed)
    log = log_of(contexts, linear(contexts, clicks), clicks=clicks, noise=1.0, seed=seed)
    assert [truth.misfit for truth in truths_of(log) if truth.misfit is not None] == []


@pytest.mark.parametrize("clicks", [False, True])
def test_what_no_plane_says_is_learned_and_regret_is_against_the_best_plane(clicks: bool) -> None:
    contexts = users(1)
    means = bent(contexts)
    truths = truths_of(log_of(contexts, means, clicks=clicks, noise=0.4, seed=1))
    payoffs = np.mean([truth.misfit.payoffs for truth in truths], axis=0)
    assert np.corrcoef(payoffs.ravel(), means.ravel())[0, 1] > 0.8, "0 for every plane"
    earned = [means[np.arange(SETS), truth.best].mean() for truth in truths]
    assert 0.5 < np.mean(earned) < 0.65, "a half plane is right in about half of the cases, the best arms earn 0.8"


def test_a_plan_from_such_a_log_expects_the_loss_that_lasts() -> None:
    """Least squares see no slope and no difference between arms, so that a decision loses about the same for ever."""
    contexts = users(2)
    plans = [
        plan(20_000, log=log_of(contexts, means, clicks=True, noise=0.0, seed=2))
        for means in (linear(contexts, True), bent(contexts))
    ]
    assert [made.fits for made in plans] == [True, False]
    for made, words in zip(
        plans, ("a logistic model describes these as well", "No logistic model describes"), strict=True
    ):
        assert words in " ".join(str(made).split())
    straight, misfit = (made.best.regret.expected for made in plans)
    assert misfit > 5.0 * straight
    assert misfit > 0.05 * 20_000


@pytest.mark.parametrize("clicks", [False, True])
@pytest.mark.parametrize("lasting", [False, True])
def test_what_lasts_of_a_user_who_comes_again_is_no_chance(clicks: bool, lasting: bool) -> None:
    """200 users come ten times; what is left over is of the user, or drawn every time."""
    contexts, distinct = users(3, distinct=200), 200
    means = np.full((SETS, ARMS), 0.5)
    if lasting and clicks:
        means = (uniforms(3, "own", 0, distinct, ARMS) < means[:distinct]).astype(float)[np.arange(SETS) % distinct]
    elif lasting:
        means = means + normals(3, "own", 0, distinct, ARMS)[np.arange(SETS) % distinct]
    truths = truths_of(log_of(contexts, means, clicks=clicks, noise=0.5 if lasting else 1.0, seed=3))
    assert all((truth.misfit is not None) == lasting for truth in truths)
    if lasting:
        for truth in truths:
            again = truth.misfit.payoffs.reshape(-1, distinct, ARMS)
            assert (again == again[0]).all()
            assert again.std() > (0.3 if clicks else 0.7)


def test_sets_of_different_sizes_and_few_rewards_are_planned_on() -> None:
    sets = [normals(4, "sets", k, 1, 2 * (2 + k % 3)).reshape(-1, 2) for k in range(40)]
    offered = ContextSets.from_ragged(sets)
    arms = np.zeros(40, dtype=np.int64)
    log = DecisionLog(
        arm_indices=arms,
        propensities=1.0 / offered.available.sum(axis=1),
        rewards=np.arange(40.0) % 3,
        contexts=offered.contexts,
        available=offered.available,
    )
    assert plan(500, log=log).best.regret.expected > 0.0


def test_more_policies_are_worth_it_by_what_they_can_save() -> None:
    """A fifth policy saves 12 % of what can be saved, and 1 % of all that is lost where nine tenths always last."""

    def options(lasting: float) -> list[Option]:
        nothing = PlannedRegret(expected=0.0, low=0.0, high=0.0)
        ratios = {2: 2.0, 3: 1.5, 4: 1.2, 5: 1.06, 6: 1.05}
        return [
            Option(policies=n, ends=(), ratio=lasting + (1.0 - lasting) * ratio, floor=1.0, regret=nothing)
            for n, ratio in ratios.items()
        ]

    assert 1.0 - 1.06 / 1.2 > WORTH > 1.0 - 1.05 / 1.06
    assert [recommended(options(0.0)).policies, recommended(options(0.9), 0.9).policies] == [5, 5]
    assert recommended(options(0.9)).policies < 5
