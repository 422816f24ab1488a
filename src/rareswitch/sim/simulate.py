"""One run: a learner in a world, in chunks, so that memory does not grow with the horizon."""

import time
from collections.abc import Callable

import numpy as np

from rareswitch.env import Rounds, World
from rareswitch.errors import InputError
from rareswitch.learner import Feedback, Learner, Summary, Walker
from rareswitch.sim.run import Run
from rareswitch.sim.tally import Tally
from rareswitch.validation import FloatArray, Sets, context_sets, finite_array, whole

_CHUNK_NUMBERS = 1 << 18
"""How many context entries are held at a time: 2 MiB of them, about what a processor's cache holds."""


def chunk_size(arms: int, dim: int) -> int:
    """Decisions per chunk. It depends on the sizes alone, so that sums are split in the same way in every run."""
    return max(16, min(8192, _CHUNK_NUMBERS // (arms * dim)))


def simulate(
    learner: Learner,
    world: World,
    *,
    seed: int,
    cap: int | None = None,
    agents: int = 1,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Run a fresh learner to its horizon.

    Parameters
    ----------
    seed
        Keys contexts, hidden parameter, noise and decisions. Two learners with the same seed see the same world.
    cap
        The most policies that may be deployed, the first included. The loop holds to it: when they are used up, the
        last one decides to the end, whatever the learner's clock says.
    agents
        How many act at each time step, with the same policy: where the next one is due within a step, it comes at the
        step's end. For learners that change when they have seen enough; the horizon counts all decisions. Where batches
        end at known decisions, :func:`~rareswitch.collaborate` shares them instead.
    name
        How the run's world is called; its ``repr`` by default.
    progress
        Called with the number of decisions made so far, about once a chunk.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> from rareswitch.env import LinearWorld
    >>> from rareswitch.learner import OFUL, BatchLinUCBKW
    >>> world = LinearWorld(source=Gaussian(dim=4, arms=8))
    >>> run = simulate(BatchLinUCBKW(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1)
    >>> run.updates, run.batch_ends.tolist()
    (4, [44, 299, 773, 2000])
    >>> simulate(OFUL(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1, cap=3).updates
    3
    """
    whole("seed", seed, low=0)
    if cap is not None:
        whole("cap", cap)
    check_match(learner, world)
    if agents != 1:
        learner.act_together(agents)
    began = time.perf_counter()
    horizon = learner.horizon
    chunk = window = -(-chunk_size(world.arms, world.dim) // agents) * agents
    # with more arms than that, asking what each would pay takes longer than steps
    walker = learner if isinstance(learner, Walker) and learner.walks and world.arms <= chunk and agents == 1 else None
    tally = Tally(horizon)
    summary: Summary | None = None
    deployed = 1
    first = 0
    while first < horizon:
        count = min(horizon, (first // chunk + 1) * chunk) - first
        rounds = world.draw(count, seed=seed, first=first)
        sets = check_rounds(world, rounds, count)
        done = 0
        while done < count:
            rest = Sets(sets.contexts[done:], sets.alive[done:], False)
            frozen = deployed == cap  # no further policy may be made, so nothing more is learned
            if frozen or walker is not None:
                learner.check(rest)
            if walker is not None and not frozen:
                before = learner.updates
                table = potential_rewards(world, rounds, seed=seed, first=first)[done:]
                walk = walker.walk(rest, table, changes=horizon if cap is None else cap - deployed)
                deployed += learner.updates - before
                tally.add(rounds, done, walk.arms, None)
                tally.retired(walk.ends)
                done += len(walk.arms)
                continue
            # looking far ahead is wasted where the next policy comes soon
            ahead = count - done if frozen else min(count - done, learner.stop - first - done, window)
            ahead = min(count - done, -(-ahead // agents) * agents)
            near = Sets(rest.contexts[:ahead], rest.alive[:ahead], False)
            decisions = learner.policy.decide(near, seed=seed, first=first + done)
            due = None if frozen else learner.due(near, decisions, summary)
            window = min(chunk, 2 * window) if due is None else 16
            if due is not None:
                due = min(ahead, -(-due // agents) * agents)
                near, decisions = Sets(near.contexts[:due], near.alive[:due], False), decisions.upto(due)
            tally.add(rounds, done, decisions.arms, decisions.survivors)
            done += len(decisions.arms)
            if frozen:
                continue
            expected = rounds.means[np.arange(done - len(decisions.arms), done), decisions.arms]
            rewards = np.asarray(world.rewards(expected, seed=seed, first=decisions.first))
            part = learner.summarize(Feedback.of(near, decisions, rewards))
            summary = part if summary is None else summary + part
            if due is not None or first + done == learner.stop:
                learner.next(summary)
                summary = None
                if not learner.done:
                    deployed += 1
                    tally.retire()
        first += count
        if progress is not None:
            progress(first)
    tally.retire()
    return tally.run(
        learner=learner.name,
        world=repr(world) if name is None else name,
        seed=seed,
        updates=deployed,
        seconds=time.perf_counter() - began,
    )


def check_match(learner: Learner, world: World) -> None:
    """Refuse a learner that has begun a run, or is for other contexts than the world has."""
    if learner.start or learner.done:
        raise InputError("a run needs a fresh learner; this one has begun a run already. Make a new one.")
    check_sizes(learner, world)
    check_length(world, learner.horizon)


def check_sizes(learner: Learner, world: World) -> None:
    """Refuse a world with other features than the learner is for, or more arms."""
    if world.dim != learner.dim or world.arms > learner.arms:
        raise InputError(
            f"the learner is for at most {learner.arms} arms in {learner.dim} dimensions, the world has {world.arms} "
            f"in {world.dim}."
        )


def check_length(world: World, horizon: int) -> None:
    """Refuse a horizon that is longer than the world."""
    rounds = getattr(world, "rounds", None)
    if isinstance(rounds, int) and rounds < horizon:
        raise InputError(
            f"the world {type(world).__name__} has {rounds} rounds and the horizon is {horizon}. Make the horizon "
            "shorter or the sequence longer."
        )


def potential_rewards(world: World, rounds: Rounds, *, seed: int, first: int) -> FloatArray:
    """(n, K) what each arm would pay. Rewards are keyed by the round, so that every choice has its own already."""
    columns = [world.rewards(rounds.means[:, arm], seed=seed, first=first) for arm in range(world.arms)]
    return finite_array(f"the rewards of {type(world).__name__}", np.column_stack(columns))


def check_rounds(world: World, rounds: Rounds, count: int) -> Sets:
    """Refuse rounds that are not what the world was asked for, in its name."""
    name, wanted = type(world).__name__, (count, world.arms, world.dim)
    if not isinstance(rounds, Rounds):
        raise InputError(f"the world {name} must draw Rounds; it drew a {type(rounds).__name__}.")
    if np.shape(rounds.contexts) != wanted:
        raise InputError(f"the world {name} must draw contexts {wanted}; it drew {np.shape(rounds.contexts)}.")
    if np.shape(rounds.means) != wanted[:2]:
        raise InputError(f"the world {name} must draw means {wanted[:2]}; it drew {np.shape(rounds.means)}.")
    finite_array(f"the means of {name}", rounds.means)
    return context_sets(rounds.contexts, rounds.alive)
