"""Many arms and many features: foresight at sizes beyond those of the contest, against its floor and stale learners.

Where regret falls as 1/t, M geometric batches cost (r - 1)/ln r times what full adaptivity does, with
r = (T/first)^(1/(M - 1)): the floor of a run is that factor times the regret of LinUCB at every step on the same seed.
"""

import math
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np

from measure import Row, arguments, report
from rareswitch.lab import Entrant, LearnerFactory
from rareswitch.lab.report import regret_ratio
from rareswitch.lab.worlds import NamedWorld
from rareswitch.learner import geometric_grid
from runs import add_seeds, chosen_seeds, regrets, runs_of, with_interval

#: The most that a run may cost, times its floor.
OVER_FLOOR = 1.05
#: How many times what the best of the stale learners costs is still sensible.
SENSIBLE = 1.1


def foresight(updates: int) -> LearnerFactory:
    return Entrant(learner="foresight", kind="rare", settings={"updates": updates}).make


def floor_factor(dim: int, horizon: int, updates: int) -> float:
    """(r - 1)/ln r of geometric batches whose first has 4d decisions.

    >>> round(floor_factor(20, 20_000, 5), 2)
    2.16
    """
    first = min(4 * dim, math.isqrt(horizon))
    r: float = (horizon / first) ** (1.0 / (updates - 1))
    return (r - 1.0) / math.log(r)


def against_the_floor(seeds: range) -> Iterator[Row]:
    world = NamedWorld(name="gaussian", dim=20, arms=50, noise=0.5)
    linucb = Entrant(learner="linucb", kind="adaptive", settings={"confidence": 1.0})
    runs = runs_of(
        {"foresight": foresight(5), "linucb 1": linucb.make}, {"gaussian": world}, horizon=20_000, seeds=seeds
    )
    own, full = regrets(runs["foresight"]), regrets(runs["linucb 1"])
    factor = floor_factor(20, 20_000, 5)
    ratios = own / (factor * full)
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    yield Row(
        what=f"d = 20, K = 50, T = 20,000, 5 policies, {len(seeds)} seeds: regret over the floor of that seed",
        measured=f"{own.mean():.0f}, worst {own.max():.0f}; linucb 1 at every step {full.mean():.0f}, "
        f"times {factor:.2f} the floor {factor * full.mean():.0f}",
        ratio=f"{ratios.mean():.2f} ± {error:.2f}",
        needed=f"at most {OVER_FLOOR:g}",
        holds=bool(ratios.mean() <= OVER_FLOOR),
    )


def large(dim: int, arms: int, horizon: int, seeds: range) -> Iterator[Row]:
    """Against stale Thompson sampling, greedy and uniform play with the same number of policies."""
    name, steps = f"d = {dim}, K = {arms}", "thompson 0.5, every step"
    entrants = {
        "foresight": Entrant(learner="foresight", kind="rare"),
        "stale thompson 0.5": Entrant(learner="stale-thompson", kind="rare", settings={"scale": 0.5}),
        "greedy": Entrant(learner="pure-exploitation", kind="rare", grid=partial(geometric_grid, updates=8)),
        "uniform": Entrant(learner="pure-exploitation", kind="rare", grid=partial(geometric_grid, updates=1)),
        steps: Entrant(learner="thompson", kind="adaptive", settings={"scale": 0.5}),
    }
    worlds = {name: NamedWorld(name="gaussian", dim=dim, arms=arms, noise=0.5)}
    makers = {label: entrant.make for label, entrant in entrants.items()}
    found = {label: regrets(runs) for label, runs in runs_of(makers, worlds, horizon=horizon, seeds=seeds).items()}
    best = min(("stale thompson 0.5", "greedy"), key=lambda label: found[label].mean())
    yield Row(
        what=f"{name}, T = {horizon:,}, 8 policies, {len(seeds)} seeds",
        measured=", ".join(f"{label} {own.mean():,.0f}" for label, own in found.items()),
        ratio=f"{with_interval(regret_ratio(found['foresight'], found[best]))} to {best}, "
        f"{with_interval(regret_ratio(found['foresight'], found[steps]))} to {steps}",
        needed=f"at most {SENSIBLE:g} to the best of stale Thompson and greedy",
        holds=regret_ratio(found["foresight"], found[best]).value <= SENSIBLE,
    )


def main() -> int:
    parser = arguments(__doc__)
    add_seeds(parser, 20)
    options = parser.parse_args()
    seeds = chosen_seeds(options)
    few = seeds[:5]  # of sizes that take long

    def rows() -> Iterator[Row]:
        yield from against_the_floor(seeds)
        yield from large(10, 1000, 10_000, few)
        yield from large(200, 20, 20_000, few)

    note = f"Seeds {seeds[0]} to {seeds[-1]}; {few[0]} to {few[-1]} for d = 200 and K = 1000."
    return report("Many arms, many features", rows(), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
