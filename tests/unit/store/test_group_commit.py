"""The queue in which callers wait: each gets its own answer, and nobody waits in vain."""

import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from rareswitch.errors import StoreError, UnreachableError
from rareswitch.store.connections import GroupCommit, Job
from reference.refusals import raises
from reference.rows import decision


class Numbered(Job):
    """A request with a number."""

    __slots__ = ("number", "prepare")

    def __init__(self, number: int, prepare: Callable[[Sequence[Job]], None] | None = None) -> None:
        super().__init__(decisions=[decision(number)])
        self.number, self.prepare = number, prepare


def keep(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.stored = [decision(7)]


def nothing(jobs: Sequence[Job]) -> None:
    pass


def numbers(jobs: Sequence[Job]) -> list[int]:
    return [job.number for job in jobs if isinstance(job, Numbered)]


def outcomes(queue: GroupCommit, jobs: Sequence[Numbered]) -> dict[int, BaseException | None]:
    """What each of so many threads gets, all started together."""
    ready, found = threading.Barrier(len(jobs)), dict[int, BaseException | None]()

    def submit(job: Numbered) -> None:
        ready.wait()
        try:
            queue.submit(job)
            found[job.number] = None if job.stored else AssertionError("nothing was kept")
        except BaseException as error:
            found[job.number] = error

    threads = [threading.Thread(target=submit, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    return found


def test_those_who_wait_are_kept_together() -> None:
    sizes = list[int]()

    def slowly(jobs: Sequence[Job]) -> None:
        sizes.append(len(jobs))
        time.sleep(0.05)
        keep(jobs)

    assert set(outcomes(GroupCommit(slowly, nothing), [Numbered(k) for k in range(40)]).values()) == {None}
    assert sum(sizes) == 40
    assert len(sizes) <= 10  # the first may be alone, and so may late starters


@pytest.mark.parametrize("where", ["prepare", "commit"])
def test_what_is_wrong_fails_alone(where: str) -> None:
    def fail(jobs: Sequence[Job]) -> None:
        time.sleep(0.01)
        if 13 in numbers(jobs):
            raise ValueError("13 is wrong")

    def commit(jobs: Sequence[Job]) -> None:
        if where == "commit":
            fail(jobs)
        keep(jobs)

    jobs = [Numbered(k, fail if where == "prepare" else None) for k in range(30)]
    found = outcomes(GroupCommit(commit, nothing), jobs)
    assert [number for number, error in found.items() if error is not None] == [13]
    assert type(found[13]) is (ValueError if where == "prepare" else StoreError)


def test_an_error_that_is_nobodys_own_is_told_to_all_at_once() -> None:
    tries = list[int]()

    def unreachable(jobs: Sequence[Job]) -> None:
        tries.append(len(jobs))
        time.sleep(0.02)
        raise UnreachableError("gone")

    found = outcomes(GroupCommit(unreachable, nothing), [Numbered(k) for k in range(20)])
    assert {str(error) for error in found.values()} == {"gone"}
    assert len({id(error) for error in found.values()}) == sum(tries) == 20


def test_an_interruption_hits_the_thread_that_it_came_to_and_nobody_waits_for_ever() -> None:
    raised = list[int]()

    def interrupted(jobs: Sequence[Job]) -> None:
        time.sleep(0.01)
        if not raised:
            raised.append(numbers(jobs)[0])
            raise KeyboardInterrupt
        keep(jobs)

    found = outcomes(GroupCommit(interrupted, nothing), [Numbered(k) for k in range(20)])
    assert [number for number, error in found.items() if error is not None] == raised


class InterruptedLock:
    """A lock that is interrupted, in one thread, just after it was had."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.release = self.lock.release

    def acquire(self, blocking: bool = True) -> bool:
        held, found = self.lock.locked(), self.lock.acquire(blocking)
        if held and found and threading.current_thread().name == "interrupted":
            raise KeyboardInterrupt
        return found

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_who_is_interrupted_when_its_turn_to_lead_has_come_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rareswitch.store.connections.threading", SimpleNamespace(Lock=InterruptedLock))
    go, found = threading.Event(), dict[str, BaseException | None]()

    def slowly(jobs: Sequence[Job]) -> None:
        go.wait()
        keep(jobs)

    queue = GroupCommit(slowly, nothing)

    def submit() -> None:
        name = threading.current_thread().name
        try:
            queue.submit(Numbered(7))
            found[name] = None
        except BaseException as error:
            found[name] = error

    threads = list[threading.Thread]()
    for name in ("first", "interrupted", "last"):
        threads.append(threading.Thread(target=submit, name=name, daemon=True))
        threads[-1].start()
        time.sleep(0.05)
    go.set()
    for thread in threads:
        thread.join(timeout=5)
    assert found["first"] is found["last"] is None
    assert isinstance(found["interrupted"], KeyboardInterrupt)
    queue.submit(Numbered(8))


def test_a_job_that_comes_while_the_queue_is_closed_is_kept_or_refused() -> None:
    def slowly(jobs: Sequence[Job]) -> None:
        time.sleep(0.002)
        keep(jobs)

    for late in range(20):
        queue = GroupCommit(slowly, nothing)
        closing = threading.Timer(0.0005 * late, queue.submit, (Job(),), {"last": True})
        closing.start()
        found = outcomes(queue, [Numbered(k) for k in range(10)])
        closing.join(timeout=5)
        assert {str(error) for error in found.values()} <= {"None", "the store is closed. Open it again."}
        raises(StoreError, "closed", queue.submit, Numbered(1))
