"""The plan against what came: the cost that each update planned for all decisions to come, over what was paid.

The ten worlds of the contest with 100,000 decisions and those of the field with 30,000, 8 and 16 updates. An update is
judged by (planned + 10)/(paid + 10), where what is paid is the regret of its run from then to the end against the best
linear policy in hindsight, or 0 where that is less; 10 is added as in all ratios of regrets, and the bare ratio, where
something was paid, stands beside it. The last update plans nothing: it is greedy. Worlds that change, of which no plan
can know, stand apart.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from measure import FloatArray, Row, arguments, report
from playing import lived
from rareswitch.lab import HALVES, SUITES, learner_for, left_out, world_at
from rareswitch.lab.report.resampling import OFFSET
from rareswitch.lab.worlds import NamedWorld
from runs import add_seeds, chosen_seeds, spread

#: What ratios are judged by: the median, and the share within a factor.
MEDIAN, FACTOR, SHARE = 1.5, 4.0, 0.9
UPDATES = (8, 16)


class Job(NamedTuple):
    """A run."""

    suite: str
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
    #: Against the best arms, where no linear policy may find them.
    lost: float


def pairs(job: Job) -> list[Pair]:
    """Of all updates of a run that planned."""
    world = job.world(job.horizon)
    told: dict[str, Any] = {"horizon": job.horizon, "seed": job.seed, "noise": 0.5, "updates": job.updates}
    batches = lived(learner_for(world, "foresight", **told), world, seed=job.seed)
    lost = np.array([batch.regrets.sum() for batch in batches])
    unlearnable = np.array([batch.unlearnable.sum() for batch in batches])
    found = []
    for note in batches[-1].state.notes:
        if "cost" in note:  # of all batches after as many as there were
            rest = slice(note["update"], None)
            paid = max(0.0, float((lost - unlearnable)[rest].sum()))
            found.append(Pair(job, note["update"], note["cost"], paid, float(lost[rest].sum())))
    return found


def within(found: FloatArray, factor: float) -> float:
    """The share of ratios that are within a factor of 1."""
    return float(np.mean(np.abs(np.log(found)) <= np.log(factor)))


def row(what: str, found: list[Pair], *, asked: bool = False) -> Row:
    """The distribution of the ratios of some updates."""
    planned, paid, lost = (np.array([getattr(pair, name) for pair in found]) for name in ("planned", "paid", "lost"))
    values = (planned + OFFSET) / (paid + OFFSET)
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    bare = np.median(planned[paid > 0.0] / paid[paid > 0.0]) if (paid > 0.0).any() else np.nan
    best = (
        ""
        if np.array_equal(paid, lost)
        else f", to the best arms {np.median((planned + OFFSET) / (lost + OFFSET)):.2f}"
    )
    holds = 1.0 / MEDIAN <= middle <= MEDIAN and within(values, FACTOR) >= SHARE
    return Row(
        what=f"{what}, {len(found)} updates",
        measured=f"median {middle:.2f} (10 to 90 %: {low:.2f} to {high:.2f}), bare {bare:.2f}{best}",
        ratio=f"{within(values, FACTOR):.0%} within {FACTOR:g}, {within(values, MEDIAN):.0%} within {MEDIAN:g}",
        needed=f"median within {MEDIAN:g}, {SHARE:.0%} within {FACTOR:g}" if asked else "",
        holds=bool(holds) if asked else None,
    )


def rows(jobs: list[Job]) -> Iterator[Row]:
    """A row for all, then by suite, by number of updates, by update and by world."""
    found = [pair for _, some in spread(pairs, jobs) for pair in some]
    still = [pair for pair in found if pair.job.suite != "changing"]
    yield row("all worlds that do not change", still, asked=True)
    for suite in dict.fromkeys(job.suite for job in jobs):
        yield row(f"suite {suite}", [pair for pair in found if pair.job.suite == suite])
    for updates in dict.fromkeys(job.updates for job in jobs):
        here = [pair for pair in still if pair.job.updates == updates]
        yield row(f"{updates} policies", here)
        for update in sorted({pair.update for pair in here}):
            yield row(f"… after policy {update} of {updates}", [pair for pair in here if pair.update == update])
    for suite, place in dict.fromkeys((job.suite, job.place) for job in jobs):
        yield row(f"{suite}: {place}", [pair for pair in found if (pair.job.suite, pair.job.place) == (suite, place)])


def chosen_jobs(options: Namespace, seeds: range) -> list[Job]:
    """Runs of both suites and of the worlds that change."""
    folders = {"data": options.data, "tables": options.tables}
    jobs = []
    for name, suite in SUITES.items():
        horizon = min(10_000, max(suite.horizons)) if options.quick else max(suite.horizons)
        places = suite.of(options.half if suite.halved else None)
        for place in places:
            if place in left_out(places, folders):
                print(f"without {place}, for which a folder is missing", file=sys.stderr)
                continue
            world = world_at(place, folders)
            updates = UPDATES[:1] if options.quick else UPDATES
            jobs += [Job(name, world, place, horizon, count, seed) for count in updates for seed in seeds]
    return jobs


def main() -> int:
    parser = arguments(__doc__)
    add_seeds(parser, 5)
    parser.add_argument("--half", choices=HALVES, default="reporting", help="which tables; reporting by default")
    parser.add_argument("--data", help="folder of MovieLens ratings; without it that world is left out")
    parser.add_argument("--tables", help="folder of tables; without it those worlds are left out")
    options = parser.parse_args()
    seeds = chosen_seeds(options)
    note = f"Seeds {seeds[0]} to {seeds[-1]}; the {options.half} half of the tables."
    return report("The plan against what came", rows(chosen_jobs(options, seeds)), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
