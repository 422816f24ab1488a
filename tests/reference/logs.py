"""Logs row by row: written by plain lists, and counted again in plain Python."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from rareswitch.core import ContextSets, id_keys, sample_order
from rareswitch.decisions import DecisionLog
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Learner, Sample, State, Summary, make_learner
from rareswitch.log import ParquetLog, log_schema, summarize
from rareswitch.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Run:
    """A learner and where it stands, with what it learned from."""

    learner: Learner
    state: State
    #: Those that retired, and the current one.
    policies: tuple[Policy, ...]
    #: Of each update, the summary of its batch and those of earlier ones.
    learned: tuple[tuple[Summary, ...], ...] = ()

    @classmethod
    def of(cls, learner: Learner, state: State) -> "Run":
        return cls(learner=learner, state=state, policies=(state.policy,))

    @classmethod
    def begin(cls, name: str, **settings: Any) -> "Run":
        learner = make_learner(name, **settings)
        return cls.of(learner, learner.begin())

    @property
    def policy(self) -> Policy:
        return self.state.policy

    def advance(self, summary: Summary, *, late: Sequence[Summary] = (), forecast: Any = None) -> "Run":
        state = self.learner.next(self.state, summary, late=late, forecast=forecast)
        policies, learned = (*self.policies, state.policy), (*self.learned, (summary, *late))
        return replace(self, state=state, policies=policies, learned=learned)


class Updated(NamedTuple):
    """A run after a log was learned from."""

    run: Run
    log: ParquetLog
    counts: dict[str, Any]


def update(
    run: Run, paths: Sequence[str | Path], *, late: bool = True, executor: Any = None, **options: Any
) -> Updated:
    """Learn from a log; of earlier batches too, where policies rest on them."""
    learner, state = run.learner, run.state
    past, current = [batch.policy_id for batch in state.past], state.policy.id
    options |= {"only": [*past, current], "dim": learner.dim, "executor": executor}
    log = ParquetLog(paths, **options)
    pooled = late and learner.parts.statistics.pooled
    summary, *earlier = (
        summarize(learner, state, log, policy_id=name, executor=executor)
        for name in [current, *(name for name in past if pooled and log.rows[name])]
    )
    counts = counts_of(log, state, summary)
    assert log.rows[current] == sum(counts[name] for name in ("decided", "copies", "conflicting_rows"))
    return Updated(run.advance(summary, late=earlier), log, counts)


def counts_of(log: Any, state: State, summary: Summary) -> dict[str, Any]:
    """Every row under one name; ``log`` has rows by policy, and which were copies or contradicted each other."""
    current, past = state.policy.id, {batch.policy_id for batch in state.past}
    return {
        "rows": log.rows.total(),
        "decided": summary.decided,
        "used": summary.rewarded,
        "waiting": summary.waiting,
        "expired": summary.expired,
        "copies": log.copies_of[current],
        "conflicting": log.conflicting[current],
        "conflicting_rows": log.conflicting_rows[current],
        "late": sum(log.rows[name] for name in past),
        "foreign": {name: rows for name, rows in log.rows.items() if name not in past | {current}},
        "sets": 0 if summary.sample is None else len(summary.sample),
    }


@dataclass(frozen=True)
class Row:
    """One row of a log."""

    id: int | str
    policy: str
    features: tuple[float, ...]
    propensity: float
    reward: float | None
    contexts: tuple[float, ...] | None = None
    time: float | None = None
    reward_time: float | None = None


def write_rows(path: Path, rows: Sequence[Row], dim: int, schema: Any = None) -> None:
    """A part with these rows."""
    strings = any(isinstance(row.id, str) for row in rows)
    timed = any(row.time is not None for row in rows)
    schema = log_schema(dim, strings=strings, times=timed) if schema is None else schema
    columns = {name: [getattr(row, name) for row in rows] for name in schema.names}
    parquet.write_table(pa.table(columns, schema=schema), path)


def write_log(folder: Path, parts: Sequence[Sequence[Row]], dim: int, schema: Any = None) -> list[str]:
    """Parts of a log, and the pattern that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, rows in enumerate(parts):
        write_rows(folder / f"part-{k:03d}.parquet", rows, dim, schema)
    return [str(folder / "part-*.parquet")]


