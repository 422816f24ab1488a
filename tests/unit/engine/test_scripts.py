"""Engines in programs of their own: Ctrl-C, sudden death, and scripts that forgot to be importable."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from rareswitch.engine import Dask
from rareswitch.errors import EngineError
from unit.engine import work

TESTS = Path(__file__).parents[2]
ENGINES = ["processes:1", "dask:1"]


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


def waiting(name: str, folder: Path) -> str:
    """A script that maps shards which wait, and writes down its workers."""
    return f"""
import sys
import threading
from functools import partial
from pathlib import Path

def write_down(engine):
    work.until(lambda: Path({str(folder)!r}, "pid").exists() and engine.worker_pids)
    Path({str(folder)!r}, "draft").write_text(" ".join(map(str, engine.worker_pids)))
    Path({str(folder)!r}, "draft").replace(Path({str(folder)!r}, "pids"))

if __name__ == "__main__":
    from rareswitch.engine import make_engine
    from unit.engine import work

    try:
        with make_engine({name!r}) as engine:
            threading.Thread(target=write_down, args=(engine,), daemon=True).start()
            list(engine.map(partial(work.waits, {str(folder)!r}), range(4)))
    except KeyboardInterrupt:
        print("interrupted", "distributed" in sys.modules)
"""


@pytest.mark.parametrize("name", ENGINES)
def test_ctrl_c_leaves_no_worker(name: str, tmp_path: Path) -> None:
    with program(tmp_path, waiting(name, tmp_path)) as running:
        try:
            assert work.until((tmp_path / "pids").exists)
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            assert all(map(work.available, pids))
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does: everybody gets it
            told = running.communicate(timeout=work.PATIENCE)
        finally:
            running.kill()
    assert told == (f"interrupted {name.startswith('dask')}\n", "")  # and Dask is imported where it is used
    assert running.returncode == 0
    assert not any(map(work.available, pids))


def test_workers_do_not_outlive_a_program_that_was_killed(tmp_path: Path) -> None:
    with program(tmp_path, waiting("processes:1", tmp_path)) as running:
        try:
            assert work.until((tmp_path / "pids").exists)
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        finally:
            running.kill()
        assert work.until(lambda: not any(map(work.available, pids)))


@pytest.mark.parametrize("name", ENGINES)
def test_a_script_without_guard_is_told_so(name: str, tmp_path: Path) -> None:
    script = f"""
from rareswitch.engine import make_engine
with make_engine({name!r}) as engine:
    print(list(engine.map(abs, range(8))))
"""
    with program(tmp_path, script) as running:
        try:
            out, err = running.communicate(timeout=work.PATIENCE)
        finally:
            running.kill()
    assert running.returncode == 1
    assert out == ""
    assert err.count("rareswitch.errors.EngineError: ") == 1
    assert 'if __name__ == "__main__":' in err


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
        time.sleep({work.PATIENCE})
"""
    with program(tmp_path, script) as running:
        try:
            assert work.until((tmp_path / "address").exists)
            address = (tmp_path / "address").read_text()
            with Dask(address, timeout=0.5) as engine:
                assert engine.workers == 1
                assert list(engine.map(work.square, range(3))) == [0, 1, 4]
                killer = work.Killer(tmp_path, lambda: (running.pid,))
                with pytest.raises(EngineError, match=f"the Dask scheduler at {address} was lost"):
                    list(engine.map(partial(work.waits, str(tmp_path)), range(3)))
                assert killer.join() == running.pid
                with pytest.raises(EngineError, match="was lost"):
                    list(engine.map(work.square, range(3)))
        finally:
            running.kill()
