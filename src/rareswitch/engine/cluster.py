"""The engine of a Dask cluster, on this machine or on many."""

import asyncio
import contextlib
import logging
import os
import queue
import signal
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rareswitch.engine.engine import GRACE, MOST_WORKERS, Engine, Job, cores
from rareswitch.engine.parcels import PROTOCOL, Dumps, attempt, packed
from rareswitch.engine.remote import RemoteJob
from rareswitch.engine.spawning import check_importable, check_may_start, kept_environment, no_interrupt
from rareswitch.errors import EngineError, MissingEngineError, ParameterError
from rareswitch.validation import number, whole

S = TypeVar("S")
R = TypeVar("R")

PATIENCE = 30.0
"""Seconds to wait for a first worker where the cluster has none."""
ANY_SIZE = {"distributed.admin.large-graph-warning-threshold": 2**60}
"""Setting with which Dask does not warn of shards above 10 MB."""
ALLOWED_FAILURES = 2
"""Workers that a shard may lose and be tried again, in clusters that are started here."""


class Dask(Engine):
    """Runs shards in a Dask cluster: one that is there, given by its address, or one started on this machine.

    A cluster started here has processes of one thread each, listens on the loopback interface only and ends with
    the engine. Every user of this machine can reach it, as any local cluster of Dask; and the script that was
    started needs ``if __name__ == "__main__":``. A cluster that is there is left as it was found; its workers must
    be able to import rareswitch and whatever the function and its shards come from.

    Dask runs the shards of a lost worker again, in clusters started here 2 times and elsewhere as often as their
    ``distributed.scheduler.allowed-failures`` says; then an :class:`~rareswitch.errors.EngineError` is raised. So
    it is for a scheduler that goes away, and for one that has no worker for 30 seconds. A shard that runs in a
    foreign cluster cannot be stopped: if its map is abandoned, it ends by itself and its result is dropped.

    ``executions`` counts the shards handed to Dask, and those that were on a worker, as far as the scheduler tells,
    when that worker was lost; they are counted when the shard is done. ``workers`` counts threads, as of the last
    map. Messages of the ``distributed`` logger are held back while the engine is open; failures are exceptions.

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
        super().__init__(workers=cores() if workers is None else whole("workers", workers, high=MOST_WORKERS))
        self.address = address
        self.timeout = number("timeout", timeout, low=0.0, open_low=True)
        if address is None:
            check_may_start()
        self._dask, self._distributed, self._dumps = _imported()
        if address is None:
            check_importable()  # some versions of Dask wait forever for a worker that cannot start
        self._cluster: Any = None
        self._futures: dict[str, Any] = {}
        """What was handed to Dask, by key."""
        self._losses: Counter[str] = Counter()
        """Workers lost by each of these."""
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Keys of shards that Dask is done with; an empty one when workers come or go."""
        self._live = 0
        """Threads of the cluster when they were last counted."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(_no_messages())
            if address is None:
                self._cluster = self._started()
                stack.callback(self._cluster.close)
            self._client = self._connected()
            stack.callback(self._disconnect)
            self._client.subscribe_topic("all", self._hear)
            self._count_threads()
            self._opened = stack.pop_all()

    @property
    def name(self) -> str:
        return f"dask:{self.workers if self.address is None else self.address}"

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the living workers of a cluster that was started here; of another, none."""
        return tuple(nanny.pid for nanny in self._nannies() if nanny.pid is not None)

    def _job(self, function: Callable[[S], R], label: str) -> Job[S, R]:
        data = packed("the function", function, self._dumps)
        self._wait_for_worker()
        return _Errand(self, data, label)

    def _shut_down(self) -> None:
        self._abandon()
        with kept_environment():
            self._opened.close()

    def _started(self) -> Any:
        try:
            # the threads of the cluster start workers, now and later, so they must not see Ctrl-C either
            with kept_environment(), no_interrupt():
                return self._distributed.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
                    scheduler_kwargs={
                        "allowed_failures": ALLOWED_FAILURES,
                        "dashboard": False,
                        "dashboard_address": "127.0.0.1:0",  # else the usual port, and a warning if it is taken
                    },
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                    env={"NUMBA_NUM_THREADS": "1"},
                )
        except Exception as error:
            raise EngineError(
                f"the local Dask cluster could not be started ({_told(error)}). Use the engine 'processes'."
            ) from error

    def _connected(self) -> Any:
        place = self._cluster if self.address is None else self.address
        try:
            return _client_class(self._distributed)(place, timeout=self.timeout, set_as_default=False)
        except Exception as error:
            raise EngineError(
                f"no Dask scheduler could be reached at {self.address!r} within {self.timeout:g} s "
                f"({_told(error)}). Give the address that `dask scheduler` prints, such as tcp://127.0.0.1:8786, "
                "or start a cluster here, with the engine 'dask'."
            ) from error

    def _disconnect(self) -> None:
        with contextlib.suppress(Exception):
            self._client.unsubscribe_topic("all")
        self._client.close(timeout=self.timeout)

    def _nannies(self) -> list[Any]:
        return [] if self._cluster is None else list(self._cluster.workers.values())

    def _count_threads(self) -> None:
        """See how many threads the cluster has now."""
        if self._client.status != "running":
            raise self._lost()
        try:
            self._live = sum(self._client.nthreads().values())
        except Exception as error:
            raise self._lost() from error
        if self.address is not None:
            self.workers = self._live

    def _wait_for_worker(self) -> None:
        """See that the cluster has a worker; where it has none, wait for the first."""
        deadline = time.monotonic() + PATIENCE
        self._count_threads()
        while self._live == 0:
            if time.monotonic() > deadline:
                raise EngineError(
                    f"the Dask cluster at {self._client.scheduler.address} has had no worker for {PATIENCE:g} s. "
                    "Start one with `dask worker`, or use the engine 'processes'."
                )
            time.sleep(0.05)
            self._count_threads()

    def _lost(self) -> EngineError:
        where = "the local cluster" if self.address is None else self.address
        return EngineError(
            f"the connection to the Dask scheduler at {where} was lost, or it dropped what it was given. See that "
            "it runs, make a new engine and map again."
        )

    def _hear(self, event: tuple[float, Any]) -> None:
        """Note when workers come and go, and which shards those had. Called in the thread of the client."""
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("add-worker", "remove-worker"):
            keys = {*message.get("processing-tasks", ()), *message.get("lost-computed-tasks", ())}
            self._losses.update(key for key in keys if key in self._futures)
            self._news.put("")

    def _submit(self, key: str, function: bytes, shard: bytes) -> None:
        try:
            with self._dask.config.set(ANY_SIZE):
                future = self._client.submit(attempt, function, shard, key=key, pure=False)
        except Exception as error:
            raise self._lost() from error
        self._futures[key] = future
        self.executions += 1
        future.add_done_callback(lambda future: self._news.put(future.key))

    def _forget(self, key: str, retries: int | None = None) -> None:
        """Drop what is known of a shard, once its executions are counted."""
        del self._futures[key]
        noted = self._losses.pop(key, 0)
        again = noted if retries is None else retries
        self.retries += again
        self.executions += again

    def _abandon(self) -> None:
        """Cancel what was handed to Dask. Where the cluster is ours, workers that are at it are ended."""
        futures = dict(self._futures)
        for key in futures:
            self._forget(key)
        deadline = time.monotonic() + GRACE
        while not all(future.done() for future in futures.values()) and time.monotonic() < deadline:
            time.sleep(0.01)
        if not futures or self._client.status != "running":
            return
        with contextlib.suppress(Exception):
            busy = {place for place, keys in self._client.processing().items() if futures.keys() & set(keys)}
            self._client.cancel(list(futures.values()), force=True)
            for nanny in self._nannies():
                if nanny.worker_address in busy and nanny.pid is not None:
                    os.kill(nanny.pid, signal.SIGKILL)


