"""One part of a log, from file to sums: the function that engines map over the parts."""

import os
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError, InputError
from rareswitch.learner import Learner
from rareswitch.log.copies import Copies, joined
from rareswitch.log.marks import Marks, Stretch
from rareswitch.log.offers import Offers
from rareswitch.log.schema import NEEDED, ROWS, check_schema, open_part, pyarrow
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray, IntArray

MOST_IDS = 100
"""How many other policies are told apart; the rows of the rest are counted together, under the id ''."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PartReport:
    """What one part holds."""

    path: str
    rows: int
    size: int
    """Bytes of the file."""
    stats: tuple[Stats, ...]
    """Of the decisions that were used, one for each linear model of the learner."""
    used: int
    """Decisions whose reward is known."""
    unrewarded: int
    """Decisions whose reward is not."""
    outside: int
    """Rows of this policy whose decision is not one of the batch."""
    others: dict[str, int]
    """Rows by the id of another policy."""
    held: Stretch
    """Which decisions of the batch it has."""
    twice: Stretch
    """Which of them it has more than once."""
    sets: dict[int, FloatArray]
    """By decision, the arms (K, d) that were offered, of sampled decisions."""
    copies: Copies | None
    """The rows of decisions that were left out and asked for."""


def read_part(
    path: str,
    *,
    learner: Learner,
    needs_sets: bool = True,
    left_out: Marks | None = None,
    window: tuple[int, int] = (0, 0),
) -> PartReport:
    """What a part holds of the learner's current batch. Reads 65,536 rows at a time; changes nothing.

    Parameters
    ----------
    path
        Of the file.
    learner
        Whose current policy's rows are wanted.
    needs_sets
        Whether it samples context sets of this batch.
    left_out
        Decisions that must not enter the sums, because the log has them more than once.
    window
        Rows of such decisions, from the first number to before the second, are handed back.
    """
    pa, _ = pyarrow()
    try:
        size = os.stat(path).st_size
        if size == 0:
            raise FileFormatError(f"{path}: the file is empty (0 bytes), not even a Parquet file. Write the part anew.")
        with open_part(path) as file, closing(Offers(path, file.metadata, learner.dim)) as offers:
            check_schema(path, file.schema_arrow, learner.dim)
            reader = _Reader(path, offers, learner, needs_sets, left_out, window)
            for group in range(file.metadata.num_row_groups):  # so that the file alone says how sums are split
                for batch in file.iter_batches(ROWS, row_groups=[group], columns=list(NEEDED), use_threads=False):
                    reader.take(batch)
            return reader.report(size)
    except (pa.ArrowException, OSError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(
            f"{path}: not a readable Parquet file ({text}). It may be cut short or damaged; write the part anew."
        ) from error


class _Reader:
    """Sums up what comes of a part, batch after batch of rows."""

    def __init__(
        self,
        path: str,
        offers: Offers,
        learner: Learner,
        needs_sets: bool,
        left_out: Marks | None,
        window: tuple[int, int],
    ) -> None:
        self.path, self.offers, self.learner, self.needs_sets = path, offers, learner, needs_sets
        self.left_out, self.window = left_out, window
        self.held = Marks(learner.start, learner.stop)
        self.twice = Marks(learner.start, learner.stop)
        self.rows = self.used = self.unrewarded = self.outside = 0
        self.others: dict[str, int] = {}
        self.sets: dict[int, FloatArray] = {}
        self.stats: tuple[Stats, ...] | None = None
        self.copies: list[Copies] = []

    def take(self, batch: Any) -> None:
        """The next rows."""
        first, self.rows = self.rows, self.rows + batch.num_rows
        for name in NEEDED[:4]:
            if batch.column(name).null_count:
                row = first + int(np.flatnonzero(~np.asarray(batch.column(name).is_valid()))[0])
                raise self._wrong(row, f"has no {name}", "Only rewards may be missing.")
        mine = self._mine(batch.column("policy"))
        decisions = batch.column("decision").to_numpy()
        if mine is not None:
            decisions = decisions[mine]
        if len(decisions) and (decisions.min() < self.learner.start or decisions.max() >= self.learner.stop):
            inside = (decisions >= self.learner.start) & (decisions < self.learner.stop)
            self.outside += len(decisions) - int(np.count_nonzero(inside))
            mine = np.flatnonzero(inside) if mine is None else mine[inside]
            decisions = decisions[inside]
        if not len(decisions):
            return
        numbers = first + (np.arange(batch.num_rows) if mine is None else mine)
        features = _picked(self._features(batch.column("features"), first), mine)
        propensities = _picked(batch.column("propensity").to_numpy(), mine)
        if not (propensities.min() > 0.0 and propensities.max() <= 1.0):
            at = int(np.flatnonzero(~((propensities > 0.0) & (propensities <= 1.0)))[0])
            raise self._wrong(
                numbers[at], f"has the propensity {propensities[at]}", "It must be above 0 and at most 1."
            )
        column = batch.column("reward")
        rewards = _picked(column.to_numpy(zero_copy_only=False), mine)
        known = _picked(np.asarray(column.is_valid()), mine) if column.null_count else None
        self._count(numbers, decisions, features, propensities, rewards, known)

    def _mine(self, column: Any) -> IntArray | None:
        """Rows of the current policy; None for all. The others are counted."""
        codes, ids = column.indices.to_numpy(), column.dictionary.to_pylist()
        right = [code for code, name in enumerate(ids) if name == self.learner.policy.id]
        if len(right) == len(ids):
            return None
        counts = np.bincount(codes, minlength=len(ids)).tolist()
        for code, count in enumerate(counts):
            if count and code not in right:
                count_id(self.others, ids[code], count)
        if sum(counts[code] for code in right) == len(codes):
            return None
        return np.flatnonzero(np.isin(codes, right))

    def _features(self, column: Any, first: int) -> FloatArray:
        """The chosen vectors (n, d), without a copy."""
        dim = self.learner.dim
        if hasattr(column, "offsets"):
            ends = column.offsets.to_numpy()
            odd = np.flatnonzero(np.diff(ends) != dim)
            if len(odd):
                has = int(ends[odd[0] + 1] - ends[odd[0]])
                raise self._wrong(first + int(odd[0]), f"has {has} features", f"The learner is for {dim}.")
        values = column.flatten()
        if values.null_count:
            row = first + int(np.flatnonzero(~np.asarray(values.is_valid()))[0]) // dim
            raise self._wrong(row, "has a null among its features", "Clean or impute the data first.")
        flat: FloatArray = values.to_numpy()
        return flat.reshape(-1, dim)

    def _count(
        self,
        numbers: IntArray,
        decisions: IntArray,
        features: FloatArray,
        propensities: FloatArray,
        rewards: FloatArray,
        known: BoolArray | None,
    ) -> None:
        """Rows of this policy and batch, by their numbers in the file."""
        again = self.held.add(decisions)
        repeated = bool(again.any())
        if repeated:
            self.twice.add(decisions[again])
        left = None if self.left_out is None else self.left_out.holds(decisions)
        sets = self._offered(numbers, decisions)
        if left is not None and left.any():
            self._gather(left, decisions, features, propensities, rewards, sets)
            again |= left
            repeated = True
        for at, arms in sets.items():
            if arms is not None and not again[at]:
                self.sets[int(decisions[at])] = arms
        if repeated or known is not None:
            fresh = ~again if repeated else None
            counted = known if fresh is None else fresh if known is None else fresh & known
            assert counted is not None
            self.unrewarded += int(np.count_nonzero(~counted if fresh is None else fresh & ~counted))
            self._check(numbers, features, rewards, ~counted, known)
            numbers, decisions = numbers[counted], decisions[counted]
            features, rewards = features[counted], rewards[counted]
        if not len(decisions):
            return
        try:
            stats = self.learner.statistics(decisions, features, rewards)
        except InputError as error:
            self._check(numbers, features, rewards, np.ones(len(decisions), dtype=np.bool_), None)
            raise FileFormatError(f"{self.path}: {error}") from error
        self.used += len(decisions)
        self.stats = stats if self.stats is None else add(self.stats, stats)

    def _offered(self, numbers: IntArray, decisions: IntArray) -> dict[int, FloatArray | None]:
        """The sets of sampled decisions, by place; checked."""
        if not self.needs_sets:
            return {}
        places = np.flatnonzero(self.learner.sampled(decisions))
        found = dict(zip(places.tolist(), self.offers.at(numbers[places]), strict=True))
        for at, arms in found.items():
            if arms is not None and len(arms) > self.learner.arms:
                raise self._wrong(
                    numbers[at], f"offers {len(arms)} arms", f"The learner is for at most {self.learner.arms}."
                )
            if arms is not None and self.learner.in_unit_ball:
                self._check_length(numbers[at], arms)
        return found

    def _gather(
        self,
        left: BoolArray,
        decisions: IntArray,
        features: FloatArray,
        propensities: FloatArray,
        rewards: FloatArray,
        sets: dict[int, FloatArray | None],
    ) -> None:
        at = np.flatnonzero(left & (decisions >= self.window[0]) & (decisions < self.window[1]))
        if len(at):
            self.copies.append(
                Copies(
                    decisions=decisions[at],
                    features=features[at],
                    propensities=propensities[at],
                    rewards=rewards[at],
                    sets=tuple(sets.get(place) for place in at.tolist()),
                )
            )

    def _check(
        self, numbers: IntArray, features: FloatArray, rewards: FloatArray, which: BoolArray, known: BoolArray | None
    ) -> None:
        """Name the first of these rows that has something wrong, if one has."""
        bad = np.flatnonzero(which & ~np.isfinite(features).all(axis=1))
        if len(bad):
            raise self._wrong(numbers[bad[0]], "has features that are not finite", "Clean or impute the data first.")
        bad = np.flatnonzero(which & ~np.isfinite(rewards) & (True if known is None else known))
        if len(bad):
            raise self._wrong(
                numbers[bad[0]], f"has the reward {rewards[bad[0]]}", "Write null where a reward is not known."
            )
        if self.learner.in_unit_ball:
            lengths = np.linalg.norm(features, axis=1)
            bad = np.flatnonzero(which & (lengths > 1.0 + 1e-9))
            if len(bad):
                self._check_length(numbers[bad[0]], features[bad[0]][None])

    def _check_length(self, row: Any, arms: FloatArray) -> None:
        longest = float(np.linalg.norm(arms, axis=1).max())
        if longest > 1.0 + 1e-9:
            raise self._wrong(
                row,
                f"has a vector of length {longest:.6g}",
                f"{self.learner.name} is for vectors of length at most 1: divide all contexts by the longest.",
            )

    def _wrong(self, row: Any, what: str, rule: str) -> FileFormatError:
        return FileFormatError(f"{self.path}: row {int(row)} (the first is 0) {what}. {rule}")

    def report(self, size: int) -> PartReport:
        """What all rows came to."""
        stats = self.stats
        if stats is None:
            dim = self.learner.dim
            stats = self.learner.statistics(np.zeros(0, dtype=np.int64), np.zeros((0, dim)), np.zeros(0))
        return PartReport(
            path=self.path,
            rows=self.rows,
            size=size,
            stats=stats,
            used=self.used,
            unrewarded=self.unrewarded,
            outside=self.outside,
            others=self.others,
            held=self.held.stretch(),
            twice=self.twice.stretch(),
            sets=self.sets,
            copies=joined(self.copies) if self.copies else None,
        )


def add(left: tuple[Stats, ...], right: tuple[Stats, ...]) -> tuple[Stats, ...]:
    """The sums of statistics, model by model."""
    return tuple(a + b if b.count else a for a, b in zip(left, right, strict=True))


def count_id(others: dict[str, int], name: str, rows: int) -> None:
    """Count rows under a policy's id, or with those of all further ones."""
    name = name if name in others or len(others) < MOST_IDS else ""
    others[name] = others.get(name, 0) + rows


def _picked(array: Any, rows: IntArray | None) -> Any:
    return array if rows is None else array[rows]
