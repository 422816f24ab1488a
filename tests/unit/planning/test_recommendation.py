import json
import math
from itertools import product

import pytest

from rareswitch.errors import ParameterError
from rareswitch.learner import LEARNERS, OFUL, RarelySwitchSupLinUCB, make_learner
from rareswitch.learner.batched import BatchedLearner
from rareswitch.planning import CONTEXTS, proved_rate, recommend


@pytest.mark.parametrize("contexts", ["fixed", "stochastic", "adversarial"])
@pytest.mark.parametrize("policies", [None, 1, 3, 6, 1000])
@pytest.mark.parametrize(("dim", "arms", "horizon"), [(1, 1, 2), (10, 20, 10**5), (30, 3, 10**4), (500, 10**9, 10**12)])
def test_every_problem_gets_an_answer(dim: int, arms: int, horizon: int, policies: int | None, contexts: str) -> None:
    found = recommend(dim=dim, arms=arms, horizon=horizon, policies=policies, contexts=contexts)  # type: ignore[arg-type]
    assert {found.learner, found.proven, *(one.learner for one in found.options)} <= set(LEARNERS)
    for one in found.options:
        assert one.policies <= (policies or one.policies)
        assert one.order is None or one.order < horizon
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["proven"] == found.proven
    assert [need.times for need in found.needs] == sorted((need.times for need in found.needs), reverse=True)
    assert found.needs[-1].times == 1.0


SETTINGS = [*product((1, 2, 10, 200), (1, 2, 3000, 2_000_000), (50, 10**5, 10**9), CONTEXTS, (None, 2, 3, 200))]


def test_no_proved_bound_lies_below_what_any_learner_must_pay() -> None:
    """An upper order below a lower one would contradict it: both keep d and ln K, and leave out the same."""
    assert len(SETTINGS) >= 420
    bounds = 0
    for dim, arms, horizon, contexts, policies in SETTINGS:
        advice = recommend(dim=dim, arms=arms, horizon=horizon, contexts=contexts, policies=policies)
        for option in advice.options:
            if option.order is not None:
                bounds += 1
                assert option.order >= advice.minimax, (dim, arms, horizon, contexts, policies, option)
    assert bounds > len(SETTINGS)


def test_what_is_said_of_a_learner_is_what_it_says_of_itself() -> None:
    for dim, arms, horizon, contexts, policies in SETTINGS:
        for option in recommend(dim=dim, arms=arms, horizon=horizon, contexts=contexts, policies=policies).options:
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
    options = {one.learner: one for one in recommend(dim=20, arms=50, horizon=10**5, policies=2).options}
    certified = options["batch-linucb-dg-certified"]
    assert certified.regret == "d·√(ln K)·T^0.667, stochastic"
    assert certified.order == options["batch-linucb-kw"].order


@pytest.mark.parametrize(("dim", "arms"), [(2, 10), (10, 2_000_000), (10, 10**9), (5, 149)])
def test_oful_has_the_best_bound_where_sets_are_large_against_the_dimension(dim: int, arms: int) -> None:
    """Table 1: for ln K ≥ Ω(d)."""
    assert math.log(arms) >= dim
    advice = recommend(dim=dim, arms=arms, horizon=10**6, contexts="adversarial")
    assert advice.proven == "oful"
    assert "Table 1" in advice.proven_reason
    more = recommend(dim=dim, arms=arms**2, horizon=10**6, contexts="adversarial")
    assert [one.order for one in more.options] == [one.order for one in advice.options]  # exp(d log T) arms at most
    assert (more.minimax, more.minimax_rate) == (advice.minimax, advice.minimax_rate)


def test_batches_are_for_contexts_that_keep_their_distribution() -> None:
    drift = recommend(dim=10, arms=20, horizon=10**5, contexts="adversarial")
    assert (drift.learner, drift.proven) == ("oful", "oful")
    assert {one.learner for one in drift.options} == {"oful", "rarely-switch-suplinucb"}
    assert all(
        one.order is None
        for one in recommend(dim=10, arms=20, horizon=10**5, policies=6, contexts="adversarial").options
    )
    wide = recommend(dim=1000, arms=2, horizon=10**12, contexts="adversarial")
    assert wide.proven == "rarely-switch-suplinucb"  # √d is large against log d·ln K


def test_a_fixed_set_is_explored_by_its_own_design() -> None:
    fixed = recommend(dim=16, arms=20, horizon=10**4, policies=3, contexts="fixed")
    assert (fixed.learner, fixed.proven, fixed.proven_policies) == ("foresight", "batch-linucb-kw", 3)
    orders = {one.learner: one.order for one in fixed.options}
    scale = math.sqrt(16 * math.log(20))
    assert orders["batch-linucb-kw"] == pytest.approx(scale * (10**4) ** (4 / 7))
    assert orders["fixed-set-elimination"] == pytest.approx(scale * (10**4) ** (2 / 3))


@pytest.mark.parametrize("dim", [10, 20, 1000])
def test_the_bound_of_the_learned_design_is_not_claimed_where_it_is_not_proved(dim: int) -> None:
    """Theorem 6 needs T ≥ d^32, a certificate or not; what holds is d/√β for a share β of G-optimal play."""
    advice = recommend(dim=dim, arms=2000, horizon=10**12)
    assert advice.proven == "batch-linucb-kw"
    orders = {one.learner: one.order for one in advice.options}
    best = orders["batch-linucb-kw"]
    assert best is not None
    assert orders["batch-linucb-dg"] == pytest.approx(best / math.sqrt(0.5))
    assert orders["batch-linucb-dg-certified"] == pytest.approx(best / math.sqrt(0.2))
    assert {one.source for one in advice.options} == {"Theorem 1", "Theorem 2"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contexts": "odd"}, "contexts must be fixed, stochastic or adversarial; got 'odd'"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"horizon": 1}, "horizon must be at least 2"),
        ({"policies": 0}, "policies must be at least 1"),
        ({"arms": 2.5}, "arms must be a whole number"),
        ({"horizon": 10**400}, "horizon must be between 2 and"),
    ],
)
def test_bad_problems_are_explained(change: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        recommend(**{"dim": 5, "arms": 5, "horizon": 100} | change)  # type: ignore[arg-type]
