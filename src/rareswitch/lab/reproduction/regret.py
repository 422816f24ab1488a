"""Regret and switches: how they grow with T, d, M and C, what adversarial contexts do, and many agents."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import FloatArray
from rareswitch.lab.collaborate import collaborate
from rareswitch.lab.reproduction.algorithms import BATCHED
from rareswitch.lab.reproduction.claims import Claim, Condition, Effort, Finding, Measured, Series, at_most, exactly
from rareswitch.lab.reproduction.theory import LAYERED
from rareswitch.lab.simulate import simulate
from rareswitch.lab.sweep import budgeted, learner_for
from rareswitch.lab.worlds import make_world
from rareswitch.learner import paper_grid

more_than = partial(Finding, relation=">")


class SeededRun(NamedTuple):
    """A run of a learner in a world."""

    name: str
    world: str
    dim: int
    arms: int
    horizon: int
    seed: int
    noise: float = 0.5
    #: Of the learner.
    settings: tuple[tuple[str, float | tuple[int, ...]], ...] = ()
    cap: int | None = None
    agents: int = 1


class RunTotals(NamedTuple):
    """Of a run."""

    regret: float
    policies: int


def _run(case: SeededRun) -> RunTotals:
    """The run of a case."""
    world = make_world(case.world, dim=case.dim, arms=case.arms, noise=case.noise, horizon=case.horizon)
    settings: dict[str, Any] = dict(case.settings)
    learner = learner_for(world, case.name, horizon=case.horizon, seed=case.seed, noise=case.noise, **settings)
    run = simulate(learner, world, seed=case.seed, cap=case.cap, agents=case.agents)
    return RunTotals(run.regret, run.policies)


def results(effort: Effort, cases: Iterable[SeededRun]) -> dict[SeededRun, RunTotals]:
    """The results of runs, the longest of which are begun first."""
    ordered = sorted(dict.fromkeys(cases), key=lambda case: -case.horizon * case.dim * case.arms)
    return dict(zip(ordered, effort.map(_run, ordered), strict=True))


def regrets(runs: Mapping[SeededRun, RunTotals], **wanted: object) -> FloatArray:
    """The regrets of the cases with these fields, in the order of the seeds."""
    cases = [case for case in runs if all(getattr(case, name) == value for name, value in wanted.items())]
    return np.array([runs[case].regret for case in sorted(cases, key=lambda case: case.seed)])


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of a power law by least squares.

    >>> round(slope([1, 10, 100], [2, 20, 200]), 9)
    1.0
    """
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-9)), 1)[0])


# 11: √T


def growth_with_horizon(effort: Effort) -> Measured:
    """Slopes of regret in T, and in d where designs matter."""
    dim, arms, seeds = 5, 20, effort.seeds(whole=4, quick=1, small=1)
    horizons = effort.of(whole=(10**4, 10**5, 10**6), quick=(10**4, 10**5, 10**6), small=(10**4, 10**5))
    worlds = effort.of(whole=("gaussian", "segments", "one-big"), quick=("gaussian", "segments"), small=("gaussian",))
    dims = effort.of(whole=(4, 8, 16), quick=(4, 8), small=())
    long = [
        SeededRun(name, world, dim, arms, horizon, seed)
        for name, world, horizon, seed in product(BATCHED, worlds, horizons, seeds)
    ]
    wide = [SeededRun(name, "one-big", d, 4 * d, 20_000, seed) for name, d, seed in product(BATCHED[1:], dims, seeds)]
    runs = results(effort, long + wide)
    means = {
        (name, world): [regrets(runs, name=name, world=world, dim=dim, horizon=t).mean() for t in horizons]
        for name, world in product(BATCHED, worlds)
    }
    span = f"T = {horizons[0]:,} to {horizons[-1]:,}, d = {dim}, K = {arms}, {len(seeds)} seeds"
    findings = [
        at_most(f"slope of regret in T, {name}, {world}: {span}", slope(horizons, mean), 0.6)
        for (name, world), mean in means.items()
    ]
    if dims:
        kw, dg = ([regrets(runs, name=name, dim=d, horizon=20_000).mean() for d in dims] for name in BATCHED[1:])
        sizes = f"one-big, d = {dims[0]} to {dims[-1]}, K = 4d, T = 20,000"
        findings.append(
            Finding(
                what=f"slope of DG's regret in d less that of KW: {sizes}",
                value=slope(dims, dg) - slope(dims, kw),
                relation="<",
                limit=0.0,
            )
        )
    return Measured(
        findings=tuple(findings),
        seeds=len(seeds),
        remark="The tight widths, which are proved too: with those of the paper nothing is eliminated before T = 10^6, "
        "and regret is T times a constant.",
        series=tuple(
            Series(name=f"{name}, {world}", points=tuple(zip(horizons, mean, strict=True)))
            for (name, world), mean in means.items()
        ),
        axes=("T", "regret"),
    )


