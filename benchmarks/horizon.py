"""Measure what it costs foresight not to know its horizon: regret against a run that knows it, with as many policies.

The seeds are 200 and following; those of development are 100 to 103.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from collections.abc import Iterator

import numpy as np

from measure import Row, arguments, report
from rareswitch import Foresight, simulate
from rareswitch.lab import SUITES
from rareswitch.lab.report import Ratio, regret_ratio
from rareswitch.lab.worlds import NamedWorld

DIM, ARMS, NOISE, FIRST_SEED = 10, 20, 0.5, 200


def rows(horizon: int, seeds: range, data: str | None) -> Iterator[Row]:
    """A row for each world of the contest, and one for their geometric mean."""
    both: list[tuple[list[float], list[float]]] = []
    for place in SUITES["ten"].worlds:
        if place == "movielens" and data is None:
            continue
        name = f"movielens:{data}" if place == "movielens" else place
        world = NamedWorld(name=name, dim=DIM, arms=ARMS, noise=NOISE)(horizon)
        unknown = [simulate(Foresight(dim=world.dim, seed=s), world, seed=s, horizon=horizon) for s in seeds]
        updates = unknown[0].updates
        known = [
            simulate(Foresight(dim=world.dim, horizon=horizon, updates=updates, seed=s), world, seed=s) for s in seeds
        ]
        both.append(([run.regret for run in unknown], [run.regret for run in known]))
        without, told = map(np.array, both[-1])
        ratio = regret_ratio(without, told)
        yield Row(
            what=f"{place}, {updates} policies",
            measured=f"regret {without.mean():,.0f} without, {told.mean():,.0f} with the horizon",
            ratio=_text(ratio) + ("" if ratio.resolved else ", not resolved"),
            needed="8 to 10 policies",
            holds=8 <= updates <= 10 if horizon == 100_000 else None,
        )
    mean = regret_ratio(*np.array(both).transpose(1, 2, 0))
    yield Row(
        what=f"geometric mean of {len(both)} worlds",
        measured=f"T = {horizon:,}, {len(seeds)} seeds from {seeds[0]}",
        ratio=_text(mean),
        needed="at most 1.2×",
        holds=mean.value <= 1.2,
    )


def _text(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}× ({ratio.interval or 'too few seeds for an interval'})"


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", help="folder of MovieLens ratings; without it that world is left out")
    options = parser.parse_args()
    horizon, count = (10_000, 2) if options.quick else (100_000, 6)
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return report("A horizon that is not known", rows(horizon, seeds, options.data), options.out)


if __name__ == "__main__":
    sys.exit(main())
