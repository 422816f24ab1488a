"""How the runs of a contest are judged: against the best single fully adaptive entry."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rareswitch.lab.report.runs import UNKNOWN, Group, Ratio, grouped, lifted, regret_ratio
from rareswitch.lab.simulate import Run


@dataclass(frozen=True, kw_only=True)
class Rivalry:
    """Challengers against the best rival of each world.

    That rival is the one with the least mean regret there. It is chosen afterwards and on the same seeds, which
    favours it.
    """

    #: By world; those in which a rival and a challenger ran.
    best: Mapping[str, Group]
    #: By challenger, and then by world.
    ratios: Mapping[str, Mapping[str, Ratio]]
    #: The geometric mean over these worlds, by challenger; of those that ran in all of them.
    means: Mapping[str, Ratio]

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "best": {world: cell.learner for world, cell in self.best.items()},
            "ratios": {
                entry: {world: ratio.summary() for world, ratio in found.items()}
                for entry, found in self.ratios.items()
            },
            "geometric_means": {entry: ratio.summary() for entry, ratio in self.means.items()},
        }


def rivalry(
    cells: Mapping[tuple[str, str], Group], worlds: Sequence[str], rivals: Iterable[str], challengers: Iterable[str]
) -> Rivalry | None:
    """Compare entries whose runs are given by entry and world; None where nobody can be compared."""
    rivals, challengers = list(rivals), list(challengers)
    best: dict[str, Group] = {}
    for world in worlds:
        here = [cells[entry, world] for entry in rivals if (entry, world) in cells]
        if here and any((entry, world) in cells for entry in challengers):
            best[world] = min(here, key=lambda cell: cell.regret)
    ratios: dict[str, dict[str, Ratio]] = {}
    means: dict[str, Ratio] = {}
    for entry in challengers:
        own = {world: cells[entry, world] for world in best if (entry, world) in cells}
        if own:
            ratios[entry] = {world: regret_ratio(cell.regrets, best[world].regrets) for world, cell in own.items()}
            if len(own) == len(best):
                sides = (np.stack([side[world].regrets for world in best], axis=1) for side in (own, best))
                means[entry] = regret_ratio(*sides)
    return Rivalry(best=best, ratios=ratios, means=means) if best else None


#: What regret is counted against: the best arm of each round, or the best linear policy in hindsight.
Against = Literal["best arm", "best linear policy"]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An entry in all worlds."""

    entry: str
    kind: str
    #: By world; those in which it ran.
    cells: Mapping[str, Group]
    #: (regret + 10)/(the yardstick's + 10) of the means, by world; empty without a yardstick.
    ratios: Mapping[str, Ratio]
    #: Of its worst 5 % of seeds, against the yardstick's mean.
    tail_ratios: Mapping[str, float]
    #: The geometric mean of the ratios; None without a yardstick, or if it did not run in every world.
    mean: Ratio | None
    #: Whether it ran in every world.
    complete: bool

    @property
    def geometric_mean(self) -> float:
        """Of the ratios; NaN if it did not run in every world."""
        return UNKNOWN if self.mean is None else self.mean.value

    @property
    def unresolved(self) -> list[str]:
        """The worlds in which the seeds do not tell the ratio to a factor 1.5."""
        return [world for world, ratio in self.ratios.items() if not ratio.resolved]

    @property
    def worst_world(self) -> tuple[str, float]:
        """Where its ratio is largest, and that ratio."""
        found = {world: ratio.value for world, ratio in self.ratios.items()}
        return max(found.items(), key=lambda item: item[1], default=("", UNKNOWN))

    @property
    def worst_tail(self) -> tuple[str, float]:
        """Where its worst 5 % of seeds are worst, and that ratio."""
        return max(self.tail_ratios.items(), key=lambda item: item[1], default=("", UNKNOWN))

    @property
    def policies(self) -> tuple[float, float]:
        """Fewest and most policies of a run, as means over the seeds of a world."""
        counts = [cell.policies for cell in self.cells.values()]
        return min(counts), max(counts)

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        facts: dict[str, Any] = {"entry": self.entry, "kind": self.kind, "geometric_mean": _known(self.geometric_mean)}
        interval = None if self.mean is None else self.mean.summary()["interval"]
        facts |= {"interval": interval, "unresolved": self.unresolved}
        for prefix, (world, ratio) in {"worst": self.worst_world, "worst_5_percent": self.worst_tail}.items():
            facts |= {f"{prefix}_world": world or None, f"{prefix}_ratio": _known(ratio)}
        worlds = {}
        for world, cell in self.cells.items():
            known = {"regret": cell.regret, "standard_error": _known(cell.standard_error), "worst_seed": cell.worst}
            known |= {"worst_5_percent": cell.tail, "policies": cell.policies, "seconds": cell.seconds}
            known |= {"linear_regret": cell.linear_regret}
            worlds[world] = known | (self.ratios[world].summary() if world in self.ratios else {"ratio": None})
        return facts | {"worlds": worlds}


