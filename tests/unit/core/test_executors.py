import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from rareswitch.core import make_executor, run_shards
from rareswitch.core.executors import AHEAD, Processes
from rareswitch.errors import EngineError, InputError, MissingEngineError, ParameterError
from reference.refusals import raises
from unit import shards

SQUARES = [0, 1, 4, 9, 16, 25]
TESTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("the test does not end")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a Dask cluster."""
    from distributed import LocalCluster

    plain: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, host="127.0.0.1", **plain) as made:
        yield made.scheduler_address


@pytest.fixture(scope="module", params=["none", "threads", "processes", "plain pool", "dask"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "none":
        yield None
    elif request.param == "threads":
        with ThreadPoolExecutor(3) as threads:
            yield threads
    elif request.param == "plain pool":
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            yield pool
    else:
        name = "processes:2" if request.param == "processes" else f"dask:{request.getfixturevalue('cluster')}"
        with make_executor(name) as made:
            yield made


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with make_executor("processes:2") as pool:
        assert isinstance(pool, Processes)
        yield pool


def test_results_are_the_same_and_in_order(executor: Executor | None) -> None:
    expected = [shards.noise(seed) for seed in range(30)]
    assert list(run_shards(shards.noise, range(30), executor)) == expected
    assert list(run_shards(shards.square, [], executor)) == []
    big = [bytes([number]) * 3_000_000 + b"end" for number in range(4)]
    assert list(run_shards(shards.backwards, big, executor)) == [shard[::-1] for shard in big]


def test_shards_are_taken_as_they_are_needed(executor: Executor | None) -> None:
    taken = 0

    def many() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = run_shards(shards.square, many(), executor)
    assert taken == 0
    for number in range(3 * AHEAD):
        assert next(results) == number * number
        assert taken <= number + AHEAD * 3
    results.close()  # type: ignore[attr-defined]
    assert list(run_shards(shards.square, [3], executor)) == [9]


def test_an_exception_comes_unchanged_when_its_turn_comes(executor: Executor | None) -> None:
    results = run_shards(shards.refuse_seven, range(12), executor, label="piece")
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(KeyError) as caught:
        next(results)
    assert caught.value.args == ("seven is not wanted",)
    assert caught.value.__notes__ == ["raised by piece 7"]
    assert list(run_shards(shards.square, range(6), executor)) == SQUARES


def test_shards_that_fail_to_come_raise_after_the_results_before_them(executor: Executor | None) -> None:
    def broken() -> Iterator[int]:
        yield from range(3)
        raise OSError("no more of these")

    results = run_shards(shards.square, broken(), executor)
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    raises(OSError, "no more of these", next, results)


@pytest.mark.parametrize("function", [shards.dies_the_first_time, shards.dies_while_it_answers])
def test_lost_workers_change_nothing(function: Any, processes: Processes, tmp_path: Path) -> None:
    results = run_shards(partial(function, str(tmp_path)), range(4), processes)
    if function is shards.dies_the_first_time:
        assert list(results) == SQUARES[:4]
    else:  # which dies before, while or after its answer is sent
        assert [(result[0], len(result)) for result in results] == [(number, 50_000_000) for number in range(4)]
    assert list(run_shards(shards.square, range(6), processes)) == SQUARES


def test_a_shard_that_kills_every_worker_is_named(processes: Processes) -> None:
    results = run_shards(shards.dies_of_three, range(6), processes, label="piece")
    assert [next(results) for _ in range(3)] == SQUARES[:3]
    raises(EngineError, r"piece 3 lost its worker 3 times.* less memory, .*'serial'", next, results)


def test_a_cluster_repeats_shards(cluster: str, tmp_path: Path) -> None:
    with make_executor(f"dask:{cluster}") as executor:
        assert list(run_shards(partial(shards.dies_the_first_time, str(tmp_path)), range(2), executor)) == SQUARES[:2]


def test_a_shard_that_a_cluster_gave_up_is_named() -> None:
    def give_up(number: int) -> None:
        from distributed import KilledWorker

        raise KilledWorker("task", types.SimpleNamespace(address="tcp://127.0.0.1:9"), 3)

    with ThreadPoolExecutor(1) as executor, pytest.raises(EngineError, match=r"piece 0 lost all its workers .*memory"):
        list(run_shards(give_up, [1], executor, label="piece"))


def test_what_cannot_be_sent(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("only_here")
    exec("def double(number): return 2 * number", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    for function, shard, error, words in (
        (lambda number: number, 1, EngineError, r"shard 0 or its function cannot be sent .* top level of a module"),
        (id, shards.lock(0), EngineError, r"shard 0 or its function cannot be sent .*cannot pickle"),
        (shards.lock, 1, TypeError, "cannot pickle"),
        (shards.be_awkward, 1, EngineError, "AwkwardError: number 1"),
        (module.__dict__["double"], 1, ModuleNotFoundError, "only_here"),
    ):
        raises(error, words, next, run_shards(function, [shard], processes))


def test_workers_have_one_thread_block_ctrl_c_and_end_with_the_pool(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with make_executor("processes:1") as executor:
        assert list(run_shards(shards.settings, [0], executor)) == [("1", "1", "1")]
        assert list(run_shards(shards.blocks_interrupt, [0], executor)) == [True]
        assert list(run_shards(shards.nested, [-4], executor)) == [[4]]
        assert dict(os.environ) == before
        abandoned = run_shards(partial(shards.waits_once, str(tmp_path)), range(6), executor)
        assert [next(abandoned), next(abandoned)] == [0, 1]
        assert shards.until((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        assert shards.is_running(pid)
    assert shards.until(lambda: not shards.is_running(pid))


@pytest.mark.parametrize("name", ["", "serials", "Serial", "threads:2", ":4", "tcp://127.0.0.1:8786", 4, None])
def test_unknown_names(name: Any) -> None:
    raises(InputError, "no engine is called", make_executor, name)


@pytest.mark.parametrize("count", ["", "0", "-1", "1025", "9" * 5000, "two", "1.5", " 2", "1_0", "٣", "2x", "+2"])
def test_numbers_of_workers_that_are_none(count: str) -> None:
    for kind, rule in (
        ("processes", "a whole number between 1 and 1024"),
        ("serial", "stands alone"),
        ("dask", "the address of a scheduler"),
    ):
        raises(ParameterError, f"{rule}.* got '", make_executor, f"{kind}:{count}")


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("rareswitch.core.executors.TIMEOUT", 0.3)
    for address in ("127.0.0.1:9", "tcp://127.0.0.1:port", "pigeon://1:2"):
        with (
            pytest.raises(EngineError, match=f"no Dask scheduler could be reached at '{address}'"),
            make_executor(f"dask:{address}"),
        ):
            pass
    assert capfd.readouterr() == ("", "")


def test_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "distributed", missing)
    with pytest.raises(MissingEngineError, match=r"pip install 'rareswitch\[dask\]'"), make_executor("dask:x:1"):
        pass


def program(folder: Path, text: str) -> "subprocess.Popen[str]":
    """Start a script, in a session of its own."""
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_a_program_that_is_interrupted_or_killed(how: signal.Signals, tmp_path: Path) -> None:
    script = f"""