# 12: regret against M


def exponent(batches: int) -> float:
    """1/(2(1 - 2^-M))."""
    return 0.5 / (1.0 - 2.0**-batches)


def regret_by_batches(effort: Effort) -> Measured:
    """Regret with M batches on the paper's grid for any M."""
    numbers, names = (1, 2, 3, 4, 5), BATCHED[1:]
    seeds = effort.seeds(whole=2, quick=1, small=1)
    horizons = effort.of(whole=(10**4, 10**5, 10**6), quick=(10**4, 10**5), small=(2_000, 50_000))
    grids = {(m, t): (("grid", paper_grid(t, m).ends),) for m, t in product(numbers, horizons)}
    cases = [
        SeededRun(name, "gaussian", 5, 20, t, seed, settings=grids[m, t])
        for name, m, t, seed in product(names, numbers, horizons, seeds)
    ]
    runs = results(effort, cases)
    findings, lines = [], []
    for name in names:
        factors = {
            (m, t): regrets(runs, name=name, horizon=t, settings=grids[m, t]).mean() / t ** exponent(m)
            for m, t in grids
        }
        last = horizons[-1]
        learned = [factors[m, last] for m in numbers[1:]]
        middle = math.exp(float(np.log(learned).mean()))
        sizes = f"{name}, gaussian, d = 5, K = 20, {len(seeds)} seeds"
        findings += [
            at_most(
                f"factor between regret and constant · T^(1/(2(1 - 2^-M))), largest over M = 2 to 5: {sizes}, "
                f"T = {last:,}",
                max(max(factor / middle, middle / factor) for factor in learned),
                3.0,
            ),
            at_most(f"regret / the same with M = 1: {name}, T = {last:,}", factors[1, last] / middle, 3.0),
        ]
        if len(horizons) > 1:
            worst = max(max(column) / min(column) for column in ([factors[m, t] for t in horizons] for m in numbers))
            what = f"the same between T = {horizons[0]:,} and {last:,}, largest over M = 1 to 5: {name}"
            findings.append(at_most(what, worst, 3.0))
        lines.append(Series(name=name, points=tuple((m, factors[m, last] * last ** exponent(m)) for m in numbers)))
    shape = tuple((m, middle * last ** exponent(m)) for m in numbers)
    return Measured(
        findings=tuple(findings),
        seeds=len(seeds),
        remark="One constant for M = 2 to 5, fitted; the bound is an upper one, and with M = 1 nothing is learned: "
        "regret is then T times the mean gap, without the factors of d, ln K and logarithms, and is far below it.",
        series=(*lines, Series(name="the shape", points=shape)),
        axes=("batches", "regret"),
    )


# 13: switches

GROWTHS = (2.0, 4.0, 8.0, 16.0)