class _Errand(RemoteJob[S, R]):
    """One map of a cluster. Dask gets no more shards than it has threads: it blames all that a lost worker had."""

    def __init__(self, engine: Dask, function: bytes, label: str) -> None:
        super().__init__(function, label)
        self.engine = engine
        self.prefix = f"rareswitch-{uuid.uuid4().hex}"
        self.waiting: deque[tuple[int, bytes]] = deque()
        self.numbers: dict[str, int] = {}
        """Of the shards that were handed to Dask, by key."""

    def submit(self, number: int, shard: S) -> None:
        try:
            self.waiting.append((number, packed(self._where(number), shard, self.engine._dumps)))
        except EngineError as error:
            self.outcomes[number] = error

    def cancel(self) -> None:
        self.engine._abandon()

    def _advance(self, timeout: float) -> None:
        """Hand out shards, wait until something happens, and fetch all that are done."""
        self._hand_out()
        try:
            if self.engine._news.get(timeout=timeout) == "":
                self.engine._wait_for_worker()
        except queue.Empty:
            if timeout:
                self.engine._wait_for_worker()
        for key in [key for key in self.numbers if self.engine._futures[key].done()]:
            self._fetch(key)
        self._hand_out()

    def _hand_out(self) -> None:
        while self.waiting and len(self.numbers) < self.engine._live:
            number, shard = self.waiting.popleft()
            key = f"{self.prefix}-{number}"
            self.numbers[key] = number
            self.engine._submit(key, self.function, shard)

    def _fetch(self, key: str) -> None:
        future = self.engine._futures[key]
        retries = None
        patience = PATIENCE
        while True:
            try:
                outcome: bytes | EngineError = future.result(timeout=patience)
                break
            except TimeoutError:  # its worker was lost meanwhile, or the result is big
                self.engine._wait_for_worker()
                patience *= 2
            except self.engine._distributed.KilledWorker as error:
                retries = error.allowed_failures
                outcome = EngineError(
                    f"{self._where(self.numbers[key])} lost its worker {retries + 1} times. Make shards that need "
                    "less memory, or use the engine 'serial' to see the failure."
                )
                break
            except (Exception, asyncio.CancelledError) as error:
                if future.cancelled() or self.engine._client.status != "running":
                    raise self.engine._lost() from error
                outcome = EngineError(
                    f"{self._where(self.numbers[key])} could not be run by the Dask cluster ({_told(error)}). Its "
                    "workers need rareswitch, in the same version as here."
                )
                break
        self.outcomes[self.numbers.pop(key)] = outcome
        self.engine._forget(key, retries)


@contextlib.contextmanager
def _no_messages() -> Iterator[None]:
    """Hold back what ``distributed`` writes to the terminal."""
    handlers = list(logging.getLogger("distributed").handlers)

    def nothing(record: logging.LogRecord) -> bool:
        return False

    for handler in handlers:
        handler.addFilter(nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(nothing)


def _imported() -> tuple[Any, Any, Dumps]:
    try:
        import cloudpickle
        import dask
        import distributed
    except ImportError as error:
        raise MissingEngineError(
            "the engine 'dask' needs Dask. Install it with: pip install 'rareswitch[dask]'"
        ) from error
    return dask, distributed, lambda value: cloudpickle.dumps(value, protocol=PROTOCOL)


def _client_class(distributed: Any) -> Any:
    class TidyClient(distributed.Client):  # type: ignore[misc]
        """A client that, if it cannot connect, leaves no thread behind; nor a complaint when the program ends."""

        def start(self, **settings: Any) -> None:
            try:
                super().start(**settings)
            except BaseException:
                with contextlib.suppress(Exception):
                    self.close()
                self._loop_runner.stop()
                raise

    return TidyClient


def _told(error: BaseException) -> str:
    """The first line of an error, which may be long."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
