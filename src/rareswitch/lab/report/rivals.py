"""Entries held against the best of a group of others in each world."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.lab.report.resampling import Ratio, regret_ratio
from rareswitch.lab.report.run_table import Group


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