def most_policies(name: str, *, dim: int, horizon: int, growth: float) -> int:
    """(κ_0 + 1)·(1 + d·log_C(1 + T/d)), a layer's part rounded down, with λ = 1; one layer for OFUL.

    >>> most_policies("oful", dim=5, horizon=10_000, growth=2.0)
    55
    """
    layers = math.ceil(math.log2(dim)) + 1 if name == LAYERED else 1
    return layers * (1 + math.floor(dim * math.log(1.0 + horizon / dim) / math.log(growth) + 1e-9))


def switches(effort: Effort) -> Measured:
    """Policies and regret for each C, of two learners in two worlds that change."""
    names, worlds = ("oful", LAYERED), ("drifting", "starving")
    dim, arms, horizon = 5, 20, effort.of(whole=20_000, quick=10_000, small=2_000)
    seeds = effort.seeds(whole=8, quick=4, small=1)
    settings = {c: (("growth", c), ("ridge", 1.0)) for c in GROWTHS}
    runs = results(
        effort,
        [
            SeededRun(name, world, dim, arms, horizon, seed, settings=settings[c])
            for name, world, c, seed in product(names, worlds, GROWTHS, seeds)
        ],
    )
    above, disordered, lines = 0, 0, []
    proportion, dearer = 0.0, math.inf
    for name, world in product(names, worlds):
        kinds = {
            c: [r for case, r in runs.items() if (case.name, case.world, case.settings) == (name, world, settings[c])]
            for c in GROWTHS
        }
        for c, kind in kinds.items():
            limit = most_policies(name, dim=dim, horizon=horizon, growth=c)
            above += sum(result.policies > limit for result in kind)
        policies = {c: float(np.mean([r.policies for r in kind])) for c, kind in kinds.items()}
        regret = {c: float(np.mean([r.regret for r in kind])) for c, kind in kinds.items()}
        disordered += sum(policies[a] <= policies[b] for a, b in pairwise(GROWTHS))
        proportion = max(proportion, *(regret[c] / (regret[2.0] * c / 2.0) for c in GROWTHS[1:]))
        dearer = min(dearer, regret[GROWTHS[-1]] / regret[2.0])
        lines.append(Series(name=f"{name}, {world}", points=tuple((policies[c], regret[c]) for c in GROWTHS)))
    sizes = f"{len(names)} learners, {len(worlds)} worlds, C = 2 to 16, {len(seeds)} seeds, d = {dim}, T = {horizon:,}"
    return Measured(
        findings=(
            exactly(f"runs with more policies than (κ₀ + 1)(1 + d log_C(1 + T/d)): {sizes}", above),
            exactly("doublings of C after which there are no fewer policies", disordered),
            at_most("regret with C / (C/2 × regret with 2), largest", proportion, 1.0),
            more_than(what="regret with C = 16 / regret with 2, least", value=dearer, limit=1.0),
        ),
        seeds=len(seeds),
        series=tuple(lines),
        axes=("policies", "regret"),
    )


# 14: the lower bound


def fewer_switches(effort: Effort) -> Measured:
    """The paper's instance, under caps on the policies."""
    caps, horizon = (1, 2, 4), effort.of(whole=100_000, quick=100_000, small=20_000)
    counts = effort.of(whole={1: 32, 2: 128}, quick={1: 16, 2: 64}, small={1: 32})
    cases = []
    for stages, count in counts.items():
        for cap, seed in product((*caps, None), range(effort.seed, effort.seed + count)):
            own = budgeted("oful", policies=cap, dim=2, horizon=horizon)[1] if cap else {"growth": 2.0}
            settings = tuple(own.items())
            cases.append(SeededRun("oful", f"lower-bound:{stages}", 2, 2, horizon, seed, 1.0, settings, cap))
    runs = results(effort, cases)
    findings, lines = [], []
    for stages, count in counts.items():
        free = regrets(runs, world=f"lower-bound:{stages}", cap=None)
        means = []
        for cap in caps:
            capped = regrets(runs, world=f"lower-bound:{stages}", cap=cap)
            means.append((cap, float(capped.mean())))
            excess = capped - free
            error = float(excess.std(ddof=1)) / math.sqrt(count)
            what = f"excess regret with at most {cap} policies, in standard errors, L = {stages}: "
            what += f"{count} instances, T = {horizon:,}, d = 2"
            findings.append(more_than(what=what, value=float(excess.mean()) / error, limit=2.0))
        used = float(np.mean([r.policies for case, r in runs.items() if case.cap is None]))
        lines.append(Series(name=f"L = {stages}", points=(*means, (used, float(free.mean())))))
    return Measured(
        findings=tuple(findings),
        seeds=sum(counts.values()),
        remark="OFUL with the C that spreads its policies over the run, against itself with C = 2 and no cap. Each "
        "seed draws the signs of an instance: the paper averages over them. With L = 1 the paper's constants hold.",
        series=tuple(lines),
        axes=("policies", "regret"),
    )


