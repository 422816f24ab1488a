"""A server at the edge: decides by a policy file, without a store; what it decided becomes Parquet parts."""

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rareswitch.core import ContextSets
from rareswitch.errors import ParameterError, RareswitchError
from rareswitch.experiment import Choice, Request, Requests, read_requests
from rareswitch.log import write_decisions
from rareswitch.policy import Decisions, Key, Policy, policy_from_bytes
from rareswitch.service.app import log
from rareswitch.service.hub import Hub, MissingError
from rareswitch.store import DecisionRow

__all__ = ["EdgeHub", "FrozenPolicy"]

#: Seconds between two looks at the policy's file, and between two parts of the log; rows of a part at the most.
LOOK, PART, MOST_ROWS = 1.0, 60.0, 20_000


class FrozenPolicy:
    """Decides as an experiment does, by a policy in a file, and keeps nothing but rows for the log."""

    def __init__(self, path: str | Path, *, name: str, seed: int, key: Key | None = None, logs: bool = False) -> None:
        self.path, self.name, self.seed, self.key, self._logs = Path(path), name, seed, key, logs
        self._lock = threading.Lock()
        self._rows: list[tuple[str, DecisionRow]] = []
        self._stamp: tuple[int, int, int] | None = None
        self.policy: Policy
        self.data = b""
        self.refresh()

    def refresh(self) -> bool:
        """Take a new file, if there is one that is whole and signed; whether there was."""
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            if stamp == self._stamp:
                return False
            data = self.path.read_bytes()
        except OSError as error:
            raise ParameterError(f"policy must be a file that can be read; {self.path}: {error.strerror}.") from error
        policy = policy_from_bytes(data, key=self.key)
        self.policy, self.data, self._stamp = policy, data, stamp
        return True

    def request(
        self,
        context: Any,
        arms: Any = None,
        *,
        id: int | str,  # noqa: A002
        baseline: Any = None,
        deferred: bool = False,
    ) -> Request:
        """What is asked; it is decided when :meth:`decide_together` comes to it."""
        _refuse_deferred(deferred)
        return Request(lambda jobs: None, context, arms, id, baseline, False, None)

    def decide_together(self, requests: Sequence[Request]) -> list[Choice | Exception]:
        """A choice, or an error, for each; what is asked in the same way is decided at once."""
        answers: dict[int, Choice | Exception] = {}
        groups: dict[tuple[bool, bool], list[int]] = {}
        for at, request in enumerate(requests):
            groups.setdefault((request.arms is None, request.baseline is None), []).append(at)
        for group in groups.values():
            answers |= zip(group, self._answers([requests[at] for at in group]), strict=True)
        return [answers[at] for at in range(len(requests))]

    def _answers(self, group: Sequence[Request]) -> Sequence[Choice | Exception]:
        """To requests that all name arms, or none do, and baselines likewise."""
        first, single, policy = group[0], len(group) == 1, self.policy
        contexts, arms = first.context, first.arms
        try:
            if not single:
                contexts, arms = (
                    [each.context for each in group],
                    None if arms is None else [each.arms for each in group],
                )
                contexts = contexts if policy.features is not None else ContextSets.from_ragged(contexts)
            shown = None if first.baseline is None else [each.baseline for each in group]
            times = [each.time for each in group]
            return self._decide(contexts, arms, [each.id for each in group], shown, times, single=single)
        except Exception as error:
            return [error] if single else [answer for each in group for answer in self._answers([each])]

    def decide_many(
        self, contexts: Any, arms: Any = None, *, ids: Any, baseline: Any = None, deferred: bool = False
    ) -> list[Choice]:
        """Many at once."""
        _refuse_deferred(deferred)
        return self._decide(contexts, arms, ids, baseline, [time.time()] * len(ids))

    def probabilities(self, context: Any, arms: Any = None, *, baseline: Any = None) -> dict[Any, float]:
        """With what probability each arm would be chosen."""
        policy, shown = self.policy, None if baseline is None else [baseline]
        batch = read_requests(policy.features, policy.dim, context, arms, ids=["p"], baseline=shown, single=True)
        return batch.probabilities(policy)

    def _decide(
        self, contexts: Any, arms: Any, ids: list[Any], baseline: Any, times: Sequence[float], *, single: bool = False
    ) -> list[Choice]:
        policy = self.policy  # which another file may take the place of meanwhile
        batch = read_requests(policy.features, policy.dim, contexts, arms, ids=ids, baseline=baseline, single=single)
        decided = batch.decide(policy, self.seed)
        if self._logs:
            self._note(policy, batch, decided, times)
        places, propensities = decided.arms.reshape(-1).tolist(), decided.propensities.reshape(-1).tolist()
        return [
            Choice(
                id=ids[at],
                arm=batch.arm(at, arm_index),
                propensity=propensities[at],
                policy_id=policy.id,
                version=0,
                cautions=batch.cautions[at],
            )
            for at, arm_index in enumerate(places)
        ]

    def _note(self, policy: Policy, batch: Requests, decided: Decisions, times: Sequence[float]) -> None:
        rows = batch.rows(decided, version=1, context_sample_rate=1.0, times=times)
        with self._lock:
            self._rows += [(policy.id, row) for row in rows]

    def take(self) -> list[tuple[str, DecisionRow]]:
        """The rows since the last call, each with the id of its policy."""
        with self._lock:
            rows, self._rows = self._rows, []
        return rows


def _refuse_deferred(deferred: bool) -> None:
    if deferred:
        raise ParameterError(
            "deferred must be false: a server with a policy file keeps no decisions that could be activated. Ask a "
            "server with a store."
        )


class EdgeHub(Hub):
    """The one policy of a server at the edge, which takes new files while it serves."""

    blocks = False

    def __init__(self, frozen: FrozenPolicy, folder: str | Path | None = None) -> None:
        super().__init__("")
        self.frozen, self._folder = frozen, None if folder is None else Path(folder)
        self._parts, self._written = 0, time.monotonic()

    async def names(self) -> list[str]:
        """Its own."""
        return [self.frozen.name]

    async def trial(self, name: str) -> Any:
        """The policy."""
        if name != self.frozen.name:
            raise MissingError(
                f"this server decides for {self.frozen.name!r:.100} alone.", parameter="name", given=name
            )
        return self.frozen

    async def watch(self) -> None:
        """Look for new files, and write parts of the log, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK)
            try:
                if await self.run(self.frozen.refresh):
                    log("policy", policy_id=self.frozen.policy.id)
                await self.run(self.write)
            except RareswitchError as error:  # the old policy goes on
                log("error", message=str(error))

    def write(self, *, everything: bool = False) -> None:
        """Write what was decided, if it is time."""
        late = time.monotonic() - self._written > PART
        if self._folder is None or not (everything or late or len(self.frozen._rows) >= MOST_ROWS):
            return
        self._written = time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True)
        groups: dict[tuple[str, bool], list[DecisionRow]] = {}
        for policy_id, row in self.frozen.take():
            groups.setdefault((policy_id, row.id.startswith('"')), []).append(row)
        for (policy_id, _), rows in groups.items():
            self._parts += 1
            name = f"part-{time.time_ns()}-{os.getpid()}-{self._parts:05d}.parquet"
            write_decisions(self._folder / name, rows, [policy_id])

    def check(self) -> None:
        """Nothing but the policy is needed."""

    def close(self) -> None:
        """Write the rest of the log."""
        super().close()
        with suppress(FileNotFoundError):
            self.write(everything=True)
