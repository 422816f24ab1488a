"""Gates: how often a policy that is no better is let through, and how many decisions it takes to let a better one pass.

Contexts are five unit vectors of four dimensions; what an arm earns depends on the angle between its vector and a true
direction. A policy follows a direction of its own in 80 % of decisions and explores evenly in the others, so that two
policies whose directions have the same angle to the true one are worth exactly the same. Whole experiments are played
in a world where all arms are worth the same: whatever is learned is worth what was there before. The bound was
developed on seeds from 1000 on (``--first 1000``); the report is on seeds from 0 on.
"""

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from measure import FloatArray, Row, arguments, available_cores, report
from rareswitch.design import Uniform
from rareswitch.experiment import Gate, GateReport, create
from rareswitch.experiment.gate import judge
from rareswitch.log import DecisionLog
from rareswitch.policy import Blend, Policy, PosteriorDraws
from rareswitch.stats import Stats

ARMS, DIM, EXPLORES = 5, 4, 0.2
LEVEL = 0.05
#: Angles of incumbents to the true direction, in degrees.
SAME, LOW = 70.0, 80.0
#: Held-out decisions of runs in which nothing should be promoted.
SIZES = (600, 2000, 5000)
#: Those of runs with a better candidate.
GROWING = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
#: And those of five looks at one batch.
LOOKS = (600, 900, 1350, 2025, 3040)
#: Decisions of a batch of a whole experiment, of which 30 % are held out.
BATCH = 1700


class World(NamedTuple):
    """What an arm earns on average, of the cosine z of its angle to the true direction; and what comes of that."""

    mean: Callable[[FloatArray], FloatArray]
    pay: Callable[[FloatArray, np.random.Generator], FloatArray]


def clicks(means: FloatArray, rng: np.random.Generator) -> FloatArray:
    return (rng.random(means.shape) < means).astype(np.float64)


WORLDS = {
    "linear": World(lambda z: 1.0 + z, lambda means, rng: means + rng.standard_normal(means.shape)),
    "clicks, 5 %": World(lambda z: 0.05 * (1.0 + 0.9 * z), clicks),
    "clicks, 95 %": World(lambda z: 0.95 + 0.045 * z, clicks),
    "revenue": World(
        lambda z: 0.1 * (1.0 + 0.9 * z),
        lambda means, rng: clicks(means, rng) * np.exp(1.2 * rng.standard_normal(means.shape) - 0.72),
    ),
    "a step": World(lambda z: np.where(z > 0.3, 0.7, 0.3), clicks),
}


class Job(NamedTuple):
    """One run."""

    kind: str
    world: str
    size: int
    seed: int


def policy(angle: float, rng: np.random.Generator) -> Policy:
    """One that follows a direction at this angle to the true one, which is the first axis."""
    side = rng.standard_normal(DIM - 1)
    radians = math.radians(angle)
    direction = np.concatenate([[math.cos(radians)], math.sin(radians) * side / np.linalg.norm(side)])
    return Policy(
        dim=DIM, sampler=Blend(main=PosteriorDraws(draws=direction[None]), explorer=Uniform(), share=EXPLORES)
    )


def unit_sets(count: int, rng: np.random.Generator) -> FloatArray:
    found = rng.standard_normal((count, ARMS, DIM))
    return np.asarray(found / np.linalg.norm(found, axis=2, keepdims=True))


@cache
def value(world: str, angle: float) -> float:
    """What a policy at this angle earns a decision."""
    rng = np.random.default_rng(99)
    sets = unit_sets(50_000, rng)
    means = WORLDS[world].mean(sets[:, :, 0])
    return float((policy(angle, rng).probabilities(sets) * means).sum(axis=1).mean())


@cache
def angle_of(world: str, wanted: float) -> float:
    """The angle at which a policy earns this much."""
    low, high = 0.0, 180.0
    for _ in range(20):
        middle = (low + high) / 2.0
        low, high = (middle, high) if value(world, middle) > wanted else (low, middle)
    return low


def angles(job: Job) -> tuple[float, float]:
    """Of the incumbent and of the candidate."""
    if job.kind in ("same", "looks"):
        return SAME, SAME
    if job.kind == "worse":
        return SAME, angle_of(job.world, 0.95 * value(job.world, SAME))
    return LOW, angle_of(job.world, 1.1 * value(job.world, LOW))


def logged(world: World, incumbent: Policy, count: int, seed: int, rng: np.random.Generator) -> DecisionLog:
    sets = unit_sets(count, rng)
    decided = incumbent.decide(sets, ids=range(count), seed=seed)
    rewards = world.pay(world.mean(sets[np.arange(count), decided.arms, 0]), rng)
    return DecisionLog(arm_indices=decided.arms, propensities=decided.propensities, rewards=rewards, contexts=sets)


def model_of(log: DecisionLog) -> Callable[[FloatArray], FloatArray]:
    """What a learner would have of other decisions."""
    assert log.features is not None
    found = Stats.of(np.column_stack([log.features, np.ones(len(log))]), log.rewards).estimate(ridge=1.0)
    return lambda contexts: np.asarray(contexts @ found[:-1] + found[-1])


