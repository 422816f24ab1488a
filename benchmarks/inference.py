"""Inference: whether intervals hold, logs that cannot answer are refused, wrong propensities are found, gates keep.

All rules were chosen on seeds from 1000 to 9999; report on the others, from 0 or from 10,000 on.
"""

import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import rareswitch
from harness import NOTHING, Case, FloatArray, IntArray, Row, Setup, main
from rareswitch import Always
from rareswitch.core import BoolArray, ContextSets, Stats, uniforms
from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.evaluation import effects, lift_of
from rareswitch.evaluation.calibration import THRESHOLD, ArmTally
from rareswitch.evaluation.questions import Settings, question_of
from rareswitch.evaluation.scoring import Columns, row_scores, score
from rareswitch.experiment import Gate, create
from rareswitch.experiment.gate import judge
from rareswitch.lab import FROM_FILES, SUITES, left_out, world_at
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Foresight, Learner, certified_cost
from rareswitch.policy import Blend, MinPropensity, Policy, PosteriorDraws

Generator = np.random.Generator


def drawn(probabilities: FloatArray, rng: Generator) -> IntArray:
    """An arm of each row."""
    coins = rng.random(len(probabilities)) * probabilities.sum(axis=1)
    return np.asarray((coins[:, None] >= probabilities.cumsum(axis=1)).sum(axis=1).clip(max=probabilities.shape[1] - 1))


def rate_row(what: str, hits: int, count: int, *, asked: bool = True, more: str = "") -> Row:
    """How often 95 % intervals held; at least 95 % less three standard errors is asked for."""
    least = 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / max(1, count))
    share = hits / count if count else math.nan
    return Row(
        what=what,
        measured=f"{share:.1%} of {count:,} hold" if count else "none answered",
        ratio=more,
        must=(f"{least:.1%}", share >= least) if asked and count else NOTHING,
    )


def adaptive_log(world: World, seed: int, learner: Learner, share: float) -> DecisionLog:
    """The log of a run of which a floor spreads a share of the decisions over all arms; the last is the baseline."""
    state = learner.begin(min_propensity=MinPropensity(least=share / world.arms))
    parts, policies = list[tuple[Any, ...]](), list[Policy]()
    while not state.done:
        count, start = state.stop - state.start, state.start
        rounds = world.draw(count, seed=seed, first=start)
        decided = state.policy.decide(rounds.contexts, ids=range(start, state.stop), seed=seed)
        rewards = world.rewards(rounds.means[np.arange(count), decided.arms], seed=seed, first=start)
        parts.append((decided.arms, decided.propensities, rewards, rounds.contexts, np.full(count, len(policies))))
        policies.append(state.policy)
        log = DecisionLog.of(rounds.contexts, decided, rewards)
        summary = learner.summarize(state, log.without_offers())
        if learner.sample_size(state):  # planned with 30 context sets: 200 would take most of the time
            summary = replace(summary, sample=learner.summarize(state, log.select(slice(30))).sample)
        state = learner.next(state, summary)
    return log_of(parts, policies, baseline=world.arms - 1)


def log_of(parts: list[tuple[Any, ...]], policies: list[Policy], *, baseline: int | None = None) -> DecisionLog:
    """A log of batches whose policies are at hand: arms, propensities, rewards, contexts and number of each."""
    arms, propensities, rewards, contexts, batches = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = tuple(f"{policy.id[:16]}-{k}" for k, policy in enumerate(policies))
    return DecisionLog(
        arm_indices=arms,
        propensities=propensities,
        rewards=rewards,
        contexts=contexts,
        baselines=None if baseline is None else np.full(len(arms), baseline),
        batches=batches,
        batch_names=names,
        policies=dict(zip(names, policies, strict=True)),
    )


def soft_max(contexts: FloatArray, available: Any = None, *, theta: FloatArray) -> FloatArray:
    odds = contexts @ theta
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def candidates_of(world: World, seed: int) -> dict[str, Any]:
    """Four that have not seen the log: the pilot is of rounds that no log has."""
    count, first = 400, 5_000_000
    rounds, at = world.draw(count, seed=seed, first=first), np.arange(count)
    arms = np.floor(uniforms(seed, "pilot", 0, count)[:, 0] * world.arms).astype(np.int64)
    x = rounds.contexts[at, arms]
    rewards = world.rewards(rounds.means[at, arms], seed=seed, first=first)
    theta = np.asarray(np.linalg.solve(np.eye(world.dim) + x.T @ x, x.T @ rewards), dtype=np.float64)
    spread = float((rounds.contexts @ theta).std()) or 1.0
    return {
        "uniform": "uniform",
        "greedy": Policy(dim=world.dim, sampler=PosteriorDraws(draws=theta[None])),
        "soft-max": partial(soft_max, theta=2.0 * theta / spread),
        "always the first": Always("0"),
    }


def truth_of(world: World, candidate: Any, seed: int, *, rows: slice = slice(20_000)) -> float:
    """What a candidate earns, over rounds that nobody has seen."""
    rounds = world.draw(rows.stop - (rows.start or 0), seed=seed, first=10_000_000 + (rows.start or 0))
    if isinstance(candidate, Always):
        return float(rounds.means[:, int(candidate.arm)].mean())
    if candidate == "uniform":
        return float(rounds.means.mean())
    chances = candidate.probabilities(rounds.contexts) if isinstance(candidate, Policy) else candidate(rounds.contexts)
    return float((chances * rounds.means).sum(axis=1).mean())


def truth_of_log(world: World, log: DecisionLog, seed: int) -> float:
    """What the policies of a log earn with their traffic: each on its share of the rounds that nobody has seen."""
    counts = np.rint(20_000 * np.bincount(log.batches) / len(log)).astype(int)
    starts = np.cumsum(counts) - counts
    parts = zip(log.batch_names, starts.tolist(), counts.tolist(), strict=True)
    truths = [truth_of(world, log.policies[name], seed, rows=slice(at, at + count)) for name, at, count in parts]
    return float(np.average(truths, weights=counts))


