"""A share of ids that keeps the baseline for good: exact propensities, and the lift against it."""

from typing import Any

import numpy as np
import pytest

from rareswitch.core import id_keys
from rareswitch.errors import ParameterError
from rareswitch.evaluation import evaluate
from rareswitch.experiment import Experiment, create
from rareswitch.policy import in_holdout, policy_from_bytes, policy_to_bytes
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
SHARE, SIZE, ARMS = 0.2, 300, 4
THETA = np.array([0.6, -0.3, 0.4])


def begun(**more: Any) -> Experiment:
    settings: dict[str, Any] = {"dim": 3, "policies": 4, "schedule": "by hand", "horizon": 1200, "seed": 7, "now": 0.0}
    return create("memory:", "spring", **settings | {"baseline": True, "holdout": SHARE} | more)


def batch(trial: Experiment, number: int) -> tuple[list[Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The choices of a batch, whose rewards are paid, with the contexts and the baselines."""
    rng = np.random.default_rng(number)
    contexts = rng.standard_normal((SIZE, ARMS, 3)) / 3.0
    shown, ids = rng.integers(ARMS, size=SIZE), range(SIZE * number, SIZE * (number + 1))
    choices = trial.decide_many(contexts, ids=ids, baseline=shown.tolist(), now=float(number))
    means = contexts[np.arange(SIZE), [choice.arm for choice in choices]] @ THETA
    trial.reward_many(ids, (means + 0.1 * rng.standard_normal(SIZE)).tolist(), now=float(number))
    return choices, contexts, shown


def test_the_holdout_keeps_the_baseline_and_propensities_are_those_of_the_whole() -> None:
    trial = begun()
    for number in range(4):
        choices, contexts, shown = batch(trial, number)
        arms = np.array([choice.arm for choice in choices])
        keys = id_keys(range(SIZE * number, SIZE * (number + 1)))
        held = in_holdout(keys, seed=7, share=SHARE)
        assert [choice.cohort == "holdout" for choice in choices] == held.tolist()
        assert (arms[held] == shown[held]).all()  # under every policy
        marginal = trial.policy.probabilities(contexts, baseline=shown)
        assert np.allclose(marginal.sum(axis=1), 1.0)
        assert [choice.propensity for choice in choices] == marginal[np.arange(SIZE), arms].tolist()
        alone = np.eye(ARMS)[shown]
        own = (marginal - SHARE * alone) / (1.0 - SHARE)  # what the policy shows of itself
        assert own.min() >= -1e-12
        for choice in choices[:40]:
            assert trial.audit(choice.id).matches
        assert trial.advance(now=float(number)).made == (number < 3)
    assert policy_from_bytes(policy_to_bytes(trial.policy)).holdout == SHARE
    assert trial.verify().holds
    later = arms[~held] != shown[~held]
    assert later.mean() > 0.5  # the others were changed by updates


def test_the_lift_is_that_of_the_decisions_outside_of_the_holdout() -> None:
    trial = begun()
    truth = []
    for number in range(4):
        _, contexts, shown = batch(trial, number)
        own = (trial.policy.probabilities(contexts, baseline=shown) - SHARE * np.eye(ARMS)[shown]) / (1.0 - SHARE)
        means = contexts @ THETA
        truth.append(((own * means).sum(axis=1) - means[np.arange(SIZE), shown]).mean())
        trial.advance(now=float(number))
    found = evaluate(trial, "baseline")
    whole = found.lift[0]
    assert whole.over == "holdout"
    everybody = found.earned.value - found["baseline"].interval.value
    assert whole.interval.value == pytest.approx(everybody / (1.0 - SHARE))
    assert whole.interval.low <= np.mean(truth) <= whole.interval.high
    assert trial.status(now=5.0).lift is not None
    assert "Lift over the holdout" in str(trial.status(now=5.0))
    assert "Holdout: 20 % of ids keep the baseline." in str(trial.status(now=5.0))


def test_a_log_of_honest_propensities_has_no_mismatch_with_the_holdout() -> None:
    trial = begun(min_propensity=0.02)
    batch(trial, 0)
    trial.advance(now=0.0)
    batch(trial, 1)
    evaluation = evaluate(trial, trial.policy)
    assert not any("recorded propensities" in reason for value in evaluation.values for reason in value.refusals)
    assert trial.preview(gate=True, now=1.0).gate is not None  # which compares recorded propensities with the policy's


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"baseline": None}, "holdout: these ids keep the baseline"),
        ({"holdout": 1.0}, "holdout must be below 1"),
        ({"holdout": 0.0}, "above 0 and at most 1"),
        ({"learner": "batch-linucb-dg", "arms": 4, "policies": 2}, "cannot leave decisions to a baseline"),
    ],
)
def test_a_holdout_that_cannot_be_is_refused(more: dict[str, Any], message: str) -> None:
    raises(ParameterError, message, begun, **more)


def test_every_request_names_its_baseline() -> None:
    trial = begun()
    batch(trial, 0)
    trial.advance(now=0.0)
    raises(ParameterError, "With a holdout, which keeps it, every request does", trial.decide, np.eye(3), id="none")
