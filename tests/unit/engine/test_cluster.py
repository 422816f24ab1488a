import io
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from rareswitch.engine import Dask, cluster, make_engine
from rareswitch.errors import EngineError, MissingEngineError, MissingExtraError, ParameterError
from unit.engine import work

SQUARES = [0, 1, 4, 9, 16, 25]


@pytest.fixture(scope="module")
def idle() -> Iterator[str]:
    """The address of a scheduler that has no workers."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}
    ) as made:
        yield made.scheduler_address


@pytest.fixture
def there() -> Iterator[str]:
    """The address of a cluster of two workers that somebody else started, without TLS."""
    from distributed import Client, LocalCluster

    plain = {"host": "127.0.0.1", "dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, **plain) as made,
        Client(made, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield made.scheduler_address


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_nothing_listens_but_on_the_loopback(dask: Dask) -> None:
    assert len(dask.worker_pids) == 2
    heard = [
        listening.laddr.ip
        for pid in (os.getpid(), *dask.worker_pids)
        for listening in psutil.Process(pid).net_connections()
        if listening.status == psutil.CONN_LISTEN
    ]
    assert len(heard) >= 4
    assert set(heard) == {"127.0.0.1"}


def test_strangers_cannot_run_anything_in_its_workers(dask: Dask) -> None:
    from distributed import Client, Security

    address = dask._client.scheduler.address
    workers = list(dask._client.scheduler_info()["workers"])
    assert address.startswith("tls://")
    assert all(worker.startswith("tls://") for worker in workers)
    for stranger in (
        {"address": address.replace("tls", "tcp")},
        {"address": address, "security": Security.temporary()},
    ):
        with pytest.raises(OSError, match=r"closed|certificate|Timed out"):
            Client(**stranger, timeout=2.0, set_as_default=False)


def test_messages_are_held_back_while_an_engine_is_open(idle: str) -> None:
    logger = logging.getLogger("distributed")
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    logger.addHandler(handler)
    try:
        with Dask(idle):
            logger.getChild("scheduler").error("during")
        logger.error("after")
    finally:
        logger.removeHandler(handler)
    assert "during" not in told.getvalue()
    assert "after" in told.getvalue()


def test_a_killed_worker_costs_its_shard_only(dask: Dask, tmp_path: Path) -> None:
    started, retried = dask.executions, dask.retries
    killer = work.Killer(tmp_path, lambda: dask.worker_pids)
    assert list(dask.map(partial(work.waits_once, str(tmp_path)), range(6))) == SQUARES
    assert killer.join()
    assert 7 <= len(list(tmp_path.glob("run-*"))) <= 8
    assert 7 <= dask.executions - started <= 8
    assert dask.retries - retried == dask.executions - started - 6


def test_a_shard_that_kills_every_worker_is_given_up(dask: Dask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.05)  # no worker starts in so short a time, as on a busy machine
    started, retried = dask.executions, dask.retries
    with pytest.raises(EngineError, match=r"piece 0 lost its worker 3 times.* less memory, .*'serial'"):
        next(dask.map(partial(work.dies_of_three, "SIGKILL"), [3], label="piece"))
    assert (dask.executions - started, dask.retries - retried) == (3, 2)
    assert list(dask.map(work.square, range(6))) == SQUARES


def test_what_cannot_be_sent(dask: Dask) -> None:
    with pytest.raises(EngineError, match=r"the function cannot be sent .* top level of a module, or a functools"):
        next(dask.map(partial(work.square, work.lock(0)), [1]))
    with pytest.raises(EngineError, match=r"shard 0 cannot be sent .*cannot pickle"):
        next(dask.map(id, [work.lock(0)]))
    with pytest.raises(EngineError, match=r"the result, of type lock, cannot be sent back .* plain data"):
        next(dask.map(work.lock, [1]))


def test_an_abandoned_map_leaves_nobody_at_work(dask: Dask, tmp_path: Path) -> None:
    results = dask.map(partial(work.waits_once, str(tmp_path)), range(6))
    assert next(results) == 0
    assert next(results) == 1
    assert work.until((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    results.close()  # type: ignore[attr-defined]
    assert work.until(lambda: not work.available(pid))
    assert list(dask.map(work.square, range(6))) == SQUARES
    assert len(list(tmp_path.glob("run-2-*"))) == 1


def test_a_single_worker_has_one_thread_ignores_ctrl_c_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with Dask(workers=1) as engine:
        assert dict(os.environ) == before
        work.check_order(engine)
        assert list(engine.map(work.settings, [0])) == [("1", "1", "1")]
        assert list(engine.map(work.blocks_interrupt, [0])) == [True]
        (pid,) = engine.worker_pids
    assert dict(os.environ) == before
    assert engine.worker_pids == ()
    assert not work.available(pid)


def test_a_cluster_that_is_there_is_used_and_left(there: str) -> None:
    address = there
    for name in (f"dask:{address}", f"dask:{address.removeprefix('tcp://')}"):
        with make_engine(name) as engine:
            assert isinstance(engine, Dask)
            assert (engine.name, engine.workers, engine.worker_pids) == (name, 2, ())
            assert list(engine.map(work.square, range(6))) == SQUARES


def test_nobody_answers(nobody: str, capfd: pytest.CaptureFixture[str]) -> None:
    threads = threading.active_count()
    with pytest.raises(EngineError, match=f"no Dask scheduler could be reached at '{nobody}' within 0.3 s"):
        Dask(nobody, timeout=0.3)
    assert threading.active_count() <= threads
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1", "pigeon://1:2", "tcp://127.0.0.1:port", ""])
def test_addresses_that_are_none(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match=f"no Dask scheduler could be reached at '{address}'"):
        Dask(address, timeout=0.5)
    assert capfd.readouterr() == ("", "")


def test_a_cluster_or_workers() -> None:
    with pytest.raises(ParameterError, match="not both"):
        Dask("127.0.0.1:8786", workers=2)


def test_a_cluster_without_workers(idle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    with Dask(idle) as engine, pytest.raises(EngineError, match=r"has had no worker for 0.2 s .*Start it and"):
        next(engine.map(work.square, [1]))


def test_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "distributed", missing)
    with pytest.raises(MissingEngineError, match=r"pip install 'rareswitch\[dask\]'") as caught:
        Dask()
    assert isinstance(caught.value, MissingExtraError)


def test_a_worker_that_was_lost_before_it_was_listed_does_not_spoil_the_end() -> None:
    with Dask(workers=1) as engine:
        pids = engine.worker_pids
        cluster_there = engine._client.cluster
        known = cluster_there._update_worker_status

        def forgetful(op: str, msg: Any) -> None:
            if op == "remove":
                cluster_there.scheduler_info["workers"].clear()
            known(op, msg)

        cluster_there._update_worker_status = forgetful
        assert list(engine.map(work.square, range(2))) == SQUARES[:2]
    assert not any(work.available(pid) for pid in pids)