def as_one_sample(log: DecisionLog, candidates: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """The intervals of SNIPS as if all rows were independent and alike, of batches that answer: to compare with."""
    scores = score(log, candidates)
    for name in candidates:
        question = question_of(scores, name, settings=Settings())
        if not question.reasons:
            parts = [question.columns[batch] for batch in question.able]
            rows = row_scores("snips", Columns(*map(np.concatenate, zip(*parts, strict=True))))
            middle, half = float(rows.mean()), 1.96 * float(rows.std(ddof=1)) / math.sqrt(len(rows))
            yield name, middle - half, middle + half


#: What was asked, whether the interval holds, and its width.
Answer = tuple[str, bool, float]
ASKED = ("value", "gain", "lift")
NAIVE = "value, all rows as one sample (SNIPS)"


def answers_of(
    log: DecisionLog, candidates: dict[str, Any], values: dict[str, float], earned: float, baseline: float
) -> list[Answer]:
    """Of every answer on a log, with the truth at hand; of values by other intervals, too."""
    evaluation = rareswitch.evaluate(log, candidates, simultaneous=False)  # each is counted by itself
    intervals = [("lift", earned - baseline, evaluation.lift[0].interval)]
    for value, gain in zip(evaluation.values, evaluation.gains, strict=True):
        truth = values[value.candidate]
        intervals += [("value", truth, value.interval), ("gain", truth - earned, gain.interval)]
        intervals += [(f"value, {kind}", truth, value.others.get(kind)) for kind in ("ips", "snips")]
    ends = [(what, truth, i.low, i.high) for what, truth, i in intervals if i is not None]
    ends += [(NAIVE, values[name], low, high) for name, low, high in as_one_sample(log, candidates)]
    return [(what, bool(low <= truth + 1e-12 and truth - 1e-12 <= high), high - low) for what, truth, low, high in ends]


def coverage(runs: dict[str, list[list[Answer]]], candidates: Callable[[str], int]) -> Iterator[Row]:
    """How often intervals hold: of all kinds of logs together, by what was asked, and of each."""
    every = [answer for logs in runs.values() for log in logs for answer in log]
    for what in dict.fromkeys(what for what, _, _ in every):
        hits = [holds for kind, holds, _ in every if kind == what]
        yield rate_row(f"95 % intervals: {what}", sum(hits), len(hits), asked=what in ASKED)
    held = [holds for what, holds, _ in every if what in ASKED]
    within = 0.94 * len(held) <= sum(held) <= 0.97 * len(held)
    yield Row(
        what="values, gains and lifts together",
        measured=f"{np.mean(held):.1%} of {len(held):,} hold",
        must=("94 to 97 %", bool(within)),
    )
    for name, logs in runs.items():
        answers = [answer for log in logs for answer in log]
        rates = [(what, [holds for kind, holds, _ in answers if kind == what]) for what in ASKED]
        held = [holds for _, hits in rates for holds in hits]
        asked = (1 + 2 * candidates(name)) * len(logs)
        yield Row(
            what=name,
            measured=", ".join(f"{what}s {np.mean(hits):.1%}" for what, hits in rates if hits)
            + f" hold; {len(held):,} of {asked:,} answered",
            ratio=f"{width(answers) / width(answers, NAIVE):.2f}× i.i.d. SNIPS" if width(answers) else "",
            must=("at least 91 %", float(np.mean(held)) >= 0.91) if held else NOTHING,
        )


def width(answers: Sequence[Answer], what: str = "value") -> float:
    """The median width of intervals; 0 where there are none."""
    widths = [width for kind, _, width in answers if kind == what]
    return float(np.median(widths)) if widths else 0.0


def value_run(name: str, seed: int, data: str | None, tables: str | None) -> list[Answer]:
    """Of every answer on the log of an adaptive run."""
    sized = name not in FROM_FILES
    world = (
        make_world(name, dim=8, arms=6, noise=0.5) if sized else world_at(name, {"data": data, "tables": tables})(3000)
    )
    candidates = candidates_of(world, seed)
    log = adaptive_log(world, seed, Foresight(dim=world.dim, horizon=3000, policies=8), 0.3)
    truths = {candidate: truth_of(world, candidates[candidate], seed) for candidate in candidates}
    baseline = truth_of(world, Always(str(world.arms - 1)), seed)
    return answers_of(log, candidates, truths, truth_of_log(world, log, seed), baseline)


def values(setup: Setup) -> Iterator[Row]:
    """Four candidates and a baseline, in logs of foresight with 8 policies over 3,000 decisions."""
    names = (*SUITES["ten"].worlds, "phishing", "diamonds", "cracker")
    names = tuple(name for name in names if not left_out([name], setup.folders))[: setup.pick(100, 2)]
    folders = (setup.folders["data"], setup.folders["tables"])
    runs = {name: setup.map(value_run, [(name, seed, *folders) for seed in setup.seeds]) for name in names}
    yield from coverage(runs, lambda name: 4)


class Kind(NamedTuple):
    """A log of policies that learn what arms earn in each of four segments of contexts."""

    #: ``normal``, ``lognormal`` or ``t3`` where 5 % buy; or the rate of clicks.
    rewards: str | float = "normal"
    #: Decisions by batch.
    sizes: tuple[int, ...] = (1000,) * 6
    #: What every arm is shown with at least, by batch.
    least: tuple[float, ...] = (1 / 3, 0.1, 0.1, 0.1, 0.1, 0.1)
    #: What all arms earn more in each later batch, and σ of each arm.
    drift: float = 0.0
    noise: tuple[float, float, float] = (1.0, 1.0, 1.0)
    #: The batch from which the last arm is no longer offered; the share of rewards that never come, by segment.
    dropped: int = 99
    missing: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    #: Which candidates are asked for.
    asked: tuple[str, ...] = ("uniform", "always 0", "by segment", "last")


FLOOR = (1 / 3, *(0.01,) * 5)
KINDS = {
    "lognormal revenue, 5 % buyers": Kind("lognormal"),
    "t3 revenue, 5 % buyers": Kind("t3"),
    "clicks, 1 %": Kind(0.01, (3000,) * 6),
    "clicks, 0.3 %": Kind(0.003, (10_000,) * 6),
    "drift of means": Kind(drift=0.3),
    "an arm dropped": Kind(dropped=3),
    "unequal batches, 1 : 16": Kind(sizes=(200, 400, 800, 1600, 3200), least=(1 / 3, *(0.1,) * 4)),
    "minimum propensity 0.01 after an exploring batch": Kind(least=FLOOR),
    "deterministic candidates, clicks, 10 %": Kind(0.1, asked=("always 0", "by segment")),
    "last learned policy, minimum propensity 0.01": Kind(least=FLOOR, asked=("last",)),
    "heteroscedastic noise": Kind(noise=(0.2, 1.0, 4.0)),
    "missing rewards": Kind(missing=(0.0, 0.1, 0.3, 0.6)),
}


class KindLog(NamedTuple):
    """A log, with what is true of it."""

    log: DecisionLog
    #: By name: a function of contexts and available to probabilities, and its value.
    candidates: dict[str, Any]
    values: dict[str, float]
    #: What was earned, and what the baseline would have, a decision.
    earned: float
    baseline: float


def drawn_rewards(kind: Kind, means: FloatArray, arms: IntArray, rng: Generator) -> FloatArray:
    """Of these means, whose mean over arms and segments is about 1 or, of clicks, the rate."""
    if isinstance(kind.rewards, float):
        return (rng.random(len(means)) < means).astype(np.float64)
    if kind.rewards == "normal":
        return np.asarray(means + np.array(kind.noise)[arms] * rng.normal(size=len(means)))
    baskets = np.exp(1.3 * rng.normal(size=len(means)) - 1.3**2 / 2.0)
    if kind.rewards == "t3":
        baskets = 1.0 + 0.5 * rng.standard_t(3, size=len(means))
    return np.asarray(20.0 * means * baskets * (rng.random(len(means)) < 0.05))


def by_segment(contexts: FloatArray, available: Any = None, *, chances: FloatArray) -> FloatArray:
    """Of a table (segments, arms); what is not offered is shared out."""
    offered = chances[contexts[:, 0, :4].argmax(axis=1)]
    if available is not None:
        offered = np.where(available, offered, 0.0) + 1e-300 * available
    return np.asarray(offered / offered.sum(axis=1, keepdims=True))


def kind_log(kind: Kind, seed: int) -> KindLog:
    """Policies that show the arm that did best so far in a segment, four times in five, within the floor."""
    rng = np.random.default_rng([seed, zlib.crc32(repr(kind).encode())])
    base = kind.rewards if isinstance(kind.rewards, float) else 1.0
    means = base * (1.0 + 0.5 * rng.uniform(-1.0, 1.0, size=(4, 3)))
    baselines, fixed = rng.integers(2, size=4), np.eye(3)[rng.integers(3, size=4)]
    sums, counts, parts = np.zeros((4, 3)), np.full((4, 3), 1e-9), list[tuple[Any, ...]]()
    offered, total = list[BoolArray](), sum(kind.sizes)
    asked = {"uniform": np.full((4, 3), 1 / 3), "always 0": np.tile([1.0, 0.0, 0.0], (4, 1)), "by segment": fixed}
    truths, learned = list[tuple[FloatArray, FloatArray, float]](), np.full((4, 3), 1 / 3)
    for batch, (size, least) in enumerate(zip(kind.sizes, kind.least, strict=True)):
        may = np.array([True, True, batch < kind.dropped])
        if batch:
            learned = np.eye(3)[np.where(may, sums / counts, -np.inf).argmax(axis=1)]
        chances = np.where(may, least + (1.0 - may.sum() * least) * learned, 0.0)
        segments, now = rng.integers(4, size=size), means + kind.drift * batch
        arms = drawn(chances[segments], rng)
        rewards = drawn_rewards(kind, now[segments, arms], arms, rng)
        known = rng.random(size) >= np.array(kind.missing)[segments]
        np.add.at(sums, (segments[known], arms[known]), rewards[known])
        np.add.at(counts, (segments[known], arms[known]), 1.0)
        truths.append((now, chances, size / total))
        offered.append(np.tile(may, (size, 1)))
        parts.append((segments, arms, np.where(known, rewards, np.nan), chances[segments], np.full(size, batch)))
    asked["last"] = truths[-1][1]
    segments, arms, rewards, logging, batches = (np.concatenate(column) for column in zip(*parts, strict=True))
    contexts, rows = np.zeros((total, 3, 16)), np.arange(total)
    contexts[rows, :, segments] = 1.0
    for arm in range(3):
        contexts[rows, arm, 4 + 3 * segments + arm] = 1.0
    log = DecisionLog(
        arm_indices=arms,
        propensities=logging[rows, arms],
        rewards=rewards,
        contexts=contexts,
        available=np.concatenate(offered),
        behavior_probs=logging,
        baselines=baselines[segments],
        batches=batches,
        batch_names=tuple(map(str, range(len(kind.sizes)))),
    )
    present = 1.0 - np.array(kind.missing)

    def truth(table: FloatArray | None) -> float:
        """Over decisions that have a reward."""
        earned = 0.0
        for batch, (now, logged, share) in enumerate(truths):
            may = np.array([1.0, 1.0, float(batch < kind.dropped)])
            own = logged if table is None else table * may + 1e-300
            own = own / own.sum(axis=1, keepdims=True)
            earned += share * float(np.average((own * now).sum(axis=1), weights=present))
        return earned

    return KindLog(
        log=log,
        candidates={name: partial(by_segment, chances=asked[name]) for name in kind.asked},
        values={name: truth(asked[name]) for name in kind.asked},
        earned=truth(None),
        baseline=truth(np.eye(3)[baselines]),
    )


def kind_run(name: str, seed: int) -> list[Answer]:
    """Of every answer on a log of a kind."""
    log, candidates, values, earned, baseline = kind_log(KINDS[name], seed)
    return answers_of(log, candidates, values, earned, baseline)


def kinds(setup: Setup) -> Iterator[Row]:
    """Values, gains and lifts in logs of twelve kinds, each looked at once."""
    names = list(KINDS)[: setup.pick(12, 2)]
    runs = {name: setup.map(kind_run, [(name, seed) for seed in setup.seeds]) for name in names}
    yield from coverage(runs, lambda name: len(KINDS[name].asked))


LOOKS = {
    "clicks, 10 %, 20 × 100": Kind(0.1, (100,) * 20, (1 / 3, *(0.1,) * 19)),
    "lognormal revenue, 5 % buyers, 6 × 1,500": Kind("lognormal", (1500,) * 6),
}


def look_run(name: str, seed: int) -> list[bool]:
    """Whether intervals were ever wrong while a log grew, and whether those for every look contain the one for one."""
    made = kind_log(LOOKS[name], seed)
    wrong, contains, answered = [False, False], True, False
    for look in range(len(LOOKS[name].sizes)):
        part = made.log.select(made.log.batches <= look)
        asked = {"by segment": made.candidates["by segment"]}
        value = rareswitch.evaluate(part, asked, anytime=True)["by segment"]
        if value.interval is None:
            continue
        answered = True
        often, once = value.interval, value.others["dr"]  # those of the estimators are for one look
        truth = made.values["by segment"]  # the same at all looks: nothing drifts
        contains &= often.low <= once.low and once.high <= often.high
        wrong = [bad or not i.low <= truth <= i.high for bad, i in zip(wrong, (often, once), strict=True)]
    return [*wrong, contains, answered]


def anytime(setup: Setup) -> Iterator[Row]:
    """Intervals that are looked at after each batch."""
    for name in LOOKS:
        runs = np.array(setup.map(look_run, [(name, seed) for seed in setup.seeds]))
        answered = int(runs[:, 3].sum())
        often, once, contains, _ = runs[runs[:, 3]].mean(axis=0)
        yield Row(
            what=f"{name}: logs in which an interval is ever wrong",
            measured=f"anytime {often:.2%}, for one look {once:.1%}; of {answered:,} that are ever answered",
            must=("anytime at most 5 %", bool(often <= 0.05)),
        )
        yield Row(
            what=f"{name}: contain the interval for one look",
            measured=f"{contains:.1%}",
            must=("all", bool(contains == 1.0)),
        )


class Effect(NamedTuple):
    """Arms whose rewards are alike, the hard case: which of them is shown hangs on luck."""

    levels: tuple[float, ...]
    #: σ of each arm; None: clicks.
    noise: tuple[float, ...] | None
    #: ``greedy`` or ``thompson`` with a fifth of uniform exploration, or ``foresight``.
    learner: str
    batches: int = 10
    length: int = 400


EFFECTS = {
    "2 arms alike, Thompson": Effect((0.0, 0.0), (1.0, 1.0), "thompson"),
    "2 arms alike, σ = 0.3 and 2, greedy": Effect((0.0, 0.0), (0.3, 2.0), "greedy"),
    "2 arms alike, 5 % click, greedy": Effect((0.05, 0.05), None, "greedy"),
    "3 arms, the last one better, foresight": Effect((0.0, 0.0, 0.1), (1.0, 1.0, 1.0), "foresight", 8, 500),
}


def effect_run(name: str, seed: int) -> dict[str, Any]:
    """Whether our interval and a naive one hold, and whether two random halves are said to differ."""
    effect = EFFECTS[name]
    dim, rng = len(effect.levels), np.random.default_rng([seed, len(effect.levels), effect.batches])
    learner = Foresight(dim=dim, grid=[effect.length * (k + 1) for k in range(effect.batches)], seed=seed)
    state, policy, total = learner.begin(), Policy(dim=dim, sampler=Uniform()), Stats.zero(dim)
    parts, policies = list[tuple[Any, ...]](), list[Policy]()
    contexts = np.broadcast_to(np.eye(dim), (effect.length, dim, dim))
    for batch in range(effect.batches):
        policy = state.policy if effect.learner == "foresight" else policy
        ids = range(batch * effect.length, (batch + 1) * effect.length)
        decided = policy.decide(contexts, ids=ids, seed=seed)
        mean = np.array(effect.levels)[decided.arms]
        rewards = (rng.random(len(mean)) < mean).astype(np.float64)
        if effect.noise is not None:
            rewards = mean + np.array(effect.noise)[decided.arms] * rng.normal(size=len(mean))
        parts.append((decided.arms, decided.propensities, rewards, contexts, np.full(len(mean), batch)))
        policies.append(policy)
        if effect.learner == "foresight":
            state = learner.next(state, learner.summarize(state, DecisionLog.of(contexts, decided, rewards)))
            continue
        total = total + Stats.of(np.eye(dim)[decided.arms], rewards)
        draws = total.estimate(ridge=1.0)[None]
        if effect.learner == "thompson":
            root = np.linalg.cholesky(np.linalg.inv(total.gram + np.eye(dim)))
            draws = draws + rng.normal(size=(500, dim)) @ root.T
        sampler = Blend(main=PosteriorDraws(draws=draws), explorer=Uniform(), share=0.2)
        policy = Policy(dim=dim, sampler=sampler, edition=batch + 1)
    log = log_of(parts, policies)
    interval, truth = effects(log, 0, 1).effects[0].interval, effect.levels[0] - effect.levels[1]
    first, second = (log.rewards[log.arm_indices == arm] for arm in (0, 1))
    half = 1.96 * math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    halves = effects(log, 0, 1, by=np.where(np.arange(len(log)) % 2, "even", "odd")).differ
    return {
        "ours": None if interval is None else bool(interval.low <= truth <= interval.high),
        "naive": bool(abs(first.mean() - second.mean() - truth) <= half),
        "differ": None if halves is None else bool(halves.p_value < 0.05),
    }


def effect_coverage(setup: Setup) -> Iterator[Row]:
    """Effects of one arm in place of another in logs of policies that learn, beside two means as one sample."""
    for name in list(EFFECTS)[: setup.pick(4, 2)]:
        runs = setup.map(effect_run, [(name, seed) for seed in setup.seeds])
        hits, naive = [run["ours"] for run in runs if run["ours"] is not None], [run["naive"] for run in runs]
        yield rate_row(name, sum(hits), len(hits), more=f"naive {np.mean(naive):.1%} of {len(naive)}")
        differ = [run["differ"] for run in runs if run["differ"] is not None]
        if differ:
            most = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / len(differ))
            yield Row(
                what=f"{name}: said to differ between two random halves, at 5 %",
                measured=f"{sum(differ)} of {len(differ)}",
                must=(f"at most {most:.1%}", sum(differ) <= most * len(differ)),
            )


