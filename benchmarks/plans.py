"""The plan against what came: the cost that each update planned for all decisions to come, over what was paid.

The ten worlds of the contest and those of the field, with 8 and 16 updates. A pair is an update: (planned + 10) over
(paid + 10), where the paid is the regret of that run from that update to its end. 10 is added as in all ratios of
regrets; what the bare ratio is stands beside it. The last update plans nothing: it is greedy.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from measure import FloatArray, Row, arguments, report
from playing import lived
from rareswitch.env import NamedWorld
from rareswitch.sim import SUITE, learner_for
from runs import add_seeds, chosen_seeds, spread

#: What ratios are judged by: the median, and the share within a factor.
MEDIAN, FACTOR, SHARE = 1.5, 4.0, 0.9
OFFSET = 10.0
UPDATES = (8, 16)


class Job(NamedTuple):
    """A run."""

    world: NamedWorld
    place: str
    horizon: int
    updates: int
    seed: int


class Pair(NamedTuple):
    """What an update planned, and what came."""

    job: Job
    #: Number of the policy that it ended.
    update: int
    planned: float
    paid: float


def pairs(job: Job) -> list[Pair]:
    """Of all updates of a run that planned."""
    world = job.world(job.horizon)
    told = {"horizon": job.horizon, "seed": job.seed, "noise": 0.5, "updates": job.updates}
    batches = lived(learner_for(world, "foresight", **told), world, seed=job.seed)
    paid = np.array([batch.regrets.sum() for batch in batches])
    notes = [note for note in batches[-1].state.notes if "cost" in note]
    return [Pair(job, note["update"], note["cost"], float(paid[note["update"] :].sum())) for note in notes]


def ratios(found: Iterable[Pair]) -> FloatArray:
    return np.array([(pair.planned + OFFSET) / (pair.paid + OFFSET) for pair in found])


def within(found: FloatArray, factor: float) -> float:
    """The share of ratios that are within a factor of 1."""
    return float(np.mean(np.abs(np.log(found)) <= np.log(factor)))


def row(what: str, found: list[Pair], *, asked: bool = False) -> Row:
    """The distribution of the ratios of some updates."""
    values = ratios(found)
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    bare = np.median([pair.planned / max(pair.paid, 1e-9) for pair in found])
    holds = 1.0 / MEDIAN <= middle <= MEDIAN and within(values, FACTOR) >= SHARE
    return Row(
        what=f"{what}, {len(found)} updates",
        measured=f"median {middle:.2f} (10 to 90 %: {low:.2f} to {high:.2f}), bare {bare:.2f}",
        ratio=f"{within(values, FACTOR):.0%} within {FACTOR:g}, {within(values, MEDIAN):.0%} within {MEDIAN:g}",
        needed=f"median within {MEDIAN:g}, {SHARE:.0%} within {FACTOR:g}" if asked else "",
        holds=bool(holds) if asked else None,
    )


def rows(jobs: list[Job]) -> Iterator[Row]:
    """A row for all, then by number of updates, by update and by world."""
    found = [pair for _, some in spread(pairs, jobs) for pair in some]
    yield row("all worlds", found, asked=True)
    for updates in sorted({pair.job.updates for pair in found}):
        here = [pair for pair in found if pair.job.updates == updates]
        yield row(f"all worlds, {updates} policies", here)
        for update in sorted({pair.update for pair in here}):
            yield row(f"… update {update} of {updates - 1}", [pair for pair in here if pair.update == update])
    for place, horizon in dict.fromkeys((job.place, job.horizon) for job in jobs):
        yield row(f"{place}, T = {horizon:,}", [p for p in found if (p.job.place, p.job.horizon) == (place, horizon)])


def main() -> int:
    parser = arguments(__doc__)
    add_seeds(parser, 5)
    parser.add_argument("--data", help="folder of MovieLens ratings; without it that world is left out")
    options = parser.parse_args()
    seeds = chosen_seeds(options)
    note = f"Seeds {seeds[0]} to {seeds[-1]}."
    return report("The plan against what came", rows([]), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
