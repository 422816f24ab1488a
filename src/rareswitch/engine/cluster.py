"""The engine of a Dask cluster, on this machine or on many."""

import logging
import os
import signal
import time
from concurrent.futures import CancelledError, Future, wait
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from importlib import import_module
from typing import Any

from rareswitch.engine.engine import GRACE, Engine
from rareswitch.engine.pickling import Outcome, attempt, packed, summary
from rareswitch.engine.processes import SINGLE_THREADED, Processes, starting_workers
from rareswitch.errors import EngineError, MissingEngineError, ParameterError
from rareswitch.validation import number

#: Seconds to wait for a first worker where the cluster has none.
PATIENCE = 30.0
#: How often the processes of a cluster that was started here may be others when they are waited for again.
MOST_STARTS = 20
#: Seconds in which the process of a lost worker must have a successor.
GONE = 120.0


class Dask(Engine):
    """Runs shards in a Dask cluster: one that is there, given by its address, or one started on this machine.

    A cluster started here has processes of one thread each, listens on the loopback interface only, talks TLS with a
    certificate that only its own processes have, so that no other process can run anything in its workers, and ends
    with the engine. The script that was started needs ``if __name__ == "__main__":``. A cluster that is there is left
    as it was found, open to whoever can reach it unless it was started otherwise; its workers must be able to import
    rareswitch and whatever the function and its shards come from.

    The shard of a lost worker runs again. After 3 lost workers, or one more than a cluster that is there says in its
    ``distributed.scheduler.allowed-failures``, an :class:`~rareswitch.errors.EngineError` is raised. So it is for a
    scheduler that goes away, and for a cluster that is there and has no worker for 30 seconds. A shard that runs in a
    foreign cluster cannot be stopped: if its map is abandoned, it ends by itself and its result is dropped.

    ``executions`` counts the shards handed to Dask. What Dask repeats by itself is not counted: a shard that was
    done and whose result was lost with its worker, and whatever a foreign cluster repeats.
    ``workers`` counts threads, as last seen. Messages of the ``distributed`` logger are held back while the engine
    is open; failures are exceptions.

    >>> import math
    >>> with Dask(workers=1) as engine:
    ...     list(engine.map(math.sqrt, [1.0, 4.0, 9.0]))
    [1.0, 2.0, 3.0]

    Parameters
    ----------
    address
        Of a scheduler, as in ``tcp://127.0.0.1:8786``; without it a cluster is started here.
    workers
        How many processes the local cluster has; by default as many as there are processors for this one.
    timeout
        Seconds within which a scheduler must answer.
    """

    def __init__(self, address: str | None = None, workers: int | None = None, timeout: float = 5.0) -> None:
        if address is not None and workers is not None:
            raise ParameterError("give the address of a cluster, or workers for one to be started here; not both.")
        super().__init__("dask", workers)
        self.name = self.name if address is None else f"dask:{address}"
        self.address = address
        self.timeout = number("timeout", timeout, low=0.0, open_low=True)
        try:
            dask, self._distributed, cloudpickle = map(import_module, ("dask", "distributed", "cloudpickle"))
        except ImportError as error:
            raise MissingEngineError("the engine 'dask' needs Dask: pip install 'rareswitch[dask]'") from error
        self._pack = partial(packed, dumps=cloudpickle.dumps)
        silence = logging.Filter("no logger")  # lets messages through from a logger of this name only
        with ExitStack() as stack:
            for handler in logging.getLogger("distributed").handlers:
                handler.addFilter(silence)
                stack.callback(handler.removeFilter, silence)
            # Dask would warn of shards above 10 MB
            stack.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**60}))
            self._client = self._connect()
            # this ends the local cluster too, and raises if that takes longer
            stack.callback(self._client.close, timeout=60.0)
            self.workers = self.workers if address is None else sum(self._client.nthreads().values())
            self._executor = self._client.get_executor(pure=False)
            self._opened = stack.pop_all()

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the living workers of a cluster that was started here; of another, none."""
        return tuple(nanny.pid for nanny in getattr(self._client.cluster, "workers", {}).values() if nanny.pid)

    def _connect(self) -> Any:
        if self.address is None:
            with Processes(1) as probe:  # Dask would start a worker that cannot start again and again
                list(probe.map(abs, [0]))
        # lost shards are repeated by the engine, which counts; and the usual port of the dashboard may be taken
        scheduler = {"allowed_failures": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0"}
        place = {"host": "127.0.0.1", "dashboard_address": None, "scheduler_kwargs": scheduler, "env": SINGLE_THREADED}
        size = {"n_workers": self.workers, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
        # TLS with a certificate of its own: who does not hold it cannot run anything in the workers
        safety = {"security": True, "silence_logs": logging.CRITICAL}
        local = {**place, **size, **safety} if self.address is None else {}
        client = self._distributed.Client.__new__(self._distributed.Client)
        try:
            # the threads of a local cluster, which start workers now and later, must not see Ctrl-C either
            with starting_workers() if local else nullcontext():
                client.__init__(self.address, timeout=self.timeout, set_as_default=False, **local)
        except Exception as error:
            with suppress(Exception):  # else its thread would stay, and complain when the program ends
                client.close()
            client._loop_runner.stop()
            how = "started here" if local else f"reached at {self.address!r} within {self.timeout:g} s"
            remedy = "Give the address that `dask scheduler` prints, or use the engine 'processes'."
            raise EngineError(f"no Dask scheduler could be {how} ({summary(error)}). {remedy}") from error
        if local:
            _forgive_unlisted(client.cluster)
        return client

    def _start(self, function: bytes, shard: bytes) -> Future[Outcome]:
        return self._executor.submit(attempt, function, shard)  # type: ignore[no-any-return]

    def _losses(self, future: Future[Outcome]) -> tuple[int, str]:
        if future.cancelled():
            raise self._lost(CancelledError())
        error = future.exception()
        if not isinstance(error, self._distributed.KilledWorker):
            return 0, ""
        # Dask blames all shards that a lost worker had, which is one if there are as many workers as before
        self._check(self.workers if self.address is None else 1)
        return error.allowed_failures + 1, f"was that at {error.last_worker.address}"

    def _check(self, workers: int = 1) -> None:
        """See that the scheduler answers and has workers; where there are fewer than that, wait for them."""
        try:
            if self._client.status != "running":
                raise ConnectionError(self._client.status)
            self._wait(workers)
            self.workers = self.workers if self.address is None else sum(self._client.nthreads().values())
        except Exception as error:
            raise self._lost(error) from error

    def _wait(self, workers: int) -> None:
        """Wait for workers: where the cluster was started here as long as processes live that become them.

        On a machine with much to do they take their time. One that cannot start ends, and another takes its place.
        """
        started, seen = set[tuple[int, ...]](), time.monotonic()
        while True:
            try:
                self._client.wait_for_workers(workers, timeout=PATIENCE)
                return
            except TimeoutError:
                pids, now = self.worker_pids, time.monotonic()
                if len(pids) >= workers:
                    started.add(pids)
                    seen = now
                if self.address is not None or now - seen > GONE or len(started) > MOST_STARTS:
                    raise

    def _lost(self, error: BaseException) -> EngineError:
        told = f"the Dask scheduler at {self.address or '127.0.0.1'} was lost, or has had no worker for {PATIENCE:g} s"
        return EngineError(f"{told} ({summary(error)}). Start it and `dask worker`, or use the engine 'processes'.")

    def _stop(self, closing: bool) -> None:
        running = wait(self._running, GRACE).not_done
        if running and self._client.status == "running":
            with suppress(Exception):  # of a scheduler that goes away meanwhile, or a worker
                self._executor.shutdown(wait=False)  # cancels what is not done
                self._executor = self._client.get_executor(pure=False)
                for pid in self.worker_pids:  # a shard that runs ends with its worker only
                    os.kill(pid, signal.SIGKILL)
        if closing:
            self._opened.close()


def _forgive_unlisted(cluster: Any) -> None:
    """Let a cluster end in order although a worker was lost before it was listed: Dask looks up all that leave."""
    look_up = cluster._update_worker_status

    def forgiving(op: str, worker: Any) -> None:
        with suppress(KeyError):
            look_up(op, worker)

    cluster._update_worker_status = forgiving
