"""Rounds of a world, played by a policy: drawn, checked, decided and paid."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rareswitch.errors import InputError
from rareswitch.lab.worlds import Rounds, World
from rareswitch.learner import Learner, Rows
from rareswitch.policy import Decisions, Policy
from rareswitch.validation import BoolArray, FloatArray, IntArray, Sets, context_sets, finite_array, vector

#: How many context entries are held at a time: 2 MiB of them, about what a processor's cache holds.
_CHUNK_NUMBERS = 1 << 18


def chunk_size(arms: int, dim: int) -> int:
    """Decisions per chunk. It depends on the sizes alone, so that sums are split in the same way in every run."""
    return max(16, min(8192, _CHUNK_NUMBERS // (arms * dim)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Played:
    """Decisions of a policy in consecutive rounds."""

    world: World
    seed: int
    #: Number of the first round, which is the id of its decision.
    first: int
    sets: Sets
    decisions: Decisions
    #: (n, K)
    means: FloatArray

    @property
    def expected(self) -> FloatArray:
        """(n,) expected rewards of the chosen arms."""
        return np.asarray(self.means[np.arange(len(self.means)), self.decisions.arms])

    @property
    def regrets(self) -> FloatArray:
        """(n,) what each decision lost to the best arm of its set, in expectation."""
        return regrets(self.means, self.sets.available, self.decisions.arms)

    @property
    def rewards(self) -> FloatArray:
        """(n,) what was paid."""
        paid = self.world.rewards(self.expected, seed=self.seed, first=self.first)
        return finite_array(f"the rewards of {type(self.world).__name__}", paid)

    @property
    def rows(self) -> Rows:
        """What a learner may see of it."""
        return Rows.of(self.sets, self.decisions, self.rewards)

    def upto(self, count: int) -> "Played":
        """The first ``count`` of these decisions."""
        sets = self.sets.part(slice(count))
        return replace(self, sets=sets, decisions=self.decisions.upto(count), means=self.means[:count])


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn:
    """Consecutive rounds, before anything is decided."""

    world: World
    seed: int
    first: int
    rounds: Rounds
    sets: Sets

    @classmethod
    def of(cls, world: World, count: int, *, seed: int, first: int) -> "Drawn":
        """Rounds ``first`` to ``first + count - 1``, checked to be what was asked for."""
        rounds = world.draw(count, seed=seed, first=first)
        return cls(world=world, seed=seed, first=first, rounds=rounds, sets=check_rounds(world, rounds, count))

    def play(self, policy: Policy, start: int, count: int) -> Played:
        """Let a policy decide ``count`` of them, from place ``start`` on."""
        at, first, seed = slice(start, start + count), self.first + start, self.seed
        sets, means = self.sets.part(at), self.rounds.means[at]
        decisions = policy.decide(sets, ids=range(first, first + count), seed=seed)
        return Played(world=self.world, seed=seed, first=first, sets=sets, decisions=decisions, means=means)

    def potential_rewards(self) -> FloatArray:
        """(n, K) what each arm would pay. Rewards are keyed by the round, so every choice has its own already."""
        columns = [
            self.world.rewards(self.rounds.means[:, arm], seed=self.seed, first=self.first)
            for arm in range(self.world.arms)
        ]
        return finite_array(f"the rewards of {type(self.world).__name__}", np.column_stack(columns))


def play_rounds(
    learner: Learner, policy: Policy, world: World, *, seed: int, start: int, stop: int, chunk: int | None = None
) -> Iterator[Played]:
    """Let a policy decide the rounds from ``start`` to before ``stop``, chunk by chunk."""
    chunk = chunk_size(world.arms, world.dim) if chunk is None else chunk
    for first in range(start, stop, chunk):
        drawn = Drawn.of(world, min(chunk, stop - first), seed=seed, first=first)
        learner.check(drawn.sets)
        yield drawn.play(policy, 0, len(drawn.sets.contexts))


def regrets(means: FloatArray, available: BoolArray, arms: IntArray) -> FloatArray:
    """(n,) what the chosen arms lose to the best available ones, by means (n, K)."""
    best = np.where(available, means, -np.inf).max(axis=1)
    return np.asarray(best - means[np.arange(len(arms)), arms])


def unlearnable_regret(world: World, horizon: int, *, seed: int) -> float:
    """What the best linear policy in hindsight loses to the best arms: the part of regret that no learner can avoid.

    A world says what that policy is by ``best_linear()``, (d,); without it the best arms are those of a linear policy,
    and the answer is 0.

    >>> from rareswitch.lab.worlds import make_world
    >>> unlearnable_regret(make_world("rare-clicks"), 1000, seed=1)
    0.0
    """
    best = getattr(world, "best_linear", None)
    if best is None:
        return 0.0
    theta, lost = vector(f"the best linear policy of {type(world).__name__}", best(), world.dim), 0.0
    chunk = chunk_size(world.arms, world.dim)
    for first in range(0, horizon, chunk):
        drawn = Drawn.of(world, min(chunk, horizon - first), seed=seed, first=first)
        chosen = np.where(drawn.sets.available, drawn.sets.contexts @ theta, -np.inf).argmax(axis=1)
        lost += float(regrets(drawn.rounds.means, drawn.sets.available, chosen).sum())
    return lost


def check_match(learner: Learner, world: World, horizon: int) -> None:
    """Refuse a world with other features than the learner is for, more arms, or fewer rounds."""
    if world.dim != learner.dim or (learner.arms is not None and world.arms > learner.arms):
        most = "any number of" if learner.arms is None else f"at most {learner.arms}"
        raise InputError(
            f"the learner is for {most} arms in {learner.dim} dimensions, the world has {world.arms} in {world.dim}. "
            "Make a learner of that size, or choose another world."
        )
    check_length(world, horizon)


def check_length(world: World, horizon: int) -> None:
    """Refuse a horizon that is longer than the world."""
    rounds = getattr(world, "rounds", None)
    if isinstance(rounds, int) and rounds < horizon:
        raise InputError(
            f"the world {type(world).__name__} has {rounds} rounds and the horizon is {horizon}. Make the horizon "
            "shorter or the sequence longer."
        )


def check_rounds(world: World, rounds: Rounds, count: int) -> Sets:
    """Refuse rounds that are not what the world was asked for, in its name."""
    name, wanted = type(world).__name__, (count, world.arms, world.dim)
    if not isinstance(rounds, Rounds):
        raise InputError(f"the world {name} must draw Rounds; it drew a {type(rounds).__name__}.")
    for what, shape in (("contexts", wanted), ("means", wanted[:2])):
        if (found := np.shape(getattr(rounds, what))) != shape:
            raise InputError(f"the world {name} must draw {what} {shape}; it drew {found}.")
    finite_array(f"the means of {name}", rounds.means)
    return context_sets(rounds.contexts, rounds.available)