# 15: adversarial contexts


def batches_fail(effort: Effort) -> Measured:
    """Batches against rare switches where a feature comes late."""
    dim, arms, horizon = 5, 20, effort.of(whole=100_000, quick=100_000, small=20_000)
    seeds = effort.seeds(whole=4, quick=2, small=1)
    rare, equal = ("oful", LAYERED), 70
    ends = tuple(round(horizon * k / equal) for k in range(1, equal + 1))
    many = (("grid", ends),)
    cases = [
        SeededRun(name, world, dim, arms, horizon, seed)
        for name, world, seed in product((*BATCHED, *rare), ("starving", "drifting"), seeds)
    ]
    cases += [SeededRun(BATCHED[1], "starving", dim, arms, horizon, seed, settings=many) for seed in seeds]
    runs = results(effort, cases)

    def mean(name: str, world: str, settings: tuple[tuple[str, tuple[int, ...]], ...] = ()) -> float:
        return float(regrets(runs, name=name, world=world, settings=settings).mean())

    best = {world: min(mean(name, world) for name in BATCHED) for world in ("starving", "drifting")}
    policies = {
        name: max(r.policies for case, r in runs.items() if case.name == name and case.world == "starving")
        for name in rare
    }
    sizes = f"starving, d = {dim}, K = {arms}, T = {horizon:,}, {len(seeds)} seeds"
    findings = [
        more_than(
            what=f"regret of the best of {len(BATCHED)} batched learners / that of {name} ({policies[name]} policies): "
            f"{sizes}",
            value=best["starving"] / mean(name, "starving"),
            limit=5.0,
        )
        for name in rare
    ]
    findings.append(
        more_than(
            what=f"regret of KW with {equal} equal batches / that of OFUL",
            value=mean(BATCHED[1], "starving", many) / mean("oful", "starving"),
            limit=5.0,
        )
    )
    drift = ", ".join(f"{best['drifting'] / mean(name, 'drifting'):.1f} for {name}" for name in rare)
    return Measured(
        findings=tuple(findings),
        seeds=len(seeds),
        remark="The claim is of the contexts that an adversary chooses: the starving world, whose features come one "
        f"after the other. In the drifting one the first ratio is {drift}.",
    )


# 16: many agents


def _shared(case: tuple[str, int, int, int]) -> tuple[float, float, int, float]:
    """Of a collaboration: its regret, that of one agent, its rounds, and how much its time is above T/A + M."""
    name, agents, horizon, seed = case
    world = make_world("gaussian", dim=4, arms=10, noise=0.5)
    learner = learner_for(world, name, horizon=horizon, seed=seed, noise=0.5)
    alone = simulate(learner, world, seed=seed)
    shared = collaborate(learner, world, agents=agents, seed=seed)
    late = shared.parallel_time - (horizon / agents + alone.policies)
    return shared.run.regret, alone.regret, abs(len(shared.meetings) - alone.policies), late


