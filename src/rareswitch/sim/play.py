"""A frozen policy in a simulated world: the decisions of its batch, written as a log."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rareswitch.env import World
from rareswitch.errors import BatchError, FileFormatError
from rareswitch.learner import sampled
from rareswitch.log import LogWriter
from rareswitch.rng import uniforms_at
from rareswitch.sim.rounds import check_match, chunk_size, play_rounds
from rareswitch.store import Deployment
from rareswitch.validation import number, whole


def play(
    deployment: Deployment,
    world: World,
    *,
    seed: int,
    folder: str | Path,
    parts: int = 4,
    count: int | None = None,
    missing: float = 0.0,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """Let the current policy make the decisions of its batch, and write them as ``part-BATCH-NUMBER.parquet``.

    Parameters
    ----------
    seed
        Keys contexts, hidden parameter, noise and decisions; the same in every batch for the same world.
    folder
        Where the parts shall be; it is made if it is not there. If something goes wrong none of this batch stays.
    parts
        Into how many files the batch is cut; no more than it has decisions.
    count
        How many decisions; as many as are planned by default.
    missing
        Share of the rewards that are not known.
    again
        Whether parts of this batch that are there, as after a kill, are replaced; by default they are an error.
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
    learner, state, folder = deployment.learner, deployment.state, Path(folder)
    whole("seed", seed, low=0)
    number("missing", missing, low=0.0, high=1.0)
    if state.done:
        raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
    count = state.ahead[0] if count is None else whole("count", count)
    parts = min(whole("parts", parts), count)
    check_match(learner, world, state.start + count)
    ends = (state.start + np.linspace(0, count, parts + 1).astype(np.int64)).tolist()
    paths = [folder / f"part-{state.updates:04d}-{k:04d}.parquet" for k in range(1, parts + 1)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: no folder can be made there ({error.strerror or error}).") from error
    _make_room(folder, f"part-{state.updates:04d}-*.parquet", again)
    share = min(1.0, 2 * learner.sample_size(state) / count)
    written: list[Path] = []
    try:
        for path, first, stop in zip(paths, ends, ends[1:], strict=False):
            with LogWriter(path, dim=learner.dim, policy_id=state.policy.id) as part:
                chunk = chunk_size(world.arms, world.dim)
                for played in play_rounds(learner, state.policy, world, seed=seed, start=first, stop=stop, chunk=chunk):
                    rows, sets = played.rows, played.sets
                    kept = np.flatnonzero(sampled(rows.ids, share)).tolist()
                    unknown = uniforms_at(seed, "missing", rows.ids) < missing
                    part.write(
                        ids=range(played.first, played.first + len(rows)),
                        features=rows.features,
                        propensities=played.decisions.propensities,
                        rewards=np.where(unknown, np.nan, rows.rewards),
                        contexts={played.first + s: sets.contexts[s][sets.alive[s]] for s in kept},
                    )
                    if progress is not None:
                        progress(played.first + len(rows) - state.start)
            written.append(path)
    except BaseException:
        for path in written:
            path.unlink()
        raise
    return written


def _make_room(folder: Path, pattern: str, again: bool) -> None:
    """Refuse parts of the batch that are there, or remove them; what a killed writer left hidden is no part."""
    there = sorted(folder.glob(pattern))
    if there and not again:
        raise FileFormatError(
            f"{there[0]}: exists already, with {len(there) - 1} more parts of this batch. Remove the files {pattern} "
            f"of {folder}, or replace them: --again, again=True."
        )
    for path in [*there, *folder.glob(f".{pattern}.*.tmp")] if again else []:
        path.unlink(missing_ok=True)
