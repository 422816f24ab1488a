"""A start that is not blind: the arm that the caller names, but for a share of exploration."""

from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, IntArray
from rareswitch.decisions import DecisionLog
from rareswitch.design import GOptimal, Uniform
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lab.distributions import Gaussian, VaryingArms
from rareswitch.learner import LEARNERS, Foresight, Learner, make_learner
from rareswitch.policy import Baseline, Blend, Elimination, Policy, policy_from_bytes, policy_to_bytes
from reference.loop import BEGIN_WITH_LOGS
from reference.refusals import raises

DIM, ARMS, SHARE = 3, 5, 0.3
#: Learners whose arms are unit vectors.
PLAIN = ("base", "fixed-set-elimination", "e4")


def first() -> Policy:
    return Foresight(dim=DIM).begin(baseline=SHARE).policy


def sets_and_named(count: int) -> tuple[ContextSets, IntArray]:
    """Sets in which some arms are missing, and an available arm of each."""
    drawn = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(count, seed=3)
    sets = ContextSets(drawn.contexts, drawn.available)
    return sets, np.array([np.flatnonzero(row)[s % row.sum()] for s, row in enumerate(sets.available)])


def test_the_named_arm_is_played_but_for_the_share_that_the_design_has() -> None:
    sets, named = sets_and_named(40)
    wanted = SHARE * GOptimal(tol=1.0).probabilities(sets)
    wanted[np.arange(40), named] += 1.0 - SHARE
    assert np.abs(first().probabilities(sets, baseline=named) - wanted).max() < 1e-15
    assert (
        np.abs(first().probabilities(sets.contexts[0], sets.available[0], baseline=named[0]) - wanted[0]).max() < 1e-15
    )


def test_one_decision_is_that_of_many() -> None:
    sets, named = sets_and_named(20)
    many = first().decide(sets, ids=range(20), seed=5, baseline=named)
    probabilities = first().probabilities(sets, baseline=named)
    assert (many.propensities == probabilities[range(20), many.arms]).all()
    for s in range(20):
        one = first().decide(sets.contexts[s], sets.available[s], ids=s, seed=5, baseline=int(named[s]))
        assert (one.arms, one.propensities) == (many.arms[s], many.propensities[s])


def test_a_request_that_names_no_arm_is_refused_with_the_remedy() -> None:
    raises(ParameterError, r"baseline must be named .* pass baseline=…", first().decide, np.eye(DIM), ids=1, seed=5)


@pytest.mark.parametrize("named", [0.5, "b", [0, 1], None])
def test_what_is_no_place_of_an_arm_is_refused(named: Any) -> None:
    raises(ShapeError, "place of the arm", first().decide, np.eye(DIM)[None], ids=[1], seed=5, baseline=[named])


@pytest.mark.parametrize("named", [-1, 1, 3])
def test_an_arm_that_is_not_available_is_refused(named: int) -> None:
    with pytest.raises(ParameterError, match=rf"available arm; .* 0 to 2, and {named} was named"):
        first().decide(np.eye(DIM), np.array([True, False, True]), ids=1, seed=5, baseline=named)


def test_policies_without_a_baseline_do_not_look_at_one() -> None:
    sets, named = sets_and_named(9)
    policy = Policy(dim=DIM, sampler=Uniform())
    assert (policy.probabilities(sets, baseline=named) == policy.probabilities(sets)).all()


def test_a_first_policy_with_a_baseline_goes_through_its_file() -> None:
    policy = first()
    again = policy_from_bytes(policy_to_bytes(policy))
    assert again.id == policy.id != Foresight(dim=DIM).begin().policy.id
    sets, named = sets_and_named(9)
    assert (again.probabilities(sets, baseline=named) == policy.probabilities(sets, baseline=named)).all()


def test_a_named_arm_cannot_have_been_eliminated() -> None:
    elimination = Elimination.of(np.zeros(DIM), np.eye(DIM), 1.0)
    blend = Blend(main=Baseline(), explorer=Uniform(), share=0.5)
    raises(ParameterError, "before any elimination", Policy, dim=DIM, sampler=blend, eliminations=(elimination,))


def made(name: str) -> Learner:
    told = {"dim": DIM, "arms": DIM if name in PLAIN else ARMS, "horizon": 600, "noise": 0.3}
    taken = set(LEARNERS[name].__dataclass_fields__)
    return make_learner(name, **{key: value for key, value in told.items() if key in taken})


@pytest.mark.parametrize("name", BEGIN_WITH_LOGS)
def test_learners_begin_with_a_baseline_and_go_on_without_it(name: str) -> None:
    learner = made(name)
    state = learner.begin(baseline=SHARE)
    sets, named = sets_and_named(300)
    theta = np.array([0.8, -0.5, 0.2])
    decisions = state.policy.decide(sets, ids=range(300), seed=1, baseline=named)
    rewards = sets.contexts[np.arange(300), decisions.arms] @ theta
    later = learner.next(state, learner.summarize(state, DecisionLog.of(sets, decisions, rewards)))
    fresh, _ = sets_and_named(50)
    chosen = later.policy.decide(fresh, ids=range(50), seed=1).arms
    values = np.where(fresh.available, fresh.contexts @ theta, -np.inf)
    assert (
        (values[np.arange(50), chosen]).mean()
        > np.where(fresh.available, values, 0.0).sum() / fresh.available.sum() + 0.1
    )


@pytest.mark.parametrize("name", sorted(LEARNERS.keys() - set(BEGIN_WITH_LOGS)))
def test_learners_whose_later_policies_rest_on_the_first_refuse_a_baseline(name: str) -> None:
    with pytest.raises(ParameterError, match=f"first policy of {name} .* Use foresight, or begin without a baseline"):
        made(name).begin(baseline=SHARE)


@pytest.mark.parametrize("share", [-0.1, 1.5, True, "much"])
def test_a_share_lies_between_none_and_all(share: object) -> None:
    raises(ParameterError, "share of the first policy's decisions", Foresight(dim=2).begin, baseline=share)