class Asked(NamedTuple):
    """A log and a candidate; rules are words with a number."""

    candidate: str
    #: Of each batch, rule and decisions.
    batches: tuple[tuple[str, int], ...]
    arms: int = 5
    #: Whether the probabilities of all arms are in the log.
    known: bool = True
    clicks: bool = False


REFUSED = (
    *(Asked("uniform", (("greedy", 5000),), known=known) for known in (True, False)),
    Asked("worst", (("greedy", 5000),)),
    Asked("epsilon 0.1", (("greedy", 20_000),)),
    Asked("softmax 0.3", (("greedy", 2000),) * 3),
    *(Asked("always 1", (("always 0", 3000),), 2, known) for known in (True, False)),
    *(Asked("uniform", (("top 9", 5000),), 10, known) for known in (True, False)),
    *(Asked("always 5", (("first 4", 5000),), 6, known) for known in (True, False)),
    *(Asked("uniform", (("first 19", 20_000),), 20, known) for known in (True, False)),
    *(Asked("uniform", (("half", 5000),), known=known) for known in (True, False)),
    Asked("worst", (("top 4", 4000), ("top 3", 4000), ("top 2", 4000))),
    Asked("worst", (("epsilon 0.001", 5000),), 10),
    *(Asked("worst", (("epsilon 0.01", 5000),), 10, known) for known in (True, False)),
    Asked("uniform", (("epsilon 0.0001", 20_000),)),
    Asked("worst", (("softmax 0.05", 5000),)),
    Asked("uniform", (("uniform", 30),), 2),
    Asked("greedy", (("uniform", 1),), 2),
    Asked("always 7", (("uniform", 300),), 20),
    Asked("worst", (("uniform", 60),) * 4, 10),
    Asked("uniform", (("uniform", 60), ("greedy", 5000))),
)
ANSWERED = (
    *(Asked("greedy", (("uniform", 2000),), known=known) for known in (True, False)),
    Asked("worst", (("uniform", 4000),), clicks=True),
    *(Asked("always 3", (("uniform", 3000),), 10, known, not known) for known in (True, False)),
    Asked("softmax 0.3", (("uniform", 500),)),
    Asked("uniform", (("uniform", 150),), 2),
    Asked("uniform", (("uniform", 50),) * 4, 2),
    Asked("greedy", (("greedy", 500),)),
    Asked("greedy", (("epsilon 0.1", 300),)),
    *(Asked("uniform", (("epsilon 0.2", 5000),), known=known) for known in (True, False)),
    Asked("worst", (("epsilon 0.1", 40_000),), clicks=True),
    Asked("other", (("epsilon 0.3", 10_000),), 10),
    Asked("other", (("softmax 3", 3000),)),
    *(Asked("top 2", (("top 4", 3000),), 10, known) for known in (True, False)),
    Asked("first 3", (("first 4", 2000),), 20),
    *(Asked("uniform", (("uniform", 1000), ("greedy", 5000)), known=known) for known in (True, False)),
    Asked("worst", (("uniform", 1000), ("epsilon 0.2", 5000), ("top 2", 5000))),
    Asked("greedy", (("uniform", 100), ("softmax 0.5", 300), ("epsilon 0.2", 900))),
    Asked("softmax 0.3", (("softmax 0.5", 250),) * 8, clicks=True),
    Asked("epsilon 0.1", (("epsilon 0.2", 1000),) * 3, 20),
    Asked("half", (("half", 1000),)),
    Asked("softmax 0.3", (("softmax 0.3", 10_000),), 10),
    Asked("uniform", (("epsilon 0.1", 10_000), ("epsilon 0.05", 10_000)), 10),
)


