"""The decisions that a gate holds out, as they are evaluated."""

from collections.abc import Iterator, Sequence

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.experiment.description import Description
from rareswitch.experiment.gate import Gate
from rareswitch.experiment.versions import Version
from rareswitch.ids import keys_of_bytes
from rareswitch.log import Logged
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, reward_value


def held_out_decisions(
    description: Description, store: Store, version: Version, marks: Marks, *, now: float, gate: Gate
) -> Iterator[Logged]:
    """Those of the current policy up to the marks, some at a time, with their rewards as learners count them."""
    held_out = gate.held_out(description.keep)
    for _, some in store.rows(0, marks):
        mine = [(row, rewards) for row, rewards in some if row.version == version.number and row.contexts]
        if mine:
            which = held_out.among(keys_of_bytes(b"".join(row.key for row, _ in mine), len(mine)))
            if which.any():
                yield _logged(description, version, [mine[at] for at in np.flatnonzero(which)], now)


def _logged(
    told: Description, version: Version, rows: Sequence[tuple[DecisionRow, list[RewardRow]]], now: float
) -> Logged:
    dim = told.learner.dim
    sets = ContextSets.from_ragged(
        [np.frombuffer(row.contexts or b"", dtype="<f8").reshape(-1, dim) for row, _ in rows]
    )
    values = np.full(len(rows), np.nan)
    for at, (row, rewards) in enumerate(rows):
        window = told.rewards.window
        if window is not None and now - row.time < window:
            continue
        held = [one for one in rewards if window is None or one.time - row.time <= window]
        value = reward_value([one.value for one in held], sums=told.rewards.sums)
        value = told.rewards.default if value is None else value
        values[at] = np.nan if value is None else value
    return Logged(
        places=np.array([row.place for row, _ in rows]),
        propensities=np.array([row.propensity for row, _ in rows]),
        rewards=values,
        contexts=sets.contexts,
        alive=sets.alive,
        baselines=np.array([-1 if row.baseline is None else row.baseline for row, _ in rows]),
        ids=keys_of_bytes(b"".join(row.key for row, _ in rows), len(rows)),
        batch_names=(version.policy.id,),
    )