from functools import partial
from rareswitch.core import make_executor, run_shards
from unit import shards

if __name__ == "__main__":
    try:
        with make_executor("processes:1") as executor:
            list(run_shards(partial(shards.waits, {str(tmp_path)!r}), range(4), executor))
    except KeyboardInterrupt:
        print("interrupted")
"""
    with program(tmp_path, script) as running:
        try:
            assert shards.until((tmp_path / "pid").exists)
            pid = int((tmp_path / "pid").read_text())
            os.killpg(running.pid, how) if how == signal.SIGINT else running.kill()  # a terminal sends it to everybody
            printed = running.communicate(timeout=shards.PATIENCE)
        finally:
            running.kill()
    assert printed[0] == "interrupted\n" * (how == signal.SIGINT)
    assert how == signal.SIGKILL or not printed[1]
    assert shards.until(lambda: not shards.is_running(pid))


def test_a_script_without_guard_is_told_so(tmp_path: Path) -> None:
    script = """
from rareswitch.core import make_executor, run_shards
with make_executor("processes:1") as executor:
    print(list(run_shards(abs, range(8), executor)))
"""
    with program(tmp_path, script) as running:
        try:
            out, err = running.communicate(timeout=shards.PATIENCE)
        finally:
            running.kill()
    assert (running.returncode, out) == (1, "")
    assert 'must do so under \'if __name__ == "__main__":' in err


def test_a_scheduler_that_goes_away_is_noticed(tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from distributed import LocalCluster

if __name__ == "__main__":
    options = {{"dashboard_address": "127.0.0.1:0"}}
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1",
                      dashboard_address=None, scheduler_kwargs=options) as cluster:
        Path({str(tmp_path)!r}, "draft").write_text(cluster.scheduler_address)
        Path({str(tmp_path)!r}, "draft").replace(Path({str(tmp_path)!r}, "address"))
        time.sleep({shards.PATIENCE})
"""
    with program(tmp_path, script) as running:
        try:
            assert shards.until((tmp_path / "address").exists)
            with make_executor(f"dask:{(tmp_path / 'address').read_text()}") as executor:
                assert list(run_shards(shards.square, range(3), executor)) == [0, 1, 4]
                results = run_shards(partial(shards.waits_once, str(tmp_path)), range(6), executor)
                assert [next(results), next(results)] == [0, 1]
                assert shards.until((tmp_path / "pid").exists)
                running.kill()
                raises(EngineError, "the scheduler of its cluster was lost", next, results)
        finally:
            running.kill()