def played(
    run: Run,
    *,
    env: str = "gaussian",
    arms: int = 5,
    seed: int = 1,
    count: int | None = None,
    names: str | None = None,
    everywhere: bool = True,
) -> list[Row]:
    """Rows of the current batch in a world, with the offered arms; ids are numbers, or strings that begin so."""
    state = run.state
    world = make_world(env, dim=run.learner.dim, arms=arms, noise=0.5)
    count = state.batch_sizes[0] if count is None else count
    rounds = world.draw(count, seed=seed, first=state.start)
    numbers = range(state.start, state.start + count)
    ids: list[Any] = [k if names is None else f"{names}{k}" for k in numbers]
    decided = state.policy.decide(rounds.contexts, ids=ids, seed=seed)
    rewards = world.rewards(rounds.means[range(count), decided.arms], seed=seed, first=state.start)
    size = run.learner.sample_size(state)
    kept = (sample_order(id_keys(ids)) < 2 * size / count) | (everywhere and size > 0)
    return [
        Row(
            id=ids[s],
            policy=state.policy.id,
            features=tuple(rounds.contexts[s, decided.arms[s]].tolist()),
            propensity=float(decided.propensities[s]),
            reward=float(rewards[s]),
            contexts=tuple(rounds.contexts[s].reshape(-1).tolist()) if kept[s] else None,
        )
        for s in range(count)
    ]


