"""What holds for every engine."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import Any

import pytest

from rareswitch.engine import Engine, Serial, make_engine
from rareswitch.engine.engine import AHEAD
from rareswitch.errors import EngineError, ParameterError
from unit.engine import work


@pytest.fixture(scope="module", params=["serial", "serial:3", "processes:2", "dask:2"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    name, _, workers = request.param.partition(":")
    if name == "serial":
        with Serial(int(workers or 1)) as made:
            yield made
    else:
        yield request.getfixturevalue(name)


def test_results_are_the_same_and_in_order(engine: Engine) -> None:
    work.check_order(engine)


@pytest.mark.parametrize("name", ["serial", "serial:4", "processes:4", "dask:4"])
def test_more_workers_do_the_same_until_they_are_closed(name: str) -> None:
    with make_engine(name) as made:
        work.check_order(made)
        under_way = made.map(work.square, range(1000))
        assert next(under_way) == 0
    made.close()
    for results in (under_way, made.map(work.square, [1])):
        with pytest.raises(EngineError, match=r"is closed\. Make a new one"):
            next(results)


def test_no_shards_no_results(engine: Engine) -> None:
    assert list(engine.map(work.square, [])) == []


def test_shards_are_taken_as_they_are_needed(engine: Engine) -> None:
    taken = 0

    def many() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = engine.map(work.square, many())
    assert taken == 0
    for given in range(3 * AHEAD * engine.workers):
        assert next(results) == given * given
        assert taken <= given + AHEAD * engine.workers
    results.close()  # type: ignore[attr-defined]
    assert list(engine.map(work.square, [3])) == [9]


def test_an_exception_comes_unchanged_when_its_turn_comes(engine: Engine) -> None:
    results = engine.map(work.refuse_seven, range(12), label="piece")
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(KeyError) as caught:
        next(results)
    assert caught.value.args == ("seven is not wanted",)
    if not isinstance(engine, Serial):
        assert any("piece 7" in note and "in refuse_seven" in note for note in caught.value.__notes__)
    assert list(results) == []
    assert list(engine.map(work.square, range(5))) == [0, 1, 4, 9, 16]


def test_shards_that_fail_to_come_raise_after_the_results_before_them(engine: Engine) -> None:
    def broken() -> Iterator[int]:
        yield from range(3)
        raise OSError("no more of these")

    results = engine.map(work.square, broken())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(OSError, match="no more of these"):
        next(results)


def test_one_map_at_a_time(engine: Engine) -> None:
    first = engine.map(work.square, range(1000))
    assert next(first) == 0
    with pytest.raises(EngineError, match="one map at a time"):
        next(engine.map(work.square, [1]))
    assert next(first) == 1
    del first
    assert list(engine.map(work.square, [2])) == [4]


def test_a_map_can_be_big(engine: Engine) -> None:
    shards = [bytes([number]) * 3_000_000 + b"end" for number in range(2 * engine.workers)]
    assert list(engine.map(work.backwards, shards)) == [shard[::-1] for shard in shards]
    big = b"x" * 11_000_000  # above what Dask warns of
    assert list(engine.map(work.backwards, [big])) == [big]


def test_only_functions_are_mapped(engine: Engine) -> None:
    not_a_function: Any = 3
    with pytest.raises(ParameterError, match="got 3 as the function"):
        engine.map(not_a_function, [1])


def test_engines_have_names(engine: Engine, request: pytest.FixtureRequest) -> None:
    assert engine.name == request.node.callspec.params["engine"]
    assert repr(engine) == f"<engine {engine.name}>"
    assert engine.workers == int(engine.name.partition(":")[2] or 1)


class Counting(Engine):
    """Two workers that take a while, and how many shards ran at a time."""

    _pack = staticmethod(lambda what, value: value)
    _unpack = staticmethod(lambda where, future: future.result())

    def __init__(self) -> None:
        super().__init__("counting", 2)
        self.open: list[Future[Any]] = []
        self.most = 0

    def _start(self, function: Any, shard: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.open = [*(one for one in self.open if not one.done()), future]
        self.most = max(self.most, len(self.open))
        threading.Timer(0.01, future.set_result, (function(shard),)).start()
        return future

    def _stop(self, closing: bool) -> None:
        wait(self.open)


def test_no_more_shards_run_than_there_are_workers() -> None:
    engine = Counting()
    assert list(engine.map(abs, range(6))) == list(range(6))
    assert engine.most == 2
