"""A store in lists and dictionaries: what the tables of a database are compared with."""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from threading import RLock
from typing import NamedTuple

import numpy as np

from rareswitch.core import keys_of_bytes
from rareswitch.store import Counts, DecisionColumns, DecisionRow, Marks, RewardRow, Totals, VersionRow, reward_value

#: Decisions of a slice at the most, and of what is exported at a time.
ROWS = 1 << 16


class _Reward:
    """A reward with its place in the order of all, and that of the one that took its place."""

    def __init__(self, sequence: int, row: RewardRow) -> None:
        self.sequence, self.row = sequence, row
        self.superseded: int | None = None

    def holds(self, upto: int | None) -> bool:
        """Whether it is in force, now or as of a mark."""
        if upto is None:
            return self.superseded is None
        return self.sequence <= upto and (self.superseded is None or self.superseded > upto)


class PlainSlice(NamedTuple):
    """Decisions and, in the same order, their rewards in force."""

    decisions: list[DecisionRow]
    rewards: list[list[RewardRow]]
    sums: bool
    window: float | None

    def read(self) -> DecisionColumns:
        in_force = []
        for row, held in zip(self.decisions, self.rewards, strict=True):
            prompt = [one for one in held if self.window is None or one.time - row.time <= self.window]
            in_force.append(prompt or held if self.sums else held)
        values = [reward_value([one.value for one in held], sums=self.sums) for held in in_force]
        times = [max((one.time for one in held), default=None) for held in in_force]
        return DecisionColumns(
            keys=keys_of_bytes(b"".join(row.key for row in self.decisions), len(self.decisions)),
            features=np.array([np.frombuffer(row.features) for row in self.decisions]),
            propensities=np.array([row.propensity for row in self.decisions]),
            times=np.array([row.time for row in self.decisions]),
            rewards=np.array(values, dtype=float),
            reward_times=np.array(times, dtype=float),
            offers=None,
        )


class PlainStore:
    """All of an experiment in lists and dictionaries, behind one lock."""

    def __init__(self, name: str) -> None:
        self.url, self.name = "memory:", name
        self._lock = RLock()
        self._versions: list[VersionRow] = []
        self._decisions: list[DecisionRow] = []
        self._places: dict[bytes, int] = {}
        self._rewards: list[_Reward] = []
        self._of: dict[bytes, list[_Reward]] = defaultdict(list)
        self._ranked: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self._updates: dict[int, tuple[str, Marks]] = {}
        self._seen = dict.fromkeys(("repeated_rewards", "overwritten", "repeated_decisions"), 0)

    def create(self, description: str, first: VersionRow) -> None:
        with self._lock:
            self._versions = [first]

    def head(self) -> int:
        return len(self._versions)

    def versions(self, after: int = 0) -> list[VersionRow]:
        with self._lock:
            return self._versions[after:]

    def add_decisions(self, rows: Sequence[DecisionRow]) -> list[DecisionRow]:
        with self._lock:
            found = []
            for row in rows:
                place = self._places.setdefault(row.key, len(self._decisions))
                if place == len(self._decisions):
                    self._decisions.append(row)
                    if row.contexts is not None:
                        insort(self._ranked[row.version], (row.rank, place))
                else:
                    self._seen["repeated_decisions"] += 1
                found.append(self._decisions[place])
            return found

    def add_rewards(self, rows: Sequence[RewardRow], *, overwrite: bool = False) -> list[RewardRow | None]:
        with self._lock:
            return [self._add_reward(row, overwrite) for row in rows]

    def _add_reward(self, row: RewardRow, overwrite: bool) -> RewardRow | None:
        before = next((one for one in self._of[row.key] if one.holds(None) and one.row.event == row.event), None)
        if before is not None and before.row.value == row.value:
            self._seen["repeated_rewards"] += 1
        elif before is None or overwrite:
            kept = _Reward(len(self._rewards) + 1, row)
            if before is not None:
                before.superseded = kept.sequence
                self._seen["overwritten"] += 1
            self._rewards.append(kept)
            self._of[row.key].append(kept)
        return None if before is None else before.row

    def find(self, keys: Sequence[bytes]) -> list[tuple[DecisionRow, list[RewardRow]] | None]:
        with self._lock:
            places = [self._places.get(key) for key in keys]
            return [None if at is None else (self._decisions[at], self._in_force(at, None)) for at in places]

    def _in_force(self, place: int, upto: int | None) -> list[RewardRow]:
        return [one.row for one in self._of.get(self._decisions[place].key, ()) if one.holds(upto)]

    def counts(self, upto: Marks | None = None) -> list[Counts]:
        with self._lock:
            last = len(self._decisions) if upto is None else upto.decisions
            found: dict[int, Counts] = {}
            for place, row in enumerate(self._decisions[:last]):
                one = found.get(row.version, Counts(row.version, 0, 0, row.time, row.time))
                found[row.version] = Counts(
                    row.version,
                    one.decisions + 1,
                    one.rewarded + bool(self._in_force(place, None if upto is None else upto.rewards)),
                    min(one.first_time, row.time),
                    max(one.last_time, row.time),
                )
            return [found[version] for version in sorted(found)]

    def totals(self) -> Totals:
        with self._lock:
            held = [one for one in self._rewards if one.holds(None)]
            unmatched = sum(one.row.key not in self._places for one in held)
            return Totals(rewards=len(held), unmatched=unmatched, **self._seen)

    def marks(self) -> Marks:
        with self._lock:
            return Marks(len(self._decisions), len(self._rewards))

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks] | None:
        with self._lock:
            if parent != self.head():
                return None
            return self._updates.setdefault(parent, (plan, self.marks()))

    def publish(self, version: VersionRow) -> VersionRow:
        with self._lock:
            if version.number == self.head() + 1:
                self._versions.append(version)
            return self._versions[version.number - 1]

    def slices(self, version: int, upto: Marks, *, sums: bool, window: float | None = None) -> list[PlainSlice]:
        with self._lock:
            places = [k for k, row in enumerate(self._decisions[: upto.decisions]) if row.version == version]
            return [
                PlainSlice(
                    [self._decisions[k] for k in part], [self._in_force(k, upto.rewards) for k in part], sums, window
                )
                for part in (places[at : at + ROWS] for at in range(0, len(places), ROWS))
            ]

    def sample(self, version: int, upto: Marks) -> Iterator[tuple[bytes, bytes]]:
        with self._lock:
            places = [place for _, place in self._ranked[version] if place < upto.decisions]
        for place in places:
            row = self._decisions[place]
            assert row.contexts is not None  # as it has a rank
            yield row.key, row.contexts

    def rows(self, after: int, upto: Marks) -> Iterator[tuple[int, list[tuple[DecisionRow, list[RewardRow]]]]]:
        for at in range(after, upto.decisions, ROWS):
            places = range(at, min(at + ROWS, upto.decisions))
            with self._lock:
                some = [(self._decisions[k], self._in_force(k, upto.rewards)) for k in places]
            yield places[-1] + 1, some  # others may decide meanwhile
