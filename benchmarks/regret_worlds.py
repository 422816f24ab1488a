"""Worlds that only the benchmarks of regret have, and runs batch by batch where ``simulate`` says too little."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from harness import FloatArray, IntArray
from rareswitch import Features
from rareswitch.core import normals, uniforms
from rareswitch.decisions import DecisionLog
from rareswitch.lab.distributions import in_blocks
from rareswitch.lab.simulate import DrawnRounds
from rareswitch.lab.worlds import RecordWorld, Rounds, World, make_world
from rareswitch.learner import Learner, State, Summary

#: Decisions of the runs in which something changes that no plan foresees.
CLIFF_HORIZON = 10_000
#: The arms (n,) that the caller would show, of expected rewards (n, K), a seed and the number of the first decision.
Baseline = Callable[[FloatArray, int, int], IntArray]


class Batch(NamedTuple):
    """The decisions of one policy."""

    state: State
    #: (n,)
    regrets: FloatArray
    #: (n,) what the best linear policy in hindsight loses to the best arms.
    unlearnable: FloatArray
    #: (n,) of the chosen arms.
    propensities: FloatArray


def play(
    learner: Learner,
    world: World,
    seed: int,
    *,
    state: State | None = None,
    baseline: Baseline | None = None,
    delay: int = 0,
) -> list[Batch]:
    """A run from its beginning, batch by batch, by the calls that everybody has.

    A reward is known when ``delay`` decisions have come after its own; the first policy is shown the baseline.
    """
    state, batches, earlier = learner.begin() if state is None else state, list[Batch](), list[DecisionLog]()
    theta = world.best_linear() if hasattr(world, "best_linear") else None
    while not state.done:
        drawn = DrawnRounds.of(world, state.stop - state.start, seed=seed, first=state.start)
        sets, ids = drawn.sets, range(state.start, state.stop)
        shown = {} if baseline is None or state.policies > 1 else {"baseline": baseline(drawn.means, seed, state.start)}
        decisions = state.policy.decide(sets, ids=ids, seed=seed, **shown)
        linear = decisions.arms if theta is None else np.where(sets.available, sets.contexts @ theta, -np.inf).argmax(1)
        lost = np.zeros(len(drawn)) if theta is None else drawn.regrets(linear)
        batches.append(Batch(state, drawn.regrets(decisions.arms), lost, decisions.propensities))
        known: dict[str, Any] = {"window": float(delay), "now": float(state.stop)} if delay else {}
        times = {"times": np.array(ids, dtype=np.float64)} if delay else {}
        rows = DecisionLog.of(sets, decisions, drawn.rewards(decisions.arms), **times)
        late = [learner.summarize(state, old, **known) for old in earlier]
        state, earlier = learner.next(state, learner.summarize(state, rows, **known), late=late), [rows] * bool(delay)
    return batches


def log_of(learner: Learner, world: World, arms: IntArray, seed: int, first: int) -> Summary:
    """Decisions of others, for a warm start: these arms in the rounds from ``first`` on."""
    drawn, state = DrawnRounds.of(world, len(arms), seed=seed, first=first), learner.begin()
    log = DecisionLog(
        ids=range(first, first + len(arms)),
        batch_names=[state.policy.id],
        arm_indices=arms,
        propensities=np.ones(len(arms)),
        rewards=drawn.rewards(arms),
        contexts=drawn.sets.contexts,
        available=drawn.sets.available,
    )
    return learner.summarize(state, log)


def shown(means: FloatArray, seed: int, first: int) -> IntArray:
    """A baseline that names the best arm, or in half of the cases any."""
    coins = uniforms(seed, "baseline", first, len(means), 2)
    anything = (coins[:, 1] * means.shape[1]).astype(np.int64)
    return np.asarray(np.where(coins[:, 0] < 0.5, means.argmax(axis=1), anything))


class Clicks(NamedTuple):
    """A shape of clicks: users with an age, a device and a flag; arms without records of their own."""

    rate: float
    gain: float = 1.0
    arms: int = 6
    policies: int = 8
    horizon: int = 8000
    #: Whether batches are equally long; geometric otherwise.
    equal: bool = False
    #: How many times as many seeds as in the others.
    more_seeds: int = 1

    def world(self) -> RecordWorld:
        """The same users for every seed, which draws what they like."""
        rng = random.Random(11)
        users = [
            {"age": rng.randint(18, 80), "device": rng.choice(("android", "ios")), "new": rng.random() < 0.3}
            for _ in range(2000)
        ]
        offers = [f"arm {k}" for k in range(self.arms)]
        features = Features.fit(users, offers, spare_arms=0, missing="error")  # none is missing
        return RecordWorld(
            features=features, sample=users, offers=dict.fromkeys(offers), click_rate=self.rate, gain=self.gain
        )


CLICKS = {
    "1 %": Clicks(0.01),
    "1 %, steep": Clicks(0.01, gain=2.0),
    "2 %": Clicks(0.02, gain=1.5),
    "5 %": Clicks(0.05),
    "5 %, 40 equal batches": Clicks(0.05, policies=40, equal=True),
    "10 %": Clicks(0.1),
    # With 16 seeds a hair above what is asked: four times as many decide.
    "10 %, four times the seeds": Clicks(0.1, more_seeds=4),
    "30 %": Clicks(0.3),
    "50 %, steep": Clicks(0.5, gain=3.0),
    "0.2 %, 30,000 decisions": Clicks(0.002, horizon=30_000),
    "1 %, 2 arms, 3 policies": Clicks(0.01, arms=2, policies=3),
    "3 %, 50 arms, 16 policies": Clicks(0.03, arms=50, policies=16, horizon=16_000),
    "10 %, 20 arms, 8 equal batches": Clicks(0.1, gain=1.5, arms=20, equal=True),
    "20 %, steep, 3 policies": Clicks(0.2, gain=2.0, policies=3),
    "50 %, 10 arms, 40 policies": Clicks(0.5, arms=10, policies=40),
    "the demo's, best times": Clicks(0.1, gain=1.5, arms=8, horizon=10_080),
    "the demo's, weekly": Clicks(0.1, gain=1.5, arms=8, horizon=10_080, equal=True),
}


@dataclass(frozen=True, kw_only=True)
class OwnArms:
    """Users (1, z), z uniform of variance 1; each arm has a level and slopes of its own over them, and noise is added.

    Levels have a standard deviation of a half and so have all slopes together; that of the noise is 1.
    """

    arms: int = 8
    features: int = 5
    #: Of the rounds, when the last arm comes, and by how much its level is above the best of the others; None: none.
    late: tuple[float, float] | None = None
    #: Of the rounds, when users of a second kind come, half of all from then on, with parameters of their own.
    newcomers: float | None = None
    #: Share of rewards whose noise is thirty times as large.
    outliers: float = 0.0
    #: Rewards are clipped at that many standard deviations.
    clip: float = math.inf

    @property
    def kinds(self) -> int:
        return 1 + (self.newcomers is not None)

    @property
    def dim(self) -> int:
        return self.arms * self.kinds * self.features

    @property
    def noise_scale(self) -> float:
        share = self.outliers if self.clip == math.inf else 0.0
        return math.sqrt(1.0 + share * (30.0**2 - 1.0))

    @property
    def norm(self) -> float:
        """The root of the mean square of ‖θ‖."""
        return self.longest * math.sqrt(0.5 * self.arms * self.kinds)

    @property
    def longest(self) -> float:
        """The most that (1, z) can have as a length."""
        return math.sqrt(1.0 + 3.0 * (self.features - 1))

    def theta(self, seed: int) -> FloatArray:
        """(K, kinds, p) in units of rewards."""
        drawn = normals(seed, "theta", 0, 1, self.dim).reshape(self.arms, self.kinds, self.features)
        theta = drawn * np.array([0.5, *[0.5 / math.sqrt(self.features - 1)] * (self.features - 1)])
        if self.late is not None:
            theta[-1, :, 0] = theta[:-1, :, 0].max(axis=0) + self.late[1]
        return np.asarray(theta)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        rounds = first + np.arange(count)
        z = math.sqrt(12.0) * (uniforms(seed, "users", first, count, self.features - 1) - 0.5)
        users, kind = np.zeros((count, self.kinds, self.features)), np.zeros(count, dtype=np.int64)
        if self.newcomers is not None:
            new = uniforms(seed, "kinds", first, count)[:, 0] < 0.5
            kind = (new & (rounds >= self.newcomers * CLIFF_HORIZON)).astype(np.int64)
        users[np.arange(count), kind] = np.column_stack([np.ones(count), z])
        contexts = in_blocks(users.reshape(count, -1), self.arms)
        available = np.ones((count, self.arms), dtype=np.bool_)
        if self.late is not None:
            available[:, -1] = rounds >= self.late[0] * CLIFF_HORIZON
        means = contexts @ self.theta(seed).ravel()
        return Rounds(contexts=contexts / self.longest, means=means, available=available)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        noise = normals(seed, "noise", first, len(means))[:, 0]
        wild = uniforms(seed, "outliers", first, len(means))[:, 0] < self.outliers
        return np.clip(means + np.where(wild, 30.0, 1.0) * noise, -self.clip, self.clip)


class Cliff(NamedTuple):
    """A world in which something comes that a plan cannot foresee, and its batches."""

    world: World
    #: Policies; at the best times by the model of the regret, or in equal batches.
    policies: int = 8
    equal: bool = False
    #: Whether the first policy is learned from a log of which 97 % are one arm.
    warm: bool = False
    #: How many times as many decisions come as were planned; the plan is corrected after the first batch.
    busier: int = 1


CLIFFS: dict[str, Cliff] = {
    "a better arm from 40 %, +1": Cliff(OwnArms(arms=9, late=(0.4, 1.0))),
    "a better arm from 40 %, +2": Cliff(OwnArms(arms=9, late=(0.4, 2.0))),
    # 22 decisions before an update
    "a better arm from 30.8 %, +1": Cliff(OwnArms(arms=9, late=(0.308, 1.0))),
    "users of a new kind from 50 %": Cliff(OwnArms(arms=6, newcomers=0.5)),
    "users of a new kind from 40 %": Cliff(OwnArms(arms=6, newcomers=0.4)),
    "2 % outliers": Cliff(OwnArms(outliers=0.02)),
    "0.2 % outliers": Cliff(OwnArms(outliers=0.002)),
    "2 % outliers, clipped at 5": Cliff(OwnArms(outliers=0.02, clip=5.0)),
    "0.2 % outliers, clipped at 5": Cliff(OwnArms(outliers=0.002, clip=5.0)),
    "log of 97 % one arm": Cliff(OwnArms(), warm=True),
    "log of 97 % one arm, weekly": Cliff(OwnArms(), warm=True, equal=True),
    "five times the traffic": Cliff(OwnArms(), busier=5),
    "θ turns by a quarter": Cliff(make_world("turning", horizon=CLIFF_HORIZON)),
    "θ turns by a quarter, 20 policies": Cliff(make_world("turning", horizon=CLIFF_HORIZON), policies=20),
    "arms without features": Cliff(make_world("plain-20", horizon=CLIFF_HORIZON)),
}
