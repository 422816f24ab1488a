"""What a floor under arms costs and buys: regret beside the price that is said, and sample sizes for uniform play.

Foresight with 8 policies over 10,000 decisions and 10 arms, in three of the contest's worlds. The price of a floor is
said to be its share of the decisions, at what blind play costs. What it buys is the effective sample size, (Σw)²/Σw² of
the weights w = (1/arms)/propensity, by which uniform play is evaluated from the log of the policies after the first.
Nothing is tuned here; the report is on seeds 0 to 19.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from measure import FloatArray, Row, arguments, available_cores, report
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, Rows
from rareswitch.policy import Floor

TOTAL, DIM, ARMS = 10_000, 10, 10
WORLDS = ("gaussian", "segments", "fixed")
FLOORS = (0.0, 0.005, 0.02, 0.05)
#: Under which all play is blind.
BLIND = 1.0 / ARMS
#: A price is said well enough if what is paid more lies between half of it and a tenth above.
PRICE = (0.5, 1.1)


class Played(NamedTuple):
    """What came of a run."""

    regret: float
    #: Of the weights of uniform play, which should be 1.
    mean: float
    #: Of decisions that uniform play has, as a share of those that were made.
    effective: float


def play(job: tuple[str, float, int]) -> Played:
    """Live through 10,000 decisions in a world, with a floor."""
    name, least, seed = job
    world = make_world(name, dim=DIM, arms=ARMS, noise=0.5)
    learner = Foresight(dim=DIM, horizon=TOTAL)
    state = learner.begin(floor=Floor(least=least) if least else None)
    regret, weights = 0.0, list[FloatArray]()
    while not state.done:
        start, end = state.start, state.stop
        drawn = world.draw(end - start, seed=seed, first=start)
        made = state.policy.decide(drawn.contexts, drawn.alive, ids=range(start, end), seed=seed)
        expected = drawn.means[np.arange(end - start), made.arms]
        regret += float((drawn.means.max(axis=1) - expected).sum())
        if start > 0:  # the first policy explores anyway
            weights.append(1.0 / (ARMS * made.propensities))
        rewards = world.rewards(expected, seed=seed, first=start)
        state = learner.next(state, learner.summarize(state, Rows.of(drawn.contexts, made, rewards, drawn.alive)))
    w = np.concatenate(weights)
    return Played(regret, float(w.mean()), float(w.sum() ** 2 / np.square(w).sum() / len(w)))


def rows(runs: dict[tuple[str, float], list[Played]]) -> Iterator[Row]:
    for name in WORLDS:
        regrets = {least: float(np.mean([run.regret for run in runs[name, least]])) for least in (*FLOORS, BLIND)}
        for least in FLOORS:
            found, price = runs[name, least], least * ARMS * regrets[BLIND]
            paid = (regrets[least] - regrets[0.0]) / price if least else None
            mean, effective = (float(np.mean([getattr(run, what) for run in found])) for what in ("mean", "effective"))
            cost = f"said {price:.0f}, paid {paid:.2f} of it; " if paid is not None else ""
            yield Row(
                what=f"{name}, " + (f"floor {least:g}, {least * ARMS:.0%} of decisions" if least else "no floor"),
                measured=f"regret {regrets[least]:.0f} (blind play {regrets[BLIND]:.0f})",
                ratio=f"{cost}uniform play: mean weight {mean:.2f}, effective sample {effective:.1%} of decisions",
                needed="" if paid is None else f"paid {PRICE[0]:g} to {PRICE[1]:g} of the price",
                holds=None if paid is None else PRICE[0] <= paid <= PRICE[1],
            )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    options = parser.parse_args()
    seeds = range(options.first, options.first + (3 if options.quick else options.seeds))
    jobs = [(name, least, seed) for name in WORLDS for least in (*FLOORS, BLIND) for seed in seeds]
    with ProcessPoolExecutor(available_cores()) as pool:
        found = dict(zip(jobs, pool.map(play, jobs), strict=True))
    runs = {(name, least): [found[name, least, seed] for seed in seeds] for name, least, _ in jobs}
    return report("What a floor under arms costs and buys", rows(runs), options.out, note(seeds))


def note(seeds: range) -> str:
    """What is to be said below the table."""
    return (
        f"Means over seeds {seeds[0]} to {seeds[-1]}; foresight with 8 policies, {TOTAL:,} decisions, {ARMS} arms, "
        f"{DIM} features. The price is the floor's share of decisions times what blind play costs a decision; less is "
        "paid, because these decisions are not the learner's any more, and teach it. A mean weight far from 1 says "
        "that the log cannot answer for uniform play: some arms were hardly ever played. "
        "`python benchmarks/floor.py --out benchmarks/floor.md`"
    )


if __name__ == "__main__":
    sys.exit(main())