def rule_of(rule: str, contexts: FloatArray, seed: int) -> FloatArray:
    """(n, K) the probabilities of a rule by the scores of an imperfect model."""
    word, _, number = rule.partition(" ")
    theta, noise, other = np.random.default_rng([seed, 1]).normal(size=(3, 4))
    scores = contexts @ (theta + (1.5 * other if word == "other" else 0.5 * noise)) * (-1.0 if word == "worst" else 1.0)
    count, arms = scores.shape
    best, uniform = np.eye(arms)[scores.argmax(axis=1)], np.full((count, arms), 1.0 / arms)
    size = float(number or 1.0)
    rules: dict[str, Callable[[], Any]] = {
        "uniform": lambda: uniform,
        "always": lambda: np.tile(np.eye(arms)[int(size)], (count, 1)),
        "epsilon": lambda: (1.0 - size) * best + size * uniform,
        "softmax": lambda: soft_max(contexts, theta=(theta + 0.5 * noise) / size),
        "top": lambda: (scores.argsort(axis=1).argsort(axis=1) >= arms - size) / size,
        "first": lambda: np.tile(np.arange(arms) < size, (count, 1)) / size,
        "half": lambda: np.where(contexts[:, :1, 0] > 0.0, uniform, best),
    }
    return np.asarray(rules.get(word, lambda: best)())