def one(job: Job) -> GateReport | None:
    """What the gate says in one run: of five looks, the first that lets a candidate pass, or the last."""
    if job.kind == "whole":
        return whole(job.seed)
    world, rng = WORLDS[job.world], np.random.default_rng([job.seed, job.size, list(WORLDS).index(job.world)])
    old, new = angles(job)
    incumbent = policy(old, rng)
    predict = model_of(logged(world, incumbent, 1500, job.seed + 1, rng))
    candidate = policy(new, rng)
    log = logged(world, incumbent, LOOKS[-1] if job.kind == "looks" else job.size, job.seed, rng)
    told: dict[str, Any] = {"incumbent": incumbent, "predict": predict}
    if job.kind != "looks":
        return judge(Gate(level=LEVEL), [log], candidate=candidate, look=1, **told)
    found, look = None, 1
    for count in LOOKS:
        found = judge(Gate(level=LEVEL), [log.select(slice(count))], candidate=candidate, look=look, **told)
        if found.promoted:
            break
        look += found.answered
        if job.seed % 2:  # what is learned changes from look to look, or it stays
            candidate = policy(new, rng)
    return found


def whole(seed: int) -> GateReport | None:
    """A whole experiment in a world where all arms are worth the same."""
    rng = np.random.default_rng(seed)
    with create(
        "memory:", "noise", dim=DIM, horizon=50_000, updates=6, seed=seed, now=0.0, schedule="by hand"
    ) as trial:
        ids = range(BATCH)
        trial.decide_many(unit_sets(BATCH, rng), ids=ids, now=0.0)
        trial.reward_many(ids, rng.standard_normal(BATCH).tolist(), now=0.0)
        return trial.advance(now=0.0, gate=Gate(level=LEVEL)).gate


def measured(jobs: list[Job]) -> list[GateReport]:
    for job in jobs if jobs[0].kind != "whole" else ():
        angles(job)  # found once, here, and known to all processes
    with ProcessPoolExecutor(available_cores()) as pool:
        found = [*pool.map(one, jobs, chunksize=8)]
    return [report for report in found if report is not None]


def shares(jobs: list[Job], found: list[GateReport], by: Callable[[Job], Any]) -> dict[Any, float]:
    """The share of runs in which a candidate was promoted."""
    kinds = dict.fromkeys(map(by, jobs))
    return {
        kind: float(np.mean([f.promoted for j, f in zip(jobs, found, strict=True) if by(j) == kind])) for kind in kinds
    }


def wrong(kind: str, what: str, runs: int, seeds: range) -> Row:
    """Candidates that should not pass."""
    worlds = list(WORLDS)
    if kind == "whole":
        jobs = [Job(kind, "noise", BATCH, seed) for seed in seeds]
    else:
        sizes = (LOOKS[-1],) if kind == "looks" else SIZES
        jobs = [
            Job(kind, worlds[k % len(worlds)], sizes[k // len(worlds) % len(sizes)], seeds[0] + k) for k in range(runs)
        ]
    found = measured(jobs)
    passed, told = sum(one.promoted for one in found), sum(one.answered for one in found)
    each = (
        ""
        if kind == "whole"
        else "; ".join(
            f"{name} {100 * share:.1f} %" for name, share in shares(jobs, found, lambda job: job.world).items()
        )
    )
    return Row(
        what=what,
        measured=f"{passed} of {len(found)} promoted ({100 * passed / len(found):.1f} %)",
        ratio=f"{each}{'; ' if each else ''}{told} answered",
        needed=f"at most {100 * LEVEL:.0f} %",
        holds=passed <= LEVEL * len(found),
    )


def better(world: str, runs: int, first: int) -> Row:
    """Candidates that are worth 10 % more."""
    jobs = [Job("better", world, size, first + k) for size in GROWING for k in range(runs)]
    found = shares(jobs, measured(jobs), lambda job: job.size)
    gain = 0.1 * value(world, LOW)
    return Row(
        what=f"{world}: a candidate that earns 10 % more ({gain:.3g} a decision), {runs} runs a size",
        measured="promoted: " + ", ".join(f"{size:,} {100 * share:.0f} %" for size, share in found.items()),
    )


def rows(first: int, quick: bool) -> Iterator[Row]:
    runs = 100 if quick else 1000
    yield wrong("worse", "a candidate that earns 5 % less", runs, range(first, first + runs))
    yield wrong("same", "a candidate that earns the same, the hardest case", runs, range(first, first + runs))
    yield wrong("looks", "the same, looked at five times while the batch grows", runs, range(first, first + runs))
    count = 20 if quick else 300
    yield wrong("whole", "whole experiments in which there is nothing to learn", count, range(first, first + count))
    for world in WORLDS:
        if world != "clicks, 95 %":  # where nothing is 10 % better
            yield better(world, 5 if quick else 60, first)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    options = parser.parse_args()
    note = (
        f"At level {LEVEL:g}, of which the first look spends half. Held-out decisions: {', '.join(map(str, SIZES))} in "
        f"turn; {', '.join(map(str, LOOKS))} at five looks; 30 % of {BATCH:,} in whole experiments. Where too few of "
        "them are like the candidate's play the gate does not answer, and does not promote."
    )
    return report("Gates", rows(options.first, options.quick), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
