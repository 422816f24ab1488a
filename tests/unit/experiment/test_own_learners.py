"""Learners of one's own in experiments, as objects and from files."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rareswitch
from rareswitch.cli import main
from rareswitch.errors import InputError, ParameterError, UnsuitableError
from rareswitch.learner import LEARNERS, add_learner, find_learner
from reference.commands import printed
from reference.refusals import raises

SOURCE = '''
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from rareswitch.design import Uniform
from rareswitch.learner import GridLearner, NewPolicy, OneModelRule, real, setting
from rareswitch.policy import Blend, Policy, PosteriorDraws

@dataclass(frozen=True, kw_only=True)
class Rule(OneModelRule):
    share: float
    def from_sums(self, sums, start):
        (total,) = sums
        best = PosteriorDraws(draws=total.estimate(ridge=self.level.ridge)[None])
        return NewPolicy(Policy(dim=total.dim, sampler=Blend(main=best, explorer=Uniform(), share=self.share)))

@dataclass(frozen=True, kw_only=True)
class Greedy(GridLearner):
    """The best estimate, but for a share of uniform exploration."""
    share: float = setting(0.1, "share of decisions that explore", real(0.0, 1.0))
    name: ClassVar[str] = "own-greedy"
    text: ClassVar[str] = "the best estimate, with uniform exploration"
    adaptivity: ClassVar[str] = "policies"
    regret: ClassVar[str] = "none"
    def compose(self):
        return self.by_sums(partial(Rule, share=self.share))
'''


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "greedy.py"
    path.write_text(SOURCE)
    return f"{path}:Greedy"


def test_an_own_learner_learns_in_an_experiment_and_is_given_again(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, own = f"sqlite:///{tmp_path}/trials.db", find_learner(spec)
    learner = own(dim=2, arms=2, horizon=300, policies=3, share=0.2)  # type: ignore[call-arg]
    with rareswitch.create(url, "spring", learner=learner, seed=1, now=0.0) as trial:
        choices = trial.decide_many([np.eye(2)] * 100, ids=range(100), now=0.0)
        trial.reward_many(range(100), [float(choice.arm) for choice in choices], now=0.0)
        assert trial.advance(force=True, now=0.0).made
        assert trial.policy.probabilities(np.eye(2)).tolist() == pytest.approx([0.1, 0.9])
        assert trial.verify().holds
    monkeypatch.delitem(LEARNERS, "own-greedy")  # as in a process that never saw it
    with pytest.raises(UnsuitableError, match=r"created with the learner 'own-greedy'.*learner=Class.*--learner path"):
        rareswitch.open(url, "spring")
    assert [entry.learner for entry in rareswitch.list_experiments(url)] == ["own-greedy"]
    for given in (own, spec):
        monkeypatch.delitem(LEARNERS, "own-greedy", raising=False)
        with rareswitch.open(url, "spring", learner=given) as trial:
            assert trial.description.learner == learner
    command = [sys.executable, "-m", "rareswitch", "experiment", "status", url, "spring"]
    alone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (alone.returncode, "--learner path/to/file.py:Class" in alone.stderr) == (2, True)
    assert subprocess.run([*command, "--learner", spec], capture_output=True, check=False).returncode == 0


def test_the_command_line_names_a_learner_by_its_file(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--horizon", "200", "--seeds", "1", "--quiet", "--dim", "3", "--arms", "4"]
    assert main(["simulate", "--learner", spec, "--share", "0.3", "--policies", "3", *sizes]) == 0
    assert "greedy" in printed(capsys, "compare", "--learners", spec, "batch-linucb", "--horizons", *sizes[1:])
    created = ["experiment", "create", f"{tmp_path}/t.db", "spring", "--dim", "3", "--arms", "4", "--horizon", "100"]
    assert main([*created, "--learner", spec, "--share", "0.3", "--policies", "3"]) == 0
    assert main(["experiment", "advance", f"{tmp_path}/t.db", "spring", "--learner", spec]) == 3
    assert "own-greedy" in capsys.readouterr().out


def test_what_is_no_learner_is_refused(spec: str, tmp_path: Path) -> None:
    raises(InputError, "has no class Other", find_learner, spec.replace(":Greedy", ":Other"))
    with pytest.raises(InputError, match=r"there is no file .*a learner of your own is named path/to/file.py:Class"):
        find_learner(f"{tmp_path}/none.py:Greedy")
    raises(ParameterError, "must be a class derived from Learner", add_learner, dict)

    class Foresight(rareswitch.Foresight):
        """One that takes a name that is taken."""

    raises(ParameterError, "'foresight' is the name of a learner of the library", add_learner, Foresight)
