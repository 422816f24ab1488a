"""The thread that writes: nobody waits for it in vain."""

import queue
import threading
import time
from typing import Any

import pytest

from rareswitch.errors import StoreError
from rareswitch.store.sql_writer import Job, Writer


def kept(jobs: list[Job]) -> None:
    for job in jobs:
        job.result = "kept"


class SlowQueue:
    """A queue whose length is known only after the writer could have been closed."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.asked = threading.Event()

    def qsize(self) -> int:
        self.asked.set()
        time.sleep(0.1)
        return self.jobs.qsize()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jobs, name)


def test_a_job_that_comes_while_the_writer_is_closed_is_kept_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = SlowQueue()
    monkeypatch.setattr("rareswitch.store.sql_writer.SimpleQueue", lambda: waiting)
    writer, answers = Writer(kept, lambda: None), list[Any]()

    def submit() -> None:
        job = Job()
        try:
            writer.post(job)
            answers.append("kept" if job.done.acquire(timeout=5.0) else "waits for ever")
        except StoreError:
            answers.append("refused")

    caller = threading.Thread(target=submit)
    caller.start()
    waiting.asked.wait()
    writer.close()
    caller.join()
    assert answers == ["kept"]
    with pytest.raises(StoreError, match="closed"):
        writer.submit(Job())


def test_a_callback_that_fails_does_not_end_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    monkeypatch.setattr("threading.excepthook", lambda given: told.append(str(given.exc_value)))
    writer = Writer(kept, lambda: None)

    def fail(job: Job) -> None:
        raise RuntimeError("the event loop is closed")

    writer.post(Job(then=fail))
    assert writer.submit(Job()) == "kept"
    writer.close()
    assert told == ["the event loop is closed"]
