"""A frozen policy in a simulated world: the decisions of its batch, written as a log."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rareswitch.env import World
from rareswitch.errors import BatchError, FileFormatError
from rareswitch.learner import Learner
from rareswitch.log import Deployment, LogWriter
from rareswitch.sim.simulate import check_length, check_rounds, check_sizes, chunk_size
from rareswitch.validation import whole


def play(
    deployment: Deployment,
    world: World,
    *,
    seed: int,
    folder: str | Path,
    parts: int = 4,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """Let the current policy make all decisions of its batch, and write them as ``part-BATCH-NUMBER.parquet``.

    Parameters
    ----------
    seed
        Keys contexts, hidden parameter, noise and decisions; the same in every batch for the same world.
    folder
        Where the parts shall be; it is made if it is not there. A part that is there is not overwritten, and if
        something goes wrong none of this batch stays.
    parts
        Into how many files the batch is cut; no more than it has decisions.
    progress
        Called with the number of decisions made so far.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.env import make_world
    >>> now = Deployment.begin("foresight", dim=3, horizon=100)
    >>> world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    >>> [path.name for path in play(now, world, seed=1, folder=tempfile.mkdtemp(), parts=2)]
    ['part-0001-0001.parquet', 'part-0001-0002.parquet']
    """
    learner, folder = deployment.learner, Path(folder)
    whole("seed", seed, low=0)
    whole("parts", parts)
    if learner.done:
        raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
    check_sizes(learner, world)
    check_length(world, learner.stop)
    parts = min(parts, learner.stop - learner.start)
    ends = np.linspace(learner.start, learner.stop, parts + 1).astype(np.int64).tolist()
    paths = [folder / f"part-{learner.updates:04d}-{k:04d}.parquet" for k in range(1, parts + 1)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: no folder can be made there ({error.strerror or error}).") from error
    written: list[Path] = []
    try:
        for path, first, stop in zip(paths, ends, ends[1:], strict=False):
            with LogWriter(path, dim=learner.dim, policy_id=learner.policy.id) as part:
                while first < stop:
                    count = min(stop - first, chunk_size(world.arms, world.dim))
                    _decide(learner, world, part, seed=seed, first=first, count=count)
                    first += count
                    if progress is not None:
                        progress(first - learner.start)
            written.append(path)
    except BaseException:
        for path in written:
            path.unlink()
        raise
    return written


def _decide(learner: Learner, world: World, part: LogWriter, *, seed: int, first: int, count: int) -> None:
    """Make so many decisions and add them to a part."""
    rounds = world.draw(count, seed=seed, first=first)
    sets = check_rounds(world, rounds, count)
    learner.check(sets)
    decided = learner.policy.decide(sets, seed=seed, first=first)
    at = np.arange(count)
    sampled = np.flatnonzero(learner.sampled(first + at)).tolist()
    part.write(
        decisions=first + at,
        features=sets.contexts[at, decided.arms],
        propensities=decided.propensities,
        rewards=world.rewards(rounds.means[at, decided.arms], seed=seed, first=first),
        contexts={first + s: sets.contexts[s][sets.alive[s]] for s in sampled},
    )
