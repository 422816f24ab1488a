"""How often 95 % intervals of effects hold in logs of policies that learn, beside naive ones.

Arms whose rewards are alike, or nearly so, are the hard case: which of them is shown hangs on luck, and what was
unlucky is hardly ever shown again. Naive intervals take all rows for one sample: two means
with their own errors. At least: 95 % less 3 standard errors of the measured share.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report
from rareswitch.design import Uniform
from rareswitch.evaluation import effects
from rareswitch.learner import Foresight, Rows
from rareswitch.log import DecisionLog
from rareswitch.policy import Blend, Policy, PosteriorDraws
from rareswitch.stats import Stats

LEVEL, NORMAL = 0.95, 1.959964
#: Features of an arm: (1, s) of its own, where s is what the user is like, 1 or −1.
RIDGE = 1.0


@dataclass(frozen=True, kw_only=True)
class World:
    """Some arms, each with a level and with what it earns more from users with s = 1 than from those with s = −1."""

    name: str
    levels: tuple[float, ...]
    slopes: tuple[float, ...] = ()
    #: σ of each arm's normal noise; None: clicks.
    noise: tuple[float, ...] | None = None
    #: How policies are made: ``greedy``, ``thompson`` or ``foresight``.
    learner: str = "greedy"
    #: Of exploration, which shows all arms alike.
    share: float = 0.2
    #: Whether effects are asked for too: of a log that shows arms as rarely as some do, they are refused.
    arms_too: bool = True
    batches: int = 25
    length: int = 100

    @property
    def theta(self) -> FloatArray:
        """Parameters of all arms: levels, or (level, slope) of each."""
        return np.array([*zip(self.levels, self.slopes, strict=True)] if self.slopes else self.levels).ravel()

    def draw(self, rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
        """Vectors (n, K, d), and what users are like (n,)."""
        kind = rng.choice([-1.0, 1.0], size=count)
        arms = len(self.levels)
        if not self.slopes:
            return np.broadcast_to(np.eye(arms), (count, arms, arms)), kind
        own = np.stack([np.ones(count), kind], axis=1)
        return np.einsum("ab,nf->nabf", np.eye(arms), own).reshape(count, arms, 2 * arms), kind

    def pay(self, rng: np.random.Generator, means: FloatArray, arms: Any) -> FloatArray:
        if self.noise is None:
            return (rng.random(len(means)) < means).astype(np.float64)
        return np.asarray(means + np.array(self.noise)[arms] * rng.normal(size=len(means)))

    def log(self, seed: int) -> tuple[DecisionLog, FloatArray]:
        """What the policies decided, and what users were like."""
        rng = np.random.default_rng([seed, len(self.levels), self.batches])
        run = _foresight(self, seed) if self.learner == "foresight" else _blended(self, seed)
        policy, parts, kinds = next(run), [], []
        for batch in range(self.batches):
            contexts, kind = self.draw(rng, self.length)
            decided = policy.decide(contexts, ids=range(batch * self.length, (batch + 1) * self.length), seed=seed)
            chosen = contexts[np.arange(self.length), decided.arms]
            rewards = self.pay(rng, chosen @ self.theta, decided.arms)
            parts.append((policy, contexts, decided, rewards))
            kinds.append(kind)
            if batch + 1 < self.batches:
                policy = run.send((contexts, decided, rewards))
        names = tuple(f"{policy.id[:16]}-{at}" for at, (policy, *_) in enumerate(parts))
        return DecisionLog(
            arm_indices=np.concatenate([decided.arms for _, _, decided, _ in parts]),
            propensities=np.concatenate([decided.propensities for _, _, decided, _ in parts]),
            rewards=np.concatenate([rewards for *_, rewards in parts]),
            contexts=np.concatenate([contexts for _, contexts, _, _ in parts]),
            batches=np.repeat(np.arange(self.batches), self.length),
            batch_names=names,
            policies={name: policy for name, (policy, *_) in zip(names, parts, strict=True)},
        ), np.concatenate(kinds)


def _blended(world: World, seed: int) -> Any:
    """Greedy play, or posterior draws, of all rows so far, with some uniform exploration."""
    dim = len(world.theta)
    rng, total = np.random.default_rng([seed, 7]), Stats.zero(dim)
    contexts, decided, rewards = yield Policy(dim=dim, sampler=Uniform())
    edition = 0
    while True:
        edition += 1
        chosen = contexts[np.arange(len(rewards)), decided.arms]
        total = total + Stats.of(chosen, rewards)
        estimate, draws = total.estimate(ridge=RIDGE), 1
        if world.learner == "thompson":
            spread = np.linalg.cholesky(np.linalg.inv(total.gram + RIDGE * np.eye(dim)))
            estimate, draws = estimate + rng.normal(size=(500, dim)) @ spread.T, 500
        main = PosteriorDraws(draws=estimate.reshape(draws, dim))
        blended = Blend(main=main, explorer=Uniform(), share=world.share)
        contexts, decided, rewards = yield Policy(dim=dim, sampler=blended, edition=edition)


def _foresight(world: World, seed: int) -> Any:
    """The flagship, which decides by itself how much to explore."""
    ends = [world.length * (k + 1) for k in range(world.batches)]
    learner = Foresight(dim=len(world.theta), grid=ends, seed=seed)
    state = learner.begin()
    while True:
        contexts, decided, rewards = yield state.policy
        state = learner.next(state, learner.summarize(state, Rows.of(contexts, decided, rewards)))


def held(low: float, high: float, truth: float) -> bool:
    return low <= truth <= high


def naive_effect(log: DecisionLog, which: Any = slice(None)) -> tuple[float, float]:
    """Two means, each with its own error."""
    places, rewards = log.arm_indices[which], log.rewards[which]
    one, other = rewards[places == 0], rewards[places == 1]
    if min(len(one), len(other)) < 2:
        return -math.inf, math.inf
    half = NORMAL * math.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    gap = float(one.mean() - other.mean())
    return gap - half, gap + half


def literal(batches: Any) -> tuple[float, float]:
    """Σ Z_t/√B with every batch studentised by itself, each term exactly as in the paper: weights 1/error."""
    used = [part for part in batches if not part.left_out and part.error > 0.0]
    if not used:
        return -math.inf, math.inf
    total = sum(1.0 / part.error for part in used)
    value, half = sum(part.value / part.error for part in used) / total, NORMAL * math.sqrt(len(used)) / total
    return value - half, value + half


class Shares:
    """How often intervals held, by kind, of those that were answered; how often they lie too low; how wide they are."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        self.low: Counter[str] = Counter()
        self.widths: Counter[str] = Counter()
        self.answered = self.asked = self.left_out = self.batches = self.naive_of_all = 0

    def take(self, found: Any, naive: tuple[float, float], truth: float) -> None:
        self.asked += 1
        self.naive_of_all += held(*naive, truth)
        if found.interval is None:
            return
        self.answered += 1
        self.batches += len(found.batches)
        self.left_out += sum(bool(part.left_out) for part in found.batches)
        pairs = {"ours": (found.interval.low, found.interval.high), "1/e": literal(found.batches), "naive": naive}
        for kind, (low, high) in pairs.items():
            self.held[kind] += held(low, high, truth)
            self.low[kind] += high < truth
            self.widths[kind] += high - low

    def row(self, what: str) -> Row:
        count = max(1, self.answered)
        share = {kind: self.held[kind] / count for kind in ("ours", "1/e", "naive")}
        slack = 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / count)
        texts = {
            kind: f"{100.0 * one:.1f} % (misses {100.0 * self.low[kind] / count:.1f} % too low, "
            f"{100.0 * (1.0 - one - self.low[kind] / count):.1f} % too high)"
            for kind, one in share.items()
        }
        if self.answered < 0.95 * self.asked:
            texts["naive"] += f", of all that was asked, refused or not, {100.0 * self.naive_of_all / self.asked:.1f} %"
        return Row(
            what=what,
            measured=f"{texts['ours']} of {self.answered:,} hold, {self.asked - self.answered:,} refused, "
            f"{100.0 * self.left_out / max(1, self.batches):.0f} % of batches left out; weights 1/e {texts['1/e']}; "
            f"naive {texts['naive']}",
            ratio=f"{self.widths['ours'] / max(1e-12, self.widths['naive']):.2f}× as wide as naive",
            needed=f"{100.0 * (LEVEL - slack):.1f} %",
            holds=share["ours"] >= LEVEL - slack,
        )