def asked_run(refused: bool, number: int, seed: int) -> list[bool | None]:
    """Whether a case is answered, and whether the interval holds; the world is linear, or clicks."""
    asked = (REFUSED if refused else ANSWERED)[number]
    theta = np.random.default_rng([seed, 1]).normal(size=(3, 4))[0]

    def traffic(count: int, stream: int) -> tuple[FloatArray, FloatArray]:
        contexts = np.random.default_rng([seed, 2, stream]).normal(size=(count, asked.arms, 4))
        contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
        scores = contexts @ theta
        return contexts, 0.1 + 0.05 * np.tanh(scores) if asked.clicks else scores

    parts = []
    for batch, (rule, count) in enumerate(asked.batches):
        contexts, means = traffic(count, batch)
        chances, rng = rule_of(rule, contexts, seed), np.random.default_rng([seed, 3, batch])
        arms = drawn(chances, rng)
        mean = means[np.arange(count), arms]
        rewards = (rng.random(count) < mean) * 1.0 if asked.clicks else mean + 0.3 * rng.normal(size=count)
        parts.append((contexts, chances, arms, rewards, np.full(count, batch)))
    contexts, chances, arms, rewards, batches = (np.concatenate(column) for column in zip(*parts, strict=True))
    log = DecisionLog(
        arm_indices=arms,
        propensities=chances[np.arange(len(arms)), arms],
        rewards=rewards,
        contexts=contexts,
        arms=tuple(map(str, range(asked.arms))),
        behavior_probs=chances if asked.known else None,
        batches=batches,
        batch_names=tuple(f"policy {k}" for k in range(len(asked.batches))),
    )
    interval = rareswitch.evaluate(log, {"candidate": rule_of(asked.candidate, contexts, seed)})["candidate"].interval
    if interval is None or refused:
        return [interval is not None, None]
    fresh, means = traffic(100_000, 1000)
    truth = float((rule_of(asked.candidate, fresh, seed) * means).sum(axis=1).mean())
    return [True, bool(interval.low <= truth <= interval.high)]


