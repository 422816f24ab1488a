import json

import pytest

from rareswitch.errors import ParameterError
from rareswitch.learner import LEARNERS, recommend


@pytest.mark.parametrize("contexts", ["fixed", "stochastic", "adversarial"])
@pytest.mark.parametrize("updates", [None, 1, 3, 6, 1000])
@pytest.mark.parametrize(("dim", "arms", "horizon"), [(1, 1, 2), (10, 20, 10**5), (30, 3, 10**4), (500, 10**9, 10**12)])
def test_every_problem_gets_an_answer(dim: int, arms: int, horizon: int, updates: int | None, contexts: str) -> None:
    found = recommend(dim=dim, arms=arms, horizon=horizon, updates=updates, contexts=contexts)  # type: ignore[arg-type]
    assert {found.learner, found.proven, *(one.learner for one in found.options)} <= set(LEARNERS)
    for one in found.options:
        assert one.policies <= (updates or one.policies)
        assert one.order is None or one.order < horizon
    assert json.loads(json.dumps(found.summary(), allow_nan=False))["proven"] == found.proven
    assert [need.times for need in found.needs] == sorted((need.times for need in found.needs), reverse=True)
    assert found.needs[-1].times == 1.0


def test_batches_are_for_contexts_that_keep_their_distribution() -> None:
    drift = recommend(dim=10, arms=20, horizon=10**5, contexts="adversarial")
    assert (drift.learner, drift.proven) == ("oful", "rarely-switch-suplinucb")
    assert {one.learner for one in drift.options} == {"oful", "rarely-switch-suplinucb"}
    assert all(
        one.order is None
        for one in recommend(dim=10, arms=20, horizon=10**5, updates=6, contexts="adversarial").options
    )
    many = recommend(dim=2, arms=10**6, horizon=10**5, contexts="adversarial")
    assert many.proven == "oful"


def test_a_fixed_set_is_explored_by_its_own_design() -> None:
    fixed = recommend(dim=16, arms=20, horizon=10**4, updates=3, contexts="fixed")
    assert (fixed.learner, fixed.proven, fixed.proven_updates) == ("foresight", "batch-linucb-kw", 3)
    orders = {one.learner: one.order for one in fixed.options}
    assert orders["batch-linucb-kw"] == pytest.approx(4.0 * (10**4) ** (4 / 7))
    assert orders["fixed-set-elimination"] == pytest.approx(4.0 * (10**4) ** (2 / 3))


def test_the_bound_of_the_learned_design_is_not_claimed_where_it_is_not_proved() -> None:
    options = {one.learner: one for one in recommend(dim=10, arms=20, horizon=10**5).options}
    assert options["batch-linucb-dg"].order is None  # T > exp(10)
    assert options["batch-linucb-dg-certified"].order is None
    options = {one.learner: one for one in recommend(dim=20, arms=20, horizon=10**5).options}
    assert options["batch-linucb-dg"].order is None  # T < 20^32
    assert options["batch-linucb-dg-certified"].order is not None


def test_few_batches_change_who_is_best() -> None:
    """With three, a learned design costs one of them: T^(2/3) against T^(4/7)."""
    assert recommend(dim=20, arms=50, horizon=10**5).proven == "batch-linucb-dg-certified"
    assert recommend(dim=20, arms=50, horizon=10**5, updates=3).proven == "batch-linucb-kw"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contexts": "odd"}, "contexts must be fixed, stochastic or adversarial; got 'odd'"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"horizon": 1}, "horizon must be at least 2"),
        ({"updates": 0}, "updates must be at least 1"),
        ({"arms": 2.5}, "arms must be a whole number"),
        ({"horizon": 10**400}, "horizon must be between 2 and"),
    ],
)
def test_bad_problems_are_explained(change: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        recommend(**{"dim": 5, "arms": 5, "horizon": 100} | change)  # type: ignore[arg-type]
