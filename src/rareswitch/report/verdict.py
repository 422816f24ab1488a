"""How the runs of a contest are judged: against the best single fully adaptive entry."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.report.run_table import Group, grouped
from rareswitch.sim import Run

OFFSET = 10.0
"""Added to every regret before ratios are taken, so that a world with hardly any does not rule the mean."""
UNKNOWN = float("nan")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An entry in all worlds."""

    entry: str
    kind: str
    cells: Mapping[str, Group]
    """By world; those in which it ran."""
    ratios: Mapping[str, float]
    """(regret + 10)/(the yardstick's + 10) of the means, by world; empty without a yardstick."""
    seed_ratios: Mapping[str, float]
    """The same of its worst seed, against the yardstick's mean."""
    complete: bool
    """Whether it ran in every world."""

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


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The contest at one horizon."""

    horizon: int
    seeds: int
    worlds: tuple[str, ...]
    unfinished: tuple[str, ...]
    """Worlds that are not judged: some fully adaptive entry has not finished its seeds there."""
    yardstick: str | None
    """The fully adaptive entry with the smallest geometric mean of regret + 10; None if there is none."""
    standings: tuple[Standing, ...]
    """From small to large geometric means; at the end those that did not run in every world."""

    def best(self, world: str, kind: str) -> Standing | None:
        """The entry of that kind with the least regret in a world."""
        here = [s for s in self.standings if s.kind == kind and world in s.cells]
        return min(here, key=lambda s: s.cells[world].regret, default=None)

    def ranked(self, world: str) -> list[Standing]:
        """Those that ran in a world, from small to large regret."""
        return sorted((s for s in self.standings if world in s.cells), key=lambda s: s.cells[world].regret)

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "horizon": self.horizon,
            "seeds": self.seeds,
            "yardstick": self.yardstick,
            "unfinished": list(self.unfinished),
            "entries": [
                {
                    "entry": s.entry,
                    "kind": s.kind,
                    "geometric_mean": _known(s.geometric_mean),
                    "worst_world": s.worst_world[0] or None,
                    "worst_ratio": _known(s.worst_world[1]),
                    "worst_seed_world": s.worst_seed[0] or None,
                    "worst_seed_ratio": _known(s.worst_seed[1]),
                    "worlds": {
                        world: {
                            "regret": cell.regret,
                            "standard_error": _known(cell.standard_error),
                            "worst_seed": cell.worst,
                            "updates": cell.updates,
                            "seconds": cell.seconds,
                            "ratio": s.ratios.get(world),
                        }
                        for world, cell in s.cells.items()
                    },
                }
                for s in self.standings
            ],
        }


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
    entries = list(dict.fromkeys(run.learner for run in here))
    adaptive = [entry for entry, kind in kinds.items() if kind == "adaptive"]  # also those that have no run yet
    seen = list(dict.fromkeys(run.world for run in here))
    worlds = [world for world in seen if all((entry, world) in cells for entry in adaptive)]
    worlds = [world for world in worlds if any(place == world for _, place in cells)]
    means = {e: _geometric_mean(cells[e, world].regret + OFFSET for world in worlds) for e in adaptive if worlds}
    yardstick = min(means, key=lambda entry: means[entry], default=None)
    standings = []
    for entry in entries:
        own = {world: cells[entry, world] for world in worlds if (entry, world) in cells}
        unit = {} if yardstick is None else {world: cells[yardstick, world].regret + OFFSET for world in own}
        if own:
            standings.append(
                Standing(
                    entry=entry,
                    kind=kinds[entry],
                    cells=own,
                    ratios={world: (own[world].regret + OFFSET) / unit[world] for world in unit},
                    seed_ratios={world: (own[world].worst + OFFSET) / unit[world] for world in unit},
                    complete=len(own) == len(worlds),
                )
            )
    standings.sort(key=lambda s: (not s.complete, 0.0 if math.isnan(s.geometric_mean) else s.geometric_mean))
    return Verdict(
        horizon=horizon,
        seeds=len(seeds),
        worlds=tuple(worlds),
        unfinished=tuple(world for world in seen if world not in worlds),
        yardstick=yardstick,
        standings=tuple(standings),
    )


def _geometric_mean(values: Any) -> float:
    """Of positive numbers.

    >>> _geometric_mean([2.0, 8.0])
    4.0
    """
    return round(float(np.exp(np.mean(np.log(list(values))))), 12)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