def refusals(setup: Setup) -> Iterator[Row]:
    """Logs that cannot answer are refused, logs that can are answered, and the intervals hold."""
    for refused, cases in ((True, REFUSED), (False, ANSWERED)):
        chosen = range(len(cases))[: setup.pick(100, 6)]
        runs = {k: setup.map(asked_run, [(refused, k, seed) for seed in setup.seeds]) for k in chosen}
        right = {k: sum(answered != refused for answered, _ in logs) for k, logs in runs.items()}
        wrong = [f"{cases[k].candidate} from {cases[k].batches}" for k in chosen if right[k] < len(setup.seeds)]
        yield Row(
            what=f"cases that {'cannot' if refused else 'can'} be answered: {'refused' if refused else 'answered'}",
            measured=f"{len(chosen) - len(wrong)} of {len(chosen)} with each of {len(setup.seeds)} seeds",
            ratio="; ".join(wrong),
            must=("all", not wrong),
        )
    held = [hold for logs in runs.values() for _, hold in logs if hold is not None]
    yield rate_row("95 % intervals of those that are answered", sum(held), len(held))


def propensities_of(kind: str, count: int, arms: int, rng: Generator) -> list[tuple[FloatArray, IntArray]]:
    """Honest logs: batches of probabilities and chosen arms; two kinds learn in between."""
    if kind in ("soft-max", "greedy"):
        means, sums, counts, parts = rng.normal(size=arms) / 2.0, np.zeros(arms), np.ones(arms), []
        for part in np.array_split(np.arange(count), 8):
            powers = np.exp(5.0 * (sums / counts - (sums / counts).max()))
            best = np.where(np.arange(arms) == (sums / counts).argmax(), 0.9, 0.0) + 0.1 / arms
            chances = np.tile(powers / powers.sum() if kind == "soft-max" else best, (len(part), 1))
            chosen = drawn(chances, rng)
            sums += np.bincount(chosen, means[chosen] + rng.normal(size=len(part)), minlength=arms)
            counts += np.bincount(chosen, minlength=arms)
            parts.append((chances, chosen))
        return parts
    available = rng.random((count, arms)) < 0.6
    available[:, 0] |= ~available.any(axis=1)
    rules: dict[str, Callable[[], Any]] = {
        "uniform": lambda: np.full((count, arms), 1.0 / arms),
        "shares": lambda: np.tile(rng.dirichlet(np.ones(arms)), (count, 1)),
        "rare": lambda: np.tile([1.0 - 0.003 * (arms - 1), *[0.003] * (arms - 1)], (count, 1)),
        "by context": lambda: rng.dirichlet(np.ones(arms), count),
        "peaked": lambda: rng.dirichlet(np.full(arms, 0.1), count),
        "eliminating": lambda: available / available.sum(axis=1, keepdims=True),
    }
    chances = np.asarray(rules[kind]())
    return [(chances, drawn(chances, rng))]


def alarms(recorded: Sequence[FloatArray], chosen: Sequence[IntArray]) -> list[bool]:
    """Of the sample-ratio check, with the probabilities of all arms, and with those of the chosen ones alone."""
    tallies, names = (ArmTally(), ArmTally()), tuple(f"policy {k}" for k in range(len(chosen)))
    for k, (chances, arms) in enumerate(zip(recorded, chosen, strict=True)):
        log = DecisionLog(
            arm_indices=arms,
            propensities=chances[np.arange(len(arms)), arms],
            rewards=np.zeros(len(arms)),
            available=np.ones(chances.shape, dtype=np.bool_),
            batches=np.full(len(arms), k),
            batch_names=names,
        )
        tallies[0].add(log, chances)
        tallies[1].add(log)
    return [check is not None and check.alarm for check in (tally.calibration() for tally in tallies)]


def honest_run(kind: str, arms: int, count: int, seed: int) -> list[bool]:
    """Alarms on one honest log."""
    parts = propensities_of(kind, count, arms, np.random.default_rng([seed, arms, count, len(kind)]))
    return alarms([chances for chances, _ in parts], [chosen for _, chosen in parts])


def off_run(arms: int, share: float, seed: int) -> list[bool]:
    """Alarms where one arm comes a tenth more or less often than its propensity, over 5,000 decisions."""
    rng, factor = np.random.default_rng([seed, arms, round(1000 * share)]), 1.1 if seed % 2 else 0.9
    right, wrong = (
        np.tile([own, *[(1.0 - own) / (arms - 1)] * (arms - 1)], (5000, 1)) for own in (share, factor * share)
    )
    return alarms([right], [drawn(wrong, rng)])


def sample_ratio(setup: Setup) -> Iterator[Row]:
    """The sample-ratio check: alarms on honest logs, and one arm that is off by a tenth."""
    kinds = ("uniform", "shares", "rare", "by context", "peaked", "eliminating", "soft-max", "greedy")
    jobs = [(k, arms, n, s) for k in kinds for arms in (2, 5, 20) for n in (200, 5000) for s in setup.seeds]
    honest = np.array(setup.map(honest_run, jobs))
    for column, what in enumerate(("all arms' probabilities", "the chosen arm's alone")):
        rate = honest[:, column].mean()
        measured = f"{int(honest[:, column].sum())} of {len(honest):,} ({rate:.2%})"
        yield Row(what=f"honest logs, {what}: alarms", measured=measured, must=("at most 1 %", bool(rate <= THRESHOLD)))
    for arms, share in ((2, 0.5), (3, 1 / 3), (5, 0.4), (5, 0.2), (10, 0.5), (10, 0.3), (20, 0.3)):
        found = np.array(setup.map(off_run, [(arms, share, seed) for seed in setup.seeds])).mean(axis=0)
        # what no test with 1 % false alarms can exceed: that of one who knows which arm is off, and in which direction
        best = float(special.ndtr(0.1 * math.sqrt(5000 * share / (1.0 - share)) + special.ndtri(THRESHOLD)))
        yield Row(
            what=f"{arms} arms, one of share {share:.2g} off by 10 %",
            measured=f"found with all probabilities {found[0]:.0%}, with chosen ones {found[1]:.0%}",
            ratio=f"best possible {best:.0%}",
            must=("80 %", bool(found.min() >= 0.8)) if best >= 0.99 else NOTHING,
        )


#: Mean rewards of an arm by the cosine z of its angle to the true direction, and whether they are click rates.
GATE_WORLDS: dict[str, tuple[Callable[[FloatArray], FloatArray], bool]] = {
    "linear": (lambda z: 1.0 + z, False),
    "clicks, 5 %": (lambda z: 0.05 * (1.0 + 0.9 * z), True),
    "clicks, 95 %": (lambda z: 0.95 + 0.045 * z, True),
    "a step": (lambda z: np.where(z > 0.3, 0.7, 0.3), True),
}


