"""How the runs of a contest are judged: against the best single fully adaptive entry."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.report.run_table import Group, grouped
from rareswitch.sim import Run

#: Added to every regret before ratios are taken, so that a world with hardly any does not rule the mean.
OFFSET = 10.0
UNKNOWN = float("nan")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An entry in all worlds."""

    entry: str
    kind: str
    #: By world; those in which it ran.
    cells: Mapping[str, Group]
    #: (regret + 10)/(the yardstick's + 10) of the means, by world; empty without a yardstick.
    ratios: Mapping[str, float]
    #: The same of its worst seed, against the yardstick's mean.
    seed_ratios: Mapping[str, float]
    #: Whether it ran in every world.
    complete: bool

    @property
    def geometric_mean(self) -> float:
        """Of the ratios; NaN if it did not run in every world."""
        return _geometric_mean(self.ratios.values()) if self.complete and self.ratios else UNKNOWN

    @property
    def worst_world(self) -> tuple[str, float]:
        """Where its ratio is largest, and that ratio."""
        return max(self.ratios.items(), key=lambda item: item[1], default=("", UNKNOWN))

    @property
    def worst_seed(self) -> tuple[str, float]:
        """Where its worst seed is worst, and that ratio."""
        return max(self.seed_ratios.items(), key=lambda item: item[1], default=("", UNKNOWN))

    @property
    def updates(self) -> tuple[float, float]:
        """Fewest and most policies of a run, as means over the seeds of a world."""
        counts = [cell.updates for cell in self.cells.values()]
        return min(counts), max(counts)

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        facts = {"entry": self.entry, "kind": self.kind, "geometric_mean": _known(self.geometric_mean)}
        for prefix, (world, ratio) in {"worst": self.worst_world, "worst_seed": self.worst_seed}.items():
            facts |= {f"{prefix}_world": world or None, f"{prefix}_ratio": _known(ratio)}
        worlds = {}
        for world, cell in self.cells.items():
            known = {"standard_error": _known(cell.standard_error), "worst_seed": cell.worst, "updates": cell.updates}
            worlds[world] = {"regret": cell.regret} | known | {"seconds": cell.seconds, "ratio": self.ratios.get(world)}
        return facts | {"worlds": worlds}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The contest at one horizon."""

    horizon: int
    seeds: int
    worlds: tuple[str, ...]
    #: Worlds that are not judged: some fully adaptive entry has not finished its seeds there.
    unfinished: tuple[str, ...]
    #: The fully adaptive entry with the smallest geometric mean of regret + 10; None if there is none.
    yardstick: str | None
    #: From small to large geometric means; at the end those that did not run in every world.
    standings: tuple[Standing, ...]

    def best(self, world: str, kind: str) -> Standing | None:
        """The entry of that kind with the least regret in a world."""
        here = [s for s in self.standings if s.kind == kind and world in s.cells]
        return min(here, key=lambda s: s.cells[world].regret, default=None)

    def ranked(self, world: str) -> list[Standing]:
        """Those that ran in a world, from small to large regret."""
        return sorted((s for s in self.standings if world in s.cells), key=lambda s: s.cells[world].regret)

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        facts = {"horizon": self.horizon, "seeds": self.seeds, "yardstick": self.yardstick}
        return facts | {"unfinished": list(self.unfinished), "entries": [s.summary() for s in self.standings]}


def judge(runs: Sequence[Run], kinds: Mapping[str, str]) -> list[Verdict]:
    """The verdict at each horizon.

    Parameters
    ----------
    runs
        Of a contest. An entry that lacks a seed which others have in that world and horizon does not count there.
    kinds
        Of each entry of the contest, those without a run included; the yardstick is one of kind ``adaptive``.
    """
    return [_at(horizon, runs, kinds) for horizon in dict.fromkeys(run.horizon for run in runs)]


def _at(horizon: int, runs: Sequence[Run], kinds: Mapping[str, str]) -> Verdict:
    here = [run for run in runs if run.horizon == horizon]
    seeds = {run.seed for run in here}
    cells = {(g.learner, g.world): g for g in grouped(here) if {run.seed for run in g.runs} == seeds}
    adaptive = [entry for entry, kind in kinds.items() if kind == "adaptive"]  # also those that have no run yet
    seen = list(dict.fromkeys(run.world for run in here))
    judged = {world for _, world in cells}
    worlds = [world for world in seen if world in judged and all((entry, world) in cells for entry in adaptive)]
    means = {e: _geometric_mean(cells[e, world].regret + OFFSET for world in worlds) for e in adaptive if worlds}
    yardstick = min(means, key=lambda entry: means[entry], default=None)
    standings = []
    for entry in dict.fromkeys(run.learner for run in here):
        own = {world: cells[entry, world] for world in worlds if (entry, world) in cells}
        unit = {} if yardstick is None else {world: cells[yardstick, world].regret + OFFSET for world in own}
        ratios = {world: (own[world].regret + OFFSET) / unit[world] for world in unit}
        seed_ratios = {world: (own[world].worst + OFFSET) / unit[world] for world in unit}
        facts: dict[str, Any] = {"cells": own, "ratios": ratios, "seed_ratios": seed_ratios}
        if own:
            standings.append(Standing(entry=entry, kind=kinds[entry], complete=len(own) == len(worlds), **facts))
    standings.sort(key=lambda s: (not s.complete, 0.0 if math.isnan(s.geometric_mean) else s.geometric_mean))
    named = {"worlds": tuple(worlds), "unfinished": tuple(world for world in seen if world not in worlds)}
    return Verdict(horizon=horizon, seeds=len(seeds), yardstick=yardstick, standings=tuple(standings), **named)


def _geometric_mean(values: Any) -> float:
    """Of positive numbers.

    >>> _geometric_mean([2.0, 8.0])
    4.0
    """
    return round(float(np.exp(np.mean(np.log(list(values))))), 12)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
