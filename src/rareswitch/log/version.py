"""What a learner needs of the decisions of one version of an experiment, from any store."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import StoreError
from rareswitch.executors import run_shards
from rareswitch.ids import KeyArray, keys_of_bytes
from rareswitch.learner import Learner, Rows, Sample, State, Summary
from rareswitch.log.block import Block
from rareswitch.log.held_out import HeldOut
from rareswitch.log.reading import Reader, Task
from rareswitch.store import Marks, Slice, Store
from rareswitch.validation import FloatArray, Sets

#: Slices that are read while one is summed.
AHEAD = 2


def summarize_version(
    learner: Learner,
    state: State,
    store: Store,
    *,
    version: int,
    policy_id: str,
    upto: Marks,
    executor: Executor | None = None,
    window: float | None = None,
    now: float | None = None,
    default: float | None = None,
    clip: tuple[float, float] | None = None,
    sums: bool = False,
    leave_out: HeldOut | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Reduce the decisions of a version, with the rewards that were there at a mark, to what is learned from.

    Slices of the store are read where the executor runs them. At most 65,536 decisions are gathered and summed at once,
    so that it does not matter in which order they came; more are summed slice by slice, in their order.

    Parameters
    ----------
    version, policy_id
        Number and id of the policy that decided: the current one of the state, or an earlier one, whose rewards may
        have come late.
    upto
        What is looked at, of decisions and of rewards.
    executor
        Where slices are read; here by default.
    window, now, default, clip
        As :meth:`~rareswitch.learner.Learner.summarize` takes them, in seconds since 1970; ``now`` is by default the
        time of the latest of these decisions, and is not looked at without a window.
    sums
        Whether several rewards of a decision are summed.
    leave_out
        Decisions that are passed over, as if they had not been made.
    progress
        Called with the number of slices that were read, and how many there are.

    Examples
    --------
    >>> from rareswitch.learner import make_learner
    >>> from rareswitch.store import DecisionRow, RewardRow, VersionRow, open_store
    >>> learner = make_learner("foresight", dim=1)
    >>> state, store = learner.begin(), open_store("memory:", "spring")
    >>> store.create("{}", VersionRow(1, b"", b"", b"", "{}", "", 0.0))
    >>> from rareswitch.ids import id_keys, key_bytes
    >>> (key,), one = key_bytes(id_keys([7])), np.ones(1).tobytes()
    >>> row = DecisionRow(key, "7", 1, "banner", 0, 1.0, one, bytes(16), time=0.0, rank=0.5, contexts=one)
    >>> _ = store.add_decisions([row]), store.add_rewards([RewardRow(key, "7", "", 0.25, time=60.0)])
    >>> summarize_version(learner, state, store, version=1, policy_id=state.policy.id, upto=Marks(1, 1))
    <summary of policy ...: 1 decision, 1 rewarded, 0 missing>
    """
    slices = store.slices(version, upto, sums=sums, window=window)
    if window is not None and now is None:
        now = max((one.last_time for one in store.counts(upto) if one.version == version), default=0.0)
    now, few = None if window is None else now, len(slices) <= 1
    names, task = frozenset([policy_id]), Task(learner=learner, state=state, known={policy_id: 0}, leave_out=leave_out)
    task = replace(task, gathered=names if few else frozenset(), window=window, now=now, default=default, clip=clip)
    parts = [
        _Part(part, f"{store.name}, version {version}, slice {number} of {len(slices)}")
        for number, part in enumerate(slices, 1)
    ]
    summary = _summed(parts, task, executor, progress)
    if policy_id != state.policy.id or state.done:
        return summary
    summary = learner.fitted(state, summary, lambda finer: _summed(parts, replace(task, state=finer), executor))
    return replace(summary, sample=_sample(learner, state, store.sample(version, upto), leave_out))


