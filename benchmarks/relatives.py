"""Foresight beside its nearest relatives on the five fixed sets of actions on which E4 was published, σ = 1.

Learners that want to know are told σ and ‖θ‖; foresight is told the horizon alone. Regret is the mean over the seeds,
with the worst of them. Develop on seeds from 1000 on (``--first 1000``); the report is on seeds 0 to 19.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from measure import Row, arguments, available_cores, report
from rareswitch.lab import simulate
from rareswitch.lab.worlds import ActionsWorld, make_world
from rareswitch.learner import make_learner, takes

#: World, horizon, and the mean regret of E4's public program there with its three batches.
INSTANCES = {
    "end-of-optimism:2": (10_000, 184),
    "end-of-optimism:3": (30_000, 436),
    "end-of-optimism:5": (50_000, 1965),
    "random-actions:9x5": (10_000, 764),
    "random-actions:50x20": (10_000, 864),
}
NOISE = 1.0
#: Of learners that are updated at every step, which take a minute a run.
STEPPING_SEEDS = 5


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A learner with settings."""

    learner: str
    settings: dict[str, Any] = field(default_factory=dict)
    #: Whether its regret and its worst seed are held against E4's program.
    held: bool = False
    stepping: bool = False


ENTRIES = {
    "foresight, 3 updates": Entry(learner="foresight", settings={"updates": 3}, held=True),
    "foresight, 8 updates": Entry(learner="foresight", settings={"updates": 8}),
    "E4": Entry(learner="e4"),
    "stale LinMED-90, 8 updates": Entry(learner="stale-linmed", settings={"updates": 8}),
    "stale LinMED-99, 8 updates": Entry(learner="stale-linmed", settings={"updates": 8, "greedy": 0.99}),
    "batched Thompson 1": Entry(learner="batched-thompson"),
    "batched Thompson 0.5": Entry(learner="batched-thompson", settings={"scale": 0.5}),
    "LinMED-90, every step": Entry(learner="linmed", stepping=True),
    "LinMED-99, every step": Entry(learner="linmed", settings={"greedy": 0.99}, stepping=True),
}


def one(job: tuple[str, str, int]) -> tuple[float, int]:
    """Regret and policies of one run."""
    name, place, seed = job
    entry, world, horizon = ENTRIES[name], make_world(place, noise=NOISE), INSTANCES[place][0]
    assert isinstance(world, ActionsWorld)
    told = {"noise": NOISE, "norm": float(np.linalg.norm(world.hidden)), "seed": seed}
    wanted = {key: value for key, value in told.items() if key in takes(entry.learner)}
    sizes = {"dim": world.dim, "arms": world.arms, "horizon": horizon}
    run = simulate(make_learner(entry.learner, **sizes, **wanted, **entry.settings), world, seed=seed)
    return run.regret, run.updates


def rows(names: list[str], seeds: range) -> Iterator[Row]:
    with ProcessPoolExecutor(available_cores()) as pool:
        for name, place in product(names, INSTANCES):
            entry, (horizon, program) = ENTRIES[name], INSTANCES[place]
            chosen = seeds[:STEPPING_SEEDS] if entry.stepping else seeds
            found = list(pool.map(one, [(name, place, seed) for seed in chosen]))
            regret, updates = np.array([run[0] for run in found]), sorted({run[1] for run in found})
            policies = f"{updates[0]:,}" if len(updates) == 1 else f"{updates[0]:,} to {updates[-1]:,}"
            error = regret.std(ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else float("nan")
            holds = bool(regret.mean() < program and regret.max() <= 2 * program) if entry.held else None
            worst = f"worst of {len(regret)} {regret.max():.0f}"
            yield Row(
                what=f"{name}: {place}, T = {horizon:,}",
                measured=f"{regret.mean():.0f} ± {error:.0f}, {worst}; {policies} updates",
                ratio=f"{regret.mean() / program:.2f} × {program}, worst {regret.max() / program:.2f} ×",
                needed=f"mean below {program}, worst at most {2 * program}" if entry.held else "",
                holds=holds,
            )


def note(seeds: range) -> str:
    """What is to be said below the table."""
    return (
        f"Seeds {seeds[0]} to {seeds[-1]}; {STEPPING_SEEDS} of them for learners that are updated at every step. "
        "Ratios are to the mean regret of E4's public program.\n\n"
        "Our E4 takes the same steps with the same constants. On the random instances the second batch often does "
        "not tell the best action (never in 50x20, in fewer than half of the runs in 9x5), and the third then "
        "explores by the design until the end. The program plays its actions one after the other, so many times "
        "each that the first fills the horizon, and the first is the best one in all of its instances: its figures "
        "there rest on that order. With that order ours has 623 and 1176 (seeds 1000 to 1009) where the program "
        "has 764 and 864. On the others ours pays 0.9 to 1.8 times as much. It keeps the bounds of the cheapest "
        "allocation, where the program's solver is asked for a tolerance of half the size of the tightest bound; "
        "that this is the reason was not tested, as the program was read and not run here.\n\n"
        "Of LinMED and batched Thompson sampling only pictures are published, in other worlds; the tests compare "
        "the propensities of LinMED with its formulas."
    )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--only", nargs="*", help="entries whose names begin with one of these; all by default")
    options = parser.parse_args()
    seeds = range(options.first, options.first + (3 if options.quick else options.seeds))
    prefixes = tuple(options.only) if options.only else ("",)
    names = [name for name in ENTRIES if name.startswith(prefixes)]
    if options.quick:
        names = [name for name in names if not ENTRIES[name].stepping]
    return report("Foresight beside its nearest relatives", rows(names, seeds), options.out, note(seeds))


if __name__ == "__main__":
    sys.exit(main())
