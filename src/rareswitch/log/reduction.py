"""Parts of a log, mapped on any engine and summed up in their order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rareswitch.engine import Engine
from rareswitch.errors import FileFormatError
from rareswitch.learner import Learner
from rareswitch.log.copies import Copies, joined, resolve
from rareswitch.log.marks import PAGE, Marks
from rareswitch.log.parts import PartReport, add, count_id, read_part
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray

_GATHERED = 1 << 23
"""About how many numbers of rows of repeated decisions are held at a time."""
_STRIDE = 1 << 20
"""Decisions that are asked at a time whether they are sampled."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Kept:
    """What is kept of a part's report: nothing that grows with its rows."""

    rows: int
    size: int
    stats: tuple[Stats, ...]
    used: int
    unrewarded: int
    outside: int
    blocks: BoolArray
    """Where in the batch its decisions lie, roughly."""
    sets: dict[int, FloatArray]


class Reducer:
    """Sums up parts in their order."""

    def __init__(
        self, learner: Learner, paths: list[str], engine: Engine, progress: Callable[[int, int], None] | None
    ) -> None:
        self.learner, self.paths, self.engine, self.progress = learner, paths, engine, progress
        self.wanted_sets = sampled_sets(learner)
        self.reports: list[_Kept] = []
        """By part."""
        self.held = Marks(learner.start, learner.stop)
        self.twice = Marks(learner.start, learner.stop)
        self.others: dict[str, int] = {}
        self.surplus = self.conflicting = self.conflicting_rows = 0
        self.agreed = self.agreed_unrewarded = 0
        self.agreed_stats: list[tuple[Stats, ...]] = []
        self.sets: dict[int, FloatArray] = {}
        """Of decisions that occur more than once and agree."""
        self.tasks, self.done = len(paths), 0

    @property
    def used(self) -> int:
        return self.agreed + sum(report.used for report in self.reports)

    @property
    def unrewarded(self) -> int:
        return self.agreed_unrewarded + sum(report.unrewarded for report in self.reports)

    def read(self) -> None:
        """Read all parts, once."""
        for report in self._map(self.paths):
            self.twice.merge(report.twice)
            self.twice.merge(self.held.merge(report.held))
            for name, rows in report.others.items():
                count_id(self.others, name, rows)
            self.reports.append(self._kept(report))

    def leave_out_copies(self) -> None:
        """Read again those parts that may hold decisions which occur more than once, and decide about these."""
        windows = list(self._windows())
        if not windows:
            return
        blocks = self.held.blocks(self.twice.everything())
        affected = [k for k, report in enumerate(self.reports) if (report.blocks & blocks).any()]
        self.tasks += len(affected) * len(windows)
        for window in windows:
            gathered: list[Copies] = []
            reports = self._map([self.paths[k] for k in affected], left_out=self.twice, window=window)
            for k, report in zip(affected, reports, strict=True):
                if (report.rows, report.size) != (self.reports[k].rows, self.reports[k].size):
                    raise FileFormatError(f"{report.path}: it changed while it was read. Update from finished parts.")
                self.reports[k] = self._kept(report)
                if report.copies is not None:
                    gathered.append(report.copies)
            if gathered:
                self._resolve(joined(gathered))

    def total(self) -> tuple[Stats, ...]:
        """The sums of all parts, in their order, and then of the decisions that occur more than once and agree."""
        total, *rest = [report.stats for report in self.reports] + self.agreed_stats
        for stats in rest:
            total = add(total, stats)
        return total

    def _map(self, paths: Sequence[str], **asked: Any) -> Iterator[PartReport]:
        function = partial(read_part, learner=self.learner, needs_sets=self.wanted_sets > 0, **asked)
        for report in self.engine.map(function, paths, label="part"):
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.tasks)
            yield report

    def _kept(self, report: PartReport) -> _Kept:
        return _Kept(
            rows=report.rows,
            size=report.size,
            stats=report.stats,
            used=report.used,
            unrewarded=report.unrewarded,
            outside=report.outside,
            blocks=self.held.blocks(report.held),
            sets=report.sets,
        )

    def _windows(self) -> Iterator[tuple[int, int]]:
        """Ranges of decisions, each with no more repeated ones than fit into memory with their rows."""
        most = max(8 * PAGE, _GATHERED // (self.learner.dim + 4))
        first, held = 0, 0
        pages = self.twice.pages.tolist()
        for page, count in enumerate([*pages, most + 1]):
            if held and held + count > most:
                yield self.learner.start + 8 * PAGE * first, self.learner.start + 8 * PAGE * page
                first, held = page, 0
            held += count

    def _resolve(self, rows: Copies) -> None:
        found = resolve(rows)
        self.surplus += found.surplus
        self.conflicting += found.conflicting
        self.conflicting_rows += found.conflicting_rows
        for at in found.agreed.tolist():
            arms = rows.sets[at]
            if arms is not None:
                self.sets[int(rows.decisions[at])] = arms
        known = found.agreed[~np.isnan(rows.rewards[found.agreed])]
        self.agreed += len(known)
        self.agreed_unrewarded += len(found.agreed) - len(known)
        if len(known):
            self.agreed_stats.append(
                self.learner.statistics(rows.decisions[known], rows.features[known], rows.rewards[known])
            )


def sampled_sets(learner: Learner) -> int:
    """How many context sets of the batch the learner asks for."""
    stretches = range(learner.start, learner.stop, _STRIDE)
    return sum(
        int(np.count_nonzero(learner.sampled(np.arange(first, min(first + _STRIDE, learner.stop)))))
        for first in stretches
    )