def _summed(
    parts: Sequence["_Part"], task: Task, executor: Executor | None, progress: Callable[[int, int], None] | None = None
) -> Summary:
    """One pass over the slices of a version."""
    (policy_id,) = task.known
    rows, summary = [_no_rows(task.learner, policy_id, timed=task.window is not None)], None
    read_slice = partial(_read, task=task)
    found = _in_turn(parts, task) if executor is None else run_shards(read_slice, parts, executor, label="slice")
    for done, read in enumerate(found, 1):
        if isinstance(read, Rows):
            rows.append(read)
        else:
            summary = read if summary is None else summary + read
        if progress is not None:
            progress(done, len(parts))
    if summary is None:
        summary = task.learner.summarize(task.state, Rows.concatenate(rows), **task.counting, part=True)
    return summary


def _in_turn(parts: Sequence["_Part"], task: Task) -> Iterator[Rows | Summary]:
    """What comes of slices, here; the next ones are read while one is summed."""
    with ThreadPoolExecutor(AHEAD) as ahead:
        tables = deque(ahead.submit(part.slice.read) for part in parts[:AHEAD])
        for number, part in enumerate(parts, AHEAD):
            table = tables.popleft().result()
            tables += [ahead.submit(following.slice.read) for following in parts[number : number + 1]]
            yield _taken(part, table, task)


class _Part(NamedTuple):
    """A slice of a store."""

    slice: Slice
    #: What it is called in errors.
    source: str


def _read(part: _Part, *, task: Task) -> Rows | Summary:
    """The rows of a slice, or what they sum up to."""
    return _taken(part, part.slice.read(), task)


def _taken(part: _Part, table: Any, task: Task) -> Rows | Summary:
    """The rows of a slice that was read, or what they sum up to."""
    (policy_id,), reader = task.known, Reader(task)
    for batch in table.combine_chunks().to_batches():  # one, or none where there are no rows
        block = Block(part.source, np.arange(batch.num_rows), batch)
        block.check_present("key", "features")
        if task.leave_out is not None:
            block = block.take(np.flatnonzero(~task.leave_out.among(block.keys())))
        reader.take_rows(policy_id, block)
    if reader.summaries:
        return reader.summaries[policy_id]
    if reader.gathered:
        return reader.gathered[policy_id][0].rows
    return _no_rows(task.learner, policy_id, timed=task.window is not None)


def _no_rows(learner: Learner, policy_id: str, *, timed: bool) -> Rows:
    none = np.zeros(0)
    times, features = none if timed else None, np.zeros((0, learner.dim))
    return Rows(ids=[], policy_id=policy_id, features=features, rewards=none, times=times, reward_times=times)


def _sample(
    learner: Learner, state: State, kept: Iterator[tuple[bytes, bytes]], leave_out: HeldOut | None
) -> Sample | None:
    """The sample of those decisions whose context sets were kept, which come in the order of their ranks."""
    size, keys = learner.sample_size(state), list[KeyArray]()
    sets = list[FloatArray]()
    while len(sets) < size and (some := list(islice(kept, size - len(sets)))):
        words = keys_of_bytes(b"".join(key for key, _ in some), len(some))
        _, half = learner.parts.statistics.halves(words, state.policies)
        shown = np.ones(len(some), dtype=np.bool_) if half is None else half
        if leave_out is not None:
            shown = shown & ~leave_out.among(words)
        for at in np.flatnonzero(shown).tolist():
            key, arms = some[at]
            if not arms or len(arms) % (8 * learner.dim):
                raise StoreError(
                    f"the decision with the key {key.hex()} has contexts of {len(arms)} bytes, and arms of "
                    f"{learner.dim} features take {8 * learner.dim} each: the store was changed by something else."
                )
            keys.append(words[at])
            sets.append(np.frombuffer(arms, dtype="<f8").reshape(-1, learner.dim))
    if not sets:
        return None
    found = ContextSets.from_ragged(sets)
    learner.check(Sets(found.contexts, found.available, False))
    return Sample.of(size, np.array(keys), found)
