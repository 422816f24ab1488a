import os
import signal
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rareswitch.engine import Processes
from rareswitch.errors import EngineError
from unit.engine import work

SQUARES = [0, 1, 4, 9, 16, 25]


def test_workers_start_when_needed_stay_and_end() -> None:
    with Processes(workers=3) as engine:
        before = engine.worker_pids
        assert before == ()
        assert list(engine.map(work.square, [5])) == [25]
        (first,) = engine.worker_pids
        assert list(engine.map(work.square, range(2))) == SQUARES[:2]
        pids = engine.worker_pids
        assert first in pids
        assert len(pids) <= 2
    assert len(engine.worker_pids) == 0
    assert work.until(lambda: not any(map(work.available, pids)))


def test_a_killed_worker_costs_its_shard_only(processes: Processes, tmp_path: Path) -> None:
    started, retried = processes.executions, processes.retries
    killer = work.Killer(tmp_path, lambda: processes.worker_pids)
    assert list(processes.map(partial(work.waits_once, str(tmp_path)), range(6))) == SQUARES
    pid = killer.join()
    assert pid
    assert not work.available(pid)
    assert len(list(tmp_path.glob("run-*"))) == 7
    assert (processes.executions - started, processes.retries - retried) == (7, 1)


def test_many_killed_workers_change_nothing(processes: Processes, tmp_path: Path) -> None:
    started, retried = processes.executions, processes.retries
    assert list(processes.map(partial(work.dies_the_first_time, str(tmp_path)), range(6))) == SQUARES
    assert (processes.executions - started, processes.retries - retried) == (12, 6)


def test_a_worker_that_dies_in_the_middle_of_its_answer_is_noticed(processes: Processes, tmp_path: Path) -> None:
    results = processes.map(partial(work.dies_while_it_answers, str(tmp_path)), range(4))
    assert [(result[0], len(result)) for result in results] == [(number, 50_000_000) for number in range(4)]


def test_a_worker_that_is_killed_in_its_sleep_costs_nothing(processes: Processes) -> None:
    assert list(processes.map(work.square, range(6))) == SQUARES
    retried = processes.retries
    pid = processes.worker_pids[0]
    os.kill(pid, signal.SIGKILL)
    assert work.until(lambda: pid not in processes.worker_pids)
    assert list(processes.map(work.square, range(6))) == SQUARES
    assert processes.retries == retried


def test_a_shard_that_kills_every_worker_is_given_up(processes: Processes) -> None:
    started, retried = processes.executions, processes.retries
    results = processes.map(partial(work.dies_of_three, "SIGKILL"), range(6), label="piece")
    assert [next(results) for _ in range(3)] == SQUARES[:3]
    with pytest.raises(EngineError, match=r"piece 3 lost its worker 3 times; .* signal 9.* less memory, .*'serial'"):
        next(results)
    assert processes.retries - retried == 2
    assert processes.executions - started <= 6 + 2
    assert list(processes.map(work.square, range(6))) == SQUARES


def test_the_end_of_a_worker_is_told(processes: Processes) -> None:
    processes.tries = 1
    with pytest.raises(EngineError, match=r"shard 0 lost its worker 1 times; .*exit status 5"):
        list(processes.map(partial(work.dies_of_three, "at once"), [3]))
    processes.tries = 3


def test_a_function_that_exits_ends_neither_its_worker_nor_the_program(processes: Processes) -> None:
    retried = processes.retries
    with pytest.raises(EngineError, match=r"SystemExit: 4 \(an exception that cannot be sent back\)"):
        list(processes.map(partial(work.dies_of_three, "exit"), [3]))
    assert processes.retries == retried


def test_what_cannot_be_sent(processes: Processes) -> None:
    def local(number: int) -> int:
        return number

    for function in (local, lambda number: number, partial(work.square, work.lock(0))):
        with pytest.raises(EngineError, match=r"the function cannot be sent .* top level of a module, or"):
            next(processes.map(function, [1]))
    results = processes.map(id, [1, work.lock(0)])
    assert next(results)
    with pytest.raises(EngineError, match=r"shard 1 cannot be sent .*cannot pickle"):
        next(results)
    with pytest.raises(EngineError, match=r"the result, of type lock, cannot be sent back .* plain data"):
        next(processes.map(work.lock, [1]))
    with pytest.raises(EngineError, match=r"AwkwardError: number 1 \(an exception that cannot be") as caught:
        next(processes.map(work.be_awkward, [1]))
    assert "in be_awkward" in caught.value.__notes__[0]


def test_what_a_worker_cannot_load(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("only_here")
    exec("def double(number): return 2 * number", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    double: Any = module.__dict__["double"]
    with pytest.raises(EngineError, match=r"cannot be loaded in a worker \(ModuleNotFoundError.*only_here"):
        next(processes.map(double, [1]))
    assert list(processes.map(work.square, range(6))) == SQUARES


def test_a_single_worker_has_one_thread_and_ignores_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with Processes(workers=1) as engine:
        work.check_order(engine)
        assert list(engine.map(work.settings, [0])) == [("1", "1", "1")]
        assert list(engine.map(work.ignores_interrupt, [0])) == [True]
        assert dict(os.environ) == before
        with pytest.raises(EngineError, match="a worker cannot start workers of its own"):
            next(engine.map(work.nested, [0]))


def test_an_abandoned_map_leaves_nobody_at_work(processes: Processes, tmp_path: Path) -> None:
    results = processes.map(partial(work.waits_once, str(tmp_path)), range(6))
    assert next(results) == 0
    assert next(results) == 1
    assert work.until((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    assert work.available(pid)
    results.close()  # type: ignore[attr-defined]
    assert not work.available(pid)
    assert pid not in processes.worker_pids
    assert list(processes.map(work.square, range(6))) == SQUARES
