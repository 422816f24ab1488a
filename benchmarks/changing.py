"""Measure what policies kept back and forgetting save where contexts or θ change, and cost where nothing does.

Regret is compared as (mean regret + 10)/(that of the yardstick + 10). The seeds are 0 and following; those of
development are 1000 and following.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report
from rareswitch import simulate
from rareswitch.lab import Run, learner_for
from rareswitch.lab.report import Ratio, regret_ratio
from rareswitch.lab.worlds import World, make_world

NOISE = 0.5
YARDSTICK = "LinUCB 1, every step"
#: Learner and settings, by label.
ENTRANTS: dict[str, tuple[str, dict[str, Any]]] = {
    YARDSTICK: ("linucb", {"confidence": 1.0}),
    "OFUL 1, C = 2": ("oful", {"confidence": 1.0}),
    "stale Thompson 0.5, 8 policies": ("stale-thompson", {"scale": 0.5, "updates": 8}),
    "foresight 8": ("foresight", {"updates": 8}),
    "foresight 8, 2 kept back": ("foresight", {"updates": 8, "reserve": 2}),
    "foresight 16": ("foresight", {"updates": 16}),
    "foresight 16, 4 kept back": ("foresight", {"updates": 16, "reserve": 4}),
}
FORGETFUL = {
    f"foresight {updates}, forget {forget}": ("foresight", {"updates": updates, "forget": forget})
    for updates in (8, 16)
    for forget in (0.7, 0.5, 0.3)
}
#: What is asked of policies kept back in the world of late groups.
MOST = {"foresight 8, 2 kept back": 6.0, "foresight 16, 4 kept back": 3.0}
STILL = ("gaussian", "fixed", "segments", "zipf", "anisotropic", "disjoint", "rare-clicks", "heavy-tails")
PRICE = 1.15


def runs(world: World, entrant: tuple[str, dict[str, Any]], horizon: int, seeds: range) -> list[Run]:
    """A run for each seed."""
    name, settings = entrant
    return [
        simulate(learner_for(world, name, horizon=horizon, seed=s, noise=NOISE, **settings), world, seed=s)
        for s in seeds
    ]


def regrets(found: list[Run]) -> FloatArray:
    return np.array([run.regret for run in found])


def changing(horizon: int, seeds: range) -> Iterator[Row]:
    """A row for each entrant in each of the worlds that change."""
    for place in ("late-groups", "mix-drift", "turning"):
        world = make_world(place, horizon=horizon)
        yardstick = regrets(runs(world, ENTRANTS[YARDSTICK], horizon, seeds))
        for label, entrant in (ENTRANTS | (FORGETFUL if place == "turning" else {})).items():
            found = runs(world, entrant, horizon, seeds)
            paid = regrets(found)
            ratio = regret_ratio(paid, yardstick)
            most = MOST.get(label) if place == "late-groups" else None
            policies = f"{np.mean([run.updates for run in found]):,.0f} policies"
            yield Row(
                what=f"{place}: {label}",
                measured=f"regret {paid.mean():,.0f}, worst {paid.max():,.0f}, {policies}",
                ratio=_text(ratio),
                needed="" if most is None else f"at most {most:g}×",
                holds=None if most is None else ratio.value <= most,
            )


def still(horizon: int, seeds: range) -> Iterator[Row]:
    """What each setting costs beside the same learner without it, world by world and on the geometric mean."""
    pairs = [(f"foresight {n}", f"foresight {n}, {k} kept back") for n, k in ((8, 2), (16, 4))]
    entrants = ENTRANTS | FORGETFUL
    pairs += [(f"foresight {n}", f"foresight {n}, forget 0.5") for n in (8, 16)]
    paid: dict[str, list[FloatArray]] = {label: [] for pair in pairs for label in pair}
    for place in STILL:
        world = make_world(place, horizon=horizon)
        early = dict.fromkeys(paid, 0)
        for label in paid:
            found = runs(world, entrants[label], horizon, seeds)
            paid[label].append(regrets(found))
            planned = learner_for(
                world, "foresight", horizon=horizon, seed=0, noise=NOISE, **entrants[label][1]
            ).begin()
            plan = np.cumsum(planned.ahead)
            early[label] = sum(run.batch_ends.tolist() != plan.tolist() for run in found)
        for plain, other in pairs:
            ratio = regret_ratio(paid[other][-1], paid[plain][-1])
            struck = f"; {early[other]} of {len(seeds)} runs had an early update" if "kept" in other else ""
            yield Row(
                what=f"{place}: {other}",
                measured=f"regret {paid[other][-1].mean():,.0f}, without {paid[plain][-1].mean():,.0f}{struck}",
                ratio=_text(ratio),
            )
    for plain, other in pairs:
        mean = regret_ratio(np.array(paid[other]).T, np.array(paid[plain]).T)
        asked = "kept" in other
        yield Row(
            what=f"geometric mean of {len(STILL)} still worlds: {other}",
            measured=f"T = {horizon:,}, {len(seeds)} seeds from {seeds[0]}",
            ratio=_text(mean),
            needed=f"at most {PRICE}×" if asked else "",
            holds=mean.value <= PRICE if asked else None,
        )


def _text(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}×" + (f" ({ratio.interval})" if ratio.interval else "")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, help="how many (default 10; 2 with --quick)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED")
    parser.add_argument("--only", choices=("changing", "still"), help="one half of the table")
    options = parser.parse_args()
    horizon, count = (10_000, 2) if options.quick else (30_000, 10)
    seeds = range(options.first_seed, options.first_seed + (options.seeds or count))

    def rows() -> Iterator[Row]:
        if options.only != "still":
            yield from changing(horizon, seeds)
        if options.only != "changing":
            yield from still(horizon, seeds)

    return report("Contexts and parameters that change", rows(), options.out)


if __name__ == "__main__":
    sys.exit(main())
