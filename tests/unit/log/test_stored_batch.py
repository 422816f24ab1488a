import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch.core import id_keys, key_bytes, make_executor, sample_order
from rareswitch.design import Uniform
from rareswitch.errors import BatchError, ContextNormError
from rareswitch.learner import Learner, State, Summary, make_learner, summaries_to_bytes
from rareswitch.log import HeldOut, StoredLog, summarize
from rareswitch.policy import Policy
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, open_store
from reference.logs import Row, Run, assert_close, in_memory, played
from reference.refusals import raises
from reference.rows import version as stored_version

LEARNERS: dict[str, dict[str, Any]] = {
    "foresight": {"dim": 3, "horizon": 2000, "grid": [60, 400, 1000, 2000]},
    "linucb-grid": {"dim": 3, "arms": 5, "horizon": 2000, "policies": 5},
    "batch-linucb-kw": {"dim": 3, "arms": 5, "horizon": 2000, "noise": 0.5},
    "batch-linucb-dg-certified": {"dim": 3, "arms": 5, "horizon": 2000, "noise": 0.1, "confidence": 0.3},
}

#: Behind everything that a store has.
MARKS = Marks(1 << 40, 1 << 40)


def begun(name: str) -> tuple[Learner, State]:
    learner = make_learner(name, **LEARNERS[name])
    return learner, learner.begin()


def timed(rows: Sequence[Row]) -> list[Row]:
    """Rows a second apart; a reward in four is not there, one in four comes after 100 seconds, the others at once."""
    return [
        replace(
            row, time=float(k), reward_time=k + (100.0 if k % 4 == 1 else 1.0), reward=row.reward if k % 4 else None
        )
        for k, row in enumerate(rows)
    ]


def kept(rows: Sequence[Row], version: int = 1, store: Store | None = None) -> Store:
    """A store with these decisions, and rewards that come in another order."""
    if store is None:
        store = open_store("memory:", "spring")
        store.create("{}", stored_version(1))
    keys = id_keys([row.id for row in rows])
    decisions = [
        DecisionRow(
            key=key_bytes(key[None])[0],
            id=str(row.id),
            version=version,
            arm="0",
            arm_index=0,
            propensity=row.propensity,
            features=np.array(row.features).tobytes(),
            digest=bytes(16),
            time=row.time or 0.0,
            rank=float(rank),
            contexts=np.array(row.contexts).tobytes() if row.contexts else None,
        )
        for row, key, rank in zip(rows, keys, sample_order(keys), strict=True)
    ]
    rewards = [
        RewardRow(one.key, one.id, "", row.reward, row.reward_time or 0.0)
        for one, row in zip(decisions, rows, strict=True)
        if row.reward is not None
    ]
    store.add_decisions(decisions)
    store.add_rewards(random.Random(1).sample(rewards, len(rewards)))
    return store


def of_store(learner: Learner, state: State, store: Store, **options: Any) -> Summary:
    """The summary of a version in a store, whose policies are known by number alone."""
    past = [Policy(dim=learner.dim, sampler=Uniform(), edition=k) for k in range(1, state.policies)]
    names = ("upto", "sums", "window", "now", "default")
    counting = {"upto": MARKS} | {name: options.pop(name) for name in names if name in options}
    log = StoredLog(store, [*past, state.policy], dim=learner.dim, **counting)
    return summarize(learner, state, log, **options)


