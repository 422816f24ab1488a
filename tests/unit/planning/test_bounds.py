import json
import math
from itertools import product

import pytest

from rareswitch.errors import ParameterError
from rareswitch.learner import LEARNERS, OFUL, RarelySwitchSupLinUCB, make_learner
from rareswitch.learner.batched import BatchedLearner
from rareswitch.planning import CONTEXTS, bounds_of, proved_rate


@pytest.mark.parametrize("contexts", ["fixed", "stochastic", "adversarial"])
@pytest.mark.parametrize("policies", [None, 1, 3, 6, 1000])
@pytest.mark.parametrize(("dim", "arms", "horizon"), [(1, 1, 2), (10, 20, 10**5), (30, 3, 10**4), (500, 10**9, 10**12)])
def test_every_problem_gets_an_answer(dim: int, arms: int, horizon: int, policies: int | None, contexts: str) -> None:
    found = bounds_of(dim=dim, arms=arms, horizon=horizon, policies=policies, contexts=contexts)  # type: ignore[arg-type]
    assert {found.proven, *(one.learner for one in found.learners)} <= set(LEARNERS)
    for one in found.learners:
        assert one.policies <= (policies or one.policies)
        assert one.order is None or one.order < horizon
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["proven"] == found.proven
    orders = [found.order_with(count) for count in range(1, found.proven_policies + 1)]
    assert orders == sorted(orders, key=lambda order: -(order or math.inf))


SETTINGS = [*product((1, 2, 10, 200), (1, 2, 3000, 2_000_000), (50, 10**5, 10**9), CONTEXTS, (None, 2, 3, 200))]


def test_no_proved_bound_lies_below_what_any_learner_must_pay() -> None:
    """An upper order below a lower one would contradict it: both keep d and ln K, and leave out the same."""
    assert len(SETTINGS) >= 420
    bounds = 0
    for dim, arms, horizon, contexts, policies in SETTINGS:
        advice = bounds_of(dim=dim, arms=arms, horizon=horizon, contexts=contexts, policies=policies)
        for option in advice.learners:
            if option.order is not None:
                bounds += 1
                assert option.order >= advice.minimax, (dim, arms, horizon, contexts, policies, option)
    assert bounds > len(SETTINGS)


def test_what_is_said_of_a_learner_is_what_it_says_of_itself() -> None:
    for dim, arms, horizon, contexts, policies in SETTINGS:
        for option in bounds_of(dim=dim, arms=arms, horizon=horizon, contexts=contexts, policies=policies).learners:
            if option.settings is None:  # it cannot be run with so few policies
                assert option.order is None
                continue
            learner = make_learner(option.learner, dim=dim, arms=arms, horizon=horizon, **option.settings)
            if isinstance(learner, BatchedLearner):
                assert proved_rate(learner, contexts) == option.regret
                assert len(learner.clock.begin()) == option.policies
            else:
                assert isinstance(learner, (OFUL, RarelySwitchSupLinUCB))
                assert proved_rate(learner) == option.regret
                assert learner.switch_bound <= option.policies


def test_with_two_batches_no_learned_design_is_used() -> None:
    options = {one.learner: one for one in bounds_of(dim=20, arms=50, horizon=10**5, policies=2).learners}
    certified = options["batch-linucb-dg-certified"]
    assert certified.regret == "d·√(ln K)·T^0.667, stochastic"
    assert certified.order == options["batch-linucb-kw"].order


@pytest.mark.parametrize(("dim", "arms"), [(2, 10), (10, 2_000_000), (10, 10**9), (5, 149)])
def test_oful_has_the_best_bound_where_sets_are_large_against_the_dimension(dim: int, arms: int) -> None:
    """Table 1: for ln K ≥ Ω(d)."""
    assert math.log(arms) >= dim
    advice = bounds_of(dim=dim, arms=arms, horizon=10**6, contexts="adversarial")
    assert advice.proven == "oful"
    assert "Table 1" in advice.proven_reason
    more = bounds_of(dim=dim, arms=arms**2, horizon=10**6, contexts="adversarial")
    assert [one.order for one in more.learners] == [one.order for one in advice.learners]  # exp(d log T) arms at most
    assert (more.minimax, more.minimax_rate) == (advice.minimax, advice.minimax_rate)


def test_batches_are_for_contexts_that_keep_their_distribution() -> None:
    drift = bounds_of(dim=10, arms=20, horizon=10**5, contexts="adversarial")
    assert drift.proven == "oful"
    assert {one.learner for one in drift.learners} == {"oful", "rarely-switch-suplinucb"}
    assert all(
        one.order is None
        for one in bounds_of(dim=10, arms=20, horizon=10**5, policies=6, contexts="adversarial").learners
    )
    wide = bounds_of(dim=1000, arms=2, horizon=10**12, contexts="adversarial")
    assert wide.proven == "rarely-switch-suplinucb"  # √d is large against log d·ln K


def test_a_fixed_set_is_explored_by_its_own_design() -> None:
    fixed = bounds_of(dim=16, arms=20, horizon=10**4, policies=3, contexts="fixed")
    assert (fixed.proven, fixed.proven_policies) == ("batch-linucb-kw", 3)
    orders = {one.learner: one.order for one in fixed.learners}
    scale = math.sqrt(16 * math.log(20))
    assert orders["batch-linucb-kw"] == pytest.approx(scale * (10**4) ** (4 / 7))
    assert orders["fixed-set-elimination"] == pytest.approx(scale * (10**4) ** (2 / 3))


@pytest.mark.parametrize("dim", [10, 20, 1000])
def test_the_bound_of_the_learned_design_is_not_claimed_where_it_is_not_proved(dim: int) -> None:
    """Theorem 6 needs T ≥ d^32, a certificate or not; what holds is d/√β for a share β of G-optimal play."""
    advice = bounds_of(dim=dim, arms=2000, horizon=10**12)
    assert advice.proven == "batch-linucb-kw"
    orders = {one.learner: one.order for one in advice.learners}
    best = orders["batch-linucb-kw"]
    assert orders["batch-linucb-dg"] == pytest.approx(best / math.sqrt(0.5))
    assert orders["batch-linucb-dg-certified"] == pytest.approx(best / math.sqrt(0.2))
    assert {one.source for one in advice.learners} == {"Theorem 1", "Theorem 2"}


def test_other_kinds_of_contexts_are_refused() -> None:
    with pytest.raises(ParameterError, match="contexts must be fixed, stochastic or adversarial; got 'odd'"):
        bounds_of(dim=5, arms=5, horizon=100, contexts="odd")  # type: ignore[arg-type]
