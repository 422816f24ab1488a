"""When to update: eight policies over 10,000 decisions, at the best times, weekly, and with a start that is not blind.

Ratios are to Thompson sampling at scale 0.5 that is updated at every step and told the noise: (mean regret + 10) over
the same of the yardstick, geometric means over six worlds and over five of the field, with 90 % intervals over the
seeds; and to the best times, which are a geometric progression. 10,000 decisions are taken for 56 days. The model's one
constant, the share of exploration and the bar of novelty were chosen on seeds from 100 on (``--first-seed 100``).
``--picture FILE`` draws what the README shows.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from measure import FloatArray, Row, arguments, report
from playing import lived
from rareswitch.experiment import adaptive_cost, cost, novelty
from rareswitch.lab import checkpoints, learner_for, simulate
from rareswitch.lab.report import Ratio, regret_ratio
from rareswitch.lab.worlds import NamedWorld, World
from runs import SIX, add_seeds, chosen_seeds, spread, with_interval
from schedule_trials import TOTAL, TRIALS, Trial, shown

#: Of the field, where contexts do not change; three more of its worlds are among the six.
FIELD = ("disjoint-noisy", "equicorrelated", "plain-20", "wine", "digits")
PLACES = {name: NamedWorld(name=name, dim=10, arms=20, noise=0.5) for name in (*SIX, *FIELD, "late-groups")}
#: Where regret so far is noted.
MARKS = checkpoints(TOTAL)
#: Context sets by which novelty is measured.
LOOKED_AT = 500
STEPS = "every step"


class Played(NamedTuple):
    """What came of a trial in a world."""

    #: Regret at each of MARKS.
    curve: FloatArray
    #: Novelty at the end of each batch but the first, and whether it was unusual.
    looks: list[tuple[float, bool]]


class Job(NamedTuple):
    """One trial, or the yardstick, in one world with one seed."""

    trial: str
    world: str
    seed: int


Runs = dict[tuple[str, str], list[Played]]


def play(trial: Trial, world: World, seed: int) -> Played:
    """Live through 10,000 decisions."""
    learner = trial.make(world, seed)
    begun = trial.begin(learner, world, seed)
    named = shown if trial.names_arms else None
    batches = lived(learner, world, seed=seed, begun=begun, baseline=named, late=trial.late)
    looks = []
    for batch in batches[1:] if trial.learner == "foresight" else []:
        count = min(LOOKED_AT, len(batch.regrets))
        last = world.draw(count, seed=seed, first=batch.state.stop - count)
        found = novelty(batch.state, last.contexts)
        looks.append((found.value, found.unlike))
    return Played(np.cumsum(np.concatenate([batch.regrets for batch in batches]))[MARKS - 1], looks)


def one(job: Job) -> Played:
    """What came of it."""
    world = PLACES[job.world](TOTAL)
    if job.trial != STEPS:
        return play(TRIALS[job.trial], world, job.seed)
    learner = learner_for(world, "thompson", horizon=TOTAL, seed=job.seed, noise=0.5, scale=0.5)
    return Played(simulate(learner, world, seed=job.seed).regrets, [])


def measured(seeds: range, trials: tuple[str, ...], worlds: tuple[str, ...]) -> Runs:
    """All runs, by trial and world."""
    runs: Runs = {(trial, world): [] for trial in trials for world in worlds}
    for job, found in spread(one, [Job(*key, seed) for key in runs for seed in seeds]):
        runs[job.trial, job.world].append(found)
    return runs


def regrets(runs: Runs, trial: str, worlds: tuple[str, ...]) -> FloatArray:
    """(seeds, worlds) regret at the end."""
    return np.array([[run.curve[-1] for run in runs[trial, world]] for world in worlds]).T


def against(runs: Runs, trial: str, other: str, worlds: tuple[str, ...]) -> Ratio:
    """How many times as much one trial pays as another."""
    return regret_ratio(regrets(runs, trial, worlds), regrets(runs, other, worlds))


def blind_decisions(runs: Runs, worlds: tuple[str, ...]) -> dict[str, FloatArray]:
    """Regret so far by trial, in units of what a blind decision costs in its world; mean over worlds and seeds."""
    curves = {key: np.mean([run.curve for run in found], axis=0) for key, found in runs.items()}
    return {
        name: np.mean([curves[name, world] * TOTAL / curves["never", world][-1] for world in worlds], axis=0)
        for name in (*TRIALS, STEPS)
    }


def modelled(trial: Trial, worlds: tuple[str, ...]) -> float:
    """What the model says of its batches: the geometric mean over the worlds of the ratio to full adaptivity."""
    ratios = []
    for name in worlds:
        dim = PLACES[name](TOTAL).dim
        ratios.append(math.log(cost(trial.ends(dim), dim=dim, delay=trial.late) / adaptive_cost(TOTAL, dim=dim)))
    return math.exp(sum(ratios) / len(ratios))


def rows(runs: Runs, late: list[Played], six: tuple[str, ...], field: tuple[str, ...]) -> Iterator[Row]:
    """A row for each trial, with ratios over the six worlds and over those of the field."""
    weekly = against(runs, "weekly", STEPS, six).value
    bars = {
        "best": (1.4, "at most 1.40"),
        "best with a gap and a delay": (weekly / 2.0, f"at most {weekly / 2.0:.2f}, half of weekly's"),
        "weekly with a baseline": (0.6 * weekly, f"at most {0.6 * weekly:.2f}, 0.6 of weekly's"),
    }
    for name, trial in TRIALS.items():
        bar, needed = bars.get(name, (None, ""))
        found = against(runs, name, STEPS, six)
        told = (
            f", the model says {modelled(trial, six):.2f}"
            if trial.start == "blind" and trial.learner == "foresight"
            else ""
        )
        times = [f", {against(runs, name, 'best', worlds).value:.2f} times best" for worlds in (six, field)]
        yield Row(
            what=f"{name} (ends for d = 10: {', '.join(map(str, trial.ends(10)))})",
            measured=_means(runs, name, six + field),
            ratio=f"{len(six)} worlds {with_interval(found)}, median over seeds {found.median:.2f}{times[0]}{told}; "
            f"field {with_interval(against(runs, name, STEPS, field))}{times[1]}",
            needed=needed,
            holds=None if bar is None else found.value <= bar,
        )
    yield Row(what="Thompson 0.5, every step", measured=_means(runs, STEPS, six + field), ratio="1")
    yield from novelties(runs, late)


def novelties(runs: Runs, late: list[Played]) -> Iterator[Row]:
    """How often contexts are called unlike those that were learned from, where they are not and where they are."""
    still = [look for found in runs.values() for run in found for look in run.looks]
    values = np.array([value for value, _ in still])
    yield Row(
        what="novelty where nothing changes: batches that it calls unlike",
        measured=f"{sum(unlike for _, unlike in still)} of {len(still)}",
        ratio=f"median {np.median(values):.2f}, 99 % {np.quantile(values, 0.99):.2f}, largest {values.max():.2f}",
        needed="at most 1 %",
        holds=sum(unlike for _, unlike in still) <= 0.01 * len(still),
    )
    new = [run.looks[week - 2] for run in late for week in (3, 5)]  # groups come after 3,000 and 6,000 decisions
    yield Row(
        what="novelty in weeks in which a group of users is new to the policy: weeks that it calls unlike",
        measured=f"{sum(unlike for _, unlike in new)} of {len(new)}",
        ratio=f"least {min(value for value, _ in new):.1f}, median {np.median([value for value, _ in new]):.0f}",
        needed="at least 95 %",
        holds=sum(unlike for _, unlike in new) >= 0.95 * len(new),
    )


def note(seeds: range) -> str:
    """What is to be said below the table."""
    return (
        f"Regret is the mean over seeds {seeds[0]} to {seeds[-1]}; ratios are to Thompson 0.5 at every step, geometric "
        "means over the worlds with 90 % intervals. The ratio is that of means: a run in which the yardstick settles "
        "on a wrong arm, as happens in *fixed*, lowers all ratios alike, and the median over seeds does not see it. "
        "The baseline is right in half of the cases and otherwise any arm; the logs have 500 decisions."
    )


def _means(runs: Runs, trial: str, worlds: tuple[str, ...]) -> str:
    return ", ".join(f"{world} {regrets(runs, trial, (world,)).mean():.0f}" for world in worlds)


def main() -> int:
    parser = arguments(__doc__)
    add_seeds(parser, 8)
    parser.add_argument("--picture", type=Path, help="also draw the picture there")
    options = parser.parse_args()
    seeds = chosen_seeds(options)
    six, field = (SIX[:2], FIELD[:2]) if options.quick else (SIX, FIELD)
    runs = measured(seeds, (*TRIALS, STEPS), six + field)
    late = measured(seeds, ("weekly",), ("late-groups",))["weekly", "late-groups"]
    if options.picture:
        from schedule_picture import draw

        ends = {name: trial.ends(10) for name, trial in TRIALS.items()}
        times = {name: against(runs, name, STEPS, six).value for name in TRIALS}
        draw(options.picture, MARKS, blind_decisions(runs, six), ends=ends, times=times)
    return report("When to update", rows(runs, late, six, field), options.out, note(seeds))


if __name__ == "__main__":
    sys.exit(main())
