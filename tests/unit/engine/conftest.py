"""Engines that the tests share, because workers take a second to start; and an end for every test."""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from rareswitch.engine import Dask, Processes


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("the test does not end")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    with Processes(workers=2) as engine:
        yield engine


@pytest.fixture(scope="session")
def dask() -> Iterator[Dask]:
    with Dask(workers=2) as engine:
        yield engine
