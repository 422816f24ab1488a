"""A frozen policy in a simulated world: the decisions of its batch, written as a log."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rareswitch.env import World
from rareswitch.errors import BatchError
from rareswitch.files import making_folder
from rareswitch.learner import sampled
from rareswitch.log import LogWriter
from rareswitch.rng import uniforms_at
from rareswitch.sim.rounds import check_match, chunk_size, play_rounds
from rareswitch.store import Deployment, check_fresh
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
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """Let the current policy make the decisions of its batch, and write them as ``part-BATCH-NUMBER.parquet``.

    Parameters
    ----------
    seed
        Keys contexts, hidden parameter, noise and decisions; the same in every batch for the same world.
    folder
        A fresh folder for the parts, which appears with all of them or not at all.
    parts
        Into how many files the batch is cut; no more than it has decisions.
    count
        How many decisions; as many as are planned by default.
    missing
        Share of the rewards that are not known.
    progress
        Called with the number of decisions made so far.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.env import make_world
    >>> now = Deployment.begin("foresight", dim=3, horizon=100)
    >>> world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    >>> [path.name for path in play(now, world, seed=1, folder=Path(tempfile.mkdtemp()) / "logs", parts=2)]
    ['part-0001-0001.parquet', 'part-0001-0002.parquet']
    """
    learner, state = deployment.learner, deployment.state
    whole("seed", seed, low=0)
    number("missing", missing, low=0.0, high=1.0)
    if state.done:
        raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
    count = state.ahead[0] if count is None else whole("count", count)
    parts = min(whole("parts", parts), count)
    check_match(learner, world, state.start + count)
    ends = (state.start + np.linspace(0, count, parts + 1).astype(np.int64)).tolist()
    names = [f"part-{state.updates:04d}-{k:04d}.parquet" for k in range(1, parts + 1)]
    share = min(1.0, 2 * learner.sample_size(state) / count)
    check_fresh(folder, "a log")
    with making_folder(folder) as temporary:
        for name, first, stop in zip(names, ends, ends[1:], strict=False):
            with LogWriter(temporary / name, dim=learner.dim, policy_id=state.policy.id) as part:
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
    return [Path(folder) / name for name in names]
