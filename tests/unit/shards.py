"""Functions that workers can import, and ways to wait that end."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.core import make_executor, run_shards

PATIENCE = 100.0
"""Seconds after which a test gives up."""


def noise(seed: int) -> bytes:
    """The bits of a sum; early shards take longer than late ones."""
    time.sleep(0.004 * (seed % 4 == 0))
    return np.random.default_rng(seed).normal(size=1000).cumsum().tobytes()


def square(number: int) -> int:
    return number * number


def refuse_seven(number: int) -> int:
    if number == 7:
        raise KeyError("seven is not wanted")
    return number


class AwkwardError(Exception):
    """Cannot be pickled, as it needs two arguments and remembers one."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what)


def be_awkward(number: int) -> int:
    raise AwkwardError(f"number {number}", "no reason")


def lock(number: int) -> Any:
    return threading.Lock()


def backwards(data: bytes) -> bytes:
    return data[::-1]


def settings(number: int) -> tuple[str | None, ...]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return tuple(os.environ.get(name) for name in names)


def blocks_interrupt(number: int) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def nested(number: int) -> list[int]:
    with make_executor("processes:1") as executor:
        return list(run_shards(abs, [number], executor))


def waits_once(folder: str, number: int) -> int:
    """Leave a file for every execution. The first of shard 2 says who it is and waits to be killed."""
    Path(folder, f"run-{number}-{uuid.uuid4().hex}").touch()
    if number == 2 and not Path(folder, "pid").exists():
        say_who(folder)
        time.sleep(PATIENCE)
    return number * number


def waits(folder: str, number: int) -> int:
    """Say who it is and wait to be killed."""
    say_who(folder)
    time.sleep(PATIENCE)
    return number


def say_who(folder: str) -> None:
    draft = Path(folder, f"draft-{uuid.uuid4().hex}")
    draft.write_text(str(os.getpid()))
    draft.replace(Path(folder, "pid"))


def dies_of_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(PATIENCE)
    return number * number


def dies_the_first_time(folder: str, number: int) -> int:
    if first_time(folder, number):
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def dies_while_it_answers(folder: str, number: int) -> bytes:
    """The first time its worker dies soon after: before, while or after the result is sent."""
    if first_time(folder, number):
        threading.Timer(0.01 * number, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return bytes([number]) * 50_000_000


def first_time(folder: str, number: int) -> bool:
    try:
        Path(folder, str(number)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def until(condition: Callable[[], Any]) -> bool:
    """Wait for a condition; whether it came."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_running(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