@dataclass(frozen=True, kw_only=True)
class ContestVerdict:
    """The contest at one horizon."""

    horizon: int
    against: Against
    seeds: int
    worlds: tuple[str, ...]
    #: Worlds that are not judged: some fully adaptive entry has not finished its seeds there.
    unfinished: tuple[str, ...]
    #: The fully adaptive entry with the smallest geometric mean of regret + 10; None if there is none.
    yardstick: str | None
    #: From small to large geometric means; at the end those that did not run in every world.
    standings: tuple[Standing, ...]
    #: Challengers against the best rival of each world; None where there are none.
    rivalry: Rivalry | None

    def best(self, world: str, kind: str) -> Standing | None:
        """The entry of that kind with the least regret in a world."""
        here = [s for s in self.standings if s.kind == kind and world in s.cells]
        return min(here, key=lambda s: s.cells[world].regret, default=None)

    def ranked(self, world: str) -> list[Standing]:
        """Those that ran in a world, from small to large regret."""
        return sorted((s for s in self.standings if world in s.cells), key=lambda s: s.cells[world].regret)

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        facts: dict[str, Any] = {
            "horizon": self.horizon,
            "against": self.against,
            "seeds": self.seeds,
            "yardstick": self.yardstick,
        }
        facts |= {"unfinished": list(self.unfinished), "entries": [s.summary() for s in self.standings]}
        return facts | {"rivals": None if self.rivalry is None else self.rivalry.summary()}


def judge_contest(
    runs: Sequence[Run],
    kinds: Mapping[str, str],
    *,
    against: Against = "best arm",
    rivals: Iterable[str] = (),
    challengers: Iterable[str] = (),
) -> list[ContestVerdict]:
    """The verdict at each horizon.

    Parameters
    ----------
    runs
        Of a contest. An entry that lacks a seed which others have in that world and horizon does not count there.
    kinds
        Of each entry of the contest, those without a run included; the yardstick is one of kind ``adaptive``.
    against
        What regret is counted against.
    rivals, challengers
        Entries of which the latter are held against the best of the former in each world.
    """
    if against == "best linear policy":
        runs = [replace(run, regret=run.linear_regret) for run in runs]
    groups = (list(rivals), list(challengers))
    return [_at(horizon, runs, kinds, against, groups) for horizon in dict.fromkeys(run.horizon for run in runs)]


def _at(
    horizon: int,
    runs: Sequence[Run],
    kinds: Mapping[str, str],
    against: Against,
    groups: tuple[list[str], list[str]],
) -> ContestVerdict:
    here = [run for run in runs if run.horizon == horizon]
    seeds = {run.seed for run in here}
    cells = {(g.learner, g.world): g for g in grouped(here) if {run.seed for run in g.runs} == seeds}
    adaptive = [entry for entry, kind in kinds.items() if kind == "adaptive"]  # also those that have no run yet
    seen = list(dict.fromkeys(run.world for run in here))
    judged = {world for _, world in cells}
    worlds = [world for world in seen if world in judged and all((entry, world) in cells for entry in adaptive)]
    means = {e: _geometric_mean(lifted(cells[e, world].regret) for world in worlds) for e in adaptive if worlds}
    yardstick = min(means, key=lambda entry: means[entry], default=None)
    standings = []
    for entry in dict.fromkeys(run.learner for run in here):
        own = {world: cells[entry, world] for world in worlds if (entry, world) in cells}
        complete = len(own) == len(worlds)
        unit = {} if yardstick is None else {world: cells[yardstick, world] for world in own}
        ratios, mean = _ratios(own, unit) if unit else ({}, None)
        tails = {world: float(lifted(own[world].tail) / lifted(cell.regret)) for world, cell in unit.items()}
        facts: dict[str, Any] = {"cells": own, "ratios": ratios, "tail_ratios": tails, "complete": complete}
        if own:
            standings.append(Standing(entry=entry, kind=kinds[entry], mean=mean if complete else None, **facts))
    standings.sort(key=lambda s: (not s.complete, 0.0 if math.isnan(s.geometric_mean) else s.geometric_mean))
    return ContestVerdict(
        horizon=horizon,
        against=against,
        seeds=len(seeds),
        worlds=tuple(worlds),
        unfinished=tuple(world for world in seen if world not in worlds),
        yardstick=yardstick,
        standings=tuple(standings),
        rivalry=rivalry(cells, worlds, *groups),
    )


def _ratios(own: Mapping[str, Group], unit: Mapping[str, Group]) -> tuple[dict[str, Ratio], Ratio]:
    """By world, and over all of them."""
    if own == unit:
        alone = {world: Ratio(seeds=len(cell.runs)) for world, cell in own.items()}
        return alone, next(iter(alone.values()))
    found = {world: regret_ratio(cell.regrets, unit[world].regrets) for world, cell in own.items()}
    together = (np.stack([side[world].regrets for world in own], axis=1) for side in (own, unit))
    return found, regret_ratio(*together)


def _geometric_mean(values: Any) -> float:
    """Of positive numbers.

    >>> _geometric_mean([2.0, 8.0])
    4.0
    """
    return round(float(np.exp(np.mean(np.log(list(values))))), 12)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
