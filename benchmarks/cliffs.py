"""Measure foresight where something comes that a plan cannot foresee, beside Thompson sampling on the same batches.

A better arm that arrives late, users of a new kind, outliers, a log of nearly one arm as a warm start, five times the
planned traffic, a θ that drifts, arms without features. Foresight is as it comes, with a level; Thompson sampling at
half of the posterior's spread has the same batch ends, and is told ‖θ‖ and the standard deviation of the noise. The
seeds are 0 and following; those of development are 1000 and following.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report
from rareswitch.contexts import ContextSets
from rareswitch.experiment.regret_model import best_ends
from rareswitch.lab import learner_for
from rareswitch.lab.rounds import play_rounds
from rareswitch.lab.worlds import Rounds, World, make_world
from rareswitch.lab.worlds.world import in_blocks
from rareswitch.learner import Learner, Rows, Summary
from rareswitch.rng import normals, uniforms

HORIZON, POLICIES = 10_000, 8
#: Times what Thompson sampling loses.
MOST = 1.3
#: Decisions of the log for a warm start, and the share of them that one arm has.
LOGGED, ONE_ARM = 2_000, 0.97
#: Times the planned traffic.
BUSIER = 5


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
        spread = np.array([0.5, *[0.5 / math.sqrt(self.features - 1)] * (self.features - 1)])
        theta = drawn * spread
        if self.late is not None:
            theta[-1, :, 0] = theta[:-1, :, 0].max(axis=0) + self.late[1]
        return np.asarray(theta)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        rounds = first + np.arange(count)
        z = math.sqrt(12.0) * (uniforms(seed, "users", first, count, self.features - 1) - 0.5)
        users = np.zeros((count, self.kinds, self.features))
        kind = np.zeros(count, dtype=np.int64)
        if self.newcomers is not None:
            new = uniforms(seed, "kinds", first, count)[:, 0] < 0.5
            kind = (new & (rounds >= self.newcomers * HORIZON)).astype(np.int64)
        users[np.arange(count), kind] = np.column_stack([np.ones(count), z])
        contexts = in_blocks(users.reshape(count, -1), self.arms)
        available = np.ones((count, self.arms), dtype=np.bool_)
        if self.late is not None:
            available[:, -1] = rounds >= self.late[0] * HORIZON
        means = contexts @ self.theta(seed).ravel()
        return Rounds(contexts=contexts / self.longest, means=means, alive=available)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        noise = normals(seed, "noise", first, len(means))[:, 0]
        wild = uniforms(seed, "outliers", first, len(means))[:, 0] < self.outliers
        return np.clip(means + np.where(wild, 30.0, 1.0) * noise, -self.clip, self.clip)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A world, the decisions after which batches end, and what else is special."""

    world: World
    #: Policies; at the best times by the model of the regret, or in equal batches.
    policies: int = POLICIES
    equal: bool = False
    #: Whether the first policy is learned from a log of nearly one arm.
    warm: bool = False
    #: How many times as many decisions come as were planned; the plan is corrected after the first batch.
    busier: int = 1

    def ends(self) -> list[int]:
        if self.equal:
            return [HORIZON * k // self.policies for k in range(1, self.policies + 1)]
        planned = best_ends(HORIZON / self.busier, self.policies, dim=self.world.dim)
        first = self.busier * planned[0]
        if self.busier == 1:
            return [round(end) for end in planned]
        later = best_ends(HORIZON, self.policies - 1, dim=self.world.dim, start=first)
        return [round(end) for end in (first, *later)]


CELLS: dict[str, Cell] = {
    "a better arm from 40 %, +1": Cell(world=OwnArms(arms=9, late=(0.4, 1.0))),
    "a better arm from 40 %, +2": Cell(world=OwnArms(arms=9, late=(0.4, 2.0))),
    # 22 decisions before an update
    "a better arm from 30.8 %, +1": Cell(world=OwnArms(arms=9, late=(0.308, 1.0))),
    "users of a new kind from 50 %": Cell(world=OwnArms(arms=6, newcomers=0.5)),
    "users of a new kind from 40 %": Cell(world=OwnArms(arms=6, newcomers=0.4)),
    "2 % outliers": Cell(world=OwnArms(outliers=0.02)),
    "0.2 % outliers": Cell(world=OwnArms(outliers=0.002)),
    "2 % outliers, clipped at 5": Cell(world=OwnArms(outliers=0.02, clip=5.0)),
    "0.2 % outliers, clipped at 5": Cell(world=OwnArms(outliers=0.002, clip=5.0)),
    "log of 97 % one arm": Cell(world=OwnArms(), warm=True),
    "log of 97 % one arm, weekly": Cell(world=OwnArms(), warm=True, equal=True),
    "five times the traffic": Cell(world=OwnArms(), busier=BUSIER),
    "θ turns by a quarter": Cell(world=make_world("turning", horizon=HORIZON)),
    "θ turns by a quarter, 20 policies": Cell(world=make_world("turning", horizon=HORIZON), policies=20),
    "arms without features": Cell(world=make_world("plain-20", horizon=HORIZON)),
}
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "foresight": ("foresight", {"intercept": True}),
    "Thompson 0.5": ("stale-thompson", {"scale": 0.5}),
}


