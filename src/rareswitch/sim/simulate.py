"""One run: a learner in a world, in chunks, so that memory does not grow with the horizon."""

import time
from collections.abc import Callable

import numpy as np

from rareswitch.env import Rounds, World
from rareswitch.errors import InputError
from rareswitch.learner import BatchedLearner, Feedback, Summary
from rareswitch.sim.run import Run, checkpoints
from rareswitch.validation import Sets, context_sets, finite_array, whole

_CHUNK_NUMBERS = 1 << 18
"""How many context entries are held at a time: 2 MiB of them, about what a processor's cache holds."""


def chunk_size(arms: int, dim: int) -> int:
    """Decisions per chunk. It depends on the sizes alone, so that sums are split in the same way in every run."""
    return max(16, min(8192, _CHUNK_NUMBERS // (arms * dim)))


def simulate(
    learner: BatchedLearner,
    world: World,
    *,
    seed: int,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Run a fresh learner to its horizon.

    Parameters
    ----------
    seed
        Keys contexts, hidden parameter, noise and decisions. Two learners with the same seed see the same world.
    name
        How the run's world is called; its ``repr`` by default.
    progress
        Called with the number of decisions made so far, about once a chunk.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> from rareswitch.env import LinearWorld
    >>> from rareswitch.learner import BatchLinUCBKW
    >>> world = LinearWorld(source=Gaussian(dim=4, arms=8))
    >>> run = simulate(BatchLinUCBKW(dim=4, arms=8, horizon=2000, noise=0.5), world, seed=1)
    >>> run.updates, run.batch_ends.tolist()
    (4, [44, 299, 773, 2000])
    """
    whole("seed", seed, low=0)
    if learner.start or learner.done:
        raise InputError("simulate needs a fresh learner; this one has begun a run already. Make a new one.")
    if (world.dim, world.arms) != (learner.dim, learner.arms):
        raise InputError(
            f"the learner is for {learner.arms} arms in {learner.dim} dimensions, the world has {world.arms} in "
            f"{world.dim}."
        )
    began = time.perf_counter()
    chunk = chunk_size(world.arms, world.dim)
    times = checkpoints(learner.horizon)
    regrets = np.empty(len(times))
    total, read = 0.0, 0
    ends: list[int] = []
    survivors: list[float] = []
    while not learner.done:
        start, stop, policy = learner.start, learner.stop, learner.policy
        summary: Summary | None = None
        left: int = 0
        first: int = start
        while first < stop:
            count = min(stop, (first // chunk + 1) * chunk) - first
            rounds = world.draw(count, seed=seed, first=first)
            sets = check_rounds(world, rounds, count)
            decisions = policy.decide(sets, seed=seed, first=first)
            expected = rounds.means[np.arange(count), decisions.arms]
            best = rounds.means if rounds.alive is None else np.where(rounds.alive, rounds.means, -np.inf)
            rewards = np.asarray(world.rewards(expected, seed=seed, first=first))
            feedback = Feedback.of(sets, decisions, rewards)
            part = learner.summarize(feedback)
            summary = part if summary is None else summary + part
            cumulative = total + np.cumsum(best.max(axis=1) - expected)
            upto = int(np.searchsorted(times, first + count, side="right"))
            regrets[read:upto] = cumulative[times[read:upto] - first - 1]
            read, total = upto, float(cumulative[-1])
            left += int(decisions.survivors.sum())
            first += count
            if progress is not None:
                progress(first)
        assert summary is not None  # a batch is never empty
        learner.next(summary)
        ends.append(stop)
        survivors.append(left / (stop - start))
    return Run(
        learner=learner.name,
        world=repr(world) if name is None else name,
        horizon=learner.horizon,
        seed=seed,
        regret=total,
        updates=learner.updates,
        seconds=time.perf_counter() - began,
        times=times,
        regrets=regrets,
        batch_ends=np.array(ends),
        survivors=np.array(survivors),
    )


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
