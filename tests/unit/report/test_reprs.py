"""What a prompt or a notebook shows of a result is short, whatever it holds."""

from collections.abc import Callable

import numpy as np
import pytest

import rareswitch
from rareswitch.experiment import Experiment


@pytest.fixture(scope="module")
def trial() -> Experiment:
    """Of many arms and 200 decisions, with a second policy."""
    arms = [f"an arm with a long name, number {k}" for k in range(40)]
    visitors = [{"age": 18.0 + k % 60, "device": ("ios", "web")[k % 2]} for k in range(200)]
    trial = rareswitch.create(
        "memory:", "short", features=rareswitch.Features.fit(visitors, arms), horizon=2000, seed=1
    )
    trial.decide_many(visitors, arms, ids=range(200))
    trial.reward_many(range(200), [float(k % 3 == 0) for k in range(200)])
    trial.advance(force=True)
    return trial


RESULTS: dict[str, Callable[[Experiment], object]] = {
    "experiment": lambda trial: trial,
    "status": Experiment.status,
    "update": lambda trial: trial.preview(),
    "verification": Experiment.verify,
    "audit": lambda trial: trial.audit(7),
    "log": Experiment.logged,
    "policy": lambda trial: trial.policy,
    "features": lambda trial: trial.policy.features,
    "plan": lambda trial: rareswitch.plan(10_000, dim=5, arms=10),
    "run": lambda trial: rareswitch.simulate(
        rareswitch.make_learner("foresight", dim=2, horizon=200, policies=3),
        rareswitch.make_world("gaussian", dim=2, arms=3),
        seed=1,
    ),
    "decisions": lambda trial: (
        rareswitch.Foresight(dim=2).begin().policy.decide(np.ones((9, 5, 2)), ids=range(9), seed=1)
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_line_on_the_prompt(name: str, trial: Experiment) -> None:
    text = repr(RESULTS[name](trial))
    assert len(text) <= 500
    assert "\n" not in text