def measured(world: World, seeds: range) -> Iterator[Row]:
    """Coverage of the effect of the first arm in place of the second, and of groups."""
    effect, groups = Shares(), Shares()
    theta, step = world.theta, 2 if world.slopes else 1
    gap = np.zeros(len(theta))
    gap[0], gap[step] = 1.0, -1.0
    false_differences = judged = 0
    for seed in seeds:
        log, kind = world.log(seed)
        if not world.arms_too:
            continue
        groups_of = np.where(kind > 0.0, "one", "other") if world.slopes else None
        got = effects(log, 0, 1, by=groups_of)
        effect.take(got.effects[0], naive_effect(log), float(gap @ theta))
        if world.slopes:
            for part in got.effects[1:]:
                sign = 1.0 if part.group == "one" else -1.0
                which = kind * sign > 0.0
                truth = float(gap @ theta) + sign * (world.slopes[0] - world.slopes[1])
                groups.take(part, naive_effect(log, which), truth)
        elif world.learner == "thompson":
            halves = effects(log, 0, 1, by=np.where(np.arange(len(log)) % 2, "even", "odd")).differ
            judged += halves is not None
            false_differences += halves is not None and halves.p_value < 0.05
    if world.arms_too:
        yield effect.row(f"{world.name}: effect of the first arm in place of the second")
    if world.slopes:
        yield groups.row(f"{world.name}: the same by kind of user (two intervals that hold together)")
    if judged:
        allowed = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / judged)
        yield Row(
            what=f"{world.name}: the effect is said to differ between two random halves, at 5 %",
            measured=f"{false_differences} of {judged:,}, {100.0 * false_differences / judged:.1f} %",
            needed=f"at most {100.0 * allowed:.1f} %",
            holds=false_differences / judged <= allowed,
        )


