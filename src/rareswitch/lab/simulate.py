"""One run: a learner in a world, in chunks, so that memory does not grow with the horizon."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add

from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.lab.compiled import Walker, find_walker
from rareswitch.lab.recorder import Recorder
from rareswitch.lab.rounds import Drawn, check_match, chunk_size, regrets, unlearnable_regret
from rareswitch.lab.run import Run
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, Rows, State, Summary
from rareswitch.policy import MinPropensity
from rareswitch.validation import FloatArray, whole


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
        How many decisions; the learner's own by default. It must be given where the learner does not know it.
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
    >>> from rareswitch.distributions import Gaussian
    >>> from rareswitch.lab.worlds import LinearWorld
    >>> from rareswitch.learner import OFUL, BatchLinUCBKW
    >>> world = LinearWorld(source=Gaussian(dim=4, arms=8))
    >>> run = simulate(BatchLinUCBKW(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1)
    >>> run.policies, run.batch_ends.tolist()
    (4, [44, 299, 773, 2000])
    >>> simulate(OFUL(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1, cap=3).policies
    3
    """
    whole("seed", seed, low=0)
    total = decisions_of(learner, horizon)
    check_match(learner, world, total)
    check_agents(learner, agents, total)
    chunk = -(-chunk_size(world.arms, world.dim) // agents) * agents
    # with more arms than that, asking what each would pay takes longer than steps
    alone = agents == 1 and min_propensity is None
    walker = find_walker(learner) if world.arms <= chunk and alone and total == learner.horizon else None
    state, most = learner.begin(min_propensity=min_propensity), None if cap is None else whole("cap", cap)
    loop = Loop(learner, state, agents=agents, cap=most, window=chunk, horizon=total)
    for first in range(0, total, chunk):
        drawn = Drawn.of(world, min(chunk, total - first), seed=seed, first=first)
        loop.take(drawn, walker)
        if progress is not None:
            progress(first + len(drawn.sets.contexts))
    loop.recorder.retire()
    seconds = time.perf_counter() - loop.recorder.began
    return loop.recorder.run(
        learner.name,
        repr(world) if name is None else name,
        seed=seed,
        policies=loop.state.policies,
        seconds=seconds,
        unlearnable=unlearnable_regret(world, total, seed=seed),
    )


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
        self.rows: list[Rows] = []
        self.recorder = Recorder(horizon)

    def take(self, drawn: Drawn, walker: Walker | None) -> None:
        """Play the rounds of a chunk."""
        self.learner.check(drawn.sets)
        table = None if walker is None else drawn.potential_rewards()
        done, count = 0, len(drawn.sets.contexts)
        while done < count:
            if self.state.policies == self.cap or self.state.done:
                # no further policy may be made, so nothing more is learned
                played = drawn.play(self.state.policy, done, count - done)
                self.recorder.add(played.regrets, int(played.decisions.survivors.sum()))
                done = count
            elif walker is not None and table is not None:
                done += self._walk(drawn, done, walker, table)
            else:
                done += self._stretch(drawn, done, count - done)

    def _walk(self, drawn: Drawn, done: int, walker: Walker, table: FloatArray) -> int:
        changes = drawn.first + len(drawn.sets.contexts) if self.cap is None else self.cap - self.state.policies
        walk = walker(self.state, drawn.sets.part(slice(done, None)), table[done:], changes)
        self.state = walk.state
        at = slice(done, done + len(walk.arms))
        self.recorder.add(regrets(drawn.rounds.means[at], drawn.sets.available[at], walk.arms), None)
        self.recorder.retired(walk.ends)
        return len(walk.arms)

    def _stretch(self, drawn: Drawn, done: int, left: int) -> int:
        """Decide until the next policy is due, the batch ends or the chunk does."""
        # looking far ahead is wasted where the next policy comes soon
        ahead = min(left, self.state.stop - drawn.first - done, self.window)
        ahead = min(left, -(-ahead // self.agents) * self.agents)
        played = drawn.play(self.state.policy, done, ahead)
        due = self.learner.due(self.state, played.sets, played.decisions, self.summary)
        self.window = min(self.longest, 2 * self.window) if due is None else 16
        if due is not None:
            played = played.upto(min(ahead, -(-due // self.agents) * self.agents))
        self.recorder.add(played.regrets, int(played.decisions.survivors.sum()))
        rows = played.rows
        part = self.learner.summarize(self.state, rows, part=True)
        self.summary = part if self.summary is None else self.summary + part
        if part.expanded:
            self.rows.append(replace(rows, sets=None, places=None))
        if due is not None or self.state.start + self.summary.decided >= self.state.stop:
            self.state = self.learner.next(self.state, self.learner.fitted(self.state, self.summary, self._again))
            self.summary, self.rows = None, []
            if not self.state.done:
                self.recorder.retire()
        return len(played.means)

    def _again(self, state: State) -> Summary:
        """The batch's rows, summed at another state."""
        return reduce(add, (self.learner.summarize(state, rows, part=True) for rows in self.rows))


def decisions_of(learner: Learner, horizon: int | None) -> int:
    """How many decisions a run has."""
    known = learner.clock.horizon if learner.horizon is None else learner.horizon
    if horizon is None:
        if known is None:
            raise ParameterError(f"{learner.name} does not know its horizon: say how many decisions, horizon=….")
        return known
    total = whole("horizon", horizon, low=2)
    if known is not None and known != total:
        raise ParameterError(f"the learner is for {known} decisions, and {total} were asked for. Leave horizon out.")
    return total


def check_agents(learner: Learner, agents: int, horizon: int) -> None:
    """Refuse steps of many agents where batches could be shared, and more agents than decisions."""
    if whole("agents", agents) > horizon:
        raise ParameterError(
            f"there are {agents} agents for {horizon} decisions, so not even one step is whole. Use at most {horizon}."
        )
    if agents > 1 and not (learner.clock.uses_features or learner.clock.every_step):
        raise UnsuitableError(
            f"{learner.name} learns at the ends of batches, which agents can share: use collaborate(agents={agents}). "
            "Steps of many agents are for learners that change when they have seen enough, such as oful."
        )