def many_agents(effort: Effort) -> Measured:
    """Batches that agents share, and switches at the ends of their steps."""
    agents = effort.of(whole=(1, 2, 5, 10, 100), quick=(1, 10, 100), small=(1, 10))
    horizon = effort.of(whole=20_000, quick=5_000, small=2_000)
    seeds = effort.seeds(whole=4, quick=2, small=1)
    cases = list(product(BATCHED, agents, (horizon,), seeds))
    shared = effort.map(_shared, cases)
    apart = [abs(together / alone - 1.0) for together, alone, *_ in shared]
    rare = ("oful", LAYERED)
    runs = results(
        effort,
        [
            SeededRun(name, world, 4, 10, horizon, seed, settings=(("ridge", 1.0),), agents=count)
            for name, world, seed, count in product(rare, ("gaussian", "starving"), seeds, agents)
        ],
    )
    above, excess = 0, -math.inf
    for case, result in runs.items():
        limit = most_policies(case.name, dim=4, horizon=horizon, growth=2.0)
        above += result.policies > limit
        alone = runs[case._replace(agents=1)]
        excess = max(excess, (result.regret - alone.regret) / (limit * case.agents))
    sizes = f"{len(agents)} numbers of agents up to {agents[-1]}, {len(seeds)} seeds, d = 4, K = 10, T = {horizon:,}"
    return Measured(
        findings=(
            at_most(
                f"regret of a collaboration / that of one agent - 1, largest, {len(BATCHED)} learners: {sizes}",
                max(apart),
                1e-9,
            ),
            exactly("communication rounds more or fewer than batches, largest", max(c[2] for c in shared)),
            at_most("time of a collaboration less T/A + M, largest", max(c[3] for c in shared), 0.0),
            exactly(f"concurrent runs with more policies than the bound, {len(rare)} learners, 2 worlds", above),
            at_most("regret of a concurrent run less that of one agent, in units of M·A, largest", excess, 1.0),
        ),
        seeds=len(seeds),
        remark="M is the bound on the policies. All agents together decide T times.",
    )


CLAIMS = (
    Claim(
        number=11,
        claim="regret grows as √T with log log T batches, and with d less for DG than for KW",
        theorem="Theorems 1, 2 and 6",
        criterion="slopes in T of at most 0.6, with K ≥ 4d; DG's slope in d below that of KW",
        measure=growth_with_horizon,
        conditions=(Condition(theorem="Theorem 6", quantity="T (d^32 at d = 4)", needed=4.0**32, run=10.0**6),),
    ),
    Claim(
        number=12,
        claim="with M batches regret grows as T^(1/(2(1 - 2^-M)))",
        theorem="contribution (C2)",
        criterion="within a factor 3 of that shape",
        measure=regret_by_batches,
    ),
    Claim(
        number=13,
        claim="O(d log d log T / log C) policies are enough, at a regret that grows with C at most in proportion",
        theorem="Theorem 7",
        criterion="no run is above the bound; larger C has fewer policies, and costs more, at most C/2 times as much",
        measure=switches,
    ),
    Claim(
        number=14,
        claim="fewer switches cost more",
        theorem="Theorem 8",
        criterion="the excess under each cap is more than 2 standard errors on the paper's instances",
        measure=fewer_switches,
        conditions=(Condition(theorem="Theorem 8", quantity="ln T", needed=960.0, run=math.log(10**5)),),
    ),
    Claim(
        number=15,
        claim="on adversarial contexts batches fail where rare switches do not",
        theorem="Table 1",
        criterion="more than 5 times the regret",
        measure=batches_fail,
    ),
    Claim(
        number=16,
        claim="agents share M batches in time T/A + M at the regret of one; with switches, at M·A more",
        theorem="the implications for collaborative and concurrent learning in Section 1",
        criterion="regret equal up to rounding, rounds and time as stated; policies and excess within their bounds",
        measure=many_agents,
    ),
)
