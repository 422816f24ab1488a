"""A least probability for arms: exact, also for arms that were eliminated, and with the ids of those without it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.design import MixedArgmax, Uniform
from rareswitch.errors import EmptySetError, FileFormatError, ParameterError, ShapeError
from rareswitch.evaluation import evaluate
from rareswitch.features import Arms, Features, Number
from rareswitch.lab.distributions import Gaussian, VaryingArms
from rareswitch.learner import LEARNERS, Foresight, Learner, make_learner, state_from_bytes, state_to_bytes
from rareswitch.planning import known_regret
from rareswitch.policy import (
    Baseline,
    Blend,
    Elimination,
    MinPropensity,
    Policy,
    load_policy,
    new_key,
    policy_from_bytes,
    policy_to_bytes,
    save_policy,
)
from reference.refusals import raises

DIM, ARMS, LEAST = 3, 5, 0.04
#: Learners that cannot have a floor: they change at every step, or sort decisions by the layer that made them.
REFUSING = {"linucb", "thompson", "linmed", "suplinrel", "suplinucb", "rarely-switch-suplinucb"}


def argmax(matrix: FloatArray) -> MixedArgmax:
    return MixedArgmax(weights=np.ones(1), matrices=matrix[None], g_optimal_share=0.0)


def sets(count: int) -> ContextSets:
    """Sets in which some arms are missing."""
    drawn = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(count, seed=3)
    return ContextSets(drawn.contexts, drawn.available)


def eliminating(**told: Any) -> Policy:
    """A policy that leaves one arm of almost every set, and plays the best."""
    sharp = Elimination.of(np.array([1.0, 0.5, -0.5]), 1e6 * np.eye(DIM), 1.0)
    return Policy(dim=DIM, sampler=argmax(np.diag([1.0, 2.0, 3.0])), eliminations=(sharp,), **told)


def test_every_offered_arm_has_the_minimum_propensity_and_the_rest_is_as_before() -> None:
    some = sets(50)
    before, after = (
        eliminating().probabilities(some),
        eliminating(min_propensity=MinPropensity(least=LEAST)).probabilities(some),
    )
    offered = some.available.sum(axis=1, keepdims=True)
    wanted = np.where(some.available, LEAST + (1.0 - offered * LEAST) * before, 0.0)
    assert np.abs(after - wanted).max() < 1e-15
    assert np.abs(after.sum(axis=1) - 1.0).max() < 1e-12
    assert (after[some.available] >= LEAST).all()
    assert (after[~some.available] == 0.0).all()
    gone = some.available & ~eliminating().survivors(some)
    assert gone.any()
    assert (after[gone] == LEAST).all()
    assert (
        eliminating(min_propensity=MinPropensity(least=LEAST)).survivors(some) == eliminating().survivors(some)
    ).all()


def test_the_minimum_propensity_of_some_arms_leaves_the_others_alone() -> None:
    some = sets(50)
    mask = np.random.default_rng(1).random(some.available.shape) < 0.4
    protected = eliminating(min_propensity=MinPropensity(least=0.1, arms=("a",))).probabilities(some, protected=mask)
    mine = mask & some.available
    wanted = (1.0 - 0.1 * mine.sum(axis=1, keepdims=True)) * eliminating().probabilities(some) + 0.1 * mine
    assert np.abs(protected - wanted).max() < 1e-15
    none = eliminating(min_propensity=MinPropensity(least=0.1, arms=("a",))).probabilities(
        some, protected=np.zeros_like(mask)
    )
    assert (none == eliminating().probabilities(some)).all()


def test_a_decision_hangs_on_seed_and_id_alone() -> None:
    some, policy = sets(40), eliminating(min_propensity=MinPropensity(least=LEAST))
    many = policy.decide(some, ids=range(40), seed=5)
    for s in range(0, 40, 7):
        one = policy.decide(some.contexts[s], some.available[s], ids=s, seed=5)
        assert (one.arms, one.propensities) == (many.arms[s], many.propensities[s])
    named = eliminating(min_propensity=MinPropensity(least=LEAST, arms=("a",)))
    mask = np.random.default_rng(1).random(some.available.shape) < 0.5
    many = named.decide(some, ids=range(40), seed=5, protected=mask)
    assert (many.propensities == named.probabilities(some, protected=mask)[range(40), many.arms]).all()
    assert (many.survivors == eliminating().decide(some, ids=range(40), seed=5).survivors).all()
    one = named.decide(some.contexts[3], some.available[3], ids=3, seed=5, protected=mask[3])
    assert (one.arms, one.propensities) == (many.arms[3], many.propensities[3])


def test_one_arm_is_played_with_certainty_whatever_the_minimum_propensity() -> None:
    for least in (0.02, 1.0):
        policy = Policy(dim=1, sampler=Uniform(), min_propensity=MinPropensity(least=least))
        assert policy.probabilities([[1.0]]).tolist() == [1.0]


def test_a_minimum_propensity_may_take_all() -> None:
    even = Policy(dim=1, sampler=argmax(np.eye(1)), min_propensity=MinPropensity(least=1.0 / 49))
    assert np.abs(even.probabilities(np.arange(49.0)[:, None]) - 1.0 / 49).max() < 1e-12


def test_too_large_a_minimum_propensity_is_refused_where_it_is_met() -> None:
    policy = Policy(dim=1, sampler=Uniform(), min_propensity=MinPropensity(least=0.3))
    three, four = np.ones((2, 3, 1)), np.ones((2, 4, 1))
    assert policy.probabilities(three).shape == (2, 3)
    with pytest.raises(ParameterError, match=r"at most 3 arms of a set.*set 0 offers 4 of them.*at most 0\.25"):
        policy.decide(four, ids=[1, 2], seed=0)
    fewer = np.array([[True] * 3 + [False], [True] * 4])
    raises(ParameterError, "set 1 offers 4", policy.probabilities, four, fewer)
    named = Policy(dim=1, sampler=Uniform(), min_propensity=MinPropensity(least=0.3, arms=("a",)))
    assert named.probabilities(four, protected=fewer & [True, True, False, False]).shape == (2, 4)


def test_what_leaves_no_arm_is_refused_with_a_minimum_propensity_too() -> None:
    class Overflowing:
        def probabilities(self, contexts: Any, available: Any = None) -> Any:
            return np.zeros(contexts.available.shape)

    policy = Policy(dim=1, sampler=Overflowing(), min_propensity=MinPropensity(least=0.1))
    raises(EmptySetError, "no arm of set 0", policy.decide, [[[1.0], [2.0]]], ids=[1], seed=0)


@pytest.mark.parametrize("least", [0.0, -0.1, 1.5, math.nan, "much", None, True])
def test_a_minimum_propensity_is_a_probability(least: Any) -> None:
    raises(ParameterError, "least, the minimum propensity of an arm", MinPropensity, least=least)


@pytest.mark.parametrize("arms", [(), "a", [1.5], [True], 3, ["a", "a"], [3, "3"]])
def test_arms_of_a_minimum_propensity_are_ids(arms: Any) -> None:
    raises(ParameterError, "arms of a minimum propensity", MinPropensity, least=0.1, arms=arms)


def test_where_protected_arms_stand_must_be_said() -> None:
    policy, contexts = (
        Policy(dim=1, sampler=Uniform(), min_propensity=MinPropensity(least=0.1, arms=("a",))),
        np.ones((2, 3, 1)),
    )
    with pytest.raises(ParameterError, match=r"protected must be given.*booleans of shape \(2, 3\)"):
        policy.decide(contexts, ids=[1, 2], seed=0)
    for wrong in (np.ones((2, 3)), [[True] * 3], [[True], [True, False]]):
        raises(ShapeError, "protected must", policy.probabilities, contexts, protected=wrong)
    with pytest.raises(ShapeError, match="mask would be lost"):
        policy.probabilities(
            contexts, protected=np.ma.array(np.ones((2, 3), dtype=bool), mask=np.eye(2, 3, dtype=bool))
        )
    raises(ParameterError, "have no ids", MinPropensity(least=0.1, arms=("a",)).of_codes, None, None)
    assert MinPropensity(least=0.1).of_codes(None, None) is None


def test_a_minimum_propensity_is_part_of_the_content() -> None:
    assert eliminating().id != eliminating(min_propensity=MinPropensity(least=LEAST)).id
    same = [MinPropensity(least=LEAST, arms=arms) for arms in (("a", "b"), ("b", "a"))]
    assert same[0] == same[1]
    assert eliminating(min_propensity=same[0]).id == eliminating(min_propensity=same[1]).id


@pytest.mark.parametrize("min_propensity", [MinPropensity(least=LEAST), MinPropensity(least=LEAST, arms=("a", "b"))])
def test_a_file_carries_the_minimum_propensity(min_propensity: MinPropensity, tmp_path: Path) -> None:
    policy, key = eliminating(min_propensity=min_propensity), new_key("hmac")
    save_policy(policy, tmp_path / "p", key=key)
    again = load_policy(tmp_path / "p", key=key)
    assert (again.id, again.min_propensity) == (policy.id, min_propensity)
    some = sets(20)
    told: dict[str, Any] = {"ids": range(20), "seed": 1, "protected": some.available}
    assert (again.decide(some, **told).arms == policy.decide(some, **told).arms).all()
    data = policy_to_bytes(policy)
    for old, new in ((b"0.04", b"0.05"), (b"min_propensity", b"flaor")):
        raises(FileFormatError, None, policy_from_bytes, data.replace(old, new))


def test_records_know_the_arms_by_their_ids() -> None:
    age = Number("age", mean=40, scale=10, alone=False)
    features = Features(fields=[age], arms=Arms(ids=["a", "b", "7"], own=["age"]))
    min_propensity = MinPropensity(least=0.2, arms=("b", "7", "never seen"))
    best = argmax(np.eye(features.dim))
    policy = Policy(dim=features.dim, sampler=best, features=features, min_propensity=min_propensity)
    for offered, mask in ((["a", "b"], [False, True]), ([7, "a", "b"], [True, False, True]), (["a"], [False])):
        encoded = features.encode({"age": 31}, offered)
        for k in range(20):
            chosen = policy.decide_records({"age": 31}, offered, id=k, seed=3)
            made = policy.decide(encoded.vectors, ids=k, seed=3, protected=mask)
            assert (chosen.arm_index, chosen.propensity) == (int(made.arms), float(made.propensities))


def test_a_minimum_propensity_and_a_baseline_go_together() -> None:
    first = Foresight(dim=2).begin(baseline=0.2, min_propensity=MinPropensity(least=0.05)).policy
    assert isinstance(first.sampler, Blend)
    assert isinstance(first.sampler.main, Baseline)
    found = first.probabilities([[1.0, 0.0], [0.0, 1.0]], baseline=1)
    assert found.round(6).tolist() == [0.14, 0.86]


def after_a_batch(learner: Learner, min_propensity: MinPropensity) -> Any:
    state = learner.begin(min_propensity=min_propensity)
    x = np.eye(DIM)[None].repeat(60, axis=0)
    mask = np.ones(x.shape[:2], dtype=bool)
    made = state.policy.decide(x, ids=range(60), seed=1, protected=mask)
    rewards = x[np.arange(60), made.arms, 0] + 0.01 * np.random.default_rng(1).standard_normal(60)
    return learner.next(state, learner.summarize(state, DecisionLog.of(x, made, rewards)))


@pytest.mark.parametrize("name", LEARNERS)
def test_every_policy_of_a_run_has_the_minimum_propensity(name: str) -> None:
    sizes = {"dim": DIM, "arms": DIM, "horizon": 1000}
    learner, min_propensity = make_learner(name, **sizes), MinPropensity(least=0.03, arms=("a",))
    if name in REFUSING:
        raises(ParameterError, f"min_propensity: {name}", learner.begin, min_propensity=min_propensity)
        return
    state = after_a_batch(learner, min_propensity)
    assert (state.policies, state.policy.min_propensity) == (2, min_propensity)
    assert state_from_bytes(state_to_bytes(state)).policy.min_propensity == min_propensity
    assert "leaves to the learner" in str(known_regret(learner, state))
    assert "leaves to the learner" not in str(known_regret(learner, learner.begin()))


def test_what_is_certified_is_not_of_the_minimum_propensity() -> None:
    note = after_a_batch(Foresight(dim=DIM, horizon=1000), MinPropensity(least=0.03)).notes[-1]
    assert note["min_propensity"] == 0.03
    assert note["certificate"] >= 0.0


def test_logs_tell_an_evaluation_where_the_arms_of_a_minimum_propensity_stood() -> None:
    """What the floored policy decided is what it would have earned: weights are 1."""
    count, rng = 400, np.random.default_rng(4)
    contexts, codes = rng.standard_normal((count, 3, DIM)), np.array([rng.permutation(3) for _ in range(count)])
    policy = eliminating(min_propensity=MinPropensity(least=0.2, arms=("b", "c")))
    made = policy.decide(contexts, ids=range(count), seed=2, protected=codes > 0)
    columns: dict[str, Any] = {"arm_indices": made.arms, "propensities": made.propensities, "contexts": contexts}
    rewards = rng.random(count)
    names: dict[str, Any] = {"batch_names": (policy.id,), "policies": {policy.id: policy}}
    log = DecisionLog(**columns, rewards=rewards, arms=("a", "b", "c"), codes=codes, **names)
    assert (log.probabilities_of(policy)[np.arange(count), made.arms] == made.propensities).all()
    np.testing.assert_array_equal(log.with_behavior_probs().behavior_probs, log.probabilities_of(policy))
    value = evaluate(log, policy, estimator="ips").values[0]
    assert value.interval is not None
    raises(ParameterError, "have no ids", evaluate, DecisionLog(**columns, rewards=rewards), policy)
