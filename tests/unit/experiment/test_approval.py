"""Policies that wait for approval."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.errors import ConflictError, ParameterError
from rareswitch.experiment import Experiment, create, open_experiment
from rareswitch.policy import new_key
from reference.commands import printed
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
NAMES = ["red", "blue", "green"]


def begun(url: str = "memory:", **more: Any) -> Experiment:
    settings: dict[str, Any] = {"dim": 3, "horizon": 400, "policies": 4, "schedule": "by hand", "seed": 7, "now": 0.0}
    return create(url, "spring", **settings | {"approval": True} | more)


def play(trial: Experiment, first: int, count: int = 50) -> None:
    """Decisions among three arms, of which blue pays."""
    ids = range(first, first + count)
    choices = trial.decide_many([np.eye(3)] * count, arms=NAMES, ids=ids, now=0.0)
    trial.reward_many(ids, [float(choice.arm == "blue") + 0.01 * (int(choice.id) % 3) for choice in choices], now=0.0)


def test_a_proposal_is_replaced_by_a_later_one_and_published_when_it_is_approved() -> None:
    trial = begun()
    raises(ParameterError, "no policy of experiment 'spring' waits for approval", trial.approve)
    play(trial, 0)
    first = trial.advance(now=1.0)
    assert (first.proposed, first.made, first.version) == (True, False, 2)
    assert len(trial.versions) == 1
    before, after = first.changes.arms["blue"]
    assert (after > 0.8, first.changes.requests) == (True, 50)
    assert before == sum(trial.decide(np.eye(3), arms=NAMES, id=k).arm == "blue" for k in range(50)) / 50
    assert f"Changes: none until policy 2 ({first.policy_id[:12]}…) is approved (approve())." in str(first)
    play(trial, 50)
    second = trial.advance(now=2.0)
    assert second.policy_id != first.policy_id
    assert (trial.proposal.policy_id, trial.proposal.decided) == (second.policy_id, 100)
    raises(ConflictError, "does not wait for approval: another one", trial.approve, first.policy_id)
    made = trial.approve(second.policy_id, now=3.0)
    assert (made.made, made.version, trial.policy.id) == (True, 2, second.policy_id)
    assert trial.proposal is None
    assert trial.verify().holds
    play(trial, 100)
    trial.advance(now=4.0)
    trial.reject()
    assert (trial.proposal, len(trial.versions)) == (None, 2)


def test_who_approves_signs(tmp_path: Path) -> None:
    url, key = f"sqlite:///{tmp_path}/trials.db", new_key("hmac")
    begun(url, key=key).close()
    with open_experiment(url, "spring") as keyless:  # a job without the key may propose
        play(keyless, 0)
        proposed = keyless.advance(now=1.0)
        raises(ParameterError, "is signed", keyless.approve)
    with open_experiment(url, "spring", key=key) as trial:
        assert trial.approve(now=2.0).policy_id == proposed.policy_id
    with open_experiment(url, "spring", key=key) as trial:
        assert (trial.signature, trial.policy.id) == ("checked", proposed.policy_id)


def test_a_preview_says_what_would_change() -> None:
    trial = begun(approval=False)
    play(trial, 0)
    changes = trial.preview(now=1.0).changes
    assert changes.share > 0.3
    text = str(trial.preview(now=1.0))
    assert " of 50 requests: blue " in text
    assert trial.advance(now=1.0).made
    decided = [trial.policy.decide(np.eye(3), ids=k, seed=7).arms for k in range(50)]
    assert changes.arms["blue"][1] == np.mean(np.array(decided) == 1)  # what it decides under these ids


def test_the_command_line_approves_and_rejects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    created = ["--dim", "3", "--horizon", "400", "--schedule", "by hand", "--approval", "required"]
    assert main(["experiment", "create", url, "spring", *created]) == 0
    with open_experiment(url, "spring") as trial:
        play(trial, 0)
    assert main(["experiment", "reject", url, "spring"]) == 0
    assert "rareswitch experiment approve" in printed(capsys, "experiment", "advance", url, "spring", "--quiet")
    assert main(["experiment", "approve", url, "spring", "--policy-id", "other"]) == 2
    assert "Changes: policy 2" in printed(capsys, "experiment", "approve", url, "spring")
    assert main(["experiment", "approve", url, "spring"]) == 2
