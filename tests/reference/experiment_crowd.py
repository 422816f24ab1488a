"""Processes that meet at one experiment."""

import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

from rareswitch.experiment import Experiment, open_experiment
from reference.experiment_play import TOGETHER, Findings, Journal, Plan, look, serve
from reference.kills import forked, waited


@dataclass
class Crowd:
    """Processes that decide and reward on one experiment, and advance it at once, round after round."""

    folder: Path
    url: str
    rounds: int
    processes: int = 4
    #: Whether all wait for each other before they advance; otherwise some still decide meanwhile.
    together: bool = True

    def run(self) -> Findings:
        name = f"crowd-{uuid4().hex}"
        plan, journal, found = Plan(batches=self.rounds, more=0, length=24), Journal(self.folder / name), Findings()
        plan.create(self.url, name).close()
        barrier = get_context("fork").Barrier(self.processes)
        children = [
            forked(lambda k=k: self._live(name, plan, journal, barrier, k))  # type: ignore[misc]
            for k in range(self.processes)
        ]
        if any(statuses := [waited(child) for child in children]):
            found.faults.append(f"processes ended with {statuses}: {journal.read('failed')}")
            return found
        with open_experiment(self.url, name) as trial:
            if not self.together:  # what came late is learned from by the next update, which needs something new
                serve(trial, range(3000, 3000 + TOGETHER), journal.say)
                trial.advance(now=0.0, force=True)
            look(trial, journal, found)
            found.faults += self._faults(trial, plan, journal)
        found.acknowledged = 2 * plan.ends[-1]
        return found

    def _live(self, name: str, plan: Plan, journal: Journal, barrier: Any, number: int) -> None:
        try:
            with open_experiment(self.url, name) as trial:
                for first, stop in pairwise(plan.ends[:-1]):
                    serve(trial, range(first, stop)[number :: self.processes], journal.say)
                    if self.together:
                        barrier.wait(60)
                    made = trial.advance(now=0.0)
                    journal.say("advanced", made.version, made.policy_id)
                    journal.say("made", made.version, made.made, made.elsewhere)
                    if self.together:
                        barrier.wait(60)
        except BaseException:
            journal.say("failed", traceback.format_exc(limit=-3))
            raise

    def _faults(self, trial: Experiment, plan: Plan, journal: Journal) -> Iterator[str]:
        made = Counter(version for version, new, _ in journal.read("made") if new)
        learned = sum(batch.rewarded for batch in trial.versions[-1].state.past)
        wanted = plan.ends[-1] + (0 if self.together else TOGETHER)
        if learned != wanted:
            yield f"{learned} rewards were learned from, of {wanted}"
        if set(made.values()) != {1} or (self.together and sorted(made) != list(range(2, self.rounds + 2))):
            yield f"policies were made so many times: {dict(made)}"
        told = Counter(version for version, new, elsewhere in journal.read("made") if new or elsewhere)
        if self.together and set(told.values()) != {self.processes}:
            yield f"not all processes were told of the policy: {dict(told)}"
        if self.together and [policy.id for policy in trial.policies] != plan.policies():
            yield "other policies are learned than by one process"
