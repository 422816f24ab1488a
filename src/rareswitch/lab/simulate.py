"""One run: a learner in a world, in chunks, so that memory does not grow with the horizon."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from rareswitch.core import Displayed, FloatArray, IntArray, Sets, context_sets, finite_array, vector, whole
from rareswitch.decisions import DecisionLog
from rareswitch.errors import InputError, ParameterError, UnsuitableError
from rareswitch.lab.compiled import Walker, find_walker
from rareswitch.lab.worlds import Rounds, World
from rareswitch.learner import Learner, State, Summary
from rareswitch.policy import Decisions, MinPropensity, Policy

__all__ = ["Run", "checkpoints", "simulate"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Run(Displayed):
    """One learner in one world."""

    shown_by: ClassVar[str] = "rareswitch.lab.report.plots"

    learner: str
    world: str
    horizon: int
    seed: int
    #: Σ_t (best expected reward - expected reward of the chosen arm).
    regret: float
    #: Policies deployed, the first included.
    policies: int
    seconds: float
    #: Decision counts at which the regret was read off, increasing, the last the horizon.
    times: IntArray
    #: Regret after each of ``times`` decisions.
    regrets: FloatArray
    #: (updates,) the decision count at which each policy retired; empty for a learner that changes at every step.
    batch_ends: IntArray
    #: (updates,) mean number of arms that the eliminations left, by policy; empty for a learner with compiled steps.
    survivors: FloatArray
    #: Σ_t (expected reward of the best linear policy in hindsight - expected reward of the chosen arm): what is lost to
    #: what can be learned. Below 0 for a learner that beats it.
    linear_regret: float

    def summary(self) -> dict[str, str | float]:
        """What ``--json`` prints."""
        names = ("learner", "horizon", "seed", "regret", "policies", "seconds", "linear_regret", "world")
        return {name: getattr(self, name) for name in names}


def checkpoints(horizon: int) -> IntArray:
    """Where a run's regret is read off: the same for every learner, dense at the start and at the end.

    >>> checkpoints(5).tolist()
    [1, 2, 3, 4, 5]
    """
    even = np.linspace(1, horizon, 200)
    early = np.geomspace(1, horizon, 100)
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


class Recorder:
    """Regret read off at the checkpoints, and the life of each policy."""

    def __init__(self, horizon: int) -> None:
        self.began = time.perf_counter()
        self.horizon = horizon
        self.times = checkpoints(horizon)
        self.regrets = np.empty(len(self.times))
        self.total = 0.0
        self._read = 0
        self._made = 0
        self._left = 0
        self._ends: list[int] = []
        self._survivors: list[float] = []
        self._stepped = False

    def add(self, regrets: FloatArray, survivors: int | None) -> None:
        """Count the regrets of the next decisions, one after the other: it does not matter how they are cut.

        The survivors are their available arms in all; None where each decision had a policy of its own.
        """
        cumulative = np.cumsum(np.concatenate([[self.total], regrets]))
        upto = int(np.searchsorted(self.times, self._made + len(regrets), side="right"))
        self.regrets[self._read : upto] = cumulative[self.times[self._read : upto] - self._made]
        self._read, self.total = upto, float(cumulative[-1])
        self._made += len(regrets)
        self._stepped |= survivors is None
        self._left += survivors or 0

    def retire(self) -> None:
        """The current policy has made its last decision."""
        since = self._ends[-1] if self._ends else 0
        self._ends.append(self._made)
        self._survivors.append(self._left / (self._made - since))
        self._left = 0

    def run(self, state: State, world: World, *, seed: int, name: str | None) -> Run:
        """The finished run, which has come to this state."""
        return Run(
            learner=state.learner,
            world=repr(world) if name is None else name,
            seed=seed,
            policies=state.policies,
            seconds=time.perf_counter() - self.began,
            horizon=self.horizon,
            regret=self.total,
            linear_regret=self.total - unlearnable_regret(world, self.horizon, seed=seed),
            times=self.times,
            regrets=self.regrets,
            batch_ends=np.array([] if self._stepped else self._ends, dtype=np.int64),
            survivors=np.array([] if self._stepped else self._survivors),
        )


#: How many context entries are held at a time: 2 MiB of them, about what a processor's cache holds.
_CHUNK_NUMBERS = 1 << 18


def chunk_size(arms: int, dim: int) -> int:
    """Decisions per chunk. It depends on the sizes alone, so that sums are split in the same way in every run."""
    return max(16, min(8192, _CHUNK_NUMBERS // (arms * dim)))


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnRounds:
    """Consecutive rounds of a world, checked to be what was asked for."""

    world: World
    seed: int
    #: Number of the first round, which is the id of its decision.
    first: int
    sets: Sets
    #: (n, K)
    means: FloatArray

    @classmethod
    def of(cls, world: World, count: int, *, seed: int, first: int) -> "DrawnRounds":
        """Rounds ``first`` to ``first + count - 1``."""
        rounds = world.draw(count, seed=seed, first=first)
        name, shape = type(world).__name__, (count, world.arms, world.dim)
        if not isinstance(rounds, Rounds):
            raise InputError(f"the world {name} must draw Rounds; it drew a {type(rounds).__name__}.")
        for what, expected in (("contexts", shape), ("means", shape[:2])):
            if (drawn := np.shape(getattr(rounds, what))) != expected:
                raise InputError(f"the world {name} must draw {what} {expected}; it drew {drawn}.")
        means = finite_array(f"the means of {name}", rounds.means)
        return cls(
            world=world, seed=seed, first=first, sets=context_sets(rounds.contexts, rounds.available), means=means
        )

    def __len__(self) -> int:
        return len(self.means)

    def part(self, start: int, stop: int | None = None) -> "DrawnRounds":
        """Those from place ``start`` to before ``stop``."""
        at = slice(start, stop)
        return replace(self, first=self.first + start, sets=self.sets.part(at), means=self.means[at])

    def decide(self, policy: Policy) -> Decisions:
        """What a policy chooses in them."""
        return policy.decide(self.sets, ids=range(self.first, self.first + len(self)), seed=self.seed)

    def regrets(self, arms: IntArray) -> FloatArray:
        """(n,) what each choice loses to the best arm of its set, in expectation."""
        best = np.where(self.sets.available, self.means, -np.inf).max(axis=1)
        return np.asarray(best - self.means[np.arange(len(arms)), arms])

    def rewards(self, arms: IntArray) -> FloatArray:
        """(n,) what these choices pay. Rewards are keyed by the round, so every choice has its own already."""
        paid = self.world.rewards(self.means[np.arange(len(arms)), arms], seed=self.seed, first=self.first)
        return finite_array(f"the rewards of {type(self.world).__name__}", paid)

    def log(self, decisions: Decisions) -> DecisionLog:
        """What a learner may see of them."""
        return DecisionLog.of(self.sets, decisions, self.rewards(decisions.arms))


def draw_chunks(
    world: World, *, seed: int, start: int = 0, stop: int, chunk: int | None = None
) -> Iterator[DrawnRounds]:
    """The rounds from ``start`` to before ``stop``, chunk by chunk."""
    chunk = chunk_size(world.arms, world.dim) if chunk is None else chunk
    for first in range(start, stop, chunk):
        yield DrawnRounds.of(world, min(chunk, stop - first), seed=seed, first=first)


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
    for drawn in draw_chunks(world, seed=seed, stop=horizon):
        chosen = np.where(drawn.sets.available, drawn.sets.contexts @ theta, -np.inf).argmax(axis=1)
        lost += float(drawn.regrets(chosen).sum())
    return lost


def check_run(learner: Learner, world: World, *, horizon: int | None, seed: int, agents: int) -> int:
    """How many decisions a run has; refused are worlds and horizons that are not those of the learner."""
    whole("seed", seed, low=0, high=None)
    known = learner.clock.horizon if learner.horizon is None else learner.horizon
    if known is None and horizon is None:
        raise ParameterError(f"{learner.name} does not know its horizon: give the number of decisions, horizon=….")
    total = whole("horizon", known if horizon is None else horizon, low=2)
    if known is not None and known != total:
        raise ParameterError(f"the learner is for {known} decisions, and {total} were asked for. Leave horizon out.")
    whole("agents", agents, high=total)
    if world.dim != learner.dim or (learner.arms is not None and world.arms > learner.arms):
        most = "any number of" if learner.arms is None else f"at most {learner.arms}"
        raise InputError(
            f"the learner is for {most} arms in {learner.dim} dimensions, the world has {world.arms} in {world.dim}. "
            "Make a learner of that size, or choose another world."
        )
    check_length(world, total)
    return total


def check_length(world: World, horizon: int) -> None:
    """Refuse a horizon that is longer than the world."""
    rounds = getattr(world, "rounds", None)
    if isinstance(rounds, int) and rounds < horizon:
        raise InputError(
            f"the world {type(world).__name__} has {rounds} rounds and the horizon is {horizon}. Make the horizon "
            "shorter or the sequence longer."
        )


def simulate(
    learner: Learner,
    world: World,
    *,
    seed: int,
    horizon: int | None = None,
    cap: int | None = None,
    agents: int = 1,
    min_propensity: MinPropensity | None = None,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Run a learner from its beginning.

    Parameters
    ----------
    seed
        Keys contexts, hidden parameter, noise and decisions. Two learners with the same seed see the same world.
    horizon
        The number of decisions; the learner's own by default. Required where the learner has none.
    cap
        The most policies that may be deployed, the first included. The loop holds to it: when they are used up, the
        last one decides to the end, whatever the learner's clock says.
    agents
        How many act at each time step, with the same policy: where the next one is due within a step, it comes at the
        step's end. For learners that change when they have seen enough; the horizon counts all decisions. Where batches
        end at known decisions, :func:`~rareswitch.collaborate` shares them instead.
    min_propensity
        The least probability of every offered arm, in all policies of the run; worlds do not name arms.
    name
        How the run's world is called; its ``repr`` by default.
    progress
        Called with the number of decisions made so far, about once a chunk.

    Examples
    --------
    >>> from rareswitch.lab.distributions import Gaussian
    >>> from rareswitch.lab.worlds import LinearWorld
    >>> from rareswitch.learner import OFUL, BatchLinUCBKW
    >>> world = LinearWorld(source=Gaussian(dim=4, arms=8))
    >>> run = simulate(BatchLinUCBKW(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1)
    >>> run.policies, run.batch_ends.tolist()
    (4, [44, 299, 773, 2000])
    >>> simulate(OFUL(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1, cap=3).policies
    3
    """
    total = check_run(learner, world, horizon=horizon, seed=seed, agents=agents)
    if agents > 1 and not (learner.clock.uses_features or learner.clock.every_step):
        raise UnsuitableError(
            f"{learner.name} learns at the ends of batches, which agents can share: use collaborate(agents={agents}). "
            "Steps of many agents are for learners that change when they have seen enough, such as oful."
        )
    chunk = -(-chunk_size(world.arms, world.dim) // agents) * agents
    # with more arms than that, asking what each would pay takes longer than steps
    alone = agents == 1 and min_propensity is None
    steps = alone and learner.clock.every_step and world.arms <= chunk and total == learner.horizon
    walker = find_walker(learner) if steps else None
    state, most = learner.begin(min_propensity=min_propensity), None if cap is None else whole("cap", cap)
    loop = Loop(learner, state, agents=agents, cap=most, window=chunk, horizon=total)
    for drawn in draw_chunks(world, seed=seed, stop=total, chunk=chunk):
        loop.take(drawn, walker)
        if progress is not None:
            progress(drawn.first + len(drawn))
    loop.recorder.retire()
    return loop.recorder.run(loop.state, world, seed=seed, name=name)


class Loop:
    """A run under way: the state, what the current policy has done, and what is recorded."""

    def __init__(
        self, learner: Learner, state: State, *, agents: int, cap: int | None, window: int, horizon: int
    ) -> None:
        self.learner, self.state, self.agents, self.cap = learner, state, agents, cap
        #: Decisions that are looked ahead at a time, at the most and now.
        self.longest = self.window = window
        self.summary: Summary | None = None
        #: What may be summed again when the batch ends.
        self.logs: list[DecisionLog] = []
        self.recorder = Recorder(horizon)

    def take(self, drawn: DrawnRounds, walker: Walker | None) -> None:
        """Play the rounds of a chunk."""
        self.learner.check(drawn.sets)
        arms = range(drawn.world.arms)
        # what each arm would pay
        table = None if walker is None else np.column_stack([drawn.rewards(np.full(len(drawn), arm)) for arm in arms])
        while len(drawn):
            if self.state.policies == self.cap or self.state.done:
                # no further policy may be made, so nothing more is learned
                self._record(drawn, drawn.decide(self.state.policy))
                return
            if walker is not None and table is not None:
                done = self._walk(drawn, walker, table[-len(drawn) :])
            else:
                done = self._stretch(drawn)
            drawn = drawn.part(done)

    def _record(self, drawn: DrawnRounds, decisions: Decisions) -> None:
        self.recorder.add(drawn.regrets(decisions.arms), int(decisions.survivors.sum()))

    def _walk(self, drawn: DrawnRounds, walker: Walker, table: FloatArray) -> int:
        changes = len(drawn) if self.cap is None else self.cap - self.state.policies
        self.state, arms = walker(self.state, drawn.sets, table, changes)
        self.recorder.add(drawn.part(0, len(arms)).regrets(arms), None)
        return len(arms)

    def _stretch(self, drawn: DrawnRounds) -> int:
        """Decide until the next policy is due, the batch ends or the chunk does."""
        # looking far ahead is wasted where the next policy comes soon: mostly after the number of decisions of the last
        ahead = min(len(drawn), self.state.stop - drawn.first, self.window)
        drawn = drawn.part(0, -(-ahead // self.agents) * self.agents)
        decisions = drawn.decide(self.state.policy)
        due = self.learner.due(self.state, drawn.sets, decisions, self.summary)
        self.window = min(self.longest, 2 * self.window)
        if due is not None:
            drawn = drawn.part(0, -(-due // self.agents) * self.agents)
            decisions = decisions.upto(len(drawn))
        self._record(drawn, decisions)
        log = drawn.log(decisions)
        part = self.learner.summarize(self.state, log, part=True)
        self.summary = part if self.summary is None else self.summary + part
        if part.expanded:
            self.logs.append(log.without_offers())
        if due is not None:
            self.window = min(self.longest, max(16, self.summary.decided))
        if due is not None or self.state.start + self.summary.decided >= self.state.stop:
            self.state = self.learner.next(self.state, self.learner.fitted(self.state, self.summary, self._again))
            self.summary, self.logs = None, []
            if not self.state.done:
                self.recorder.retire()
        return len(drawn)

    def _again(self, state: State) -> Summary:
        """The batch's decisions, summed at another state."""
        return reduce(add, (self.learner.summarize(state, log, part=True) for log in self.logs))
