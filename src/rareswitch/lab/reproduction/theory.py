"""What the proofs rest on: intervals that cover, batches that explore, and the paper's remarks."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from rareswitch.core import FloatArray
from rareswitch.design import GOptimal, information
from rareswitch.lab.reproduction.algorithms import BATCHED
from rareswitch.lab.reproduction.claims import Claim, Effort, Finding, Measured, at_least, at_most, exactly
from rareswitch.lab.simulate import DrawnRounds
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import BatchLinUCBDG, BatchLinUCBKW, Learner, make_learner, paper_design_grid, warm_start
from rareswitch.planning import bounds_of
from rareswitch.policy import Decisions, Layered, Policy

#: The chance that a check of a true probability fails.
FALSE_ALARM = 1e-3
LAYERED = "rarely-switch-suplinucb"


class PlayedBatch(NamedTuple):
    """What a policy decided, and the policy after it."""

    policy: Policy
    rounds: DrawnRounds
    decisions: Decisions
    after: Policy


def played_batches(learner: Learner, world: World, seed: int) -> Iterator[PlayedBatch]:
    """A run, policy by policy."""
    state = learner.begin()
    while not state.done:
        rounds = DrawnRounds.of(world, state.stop - state.start, seed=seed, first=state.start)
        decisions, policy = rounds.decide(state.policy), state.policy
        due = learner.due(state, rounds.sets, decisions)
        if due is not None:
            rounds, decisions = rounds.part(0, due), decisions.upto(due)
        state = learner.next(state, learner.summarize(state, rounds.log(decisions)))
        yield PlayedBatch(policy, rounds, decisions, state.policy)


def intervals_of(policy: Policy) -> list[tuple[FloatArray, FloatArray]]:
    """The estimate (d,) and the root (d, d) of the widths of each of a policy's models."""
    models = [(elimination.estimate, elimination.root) for elimination in policy.eliminations]
    if isinstance(policy.sampler, Layered):
        models += zip(policy.sampler.estimates, policy.sampler.roots, strict=True)
    return models


def covers(policy: Policy, rounds: DrawnRounds) -> bool:
    """Whether all intervals of all arms, eliminated or not, hold the expected reward."""
    for estimate, root in intervals_of(policy):
        error = np.abs(rounds.sets.contexts @ estimate - rounds.means)
        width = np.linalg.norm(rounds.sets.contexts @ root.T, axis=2)
        if (error > width * (1 + 1e-12)).any():
            return False
    return True


def most_failures(runs: int, delta: float) -> int:
    """The number of failures that no more than a share ``FALSE_ALARM`` of true checks exceeds.

    >>> most_failures(1000, 0.1)
    130
    """
    return int(binom.isf(FALSE_ALARM, runs, delta))


# 9: coverage

DELTA = 0.1


class ShortRun(NamedTuple):
    """A run whose intervals are checked."""

    name: str
    confidence: str
    dim: int
    arms: int
    horizon: int
    seed: int = 0


#: The tight widths at the sizes at which half of them would not cover; the paper's are wider by far.
SHORT_RUNS = (
    *(ShortRun(name, "tight", 10, 20, 1024) for name in BATCHED),
    ShortRun(LAYERED, "tight", 6, 12, 256),
    *(ShortRun(name, "paper", 10, 20, 256) for name in BATCHED),
)


def _misses(run: ShortRun) -> bool:
    """Whether some interval of a run does not hold its expected reward."""
    sizes = {"dim": run.dim, "arms": run.arms, "horizon": run.horizon}
    learner = make_learner(run.name, **sizes, delta=DELTA, noise=1.0, confidence=run.confidence)
    world = make_world("gaussian", dim=run.dim, arms=run.arms, noise=1.0)
    return not all(covers(batch.policy, batch.rounds) for batch in played_batches(learner, world, run.seed))


def coverage(effort: Effort) -> Measured:
    """Runs in which some interval of some arm fails."""
    seeds, kinds = effort.seeds(whole=1000, quick=150, small=25), effort.of(whole=7, quick=7, small=4)
    runs = [kind._replace(seed=seed) for kind in SHORT_RUNS[:kinds] for seed in seeds]
    missed = dict(zip(runs, effort.map(_misses, runs), strict=True))
    findings = []
    for kind in SHORT_RUNS[:kinds]:
        sizes = f"{kind.name}, {kind.confidence} widths: {len(seeds):,} runs, d = {kind.dim}, K = {kind.arms}"
        failures = sum(missed[kind._replace(seed=seed)] for seed in seeds)
        what = f"runs with an interval that fails, {sizes}, T = {kind.horizon:,}"
        findings.append(at_most(what, failures, most_failures(len(seeds), DELTA)))
    return Measured(
        findings=tuple(findings),
        seeds=len(seeds),
        remark=f"δ = {DELTA:g}, for all arms of all sets and all estimates of a run together. The limit is exceeded "
        f"by chance in at most {FALSE_ALARM:g} of such checks.",
    )