@pytest.mark.parametrize("names", [None, "visit-"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_version_in_a_store_is_summed_as_its_rows_in_memory(name: str, names: str | None) -> None:
    learner, state = begun(name)
    for _ in range(3):
        rows = played(Run.of(learner, state), names=names)
        shuffled = random.Random(2).sample(rows, len(rows))
        found = of_store(learner, state, kept(shuffled, state.policies))
        expected = in_memory(learner, state, rows)
        assert summaries_to_bytes([found]) == summaries_to_bytes([expected])
        state = learner.next(state, found)


@pytest.mark.parametrize("engine", ["serial", "processes:2"])
def test_many_decisions_are_summed_slice_by_slice_on_every_engine(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slices = Store.slices
    monkeypatch.setattr(Store, "slices", lambda *given, **more: slices(*given, **more, size=16))
    monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", 16)
    learner, state = begun("foresight")
    rows = timed(played(Run.of(learner, state)))
    seen: list[tuple[int, int]] = []
    given: dict[str, Any] = {"window": 10.0, "now": 55.0, "default": 0.5}
    with make_executor(engine) as there:
        found = of_store(
            learner, state, kept(rows), executor=there, progress=lambda done, of: seen.append((done, of)), **given
        )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert_close(found, in_memory(learner, state, rows, **given))
    parts = [in_memory(learner, state, rows[at : at + 16], **given) for at in range(0, 60, 16)]
    assert summaries_to_bytes([replace(found, sample=None)]) == summaries_to_bytes(
        [replace(sum(parts[1:], parts[0]), sample=None)]
    )


def test_an_earlier_version_gives_what_late_rewards_change() -> None:
    learner, first = begun("foresight")
    rows = timed(played(Run.of(learner, first)))
    state = learner.next(first, in_memory(learner, first, rows))
    whole = [replace(row, reward=1.0) if row.reward is None else row for row in rows]
    log = StoredLog(kept(whole), [first.policy, state.policy], dim=3)
    summary = summarize(learner, state, log, policy_id=first.policy.id)
    assert summary.sample is None
    assert (summary.decided, summary.rewarded) == (60, 60)
    expected = in_memory(learner, state, whole, first.policy.id)
    assert summaries_to_bytes([summary]) == summaries_to_bytes([expected])


def test_a_version_without_decisions_is_an_empty_summary() -> None:
    learner, state = begun("foresight")
    for given in ({}, {"window": 5.0}):
        found = of_store(learner, state, kept([]), **given)
        assert (found.decided, found.rewarded, found.sample) == (0, 0, None)
    with pytest.raises(BatchError, match="of policy ffffffffffff…, which this run never had"):
        of_store(learner, state, kept([]), policy_id="f" * 64)


def test_no_more_sets_are_read_than_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, state = begun("batch-linucb-kw")
    monkeypatch.setattr(type(learner), "sample_size", lambda self, state: 10)
    store, read = kept(played(Run.of(learner, state))), [0]
    every = store.sample

    def counted(version: int, upto: Marks) -> Any:
        for one in every(version, upto):
            read[0] += 1
            yield one

    monkeypatch.setattr(store, "sample", counted)
    found = of_store(learner, state, store)
    assert found.sample is not None
    assert len(found.sample) == 10
    assert 10 <= read[0] <= 100


def test_vectors_that_the_learner_is_not_for_are_refused() -> None:
    learner, state = begun("linucb-grid")
    rows = played(Run.of(learner, state), count=2)
    long = [replace(row, features=(3.0,) * 3) for row in rows]
    raises(ContextNormError, "norm at most 1", of_store, learner, state, kept(long))
    with pytest.raises(BatchError, match=r"is for 3 features; got 2"):
        of_store(learner, state, kept([replace(row, features=(0.5,) * 2) for row in rows]))


@pytest.mark.parametrize("name", ["foresight", "batch-linucb-kw"])
def test_what_is_left_out_is_as_if_it_had_not_been_decided(name: str) -> None:
    learner, state = begun(name)
    rows = played(Run.of(learner, state))
    among = HeldOut(0.4, context_sample_rate=0.8).among(id_keys([row.id for row in rows]))
    assert 0 < among.sum() < len(rows)
    rest = [row for row, left_out in zip(rows, among, strict=True) if not left_out]
    found = of_store(learner, state, kept(rows), leave_out=HeldOut(0.4, context_sample_rate=0.8))
    assert summaries_to_bytes([found]) == summaries_to_bytes([of_store(learner, state, kept(rest))])
    every = of_store(learner, state, kept(rows), leave_out=HeldOut(1.0))
    assert (every.decided, every.sample) == (0, None)