def rows(quick: bool, first: int) -> Iterator[Row]:
    for world in WORLDS:
        yield from measured(world, range(first, first + (40 if quick else RUNS)))


#: Of each world.
RUNS = 200
ALIKE: dict[str, Any] = {"levels": (0.0, 0.0), "length": 400, "batches": 10}
WORLDS = (
    World(
        name="10 arms alike, 5 % click, greedy with a floor of 0.5 %, 40 × 100",
        levels=(0.05,) * 10,
        share=0.05,
        batches=40,
        arms_too=False,
    ),
    World(
        name="2 arms alike, Thompson with a floor of 1 %, 25 × 100",
        levels=(0.0, 0.0),
        noise=(1.0, 1.0),
        learner="thompson",
        share=0.02,
        arms_too=False,
    ),
    World(name="2 arms alike, Thompson, 10 × 400", noise=(1.0, 1.0), learner="thompson", **ALIKE),
    World(name="2 arms alike, σ = 0.3 and 2, greedy, 10 × 400", noise=(0.3, 2.0), **ALIKE),
    World(name="2 arms alike, 5 % click, greedy, 10 × 400", **ALIKE | {"levels": (0.05, 0.05)}),
    World(
        name="3 arms, the last one better, foresight, 8 × 500",
        levels=(0.0, 0.0, 0.1),
        noise=(1.0, 1.0, 1.0),
        learner="foresight",
        batches=8,
        length=500,
    ),
    World(
        name="2 arms, 2 kinds of users, Thompson, 10 × 1,000",
        levels=(0.0, 0.0),
        slopes=(0.05, -0.05),
        noise=(1.0, 1.0),
        learner="thompson",
        batches=10,
        length=1000,
    ),
)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first-seed", type=int, default=0, help="develop on 1000 and up, report 0 and up")
    options = parser.parse_args()
    note = f"{RUNS} runs of each world, seeds {options.first_seed} and up. {' '.join((__doc__ or '').split())}"
    title = "Intervals of effects in logs of policies that learn"
    return report(title, rows(options.quick, options.first_seed), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