def gate_policy(angle: float, rng: Generator) -> Policy:
    """One that follows a direction at this angle to the true one, the first axis, in 80 % of decisions."""
    side, radians = rng.standard_normal(3), math.radians(angle)
    direction = np.concatenate([[math.cos(radians)], math.sin(radians) * side / np.linalg.norm(side)])
    return Policy(dim=4, sampler=Blend(main=PosteriorDraws(draws=direction[None]), explorer=Uniform(), share=0.2))


def unit_sets(count: int, rng: Generator) -> FloatArray:
    vectors = rng.standard_normal((count, 5, 4))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=2, keepdims=True))


@cache
def gate_value(world: str, angle: float) -> float:
    """What a policy at this angle earns a decision."""
    rng = np.random.default_rng(99)
    sets = unit_sets(50_000, rng)
    means = GATE_WORLDS[world][0](sets[:, :, 0])
    return float((gate_policy(angle, rng).probabilities(sets) * means).sum(axis=1).mean())


@cache
def angle_of(world: str, times: float, angle: float) -> float:
    """The angle at which a policy earns so many times what the one at another angle does."""
    if times == 1.0:
        return angle
    low, high = 0.0, 180.0
    for _ in range(20):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gate_value(world, middle) > times * gate_value(world, angle) else (low, middle)
    return low


def gate_run(world: str, times: float, sizes: list[int], seed: int) -> bool:
    """Whether a candidate that earns so many times as much is promoted, at one of several looks."""
    mean, clicks = GATE_WORLDS[world]
    rng, angle = np.random.default_rng([seed, sizes[-1], list(GATE_WORLDS).index(world)]), 80.0 if times > 1.0 else 70.0
    incumbent = gate_policy(angle, rng)

    def log(count: int, key: int) -> DecisionLog:
        sets = unit_sets(count, rng)
        decided = incumbent.decide(sets, ids=range(count), seed=key)
        means = mean(sets[np.arange(count), decided.arms, 0])
        rewards = (rng.random(count) < means) * 1.0 if clicks else means + rng.standard_normal(count)
        of: dict[str, Any] = {"batch_names": (incumbent.id,), "policies": {incumbent.id: incumbent}, "contexts": sets}
        return DecisionLog(arm_indices=decided.arms, propensities=decided.propensities, rewards=rewards, **of)

    pilot = log(1500, seed + 1)
    assert pilot.features is not None
    theta = Stats.of(np.column_stack([pilot.features, np.ones(len(pilot))]), pilot.rewards).estimate(ridge=1.0)
    whole, look, candidate = log(sizes[-1], seed), 1, gate_policy(angle_of(world, times, angle), rng)
    settings: dict[str, Any] = {"incumbent": incumbent, "predict": lambda x: np.asarray(x @ theta[:-1] + theta[-1])}
    for count in sizes:
        report = judge(Gate(level=0.05), whole.select(slice(count)), candidate=candidate, look=look, **settings)
        if report.promoted:
            return True
        look += report.answered
        if seed % 2:  # what is learned changes from look to look, or it stays
            candidate = gate_policy(angle_of(world, times, angle), rng)
    return False


def useless_run(seed: int) -> bool:
    """Whether an experiment promotes a policy where all arms are worth the same."""
    rng, ids = np.random.default_rng(seed), range(1700)
    chosen: dict[str, Any] = {"dim": 4, "horizon": 50_000, "policies": 6, "schedule": "by hand"}
    with create("memory:", "noise", seed=seed, now=0.0, **chosen) as trial:
        trial.decide_many(unit_sets(len(ids), rng), ids=ids, now=0.0)
        trial.reward_many(ids, rng.standard_normal(len(ids)).tolist(), now=0.0)
        report = trial.advance(now=0.0, gate=Gate(level=0.05)).gate
        return report is not None and report.promoted


def gates(setup: Setup) -> Iterator[Row]:
    """How often a gate at 5 % lets a policy through that is no better, and the decisions that a better one takes."""
    worlds = list(GATE_WORLDS)
    looks = [round(600 * 1.2**look) for look in range(10)]
    wrong: dict[str, list[tuple[Any, ...]]] = {
        f"a candidate that earns {what}": [
            (worlds[seed % len(worlds)], times, tuple(sizes or [(600, 2000, 5000)[seed % 3]]), seed)
            for seed in setup.seeds
        ]
        for what, times, sizes in (
            ("5 % less", 0.95, []),
            ("the same, the hardest case", 1.0, []),
            ("the same, looked at ten times while the batch grows", 1.0, looks),
        )
    }
    runs = {what: setup.map(gate_run, jobs) for what, jobs in wrong.items()}
    seeds = [(seed,) for seed in setup.seeds]
    runs["nothing: whole experiments in which all arms are alike"] = setup.map(useless_run, seeds)
    for what, promoted in runs.items():
        yield Row(
            what=what,
            measured=f"{sum(promoted)} of {len(promoted)} promoted ({np.mean(promoted):.1%})",
            must=("at most 5 %", sum(promoted) <= 0.05 * len(promoted)),
        )
    for world in ("linear", "clicks, 5 %", "a step")[: setup.pick(3, 1)]:
        shares = {
            size: np.mean(setup.map(gate_run, [(world, 1.1, (size,), seed) for seed in setup.seeds[:60]]))
            for size in setup.pick((500, 1000, 2000, 5000, 10_000, 20_000, 50_000), (500, 5000))
        }
        text = ", ".join(f"{size:,} {share:.0%}" for size, share in shares.items())
        yield Row(what=f"{world}: a candidate that earns 10 % more, promoted by decisions held out", measured=text)


#: Decisions of the policies of an experiment with a holdout.
HOLDOUT_BATCHES = (200, 500, 1000, 2000)


def beside(sets: FloatArray) -> IntArray:
    """The baseline: the best arms for a direction at 60° to the true one."""
    return np.asarray((sets @ [0.5, math.sqrt(0.75), 0.0, 0.0]).argmax(axis=1))


