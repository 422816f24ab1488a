"""Logs row by row: written by plain lists, and counted again in plain Python."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from rareswitch.contexts import ContextSets
from rareswitch.env import make_world
from rareswitch.learner import Learner, Summary
from rareswitch.log import Deployment, log_schema
from rareswitch.stats import Stats


@dataclass(frozen=True)
class Row:
    """One row of a log."""

    decision: int
    policy: str
    features: tuple[float, ...]
    propensity: float
    reward: float | None
    contexts: tuple[float, ...] | None = None


def write_rows(path: Path, rows: Sequence[Row], dim: int, schema: Any = None) -> None:
    """A part with these rows."""
    schema = log_schema(dim) if schema is None else schema
    columns = {name: [getattr(row, name) for row in rows] for name in schema.names}
    parquet.write_table(pa.table(columns, schema=schema), path)


def played(
    deployment: Deployment, *, env: str = "gaussian", arms: int = 5, seed: int = 1, everywhere: bool = False
) -> list[Row]:
    """The rows of the current batch in a world, with the offered arms where they are sampled, or everywhere."""
    learner = deployment.learner
    world = make_world(env, dim=learner.dim, arms=arms, noise=0.5)
    count = learner.stop - learner.start
    rounds = world.draw(count, seed=seed, first=learner.start)
    decided = deployment.policy.decide(rounds.contexts, seed=seed, first=learner.start)
    rewards = world.rewards(rounds.means[range(count), decided.arms], seed=seed, first=learner.start)
    sampled = learner.sampled(learner.start + np.arange(count)) | everywhere
    return [
        Row(
            decision=learner.start + s,
            policy=deployment.policy.id,
            features=tuple(rounds.contexts[s, decided.arms[s]].tolist()),
            propensity=float(decided.propensities[s]),
            reward=float(rewards[s]),
            contexts=tuple(rounds.contexts[s].reshape(-1).tolist()) if sampled[s] else None,
        )
        for s in range(count)
    ]


def messy(rows: list[Row], strangers: list[str], *, seed: int, parts: int = 4) -> list[list[Row]]:
    """Rows with everything that can befall a log, dealt out to parts, of which the last is empty."""
    draw = random.Random(seed)
    start, stop = rows[0].decision, rows[-1].decision + 1
    found = []
    for row in rows:
        fate = draw.random()
        if fate < 0.08:
            continue
        if fate < 0.16:
            row = replace(row, reward=None)
        if fate > 0.9 and row.contexts is not None:
            row = replace(row, contexts=None)
        found.append(row)
        while draw.random() < 0.2:
            found.append(draw.choice([_copied, _changed])(row, draw))
    for row in draw.choices(rows, k=len(rows) // 8):
        found.append(replace(row, policy=draw.choice(strangers)))
        found.append(replace(row, decision=draw.choice([start - 1, stop, stop + 7, 10**9])))
    draw.shuffle(found)
    cuts = sorted(draw.randrange(len(found)) for _ in range(parts - 2))
    return [found[a:b] for a, b in zip([0, *cuts], [*cuts, len(found)], strict=True)] + [[]]


def _copied(row: Row, draw: random.Random) -> Row:
    return row


def _changed(row: Row, draw: random.Random) -> Row:
    field = draw.choice(["features", "propensity", "reward", "contexts"])
    if field == "features":
        return replace(row, features=(*row.features[:-1], row.features[-1] / 2))
    if field == "propensity":
        return replace(row, propensity=row.propensity / 2)
    if field == "reward":
        return replace(row, reward=1.25 if row.reward is None else draw.choice([None, -row.reward]))
    # offered arms matter only where they are sampled: a change elsewhere is no change
    return replace(row, contexts=None if row.contexts else tuple(row.features))


@dataclass(frozen=True)
class Recount:
    """What a log holds, and the summary that follows from it."""

    counts: dict[str, Any]
    summary: Summary | None


def recount(parts: list[list[Row]], deployment: Deployment, *, batch: int = 1 << 16) -> Recount:
    """Everything anew, row by row."""
    learner = deployment.learner
    history = {policy.id for policy in deployment.policies}
    earlier: Counter[str] = Counter()
    foreign: Counter[str] = Counter()
    outside = 0
    groups: dict[int, list[Row]] = {}
    for part in parts:
        for row in part:
            if row.policy != deployment.policy.id:
                (earlier if row.policy in history else foreign)[row.policy] += 1
            elif not learner.start <= row.decision < learner.stop:
                outside += 1
            else:
                groups.setdefault(row.decision, []).append(row)
    seen = {decision: {_read(row, learner) for row in rows} for decision, rows in groups.items()}
    good = {decision: rows[0] for decision, rows in groups.items() if len(seen[decision]) == 1}
    bad = set(groups) - set(good)
    known = {decision for decision, row in good.items() if row.reward is not None}
    sampled = [d for d in range(learner.start, learner.stop) if learner.sampled(np.array([d]))[0]]
    offered = {d: good[d].contexts for d in sampled if d in good and good[d].contexts}
    counts = {
        "policy": deployment.policy.id,
        "start": learner.start,
        "stop": learner.stop,
        "parts": len(parts),
        "empty_parts": sum(not part for part in parts),
        "rows": sum(map(len, parts)),
        "used": len(known),
        "unrewarded": len(good) - len(known),
        "surplus": sum(len(groups[d]) - 1 for d in good),
        "conflicting": len(bad),
        "conflicting_rows": sum(len(groups[d]) for d in bad),
        "outside": outside,
        "earlier": dict(earlier),
        "foreign": dict(foreign),
        "absent": learner.stop - learner.start - len(groups),
        "sets": len(offered),
        "absent_sets": len(sampled) - len(offered),
    }
    once = [
        [r for r in p if r.policy == deployment.policy.id and r.decision in known and len(groups[r.decision]) == 1]
        for p in parts
    ]
    again = [good[decision] for decision in sorted(known) if len(groups[decision]) > 1]
    stats = [_stats(part, learner, chunks=_chunks(whole, part, batch)) for whole, part in zip(parts, once, strict=True)]
    stats += [_stats(again, learner, chunks=[again])] if again else []
    total = stats[0]
    for more in stats[1:]:
        total = tuple(a + b if b.count else a for a, b in zip(total, more, strict=True))
    sets = [np.array(offered[d]).reshape(-1, learner.dim) for d in sorted(offered)]
    sample = learner.keep(ContextSets.from_ragged(sets)) if sets else None
    summary = Summary(
        start=learner.start, stop=learner.stop, policy_id=deployment.policy.id, stats=total, sample=sample
    )
    return Recount(counts, summary)


def _read(row: Row, learner: Learner) -> tuple[Any, ...]:
    """All that an update looks at."""
    wanted = learner.sampled(np.array([row.decision]))[0]
    return row.features, row.propensity, row.reward, (row.contexts or None) if wanted else None


def _chunks(whole: list[Row], part: list[Row], batch: int) -> list[list[Row]]:
    """The rows that are used, by the batches of rows in which the file is read."""
    chosen = {id(row) for row in part}
    batches = [whole[first : first + batch] for first in range(0, len(whole), batch)]
    return [[row for row in rows if id(row) in chosen] for rows in batches]


def _stats(rows: list[Row], learner: Learner, chunks: list[list[Row]]) -> tuple[Stats, ...]:
    total: tuple[Stats, ...] | None = None
    for chunk in [chunk for chunk in chunks if chunk] or [[]]:
        more = learner.statistics(
            np.array([row.decision for row in chunk], dtype=np.int64),
            np.array([row.features for row in chunk]).reshape(-1, learner.dim),
            np.array([row.reward for row in chunk], dtype=np.float64),
        )
        total = more if total is None else tuple(a + b if b.count else a for a, b in zip(total, more, strict=True))
    assert total is not None
    return total