# 10: the exploration lemma


def least_exploration(learner: Learner, world: World, seed: int) -> float:
    """The least eigenvalue of Λ - (n/16)·((ln T/n)·I + I(π)) over batches, relative to the largest of the bound."""
    rule: Any = learner.parts.rule
    horizon = learner.horizon or 0
    fresh, least = world.draw(4000, seed=seed, first=10 * horizon), math.inf
    for batch in played_batches(learner, world, seed):
        if len(batch.after.eliminations) == len(batch.policy.eliminations):
            continue  # the last batch is not learned from
        root = batch.after.eliminations[-1].root
        precision = np.linalg.inv(root.T @ root / rule.intervals.multiplier**2)
        # DG's estimates rest on one half of the batch: the lemma for n/2
        size = len(batch.rounds) / (2 if isinstance(learner, BatchLinUCBDG) else 1)
        surviving = batch.policy.survivors(fresh.contexts, fresh.available)
        explored = information(batch.policy.sampler, fresh.contexts, surviving)
        bound = size / 16 * (math.log(horizon) / size * np.eye(learner.dim) + explored)
        least = min(least, float(np.linalg.eigvalsh(precision - bound)[0] / np.linalg.norm(bound, 2)))
    return least


def _explored(case: tuple[str, str, int, int]) -> float:
    """The same of a run with the paper's ridge, and with widths far below the paper's, so that arms are eliminated."""
    name, place, horizon, seed = case
    ridge = (32 if name.endswith("dg") else 16) * math.log(2 * 4 * horizon / 0.05)
    learner = make_learner(name, dim=4, arms=12, horizon=horizon, noise=0.5, confidence=2.0, ridge=ridge)
    return least_exploration(learner, make_world(place, dim=4, arms=12, noise=0.5), seed)


PLACES = ("gaussian", "one-big", "segments", "anisotropic")


def exploration(effort: Effort) -> Measured:
    """The precision of each batch against what its sampler was to explore, on fresh sets."""
    seeds, horizon = effort.seeds(whole=5, quick=2, small=1), 100_000
    places = effort.of(whole=PLACES, quick=PLACES, small=PLACES[:1])
    cases = [(name, place, horizon, seed) for name in BATCHED for place in places for seed in seeds]
    least = dict(zip(cases, effort.map(_explored, cases), strict=True))
    sizes = f"{len(places)} worlds, {len(seeds)} seeds, d = 4, K = 12, T = {horizon:,}"
    return Measured(
        findings=tuple(
            at_least(
                f"least eigenvalue of Λ less the bound, relative to the bound, {name}: {sizes}",
                min(value for case, value in least.items() if case[0] == name),
                -1e-9,
            )
            for name in BATCHED
        ),
        seeds=len(seeds),
        remark="The paper's ridge, and widths at which arms are eliminated; what a sampler explores is measured on "
        "4,000 fresh sets.",
    )


# 17: remarks


def _ball_misses(seed: int) -> bool:
    """Whether some direction's interval fails in a run that is made for 10^9 arms."""
    learner = BatchLinUCBKW(dim=3, arms=10**9, horizon=256, delta=DELTA, noise=1.0)
    world = make_world("gaussian", dim=3, arms=20, noise=1.0)
    theta = world.theta(seed)  # type: ignore[attr-defined]
    for batch in played_batches(learner, world, seed):
        for estimate, root in intervals_of(batch.policy):
            # |xᵀ(θ̂ - θ)| ≤ ‖root·x‖ for all x
            if np.linalg.norm(np.linalg.solve(root.T, estimate - theta)) > 1 + 1e-12:
                return True
    return False


