"""Whatever was learned once is learned again from what was kept; and what is not is told."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rareswitch.core import Stats, canonical_json
from rareswitch.experiment import Experiment, create, open_experiment
from rareswitch.experiment.versions import Version, signature_of, signed_text
from rareswitch.learner import Summary, summaries_to_bytes
from rareswitch.learner.foresight import PlannedExploration
from rareswitch.learner.rule import BatchEnd, NewPolicy
from rareswitch.policy import Blend, PosteriorDraws
from reference.trials import advance_batch

DEPLOYABLE: dict[str, dict[str, Any]] = {
    "foresight": {"policies": 4, "intercept": True},
    "batch-linucb": {"arms": 5},
    "batch-linucb-kw": {"arms": 5, "noise": 0.5},
    "batch-linucb-dg": {"arms": 5, "noise": 0.1, "confidence": 0.3},
    "batch-linucb-dg-certified": {"arms": 5, "noise": 0.1, "confidence": "tight"},
    "linucb-grid": {"arms": 5, "policies": 4},
    "thompson-grid": {"arms": 5, "policies": 4},
    "pure-exploitation": {"arms": 5},
    "rho": {"arms": 5, "policies": 4},
    "falcon": {"arms": 5, "policies": 4},
    "fixed-set-elimination": {"arms": 5, "policies": 4},
    "linmed-grid": {"arms": 5, "policies": 4},
    "e4": {"arms": 5, "noise": 0.5},
    "base": {"dim": 5, "arms": 5},
}


def begun(url: str, learner: str = "foresight", **settings: Any) -> Experiment:
    told: dict[str, Any] = {"dim": 3, "horizon": 300, "seed": 5, "now": 0.0}
    return create(
        url,
        "spring",
        learner=learner,
        **told | {"policies": 4} | settings if learner == "foresight" else told | settings,
    )


def with_summaries(trial: Experiment, number: int, change: Callable[[Summary], Summary]) -> None:
    """Put other summaries into a version, as if it had been published with them."""
    versions = trial._versions
    row, experiment = versions.numbered(number).row, versions.experiment
    batch, *late = Version(row, "", None).summaries
    changed = row._replace(summaries=summaries_to_bytes([change(batch), *late]))
    hashed = canonical_json(signature_of(signed_text(experiment, changed), None)).decode()
    other = Version(changed._replace(signature=hashed), experiment, None)
    versions.known = (*versions.known[: number - 1], other, *versions.known[number:])


@pytest.mark.parametrize(("learner", "settings"), DEPLOYABLE.items())
def test_an_experiment_in_a_file_goes_on_as_one_in_memory_and_is_learned_again(
    learner: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    env = {"fixed-set-elimination": "fixed", "e4": "fixed", "base": "plain"}.get(learner, "gaussian")
    trials = [begun(url, learner, **settings) for url in ("memory:", f"sqlite:///{tmp_path}/spring.db")]
    for trial in trials:
        advance_batch(trial, env=env)
    trials[1] = open_experiment(f"sqlite:///{tmp_path}/spring.db", "spring")
    for trial in trials:
        advance_batch(trial, env=env)
    ids = [[policy.id for policy in trial.policies] for trial in trials]
    assert ids[0] == ids[1]
    found = open_experiment(f"sqlite:///{tmp_path}/spring.db", "spring").verify()
    assert [entry.verdict for entry in found.policies] == ["same"] * 3
    assert found.holds
    assert found.as_dict()["sums"]


def test_opening_learns_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advance_batch(begun(f"sqlite:///{tmp_path}/spring.db"))

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("something was learned")

    monkeypatch.setattr("rareswitch.learner.foresight.PlannedExploration.next", refuse)
    monkeypatch.setattr("rareswitch.learner.foresight.PlannedExploration.first", refuse)
    assert len(open_experiment(f"sqlite:///{tmp_path}/spring.db", "spring").policies) == 2


def test_a_changed_planner_changes_what_comes_and_not_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = begun("memory:")
    for _ in range(2):
        advance_batch(trial)
    before = [policy.id for policy in trial.policies]
    monkeypatch.setattr("rareswitch.belief.planning.SCALES", (0.1, 0.6))
    monkeypatch.setattr("rareswitch.belief.planning.TRUTHS", 64)
    found = trial.verify()
    assert [entry.verdict for entry in found.policies] == ["same", "otherwise", "otherwise"]
    assert (found.holds, found.sums) == (False, True)
    assert f"Policy 2 ({before[1][:12]}…): NOT reproduced" in str(found)
    assert "The policies stay as they are, and the experiment can go on." in str(found)
    assert [policy.id for policy in trial.policies] == before
    assert advance_batch(trial).version == 4


def test_verifying_says_what_cannot_be_learned_at_all() -> None:
    trial = begun("memory:")
    for _ in range(2):
        advance_batch(trial)
    with_summaries(
        trial, 3, lambda one: replace(one, rewarded=0, stats=tuple(Stats.zero(stats.dim) for stats in one.stats))
    )
    found = trial.verify()
    assert [entry.verdict for entry in found.policies] == ["same", "same", "otherwise"]
    assert "nothing to learn from" in str(found)
    assert not found.sums


def test_what_learning_again_does_not_give_is_told() -> None:
    trial = begun("memory:")
    advance_batch(trial)
    with_summaries(trial, 2, lambda one: replace(one, stats=(one.stats[0] + Stats.of([[1.0, 0.0, 0.0, 1.0]], [1.0]),)))
    found = trial.verify()
    assert [entry.verdict for entry in found.policies] == ["same", "otherwise"]
    assert "The sums in the state are not those of the summaries." in str(found)


def test_an_experiment_is_verified_on_another_kind_of_processor(tmp_path: Path) -> None:
    """Where BLAS sums in another order, the policies that are learned again differ in their last bits."""
    trial = begun(f"sqlite:///{tmp_path}/spring.db")
    for _ in range(2):
        advance_batch(trial)
    script = (
        "import sys; from rareswitch.experiment import open_experiment; "
        "trial = open_experiment(sys.argv[1], 'spring'); print(trial.policy.id, trial.verify().holds)"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, f"sqlite:///{tmp_path}/spring.db"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OPENBLAS_CORETYPE": "Nehalem"},
    ).stdout
    assert out.split() == [trial.policy.id, "True"]


def test_policies_that_differ_by_rounding_must_decide_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are close are not enough: the arms of stored requests are compared too."""
    trial = begun("memory:")
    advance_batch(trial)
    advance_batch(trial)
    next_policy, factor = PlannedExploration.next, 1.0 + 1e-12

    def shaken(self: PlannedExploration, ended: BatchEnd) -> NewPolicy:
        made = next_policy(self, ended)
        sampler = made.policy.sampler
        main = sampler.main if isinstance(sampler, Blend) else sampler
        assert isinstance(main, PosteriorDraws)
        other = PosteriorDraws(draws=factor * main.draws)
        sampler = replace(sampler, main=other) if isinstance(sampler, Blend) else other
        return made._replace(policy=replace(made.policy, sampler=sampler))

    monkeypatch.setattr(PlannedExploration, "next", shaken)
    found = trial.verify()
    assert [entry.verdict for entry in found.policies] == ["same", "rounding", "rounding"]
    first, second = (counts.decisions for counts in trial.store.counts())
    assert [entry.decisions for entry in found.policies] == [0, first + second, second]
    assert f"up to rounding (the same arm for {second} requests)" in str(found)
    monkeypatch.setattr("rareswitch.experiment.audit.CLOSE", 10.0)
    factor = -1.0  # its best arms are the worst ones
    found = trial.verify()
    assert [entry.verdict for entry in found.policies] == ["same", "otherwise", "otherwise"]
    assert re.search(r"other arms for \d+ of \d+ stored requests", str(found))