def messy(rows: list[Row], strangers: list[str], *, seed: int, parts: int = 4) -> list[list[Row]]:
    """Rows with everything that can befall a log, dealt out to parts, of which the last is empty."""
    draw = random.Random(seed)
    found = []
    for row in rows:
        fate = draw.random()
        if fate < 0.08:
            continue
        if fate < 0.16:
            row = replace(row, reward=None)
        if fate > 0.9:
            row = replace(row, contexts=None)
        found.append(row)
        while draw.random() < 0.2:
            found.append(draw.choice([_copied, _copied, _forgotten, _changed])(row, draw))
    found += [replace(row, policy=draw.choice(strangers)) for row in draw.choices(rows, k=len(rows) // 8)]
    return [*dealt(found, seed=seed, parts=parts - 1), []]


def dealt(rows: list[Row], *, seed: int, parts: int) -> list[list[Row]]:
    """The rows in another order, in parts of different sizes."""
    draw = random.Random(seed)
    rows = draw.sample(rows, len(rows))
    cuts = sorted(draw.randrange(len(rows)) for _ in range(parts - 1))
    return [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def _copied(row: Row, draw: random.Random) -> Row:
    return row


def _forgotten(row: Row, draw: random.Random) -> Row:
    """The same decision before its reward, or without its set."""
    return draw.choice([replace(row, reward=None), replace(row, contexts=None)])


def _changed(row: Row, draw: random.Random) -> Row:
    """A row that says something else."""
    field = draw.choice(["features", "reward", "contexts"])
    if field == "features":
        return replace(row, features=(*row.features[:-1], row.features[-1] / 2))
    if field == "reward":
        return replace(row, reward=1.25 if row.reward is None else -row.reward)
    return replace(row, contexts=tuple(row.features))


@dataclass(frozen=True)
class Recount:
    """What a log holds, and the summaries that follow from it."""

    counts: dict[str, Any]
    summary: Summary
    late: list[Summary]


def recount(parts: Sequence[Sequence[Row]], run: Run, **window: Any) -> Recount:
    """Everything anew, row by row."""
    learner, state = run.learner, run.state
    past = [batch.policy_id for batch in state.past]
    rows = [row for part in parts for row in part]
    every = Counter(row.policy for row in rows)
    summaries, conflicting, conflicting_rows, copies = {}, Counter[str](), Counter[str](), Counter[str]()
    for name in dict.fromkeys([*past, state.policy.id]):
        mine = [row for row in rows if row.policy == name]
        if not mine:
            continue
        groups: dict[Any, list[Row]] = {}
        for row in mine:
            groups.setdefault(row.id, []).append(row)
        good = {}
        for key, group in groups.items():
            features, rewards, sets = (_distinct(group, field) for field in ("features", "reward", "contexts"))
            if max(len(features), len(rewards), len(sets)) > 1:
                conflicting[name] += 1
                conflicting_rows[name] += len(group)
            else:
                first = replace(group[0], reward=next(iter(rewards), None), contexts=next(iter(sets), None))
                times, arrived = (
                    _distinct(group, "time"),
                    _distinct([r for r in group if r.reward is not None], "reward_time"),
                )
                good[key] = replace(first, time=min(times, default=None), reward_time=min(arrived, default=None))
        copies[name] = len(mine) - len(good) - conflicting_rows[name]
        summaries[name] = in_memory(learner, state, list(good.values()), name, **window)
    summary = summaries[state.policy.id]
    counted = SimpleNamespace(rows=every, copies_of=copies, conflicting=conflicting, conflicting_rows=conflicting_rows)
    counts = counts_of(counted, state, summary)
    pooled = learner.parts.statistics.pooled
    return Recount(counts, summary, [summaries[name] for name in past if pooled and name in summaries])


def as_log(rows: Sequence[Row], policy: str, dim: int) -> DecisionLog:
    """Rows in memory, one a decision, with the chosen arms alone."""
    times, reward_times = (
        np.array([np.nan if moment is None else moment for moment in moments])
        for moments in ([row.time for row in rows], [row.reward_time for row in rows])
    )
    return DecisionLog.checked(
        ids=id_keys([row.id for row in rows]),
        batch_names=(policy,),
        features=np.array([row.features for row in rows]).reshape(-1, dim),
        propensities=np.array([row.propensity for row in rows]),
        rewards=np.array([np.nan if row.reward is None else row.reward for row in rows]),
        times=None if np.isnan(times).all() else times,
        reward_times=reward_times,
    )


def in_memory(learner: Learner, state: State, rows: Sequence[Row], policy: str = "", **counting: Any) -> Summary:
    """The summary of rows, one a decision, of which some have their context set."""
    policy = policy or state.policy.id
    summary = learner.summarize(state, as_log(rows, policy, learner.dim), **counting)
    size = learner.sample_size(state) if policy == state.policy.id and not state.done else 0
    keys = id_keys([row.id for row in rows])
    _, shown = learner.parts.statistics.halves(keys, state.policies)
    at = [k for k, row in enumerate(rows) if row.contexts and (shown is None or shown[k])]
    if not size or not at:
        return summary
    sets = [np.array(rows[k].contexts).reshape(-1, learner.dim) for k in at]
    return replace(summary, sample=Sample.of(size, keys[at], ContextSets.from_ragged(sets)))


def assert_close(one: Summary, other: Summary) -> None:
    """Two summaries are the same but for rounding."""
    for a, b in zip(one.stats, other.stats, strict=True):
        np.testing.assert_allclose(a.gram, b.gram, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.moment, b.moment, rtol=1e-12, atol=1e-12)
        assert a.count == b.count
    names = ("decided", "rewarded", "waiting", "expired")
    assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
    assert (one.sample is None) == (other.sample is None)
    if one.sample is not None and other.sample is not None:
        np.testing.assert_array_equal(one.sample.keys, other.sample.keys)
        np.testing.assert_array_equal(one.sample.sets.contexts, other.sample.sets.contexts)


def _distinct(rows: list[Row], field: str) -> set[Any]:
    return {getattr(row, field) for row in rows} - {None}
