"""Experiments whose processes are killed, at named moments and at any moment, and what must hold afterwards.

The callers live in a fork of a process that has everything imported and compiled. Three threads decide and reward, and
updates are made between; what they ask for and what they are answered is noted in a file of their own, by one write
each, which outlives the process. It dies by SIGKILL. At named moments it kills itself: the verbs of its store are
wrapped there, so that the product needs no hooks.
"""

import contextlib
import itertools
import os
import queue
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self
from uuid import uuid4

from rareswitch.errors import StoreError
from rareswitch.experiment import Experiment, open_experiment, update
from rareswitch.store import Job, Store
from rareswitch.store.connections import Transaction
from rareswitch.store.postgres import PostgresStore
from rareswitch.store.sqlite import SqliteStore
from reference.experiment_play import LENGTH, TOGETHER, Findings, Journal, Plan, look, serve
from reference.kills import forked, waited

#: Seconds by which the store of the negative control answers before it commits.
EARLY = 0.03


class Moment(NamedTuple):
    """When a process kills itself."""

    verb: str
    when: str

    def __str__(self) -> str:
        return f"{self.verb} {self.when}"


#: After an answer was noted.
NOTED = Moment("caller", "answered")
_ROWS = ("begun", "written", "committed", "kept", "answered")
MOMENTS = (
    *(Moment(verb, when) for verb in ("decide", "reward") for when in _ROWS),
    *(Moment(verb, when) for verb in ("create", "freeze", "publish") for when in ("begun", "written", "answered")),
    *(Moment("learn", when) for when in ("begun", "summarized", "answered")),
    *(Moment(verb, "committed") for verb in ("create", "freeze", "publish")),
)
#: What the verbs of a store are called here.
_VERBS = {"create": "create", "start_update": "freeze", "publish": "publish"}
#: And what their transactions are: without a gate nothing but an update that begins is made at the head.
_TRANSACTIONS = _VERBS | {"_at_head": "freeze"}


