"""A store in lists and dictionaries: what the tables of a database are compared with."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rareswitch.core import keys_of_bytes
from rareswitch.decisions import DecisionLog
from rareswitch.store import Counts, DecisionRow, Marks, RewardRow, Totals, VersionRow


def reward_value(values: list[float], *, sums: bool) -> float | None:
    """The reward of a decision: of several the sum, in an order that does not depend on when they came."""
    if not values:
        return None
    return float(np.add.reduceat(np.sort(values), [0])[0]) if sums else values[0]  # added as databases are read


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

    def read(self) -> Iterator[DecisionLog]:
        in_force = []
        for row, held in zip(self.decisions, self.rewards, strict=True):
            prompt = [one for one in held if self.window is None or one.time - row.time <= self.window]
            in_force.append(prompt or held if self.sums else held)
        values = [reward_value([one.value for one in held], sums=self.sums) for held in in_force]
        times = [max((one.time for one in held), default=None) for held in in_force]
        yield DecisionLog.checked(
            ids=keys_of_bytes(b"".join(row.key for row in self.decisions), len(self.decisions)),
            features=np.array([np.frombuffer(row.features) for row in self.decisions]),
            propensities=np.array([row.propensity for row in self.decisions]),
            times=np.array([row.time for row in self.decisions]),
            rewards=np.array(values, dtype=float),
            reward_times=np.array(times, dtype=float),
        )


class PlainStore:
    """The rows of an experiment."""

    def __init__(self) -> None:
        self._versions: list[VersionRow] = []
        self._decisions: dict[bytes, DecisionRow] = {}
        self._rewards: list[_Reward] = []
        self._of: dict[bytes, list[_Reward]] = defaultdict(list)
        self._seen = Counter(repeated_rewards=0, overwritten=0, repeated_decisions=0)

    def create(self, description: str, first: VersionRow) -> None:
        self._versions = [first]

    def head(self) -> int:
        return len(self._versions)

    def publish(self, version: VersionRow) -> None:
        self._versions.append(version)

    def add_decisions(self, rows: Sequence[DecisionRow]) -> list[DecisionRow]:
        self._seen["repeated_decisions"] += len(rows) - len({row.key for row in rows} - self._decisions.keys())
        return [self._decisions.setdefault(row.key, row) for row in rows]

    def add_rewards(self, rows: Sequence[RewardRow], *, overwrite: bool = False) -> list[RewardRow | None]:
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

    def _upto(self, upto: Marks | None) -> list[tuple[DecisionRow, list[RewardRow]]]:
        """Decisions with their rewards in force, now or as of marks."""
        rows = list(self._decisions.values())[: None if upto is None else upto.decisions]
        last = None if upto is None else upto.rewards
        return [(row, [one.row for one in self._of.get(row.key, ()) if one.holds(last)]) for row in rows]

    def counts(self, upto: Marks | None = None) -> list[Counts]:
        versions: dict[int, list[tuple[DecisionRow, list[RewardRow]]]] = defaultdict(list)
        for row, held in self._upto(upto):
            versions[row.version].append((row, held))
        found = []
        for number, rows in sorted(versions.items()):
            times = [row.time for row, _ in rows]
            last = None if upto is None else upto.rewards
            came = sum(last is None or one.sequence <= last for row, _ in rows for one in self._of.get(row.key, ()))
            found.append(Counts(number, len(rows), sum(bool(held) for _, held in rows), min(times), max(times), came))
        return found

    def totals(self) -> Totals:
        held = [one for one in self._rewards if one.holds(None)]
        unmatched = sum(one.row.key not in self._decisions for one in held)
        return Totals(rewards=len(held), unmatched=unmatched, **self._seen)

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks]:
        return plan, Marks(len(self._decisions), len(self._rewards))

    def slices(self, version: int, upto: Marks, *, sums: bool, window: float | None = None) -> list[PlainSlice]:
        pairs = [(row, held) for row, held in self._upto(upto) if row.version == version]
        return [PlainSlice([row for row, _ in pairs], [held for _, held in pairs], sums, window)] if pairs else []

    def sample(self, version: int, upto: Marks) -> list[tuple[bytes, bytes]]:
        rows = [row for row, _ in self._upto(upto) if row.version == version and row.contexts is not None]
        return [(row.key, row.contexts or b"") for row in sorted(rows, key=lambda row: row.rank)]

    def rows(self, after: int, upto: Marks) -> Iterator[list[tuple[DecisionRow, list[RewardRow]]]]:
        yield self._upto(upto)[after:]
