"""One commit for all callers that wait: the more there are, the more each commit holds."""

import threading
import time
from collections.abc import Callable, Sequence

from rareswitch.errors import StoreError
from rareswitch.store.connections import PATIENCE
from rareswitch.store.rows import DecisionRow, RewardRow

#: Rows that are committed together at the most, and calls that may wait for their turn.
MOST_ROWS, MOST_WAITING = 20_000, 10_000


class Job:
    """What one caller hands in, and what becomes of it: rows, or a request that becomes a row when its turn comes."""

    __slots__ = ("before", "decisions", "done", "error", "kept", "overwrite", "rewards", "woken")

    #: Of jobs that are requests: fills in the decisions of all that are committed together, or their errors.
    prepare: Callable[[Sequence["Job"]], None] | None = None
    #: Whether it is a transaction of its own.
    alone = False

    def __init__(
        self, decisions: Sequence[DecisionRow] = (), rewards: Sequence[RewardRow] = (), overwrite: bool = False
    ) -> None:
        self.decisions, self.rewards, self.overwrite = decisions, rewards, overwrite
        #: What is kept of each decision, and what was there before each reward.
        self.kept: Sequence[DecisionRow] = []
        self.before: Sequence[RewardRow | None] = []
        self.error: Exception | None = None
        self.done = False
        #: Held until the job is done, or it is its caller's turn to lead.
        self.woken = threading.Lock()
        self.woken.acquire()


class GroupCommit:
    """Takes jobs from any thread and lets ``commit`` carry out all that wait, together.

    There is no thread of its own: whoever finds nobody at work leads, carries out all that wait by then, and hands over
    to a caller who came meanwhile. What is carried out must bear to be carried out again.

    Parameters
    ----------
    commit
        Called with jobs that go into one transaction; it fills in their results, or raises.
    after
        Called by the leader when those of a commit were answered.
    """

    def __init__(self, commit: Callable[[Sequence[Job]], None], after: Callable[[Sequence[Job]], None]) -> None:
        self._commit, self._after = commit, after
        self._lock = threading.Lock()
        self._waiting: list[Job] = []
        #: Whose caller is at work for all; None while nobody waits.
        self._leader: Job | None = None
        self._closed = False

    def submit(self, job: Job, *, last: bool = False) -> None:
        """Hand in a job and wait until it is durable; the last one closes the queue."""
        if len(self._waiting) >= MOST_WAITING:
            self._wait_for_room()
        try:
            with self._lock:
                if self._closed:
                    raise StoreError("the store is closed. Open it again.")
                self._closed = last
                self._waiting.append(job)
                if self._leader is None:
                    self._leader = job
            if self._leader is not job:
                job.woken.acquire()
            if not job.done:
                self._lead(job)
        finally:
            if self._leader is job or not job.done:  # not done: by Ctrl-C, which may come at any moment
                self._leave(job)
        if job.error is not None:
            raise job.error

    def _wait_for_room(self) -> None:
        end = time.monotonic() + PATIENCE
        while len(self._waiting) >= MOST_WAITING:
            if time.monotonic() > end:
                raise StoreError(f"the store is busy: {MOST_WAITING:,} calls wait for it. Nothing was kept; try again.")
            time.sleep(0.005)

    def _lead(self, leader: Job) -> None:
        """Carry out the jobs that wait, its own first."""
        jobs: list[Job] = []
        try:
            with self._lock:
                count = _together(self._waiting)
                jobs, self._waiting = self._waiting[:count], self._waiting[count:]
            self._carry_out(jobs)
        except BaseException:  # Ctrl-C is meant for the thread that it comes to; the others go on
            with self._lock:
                self._waiting = [job for job in jobs if job is not leader and not job.done] + self._waiting
            raise
        finally:
            for job in jobs:
                if job is not leader and job.done:
                    job.woken.release()
        self._after(jobs)

    def _leave(self, job: Job) -> None:
        """Wait no longer; who led lets the next caller lead, if there is one."""
        with self._lock:
            job.done = True
            if job in self._waiting:
                self._waiting.remove(job)
            if self._leader is job:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.woken.release()

    def _carry_out(self, jobs: Sequence[Job]) -> None:
        self._prepare(jobs)
        if sound := [job for job in jobs if job.error is None and (job.alone or job.decisions or job.rewards)]:
            self._keep(sound)
        for job in jobs:
            job.done = True

    def _prepare(self, jobs: Sequence[Job]) -> None:
        """Let requests become rows; where that fails for some together, each is prepared alone."""
        groups: dict[Callable[[Sequence[Job]], None], list[Job]] = {}
        for job in jobs:
            if job.prepare is not None:
                groups.setdefault(job.prepare, []).append(job)
        for prepare, group in groups.items():
            try:
                prepare(group)
            except Exception as error:
                if len(group) == 1:
                    group[0].error = error
                else:
                    for job in group:
                        self._prepare([job])

    def _keep(self, jobs: Sequence[Job]) -> None:
        try:
            self._commit(jobs)
        except StoreError as error:
            for job in jobs:
                job.error = type(error)(*error.args)  # each caller raises its own
                job.error.__cause__ = error.__cause__
        except Exception as error:
            if len(jobs) > 1:  # one of them holds what cannot be kept
                for job in jobs:
                    self._keep([job])
            else:
                text = str(error).splitlines()[0]
                jobs[0].error = StoreError(f"the database refuses what was given: {text}. Nothing of it was kept.")
                jobs[0].error.__cause__ = error


def _together(jobs: Sequence[Job]) -> int:
    """How many of these, from the first on, go into one transaction."""
    rows = 0
    for at, job in enumerate(jobs):
        if job.alone or rows >= MOST_ROWS:
            return max(at, 1)
        rows += len(job.decisions) + len(job.rewards) + 1
    return len(jobs)