def _choices() -> list[Finding]:
    """Which learner has the best bound where T ≥ e^d, and how its bound depends on K."""
    cases = [
        (dim, arms * dim, math.ceil(longer * math.exp(dim)))
        for dim, arms, longer in product((2, 3, 5, 8, 10, 12), (2, 4, 40), (1, 10, 1000))
    ]
    others = sum(bounds_of(dim=d, arms=k, horizon=t).proven != "batch-linucb-kw" for d, k, t in cases)
    growth = 0.0
    for dim, horizon, exponent in product((2, 5, 10), (10**6, 10**12), (1, 2, 5, 10, 30, 100)):
        bounds = bounds_of(dim=dim, arms=10**exponent, horizon=horizon).learners
        (order,) = (bound.order or math.inf for bound in bounds if bound.learner == "batch-linucb-kw")
        # ln min(K, e^(d log T))
        logarithm = min(exponent * math.log(10), dim * math.log2(horizon))
        growth = max(growth, order / (dim * math.sqrt(max(1.0, logarithm) * horizon)))
    return [
        exactly(f"settings with T ≥ e^d in which KW is not the one chosen, {len(cases)} of d, K ≥ 2d and T", others),
        at_most(
            "bound of KW with K arms / d·√(T ln min(K, e^(d log T))), largest over K = 10 to 10^100", growth, 1.0 + 1e-9
        ),
    ]


def _warm(case: tuple[int, int, int]) -> tuple[float, int, int]:
    """How far a warm start ends from √(T/d), ends after it that are not Algorithm 5's, and wrong policies of a run."""
    horizon, dim, seed = case
    plain = paper_design_grid(horizon)
    grid = warm_start(plain, dim)
    learner = BatchLinUCBDG(dim=dim, arms=8, horizon=horizon, noise=0.5, grid=grid, warm_batches=1)
    world = make_world("gaussian", dim=dim, arms=8, noise=0.5)
    ends, policies = list[int](), list[Policy]()
    for batch in played_batches(learner, world, seed):
        ends.append((ends[-1] if ends else 0) + len(batch.rounds))
        policies.append(batch.policy)
    # KW's design twice, as the first batch teaches no design; learned ones afterwards
    optimal = [isinstance(policy.sampler, GOptimal) for policy in policies]
    wrong = sum(a != b for a, b in zip(optimal, [True, True] + [False] * len(optimal), strict=False))
    wrong += abs(len(policies) - plain.policies - 1)
    return abs(ends[0] - math.sqrt(horizon / dim)), len(set(ends[1:]) ^ set(plain.ends)), wrong


def remarks(effort: Effort) -> Measured:
    """Which learner where T ≥ e^d; the warm start; many arms."""
    seeds = effort.seeds(whole=1000, quick=200, small=40)
    findings = _choices()
    sizes = effort.of(
        whole=((2_000, 4), (10_000, 6), (30_000, 10)), quick=((2_000, 4), (10_000, 6)), small=((2_000, 4),)
    )
    warm = effort.map(_warm, [(horizon, dim, effort.seed) for horizon, dim in sizes])
    missed = sum(effort.map(_ball_misses, seeds))
    of_warm = f"T = {', '.join(f'{horizon:,}' for horizon, _ in sizes)}"
    findings += [
        at_most(
            f"decisions between the end of a warm start and √(T/d), largest, {of_warm}", max(w[0] for w in warm), 1
        ),
        exactly("ends after a warm start that are not those of Algorithm 5", sum(w[1] for w in warm)),
        exactly("policies after a warm start that are not KW's, KW's, and then learned", sum(w[2] for w in warm)),
        at_most(
            f"runs made for 10^9 arms with a direction whose interval fails: {len(seeds):,} runs, d = 3, T = 256",
            missed,
            most_failures(len(seeds), DELTA),
        ),
    ]
    return Measured(
        findings=tuple(findings),
        seeds=len(seeds),
        remark="The ε-net over directions is printed with min(K, d log T); what it gives is min(K, e^(d log T)), whose "
        f"logarithm is in the bound. Its intervals, for 10^9 arms, must hold in all directions at once; δ = {DELTA:g}.",
    )


CLAIMS = (
    Claim(
        number=9,
        claim="all intervals of a run hold together with probability 1 - δ",
        theorem="Lemma 1, and the analysis of linear regression in Appendix B",
        criterion=f"no more runs fail than a share δ would in all but {FALSE_ALARM:g} of checks (one-sided binomial)",
        measure=coverage,
    ),
    Claim(
        number=10,
        claim="a batch explores what its policy was to explore: Λ ≽ (n/16)·((ln T/n)·I + I(π))",
        theorem="Lemma 2",
        criterion="the least eigenvalue of the difference is at least 0, up to rounding",
        measure=exploration,
    ),
)
REMARKS = (
    Claim(
        number=17,
        claim="KW is enough where T ≥ e^d; a warm start up to √(T/d); K counts as min(K, e^(d log T))",
        theorem="the remarks after Theorem 6",
        criterion="as stated; intervals for any number of arms hold in all directions, as in item 9",
        measure=remarks,
    ),
)