def holdout_run(world: str, share: float, seed: int) -> list[float]:
    """Of an experiment with a holdout: whether the lift is answered and covered, its width, and ids that changed arm.

    What is covered is the lift that its policies have on fresh requests, each with its traffic.
    """
    mean, clicks = GATE_WORLDS[world]
    rng, fresh = np.random.default_rng(seed), unit_sets(20_000, np.random.default_rng(99))
    chosen: dict[str, Any] = {"dim": 4, "horizon": sum(HOLDOUT_BATCHES), "policies": 4, "schedule": "by hand"}
    start, truth, changed, usual = 0, 0.0, 0, beside(fresh)
    with create("memory:", "held", seed=seed, now=0.0, baseline=True, holdout=share, **chosen) as trial:
        for count in HOLDOUT_BATCHES:
            sets, ids = unit_sets(count, rng), range(start, start + count)
            named = beside(sets)
            choices = trial.decide_many(sets, ids=ids, baseline=named.tolist(), now=0.0)
            arms = np.array([choice.arm for choice in choices])
            held = np.array([choice.cohort == "holdout" for choice in choices])
            changed += int((arms != named)[held].sum())
            means = mean(sets[np.arange(count), arms, 0])
            rewards = (rng.random(count) < means) * 1.0 if clicks else means + rng.standard_normal(count)
            trial.reward_many(ids, rewards.tolist(), now=0.0)
            own = replace(trial.policy, holdout=None).probabilities(fresh, baseline=usual)
            earned = mean(fresh[:, :, 0])
            lift = (own * earned).sum(axis=1) - earned[np.arange(len(fresh)), usual]
            truth += count / sum(HOLDOUT_BATCHES) * float(lift.mean())
            start += count
            if start < sum(HOLDOUT_BATCHES):
                trial.advance(now=0.0, forecast=sum(HOLDOUT_BATCHES) - start)
        (whole, *_) = lift_of(trial)
    if whole.interval is None:
        return [0.0, 0.0, 0.0, changed]
    return [
        1.0,
        float(whole.interval.low <= truth <= whole.interval.high),
        whole.interval.high - whole.interval.low,
        changed,
    ]


def holdouts(setup: Setup) -> Iterator[Row]:
    """How often the lift against a holdout covers, and whether its ids ever changed arm by an update."""
    total: list[list[float]] = []
    for world in ("linear", "a step"):
        for share in (0.05, 0.1):
            runs = setup.map(holdout_run, [(world, share, seed) for seed in setup.seeds])
            answered = [run for run in runs if run[0]]
            total += answered
            width = f"median width {np.median([run[2] for run in answered]):.3g}; " if answered else ""
            changed = int(sum(run[3] for run in runs))
            yield replace(
                rate_row(
                    f"{world}, {share:.0%} held out: lift over the holdout",
                    sum(run[1] == 1.0 for run in answered),
                    len(answered),
                    asked=False,
                    more=width + f"{len(runs) - len(answered)} not answered",
                ),
                must=("no id of the holdout changes arm", changed == 0),
            )
    hits = sum(run[1] == 1.0 for run in total)
    yield replace(
        rate_row("all together", hits, len(total), asked=False), must=("at least 91 %", hits >= 0.91 * len(total))
    )


def certificate_run(name: str, bound: float | None, horizon: int, seed: int) -> list[Any]:
    """After each update: whether the best arms of fresh sets survive, the certificate, and the true cost."""
    world, fresh_sets = make_world(name, dim=10, arms=20, noise=0.5, horizon=horizon + 500), 500
    learner = Foresight(dim=world.dim, arms=world.arms, horizon=horizon, seed=seed, noise_bound=bound)
    fresh, state, outcome = world.draw(fresh_sets, seed=seed, first=horizon), learner.begin(), []
    sets = ContextSets(fresh.contexts, np.ones(fresh.means.shape, dtype=np.bool_))
    gaps = fresh.means.max(axis=1, keepdims=True) - fresh.means
    while len(state.batch_sizes) > 1:
        count, start = state.stop - state.start, state.start
        rounds = world.draw(count, seed=seed, first=start)
        decided = state.policy.decide(rounds.contexts, ids=range(start, state.stop), seed=seed)
        rewards = world.rewards(rounds.means[np.arange(count), decided.arms], seed=seed, first=start)
        state = learner.next(state, learner.summarize(state, DecisionLog.of(rounds.contexts, decided, rewards)))
        if state.policy.eliminations:
            survive = bool((np.where(state.policy.survivors(sets), gaps, np.inf).min(axis=1) == 0.0).all())
            cost = float((state.policy.probabilities(sets) * gaps).sum(axis=1).mean())
            outcome.append([survive, certified_cost(state.policy, sets), cost])
    return outcome


def certificates(setup: Setup) -> Iterator[Row]:
    """Foresight's intervals and certificates: whether best arms survive, and how far certificates are above costs."""
    names = ("gaussian", "anisotropic", "segments", "zipf", "fixed", "one-big", "counterexample", "end-of-optimism")
    for label, bound in (("estimated", None), ("proved", 0.5)):
        for name in names[: setup.pick(8, 2)]:
            runs = setup.map(certificate_run, [(name, bound, setup.pick(20_000, 1000), seed) for seed in setup.seeds])
            policies = [update for run in runs for update in run]
            whole = sum(all(update[0] for update in run) for run in runs)
            certified = [(most, cost) for _, most, cost in policies if most is not None]
            yield Row(
                what=f"{name}, {label} intervals: best arms of all fresh sets survive",
                measured=f"after {sum(update[0] for update in policies)} of {len(policies)} updates, in {whole} of "
                f"{len(runs)} runs throughout; certificates below the cost {sum(m < c for m, c in certified)} times",
                ratio=f"{np.mean([m for m, _ in certified]) / np.mean([c for _, c in certified]):.3g}×"
                if certified
                else "",
                must=("all runs", whole == len(runs)) if bound else NOTHING,
            )


CASES = {
    "values": Case(values, "Values, gains and lifts in logs of adaptive runs.", 400, first_seed=10_000),
    "anytime": Case(anytime, "Intervals that are looked at after every batch.", 500),
    "kinds": Case(kinds, "Values, gains and lifts in logs of twelve kinds.", 400, 4),
    "effects": Case(effect_coverage, "Effects of arms in logs of policies that learn.", 200, 20),
    "refusals": Case(refusals, "Logs that cannot answer, and logs that can.", 10, first_seed=400),
    "sample-ratio": Case(sample_ratio, "Alarms on honest logs and on propensities that are wrong.", 120, 4),
    "gates": Case(gates, "False promotions, and the decisions that a better policy takes.", 300, 8, 10_000),
    "holdout": Case(holdouts, "The lift over a holdout, in whole experiments.", 100, 4, 10_000),
    "certificates": Case(certificates, "Foresight's own intervals and certificates.", 20, 1, 300),
}

if __name__ == "__main__":
    sys.exit(main("Inference", CASES, description=__doc__))
