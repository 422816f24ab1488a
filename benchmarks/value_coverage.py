"""Do intervals hold? What five candidates would have earned, from logs of adaptive runs, against the truth.

Each log is a run of foresight with 8 policies and a floor under every arm. Candidates are fixed beforehand: uniform
play, the greedy policy and the soft-max of a pilot, always the first arm, and a rule of thumb that is followed in four
cases of five. ``rareswitch.evaluate`` says what they would have earned, or that it cannot tell; the truth is the exact
expectation over all rows of a table, or over 100,000 sets of a world. Then, for people who look after every batch: 20
looks at logs of 20 batches of 100.

What is here was developed on seeds from 1000 on, and on other tables (``--first 1000``); the report is on seeds from 0.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from measure import Row, arguments, available_cores, report
from rareswitch import evaluate
from rareswitch.contexts import ContextSets
from rareswitch.evaluation import Interval
from rareswitch.evaluation.anytime import anytime
from rareswitch.evaluation.intervals import pooled
from rareswitch.learner import Foresight, Learner, PureExploitation, Rows
from rareswitch.log import DecisionLog
from rareswitch.policy import Floor
from rareswitch.rng import uniforms
from value_coverage_candidates import candidates_of, probabilities
from value_coverage_worlds import Place, everything, places, world_of

TOTAL, UPDATES = 3000, 8
#: Share of decisions that the floor spreads over all arms.
FLOORED = 0.3
#: Context sets of a batch from which the next policy is planned: foresight would take 200, and most of the time.
KEPT = 30
LOOKS, LOOK_SIZE = 20, 100
LEVEL = 0.95
#: What the intervals are called in the table, in the order of its columns.
KINDS = ("dr", "snips", "ips", "i.i.d.", "replay")
CLICKS = Place("clicks")


class Answer(NamedTuple):
    """What was said of one candidate of one log."""

    truth: float
    answered: bool
    #: By kind: whether the interval held the truth, and its width.
    intervals: dict[str, tuple[bool, float]]


def adaptive_log(place: Place, seed: int, learner: Learner, ends: Sequence[int]) -> DecisionLog:
    """The log of a run."""
    world = world_of(place)
    state = learner.begin(floor=Floor(least=FLOORED / world.arms))
    parts, policies = [], []
    for batch, (start, end) in enumerate(pairwise((0, *ends))):
        drawn = world.draw(end - start, seed=seed, first=start)
        decisions = state.policy.decide(drawn.contexts, drawn.alive, ids=range(start, end), seed=seed)
        rewards = world.rewards(drawn.means[np.arange(end - start), decisions.arms], seed=seed, first=start)
        parts.append((decisions.arms, decisions.propensities, rewards, drawn.contexts, np.full(end - start, batch)))
        policies.append(state.policy)
        if end < ends[-1]:
            rows = Rows(
                ids=decisions.ids,
                policy_id=decisions.policy_id,
                features=drawn.contexts[np.arange(end - start), decisions.arms],
                rewards=rewards,
                sets=ContextSets(drawn.contexts[:KEPT], np.ones(drawn.means[:KEPT].shape, dtype=np.bool_)),
                places=np.arange(min(KEPT, end - start)),
            )
            state = learner.next(state, learner.summarize(state, rows))
    places_, propensities, rewards, contexts, batches = (np.concatenate(part) for part in zip(*parts, strict=True))
    names = tuple(policy.id for policy in policies)
    return DecisionLog(
        arm_indices=places_,
        propensities=propensities,
        rewards=rewards,
        contexts=contexts,
        batches=batches,
        batch_names=names,
        policies=dict(zip(names, policies, strict=True)),
    )


def replayed(log: DecisionLog, candidate: Any, seed: int) -> Interval | None:
    """The mean of the rows in which the candidate would have done what was done, as if they were a sample."""
    assert log.contexts is not None
    chances = probabilities(candidate, log.contexts).cumsum(axis=1)
    drawn = (uniforms(seed, "replay of a candidate", 0, len(log)) * chances[:, -1:] >= chances).sum(axis=1)
    same = log.rewards[drawn == log.arm_indices]
    if len(same) < 2:
        return None
    value, half = float(same.mean()), 1.96 * float(same.std(ddof=1)) / math.sqrt(len(same))
    return Interval(value=value, low=value - half, high=value + half, level=LEVEL, kind="replay")


def answers(job: tuple[Place, int]) -> dict[str, Answer]:
    """What is said of the candidates, in one log."""
    place, seed = job
    seed += place.key
    world, candidates = world_of(place), candidates_of(place, seed)
    learner = Foresight(dim=world.dim, horizon=TOTAL, updates=UPDATES)
    clock: Any = learner.clock
    log = adaptive_log(place, seed, learner, clock.ends)
    found, sets = evaluate(log, candidates, level=LEVEL), everything(place, seed)
    made = {}
    for name, candidate in candidates.items():
        truth = float((probabilities(candidate, sets.contexts) * sets.means).sum(axis=1).mean())
        value = found[name]
        given = {"dr": value.interval, "i.i.d.": value.naive, "replay": replayed(log, candidate, seed)}
        given |= {kind: value.others.get(kind) for kind in ("snips", "ips")}
        held = {kind: (one.low <= truth <= one.high, one.high - one.low) for kind, one in given.items() if one}
        made[name] = Answer(truth, value.answered, held if value.answered else {})
    return made


class Looked(NamedTuple):
    """Whether an interval was ever wrong, in one log with many looks."""

    anytime: bool
    bounded: bool
    #: One for a single look, looked at again and again.
    repeated: bool
    #: Looks at which there is an interval.
    looks: int


def looks(seed: int) -> Looked:
    """Look at a log of clicks after every batch, as it grows.

    What is said of a batch does not change by later ones, so one evaluation has the batches of all looks; every
    hundredth log is evaluated at each look, and must say the same. Looks are also counted at which too few decisions
    were there for evaluate to give an answer.
    """
    seed += CLICKS.key
    world, ends = world_of(CLICKS), [LOOK_SIZE * (batch + 1) for batch in range(LOOKS)]
    learner = PureExploitation(dim=world.dim, arms=world.arms, horizon=ends[-1], grid=ends)
    log = adaptive_log(CLICKS, seed, learner, ends)
    candidate, sets = {"greedy": candidates_of(CLICKS, seed)["greedy"]}, everything(CLICKS, seed)
    truth = float((probabilities(candidate["greedy"], sets.contexts) * sets.means).sum(axis=1).mean())
    # the bounds of all rows so far hold together, so that the last look has those of all the others
    last = evaluate(log, candidate, level=LEVEL, anytime=True, bounds=(0.0, 1.0))["greedy"]
    used = [batch for batch in last.batches if batch.interval is not None]
    wrong = {"anytime": False, "repeated": False}
    for look in range(1, len(used) + 1):
        columns: dict[str, Any] = {
            "values": [batch.value for batch in used[:look]],
            "errors": [batch.error for batch in used[:look]],
            "counts": [batch.decisions for batch in used[:look]],
            "spreads": [batch.spread for batch in used[:look]],
        }
        for name, made in (("anytime", anytime), ("repeated", pooled)):
            found = made(**columns, level=LEVEL)
            wrong[name] |= not found.low <= truth <= found.high
            if name == "anytime" and seed % 100 == 0:
                asked = log.select(log.batches <= used[look - 1].batch)
                check = evaluate(asked, candidate, level=LEVEL, anytime=True)["greedy"].interval
                if check is not None and not np.allclose([check.low, check.high], [found.low, found.high]):
                    raise AssertionError(f"seed {seed}, look {look}: {check} is not {found}")
    bounded = last.interval is not None and not last.interval.low <= truth <= last.interval.high
    return Looked(bounded=bounded, looks=len(used), **wrong)


def coverage(found: Sequence[dict[str, Answer]], kind: str, names: Sequence[str]) -> tuple[float, float]:
    """Share of intervals that held, and half its 95 % band, by logs: the candidates of one log belong together."""
    held = [[one[name].intervals[kind][0] for name in names if kind in one[name].intervals] for one in found]
    hits, sizes = np.array([sum(row) for row in held]), np.array([len(row) for row in held])
    if not sizes.sum():
        return math.nan, math.nan
    share = float(hits.sum() / sizes.sum())
    return share, 1.96 * math.sqrt(float(((hits - share * sizes) ** 2).sum())) / float(sizes.sum())


def width(found: Sequence[dict[str, Answer]], kind: str, names: Sequence[str]) -> float:
    """The mean."""
    widths = [one[name].intervals[kind][1] for one in found for name in names if kind in one[name].intervals]
    return float(np.mean(widths)) if widths else math.nan


def line(what: str, found: Sequence[dict[str, Answer]], names: Sequence[str]) -> str:
    """A line of the second table."""
    answered = np.mean([one[name].answered for one in found for name in names])
    cells = [f"{100 * answered:.0f} %"]
    for kind in KINDS:
        share, band = coverage(found, kind, names)
        cells.append(f"{100 * share:.1f} ± {100 * band:.1f}" if kind == "dr" else f"{100 * share:.1f}")
    cells += [f"{width(found, kind, names):.3g}" for kind in KINDS]
    return f"| {what} | {' | '.join(cells)} |"


def details(runs: dict[Place, list[dict[str, Answer]]]) -> str:
    """The tables by world and by candidate."""
    names = list(next(iter(runs.values()))[0])
    every = [one for found in runs.values() for one in found]
    header = "| | answered | DR | SNIPS | IPS | rows as one sample | replay | " + " | ".join(
        f"width {kind}" for kind in ("DR", "SNIPS", "IPS", "one sample", "replay")
    )
    rule = "|---" * (2 + 2 * len(KINDS)) + "|"
    by_world = [line(place.name, found, names) for place, found in runs.items()]
    by_name = [line(name, every, [name]) for name in names]
    return "\n".join([header + " |", rule, *by_world, line("**all**", every, names), *by_name])


def rows(runs: dict[Place, list[dict[str, Answer]]], looked: Sequence[Looked]) -> Iterator[Row]:
    every = [one for found in runs.values() for one in found]
    names = list(every[0])
    words = {"dr": "DR, the default", "snips": "SNIPS", "ips": "IPS", "i.i.d.": "DR, rows as one sample (i.i.d.)"}
    words["replay"] = "mean of the rows where the candidate would have done the same, as a sample"
    for kind, what in words.items():
        share, band = coverage(every, kind, names)
        count = sum(kind in one[name].intervals for one in every for name in names)
        yield Row(
            what=f"95 % intervals: {what}",
            measured=f"{100 * share:.2f} % ± {100 * band:.2f} hold",
            ratio=f"{len(every):,} logs, {count:,} answers",
            needed="93.5 to 97 %" if kind == "dr" else "",
            holds=0.935 <= share <= 0.97 if kind == "dr" else None,
        )
    for name, what in (
        ("anytime", "95 % anytime intervals, looked at after each of 20 batches: logs in which one is ever wrong"),
        ("bounded", "the same with bounds=(0, 1), looked at after every decision"),
        ("repeated", "95 % intervals for one look, looked at after each of 20 batches"),
    ):
        wrong = sum(getattr(one, name) for one in looked)
        yield Row(
            what=what,
            measured=f"{wrong} of {len(looked)} ({100 * wrong / len(looked):.2f} %)",
            ratio=f"{np.mean([one.looks for one in looked]):.1f} looks on average",
            needed="" if name == "repeated" else "at most 5 %",
            holds=None if name == "repeated" else wrong <= 0.05 * len(looked),
        )


def measured(call: Callable[[Any], Any], jobs: Sequence[Any], what: str, processes: int) -> list[Any]:
    """All of them, in several processes."""
    found = []
    with ProcessPoolExecutor(processes) as pool:
        for done, one in enumerate(pool.map(call, jobs, chunksize=4), 1):
            found.append(one)
            if done % 100 == 0:
                print(f"{what}: {done} of {len(jobs)}", file=sys.stderr, flush=True)
    return found


def note(runs: dict[Place, list[dict[str, Answer]]], seeds: range) -> str:
    """What is to be said below the table."""
    return (
        f"{details(runs)}\n\nEach of the {len(runs)} worlds has {len(seeds)} logs, seeds {seeds[0]} to {seeds[-1]}: "
        f"foresight with {UPDATES} policies over {TOTAL:,} decisions, of which a floor spreads {100 * FLOORED:.0f} % "
        "over all arms. Worlds that let one choose have 8 features, 6 arms and noise 0.5: with the 20 arms of the "
        "contest, 3,000 decisions could not answer for most candidates. Coverage in %, of the candidates that were "
        "answered; bands take the logs as the sample. *rows as one sample* has the same scores, each row of the same "
        "weight: narrower, since most rows are of the last batches. *replay* is the mean of the "
        "rows in which the candidate would have done what was done, without weights, and does not hold. Looks are at "
        f"{LOOKS} batches of {LOOK_SIZE} decisions about clicks, three arms, whose policies are greedy but for the "
        "floor; the candidate is the greedy policy of a pilot."
    )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed; from 1000 on with other tables")
    parser.add_argument("--seeds", type=int, default=155, help="logs of each world")
    parser.add_argument("--looked", type=int, default=2000, help="logs that are looked at 20 times")
    parser.add_argument("--movielens", type=Path, help="a folder of ratings, for the world movielens")
    parser.add_argument("--tables", type=Path, help="a folder of tables: phishing.csv, diamonds.csv, cracker.csv")
    parser.add_argument("--processes", type=int, default=available_cores(), help="at a time")
    parser.add_argument("--only", nargs="*", help="these worlds alone")
    options = parser.parse_args()
    seeds = range(options.first, options.first + (4 if options.quick else options.seeds))
    wanted = places(options.movielens, options.tables, developing=options.first >= 1000)
    wanted = [place for place in wanted if not options.only or place.name in options.only]
    found = measured(answers, [(place, seed) for place in wanted for seed in seeds], "logs", options.processes)
    runs = {place: found[at * len(seeds) : (at + 1) * len(seeds)] for at, place in enumerate(wanted)}
    many = 20 if options.quick else options.looked
    looked = measured(looks, range(options.first, options.first + many), "looks", options.processes)
    print(details(runs))
    return report("Do intervals hold?", rows(runs, looked), options.out, note(runs, seeds))


if __name__ == "__main__":
    sys.exit(main())
