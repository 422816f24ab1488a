"""What callers do with an experiment and note of it, and whether all of that is kept."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from rareswitch.experiment import Experiment, create
from rareswitch.lab.worlds import make_world

#: Decisions of a batch, threads that ask for them, and requests that are asked for at once.
LENGTH, THREADS, TOGETHER = 12, 3, 4
WORLD = make_world("gaussian", dim=3, arms=4, noise=0.5)
REQUESTS = WORLD.draw(4000, seed=7).contexts
#: A reward hangs on its decision's number alone, so that it can also come first.
VALUES = WORLD.rewards(WORLD.draw(4000, seed=7).means[:, 0], seed=7).tolist()


@dataclass(frozen=True)
class Plan:
    """What callers do with an experiment: batches with an update after each, then some decisions more."""

    batches: int = 3
    more: int = 6
    length: int = LENGTH

    @property
    def ends(self) -> list[int]:
        return [self.length * number for number in range(self.batches + 1)] + [self.length * self.batches + self.more]

    def create(self, url: str, name: str) -> Experiment:
        return create(url, name, dim=3, horizon=400, policies=20, schedule=self.length, seed=7, now=0.0)

    def policies(self) -> list[str]:
        """Of an undisturbed experiment, in memory."""
        trial = self.create("memory:", "twin")
        self.play(trial)
        return [policy.id for policy in trial.policies]

    def play(self, trial: Experiment, say: Callable[..., None] = lambda *_: None) -> None:
        """All of it from the beginning: what was done before is asked for again, and changes nothing."""
        for version, (first, stop) in enumerate(pairwise(self.ends), 1):
            numbers = list(range(first, stop))
            shares = [numbers[k::THREADS] for k in range(THREADS)]
            failed: list[BaseException] = []
            threads = [threading.Thread(target=_serve, args=(trial, share, say, failed)) for share in shares]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failed:
                raise failed[0]
            if version <= self.batches and trial.store.head() == version:
                made = trial.advance(now=0.0)
                say("advanced", made.version, made.policy_id)


def _serve(trial: Experiment, numbers: Sequence[int], say: Callable[..., None], failed: list[BaseException]) -> None:
    try:
        serve(trial, numbers, say)
    except BaseException as error:
        failed.append(error)


def serve(trial: Experiment, numbers: Sequence[int], say: Callable[..., None]) -> None:
    """Decisions one by one and some together, each rewarded; some rewards come first, some twice."""
    at = 0
    while at < len(numbers):
        some = list(numbers[at : at + (TOGETHER if at % 3 == 2 else 1)])
        at += len(some)
        early = [number for number in some if number % 5 == 0]
        pay(trial, early, say)
        say("asks", some)
        if len(some) > 1:
            choices = trial.decide_many(REQUESTS[some], ids=some, now=0.0)
        else:
            choices = [trial.decide(REQUESTS[some[0]], id=some[0], now=0.0)]
        say("decided", [[one.id, str(one.arm), one.propensity, one.version, one.policy_id] for one in choices])
        pay(trial, [number for number in some if number not in early or number % 2], say)


def pay(trial: Experiment, numbers: Sequence[int], say: Callable[..., None]) -> None:
    if len(numbers) > 0:
        say("pays", list(numbers))
        trial.reward_many(list(numbers), [VALUES[number] for number in numbers], now=0.0)
        say("paid", list(numbers))


@dataclass
class Findings:
    """What was found after a kill, before anything was tried again; and what came of trying again."""

    #: Decisions and rewards that were acknowledged and are not there, or there twice.
    lost: int = 0
    doubled: int = 0
    #: Anything else that is wrong.
    faults: list[str] = field(default_factory=list)
    #: Whether it was killed, and had not come to its end before.
    killed: bool = False
    #: Whether it was killed in the middle of an update.
    updating: bool = False
    #: Decisions and rewards that were acknowledged.
    acknowledged: int = 0

    @property
    def clean(self) -> bool:
        return not self.lost and not self.doubled and not self.faults

    def __str__(self) -> str:
        return "; ".join([f"{self.lost} lost, {self.doubled} doubled", *self.faults])


class Journal:
    """What callers noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def say(self, *entry: Any) -> None:
        """Note something: the system has it when this returns, and keeps it when the process is killed."""
        if self._handle is None:
            self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._handle, f"{json.dumps(entry)}\n".encode())

    def read(self, *whats: str) -> list[Any]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [entry[1:] for entry in map(json.loads, lines) if entry[0] in whats]

    def numbers(self, what: str) -> set[int]:
        return {number for (numbers,) in self.read(what) for number in numbers}


def look(trial: Experiment, journal: Journal, found: Findings) -> None:
    """Compare what is kept with what was asked for and acknowledged; audit all of it; read all versions."""
    kept = [row for page in trial.store.rows(0, trial.store.marks()) for row in page]
    decisions = {int(decision.id): (decision, rewards) for decision, rewards in kept}
    found.doubled += len(kept) - len(decisions)
    answered = [one for (choices,) in journal.read("decided") for one in choices]
    paid = journal.numbers("paid")
    policies = [policy.id for policy in trial.policies]
    for number, *answer in answered:
        if number not in decisions:
            found.lost += 1
            continue
        row, _ = decisions[number]
        if [row.arm, row.propensity, row.version, policies[row.version - 1]] != answer:
            found.faults.append(f"decision {number} was answered otherwise: {answer}")
    keys = {number: row.key for number, (row, _) in decisions.items()}
    rewarded = {number: rewards for number, (_, rewards) in decisions.items()}
    for number in paid & keys.keys():
        values = [one.value for one in rewarded[number]]
        found.lost += not values
        found.doubled += len(values) > 1
        if values and values[0] != VALUES[number]:
            found.faults.append(f"decision {number} has another reward: {values}")
    totals = trial.store.totals()
    matched = sum(map(len, rewarded.values()))
    found.doubled += max(0, totals.rewards - matched - totals.unmatched)
    found.lost += max(0, len(paid - keys.keys()) - totals.unmatched)  # whose decisions had not come
    if strange := (keys.keys() - journal.numbers("asks")) | (
        {number for number, values in rewarded.items() if values} - journal.numbers("pays")
    ):
        found.faults.append(f"nobody asked for {sorted(strange)}")
    if wrong := [number for number in decisions if not trial.audit(number).matches]:
        found.faults.append(f"audits of {wrong} do not match")
    if sum(one.decisions for one in trial.store.counts()) != len(kept):
        found.faults.append("decisions are counted otherwise")
    found.faults += _versions(trial, journal)


def _versions(trial: Experiment, journal: Journal) -> Iterator[str]:
    versions = trial.store.versions()
    if [row.number for row in versions] != list(range(1, trial.store.head() + 1)):
        yield "versions are missing"
    try:
        policies = [policy.id for policy in trial.policies]
        for version in trial.versions:
            _ = version.state, version.summaries, version.report
    except ValueError as error:
        yield f"a version is not whole: {error}"
        return
    for number, policy_id in journal.read("advanced"):
        if policies[number - 1 : number] != [policy_id]:
            yield f"policy {number} was acknowledged as {policy_id} and is lost"