class Killed:
    """Experiments that are killed, each in a fork, and judged."""

    def __init__(
        self,
        folder: Path,
        url: str | None = None,
        plan: Plan | None = None,
        *,
        early: bool = False,
        bystander: Literal["none", "once", "always"] = "none",
    ) -> None:
        self.folder, self.plan, self.early, self.bystander = folder, plan or Plan(), early, bystander
        self._url = url
        self.count = 0
        #: How often a bystander opened and closed a file.
        self.looks = 0
        #: Policies of an undisturbed twin.
        self.expected = self.plan.policies()

    def fresh(self) -> tuple[str, str, Journal]:
        """Where the next experiment is kept."""
        self.count += 1
        name = f"killed-{self.count}-{uuid4().hex}"
        return self._url or f"sqlite:///{self.folder}/{name}.db", name, Journal(self.folder / f"{name}.journal")

    def at_moment(self, moment: Moment, occurrence: int = 1) -> Findings:
        """Let callers die at an occurrence of a moment."""
        url, name, journal = self.fresh()
        with self._meanwhile(url):
            status = waited(forked(lambda: self._live(url, name, journal, moment, occurrence)))
        found = self.judged(url, name, journal)
        found.killed = status == -signal.SIGKILL
        if not found.killed:
            found.faults.append(
                f"it was not killed at {moment}, number {occurrence}; it ended with {status}: {journal.read('failed')}"
            )
        return found

    def after(self, seconds: float) -> Findings:
        """Kill callers after some time."""
        url, name, journal = self.fresh()
        with self._meanwhile(url):
            status = waited(forked(lambda: self._live(url, name, journal)), seconds)
        found = self.judged(url, name, journal)
        found.killed = status == -signal.SIGKILL
        if not found.killed and status:
            found.faults.append(f"it ended with {status}: {journal.read('failed')}")
        return found

    @contextlib.contextmanager
    def _meanwhile(self, url: str) -> Iterator[None]:
        """Let a bystander open and close the file, if there is to be one."""
        if self.bystander != "always":
            yield
            return
        with Bystander(url.removeprefix("sqlite:///")) as bystander:
            yield
        self.looks += bystander.looks

    def seconds(self) -> float:
        """How long callers take that are not killed."""
        url, name, journal = self.fresh()
        began = time.perf_counter()
        status = waited(forked(lambda: self._live(url, name, journal)))
        assert status == 0, journal.read("failed")
        return time.perf_counter() - began

    def _live(self, url: str, name: str, journal: Journal, moment: Moment | None = None, occurrence: int = 1) -> None:
        try:
            say = journal.say
            if moment == NOTED:
                say = _dying(say, occurrence)
            elif moment is not None:
                die_at(moment, occurrence)
            trial = self.plan.create(url, name)
            say("created")
            # a second store of the file in this process, which stays open
            beside = self.plan.create(url, f"{name}-beside") if self.bystander != "none" else None
            if beside is not None:  # once for certain, before anything is decided
                subprocess.run(Bystander.command(url.removeprefix("sqlite:///"), looks=1), capture_output=True)
            if self.early:
                answer_early(trial.store)
            self.plan.play(trial, say)
            trial.close()
            if beside is not None:
                beside.close()
        except BaseException:
            journal.say("failed", traceback.format_exc(limit=-3))
            raise

    def judged(self, url: str, name: str, journal: Journal) -> Findings:
        """Look at what is there, then go on with it."""
        decided = journal.read("decided")
        found = Findings(acknowledged=sum(len(choices) for (choices,) in decided) + len(journal.numbers("paid")))
        try:
            trial = open_experiment(url, name)
        except StoreError as error:
            if journal.read("created"):
                found.faults.append(f"it does not open: {error}")
                return found
            trial = self.plan.create(url, name)  # which never was, and can be
        with trial:
            look(trial, journal, found)
            found.faults += self._policies(trial)
            if not self.early:
                found.faults += self._go_on(trial, journal, found)
        if url.startswith("sqlite"):
            with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
                if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                    found.faults.append("the file is damaged")
        return found

    def _policies(self, trial: Experiment) -> Iterator[str]:
        made = [policy.id for policy in trial.policies]
        if made != self.expected[: len(made)]:
            yield f"policies differ from those of an undisturbed twin: {made}"

    def _go_on(self, trial: Experiment, journal: Journal, found: Findings) -> Iterator[str]:
        found.updating = trial.status(now=0.0).started
        if found.updating:
            # what comes now, before the update is made again, must not change what it learns
            head = trial.store.head()
            serve(trial, range(3000, 3000 + TOGETHER), lambda *_: None)
            trial.reward(LENGTH * head - 1, 9.0, overwrite=True, now=1.0)
            again = trial.advance(now=1.0)
            if (again.version, again.policy_id) != (head + 1, self.expected[head]):
                yield f"the update that was broken off learns policy {again.policy_id} as number {again.version}"
            return
        self.plan.play(trial, journal.say)
        look(trial, journal, found)
        if [policy.id for policy in trial.policies] != self.expected:
            yield "going on, other policies are learned"


class Bystander:
    """Another process that opens an SQLite file, looks at it and closes it, over and over."""

    SCRIPT = """
import sqlite3, sys, time
from contextlib import closing
print(looks := 0, flush=True)
while looks < int(sys.argv[2]):
    try:
        with closing(sqlite3.connect(f"file:{sys.argv[1]}?mode=rw", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM rareswitch_decisions").fetchall()
        print(looks := looks + 1, flush=True)
    except sqlite3.Error:
        pass
    time.sleep(0.001)
"""

    def __init__(self, path: str) -> None:
        self.path, self.looks = path, 0

    @classmethod
    def command(cls, path: str, looks: int = 10**9) -> list[str]:
        return [sys.executable, "-I", "-c", cls.SCRIPT, path, str(looks)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self.command(self.path), stdout=subprocess.PIPE)
        assert self._process.stdout.readline()  # it is at work
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        lines = self._process.communicate()[0].splitlines()
        self.looks = int(lines[-1]) if lines else 0