def warm_log(learner: Learner, world: World, seed: int) -> Summary:
    """Decisions of which nearly all are for the first arm, the rest for arms at random."""
    rounds = world.draw(LOGGED, seed=seed, first=HORIZON)
    draws = uniforms(seed, "logged", 0, LOGGED, 2)
    arms = np.where(draws[:, 0] < ONE_ARM, 0, (draws[:, 1] * world.arms).astype(np.int64))
    at = np.arange(LOGGED)
    blank = learner.begin()
    rows = Rows(
        ids=[f"logged {k}" for k in range(LOGGED)],
        policy_id=blank.policy.id,
        features=rounds.contexts[at, arms],
        rewards=world.rewards(rounds.means[at, arms], seed=seed, first=HORIZON),
        sets=ContextSets(rounds.contexts, np.ones(rounds.means.shape, dtype=np.bool_)),
    )
    return learner.summarize(blank, rows)


def run(cell: Cell, label: str, seed: int) -> float:
    """The regret of a run."""
    (name, settings), ends = LEARNERS[label], cell.ends()
    learner = learner_for(cell.world, name, horizon=HORIZON, seed=seed, noise=0.5, grid=ends, **settings)
    state = learner.begin(warm=warm_log(learner, cell.world, seed) if cell.warm else None)
    regret = 0.0
    for start, stop in pairwise((0, *ends)):
        summary: Summary | None = None
        for played in play_rounds(learner, state.policy, cell.world, seed=seed, start=start, stop=stop):
            regret += float(played.regrets.sum())
            part = learner.summarize(state, played.rows)
            summary = part if summary is None else summary + part
        assert summary is not None
        state = learner.next(state, summary)
    return regret


def rows(cells: list[str], seeds: range) -> Iterator[Row]:
    for name in cells:
        paid = {label: np.array([run(CELLS[name], label, seed) for seed in seeds]) for label in LEARNERS}
        texts = [f"{label} {lost.mean():,.0f}, worst {lost.max():,.0f}" for label, lost in paid.items()]
        ours, other = paid.values()
        ratio = ours.mean() / other.mean()
        yield Row(
            what=name,
            measured="; ".join(texts),
            ratio=f"{ratio:.2f}×",
            needed=f"at most {MOST}×",
            holds=bool(ratio <= MOST),
        )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, help="how many (default 12; 2 with --quick)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED")
    parser.add_argument("--cells", nargs="+", metavar="TEXT", help="only those whose name contains one of these")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + (options.seeds or (2 if options.quick else 12)))
    chosen = [name for name in CELLS if not options.cells or any(text in name for text in options.cells)]
    return report(
        f"Where a plan could be too sure: T = {HORIZON:,}, {len(seeds)} seeds", rows(chosen, seeds), options.out
    )


if __name__ == "__main__":
    sys.exit(main())
