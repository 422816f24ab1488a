"""Decisions and rewards of a group of callers, kept in one transaction."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from rareswitch.store.checksums import of_contexts
from rareswitch.store.sql_rows import KEYS, kept_decisions, kept_rewards
from rareswitch.store.sql_writer import Job
from rareswitch.store.store import DecisionRow, RewardRow, counter_names


class Recording(ABC):
    """Keeps what is new and finds what was there; rows are in one order for all, that of the callers."""

    def __init__(self, connection: Any, number: int) -> None:
        self.connection, self.number = connection, number
        #: That of the driver, for the hot inserts.
        self.raw: Any = connection.connection.driver_connection

    @abstractmethod
    def insert_decisions(self, rows: Sequence[DecisionRow]) -> dict[bytes, int]:
        """Keep those whose keys are new, of several with one key the first; their sequence numbers."""

    @abstractmethod
    def insert_rewards(self, rows: Sequence[RewardRow]) -> int | set[tuple[bytes, str]]:
        """Keep those whose keys and events are new; their number if that is all, or which they are."""

    @abstractmethod
    def replace_reward(self, row: RewardRow, before: RewardRow, seq: int) -> int:
        """Let a reward take the place of another one, which has this sequence number; its own."""

    @abstractmethod
    def match_all(self) -> None:
        """Find the decisions of all rewards that came before them."""

    def match_missed(self) -> None:  # noqa: B027
        """Find the decisions of rewards that others are about to match, in :meth:`settle`."""

    def settle(self) -> None:  # noqa: B027
        """What is left to do after the commit."""

    def keep(self, jobs: list[Job]) -> None:
        """Keep all rows, and fill in the results."""
        counted: Counter[str] = Counter()
        if decisions := [row for job in jobs for row in job.decisions]:
            kept = iter(self._keep_decisions(decisions, counted))
            for job in jobs:
                if job.decisions:
                    job.result = [next(kept) for _ in job.decisions]
        if rewards := [(row, job.overwrite) for job in jobs for row in job.rewards]:
            before = iter(self._keep_rewards(rewards, counted))
            for job in jobs:
                if job.rewards:
                    job.result = [next(before) for _ in job.rewards]
        for name in sorted(counted):
            self._count(name, counted[name])

    def _keep_decisions(self, rows: list[DecisionRow], counted: Counter[str]) -> list[DecisionRow]:
        new = self.insert_decisions(rows)
        if any(row.cautions for row in rows):
            first = {row.key: row for row in reversed(rows) if row.key in new}
            counted.update(caution for row in first.values() for caution in counter_names(row.cautions))
        if len(new) == len(rows):
            return rows
        old = list({row.key for row in rows} - new.keys())
        parts = (old[at : at + KEYS] for at in range(0, len(old), KEYS))
        found = {row.key: row for part in parts for row, _ in kept_decisions(self.connection, self.number, part)}
        counted["repeated_decisions"] += len(rows) - len(new)
        return [found.setdefault(row.key, row) for row in rows]

    def _keep_rewards(self, rows: list[tuple[RewardRow, bool]], counted: Counter[str]) -> list[RewardRow | None]:
        new = self.insert_rewards([row for row, _ in rows])
        if new == len(rows):
            return [None] * len(rows)
        fresh = new if isinstance(new, set) else set()
        keys = list({row.key for row, _ in rows})
        parts = (keys[at : at + KEYS] for at in range(0, len(keys), KEYS))
        kept = chain.from_iterable(kept_rewards(self.connection, self.number, part) for part in parts)
        held = {(row.key, row.event): (row, seq) for row, seq in kept}
        found: list[RewardRow | None] = []
        for row, overwrite in rows:
            name = row.key, row.event
            if name in fresh:
                fresh.remove(name)
                found.append(None)
                continue
            before, seq = held[name]
            found.append(before)
            if before.value == row.value:
                counted["repeated_rewards"] += 1
            elif overwrite:
                held[name] = row, self.replace_reward(row, before, seq)
                counted["overwritten"] += 1
        return found

    def _count(self, name: str, more: int) -> None:
        import sqlalchemy as sa

        self.connection.execute(
            sa.text(
                "INSERT INTO rareswitch_counters (experiment, name, count) VALUES (:experiment, :name, :count) "
                "ON CONFLICT (experiment, name) DO UPDATE SET count = rareswitch_counters.count + excluded.count"
            ),
            {"experiment": self.number, "name": name, "count": more},
        )


def context_columns(row: DecisionRow) -> tuple[Any, ...]:
    """What is kept of the context set of a decision: version, rank, data, names, checksum."""
    return row.version, row.rank, row.contexts, row.names, of_contexts(row)