def _dying(say: Callable[..., None], answers: int) -> Callable[..., None]:
    """Note things, and die after so many answers."""
    answered = itertools.count(1)

    def says(what: str, *more: Any) -> None:
        say(what, *more)
        if what in ("decided", "paid") and next(answered) == answers:
            os.kill(os.getpid(), signal.SIGKILL)

    return says


def die_at(moment: Moment, occurrence: int) -> None:
    """From now on, in this process: count how often a moment is reached, and die at one of them."""
    reached = Counter[Moment]()

    def here(verb: str, when: str) -> None:
        reached[Moment(verb, when)] += 1
        if reached[moment] == occurrence:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # no other thread goes on either

    def around(owner: Any, name: str, verb: str, after: str = "answered", before: str = "begun") -> None:
        whole = getattr(owner, name)

        @wraps(whole)
        def wrapped(*given: Any, **more: Any) -> Any:
            here(verb, before)
            result = whole(*given, **more)
            here(verb, after)
            return result

        setattr(owner, name, wrapped)

    def verbs(jobs: Sequence[Any]) -> set[str]:
        if isinstance(jobs[0], Transaction):  # it is made inside of the verb
            name = jobs[0].call.__qualname__.split(".")[1]
            return {_TRANSACTIONS.get(name, name)}
        return {"decide" for job in jobs if job.decisions} | {"reward" for job in jobs if job.rewards}

    for name, verb in _VERBS.items():
        around(Store, name, verb)
    around(Experiment, "decide", "decide")
    around(Experiment, "reward_many", "reward")
    around(update.Update, "learn", "learn")
    around(update, "summarize", "learn", after="summarized", before="summarizes")
    run, keep, commit = Transaction.run, Store._keep, Store._commit

    def runs(self: Any, connection: Any) -> None:
        run(self, connection)
        for verb in verbs([self]):
            here(verb, "written")

    def keeps(self: Any, connection: Any, jobs: Sequence[Any]) -> None:
        keep(self, connection, jobs)
        for verb in verbs(jobs):
            here(verb, "written")

    def commits(self: Any, jobs: Sequence[Any]) -> None:
        commit(self, jobs)
        for verb in verbs(jobs):
            here(verb, "kept" if not isinstance(jobs[0], Transaction) else "committed")

    Transaction.run, Store._keep, Store._commit = runs, keeps, commits  # type: ignore[method-assign]
    for kind in (SqliteStore, PostgresStore):
        _tell_of_commits(kind, here, verbs)


def _tell_of_commits(kind: Any, here: Callable[[str, str], None], verbs: Callable[[Sequence[Any]], set[str]]) -> None:
    """When rows are committed and their callers not yet told."""
    attempt, settle = kind._try_commit, kind._settle

    def tries(self: Any, jobs: Sequence[Any]) -> None:
        self.trying = jobs
        attempt(self, jobs)

    def settles(self: Any, connection: Any) -> None:
        if not isinstance(self.trying[0], Transaction):
            for verb in verbs(self.trying):
                here(verb, "committed")
        settle(self, connection)

    kind._try_commit, kind._settle = tries, settles


def answer_early(store: Store) -> None:
    """The negative control: from now on this store answers at once, and commits a little later."""
    waiting: queue.SimpleQueue[tuple[float, Job]] = queue.SimpleQueue()
    submit = store.submit

    def answered(*jobs: Job) -> None:
        for job in jobs:
            if job.prepare is not None:
                job.prepare([job])
            waiting.put((time.monotonic() + EARLY, Job(job.decisions, job.rewards, job.overwrite)))
            job.stored, job.before = job.decisions, [None] * len(job.rewards)

    def commit() -> None:
        while True:
            due, job = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            submit(job)

    store.submit = answered  # type: ignore[method-assign]
    threading.Thread(target=commit, daemon=True).start()


def occurrences(moment: Moment, seed: int, most: int = 9, policies: int = 3) -> int:
    """Which of the times that a moment is reached, drawn; ``most`` of those that come with decisions."""
    most = {"create": 1, "decide": most, "reward": most, "caller": 2 * most}.get(moment.verb, policies)
    return random.Random(f"{moment} {seed}").randint(1, most)
