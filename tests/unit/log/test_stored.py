from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from rareswitch import evaluate
from rareswitch.core import ContextSets, id_keys, sample_order
from rareswitch.decisions import DecisionLog
from rareswitch.errors import EmptySetError, FileFormatError
from rareswitch.experiment import Experiment, Rewards, create
from rareswitch.log import ParquetLog, StoredLog, export_parts, summarize
from reference.refusals import raises

STORES = ("memory", "sqlite", "postgres")
Begin = Callable[..., Experiment]


@pytest.fixture(params=STORES)
def begin(request: pytest.FixtureRequest, tmp_path: Path) -> Begin:
    """Begins an experiment in a store of each kind."""
    arm_indices = {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path}/trial.db"}
    url = arm_indices[request.param] if request.param in arm_indices else str(request.getfixturevalue("postgres"))
    return beginning(request, url)


@pytest.fixture
def begin_here(request: pytest.FixtureRequest) -> Begin:
    """Begins an experiment in memory."""
    return beginning(request, "memory:")


def beginning(request: pytest.FixtureRequest, url: str) -> Begin:
    def begun(**more: Any) -> Experiment:
        told: dict[str, Any] = {"dim": 3, "horizon": 200, "policies": 4, "seed": 7, "now": 0.0}
        trial = create(url, uuid4().hex, **told | more)
        request.addfinalizer(trial.close)
        return trial

    return begun


def sets_of(count: int, *, seed: int = 0) -> ContextSets:
    """Sets of two to four arms."""
    rng = np.random.default_rng(seed)
    return ContextSets.from_ragged([rng.standard_normal((2 + k % 3, 3)) / 3 for k in range(count)])


def play(trial: Experiment, ids: list[Any], *, now: float = 0.0, **more: Any) -> list[Any]:
    """Decide, with ids of arms that are offered in different orders."""
    sets = sets_of(len(ids), seed=len(ids))
    arms = [[*"abcd"[k % 2 : k % 2 + 2 + k % 3]] + ["e"] * (k % 2 and k % 3 == 2) for k in range(len(ids))]
    arms = [given[: 2 + k % 3] for k, given in enumerate(arms)]
    return trial.decide_many(sets, arms, ids=ids, now=now, **more)


def one_of(log: Any, *, contexts: bool = True) -> DecisionLog:
    """All decisions at once; those of the chosen arms alone come batch by batch."""
    chunks: list[DecisionLog] = [*log.chunks(contexts=contexts)]
    if contexts:
        return DecisionLog.concatenate(chunks)
    names = ("arm_indices", "propensities", "rewards", "available", "features", "ids", "times", "batches")
    joined = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in names}
    assert all(chunk.contexts is None and chunk.codes is None and chunk.arms is None for chunk in chunks)
    return chunks[0].checked(**vars(chunks[0]) | joined)


def test_the_chunks_hold_what_was_decided(begin: Begin) -> None:
    trial = begin()
    ids: list[Any] = [f"request {k}" if k % 2 else k for k in range(30)]
    choices = play(trial, ids, now=5.0)
    trial.reward_many(ids[::2], [float(k) for k in range(15)], now=6.0)
    log = trial.logged()
    chunk, sets = one_of(log), sets_of(30, seed=30)
    assert (log.dim, log.estimated, log.decisions) == (3, "", 30)
    assert chunk.chosen_names == [choice.arm for choice in choices]
    np.testing.assert_array_equal(chunk.propensities, [choice.propensity for choice in choices])
    np.testing.assert_array_equal(chunk.ids, id_keys(ids))
    np.testing.assert_array_equal(chunk.contexts, sets.contexts)
    np.testing.assert_array_equal(chunk.available, sets.available)
    assert chunk.contexts is not None
    np.testing.assert_array_equal(chunk.features, chunk.contexts[np.arange(30), chunk.arm_indices])
    np.testing.assert_array_equal(chunk.rewards[::2], np.arange(15.0))
    assert np.isnan(chunk.rewards[1::2]).all()
    assert chunk.times is not None
    assert (chunk.times == 5.0).all()
    short = one_of(log, contexts=False)
    assert short.contexts is None
    for name in ("features", "propensities", "rewards", "ids", "batches", "times"):
        np.testing.assert_array_equal(getattr(short, name), getattr(chunk, name))
    policy = trial.policies[0]
    assert (log.batch_names, log.policies) == ((policy.id,), {policy.id: policy})
    full = policy.probabilities(chunk.contexts, chunk.available)
    np.testing.assert_allclose(full[np.arange(30), chunk.arm_indices], chunk.propensities, rtol=1e-12)


def test_a_policy_that_has_not_decided_is_not_judged_by_what_it_was_learned_from(begin: Begin, tmp_path: Path) -> None:
    trial = begin()
    play(trial, list(range(200)))
    trial.reward_many(list(range(200)), [0.5, -0.5] * 100, now=0.0)
    assert trial.advance(now=0.0, force=True).made
    export_parts(trial.store, tmp_path / "parts", policies=[trial.policies[0].id])
    exported = tmp_path / "parts" / "*.parquet"
    for log in (trial, ParquetLog(exported, trial.policies)):
        (found,) = evaluate(log, trial.policies[1]).values
        assert found.interval is None
        assert "come before it was made" in found.refusals[0]
    own, unknown = (" ".join(evaluate(ParquetLog(exported), one).values[0].cautions) for one in trial.policies)
    assert "the log does not know this policy" in unknown
    assert "know this policy" not in own


def test_all_passes_see_the_same(begin: Begin) -> None:
    trial = begin()
    play(trial, [*range(10)])
    trial.reward(3, 1.0, now=0.0)
    log = trial.logged()
    play(trial, [*range(10, 20)])
    trial.reward(4, 1.0, now=0.0)
    trial.reward(3, 2.0, now=0.0, overwrite=True)
    for contexts in (True, False):
        rewards = one_of(log, contexts=contexts).rewards
        assert np.flatnonzero(~np.isnan(rewards)).tolist() == [3]
        assert rewards[3] == 1.0
    assert one_of(trial.logged()).rewards[[3, 4]].tolist() == [2.0, 1.0]
    assert len(one_of(trial.logged())) == 20


def test_of_a_share_the_sets_are_there_and_of_all_the_chosen_vectors(begin: Begin) -> None:
    trial = begin(context_sample_rate=0.3)
    ids = [*range(100)]
    play(trial, ids)
    wanted = [k for k in ids if sample_order(id_keys([k]))[0] < 0.3]
    assert one_of(trial.logged()).ids[:, 0].tolist() == wanted
    assert one_of(trial.logged(), contexts=False).ids[:, 0].tolist() == ids


@pytest.mark.parametrize("window", [None, 100.0])
@pytest.mark.parametrize("default", [None, -1.0])
@pytest.mark.parametrize("several", ["one", "sum"])
def test_rewards_count_as_in_learning(begin: Begin, window: Any, default: Any, several: Any) -> None:
    told = Rewards(window=None if window is None else timedelta(seconds=window), default=default, several=several)
    trial = begin(rewards=told)
    ids = [*range(24)]
    for k in ids:
        play(trial, [k], now=10.0 * k)
        for event, delay in (("a", 50.0), ("b", 120.0)):
            if k % (2 if event == "a" else 3) == 0 and (several == "sum" or k % 6 or event == "a"):
                name = event if several == "sum" else None
                trial.reward(k, k + delay / 1000, event=name, now=10.0 * k + delay)
    now = 260.0
    log = trial.logged(now=now)
    chunk = one_of(log)
    state = trial.versions[0].state
    summary = summarize(trial.description.learner, state, log)
    known = ~np.isnan(chunk.rewards)
    assert known.sum() == summary.rewarded
    assert 0 < known.sum() <= 24
    assert not known[np.array(ids) * 10.0 > now - (window or -1e9)].any()
    (stats,) = summary.stats
    np.testing.assert_allclose(
        chunk.features[known].T @ chunk.rewards[known], stats.shifted(0.0).moment[:-1], rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(one_of(log, contexts=False).rewards, chunk.rewards)


def test_an_export_reads_the_same(begin: Begin, tmp_path: Path) -> None:
    trial = begin(context_sample_rate=0.5, baseline=True)
    for batch in range(2):
        ids: list[Any] = [f"{batch} {k}" for k in range(40)]
        play(trial, ids, baseline=["b"] * 40, now=3.0)
        trial.reward_many(ids[1:], [0.1 * (-1) ** k for k in range(39)], now=4.0)
        trial.advance(now=5.0, force=True)
    log = trial.logged(now=6.0)
    export_parts(trial.store, tmp_path / "parts", policies=[policy.id for policy in trial.policies])
    exported = ParquetLog(tmp_path / "parts" / "*.parquet", trial.policies)
    assert exported.batch_names == log.batch_names
    for contexts in (True, False):
        one, other = one_of(log, contexts=contexts), one_of(exported, contexts=contexts)
        for name in (
            "arm_indices",
            "propensities",
            "rewards",
            "available",
            "contexts",
            "features",
            "ids",
            "times",
            "batches",
        ):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        np.testing.assert_array_equal(one.baselines, other.baselines)
        assert (one.baselines is not None) == contexts
        assert one.chosen_names == other.chosen_names


def test_nothing_was_decided_yet(begin: Begin) -> None:
    raises(EmptySetError, "has not decided anything yet", list, begin().logged().chunks())


def test_many_decisions_come_in_chunks(begin_here: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = begin_here()
    play(trial, [*range(25)])
    whole = one_of(trial.logged())
    monkeypatch.setattr("rareswitch.log.stored.OFFERS", 10)
    chunks = [*trial.logged().chunks()]
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    assert [name for chunk in chunks for name in chunk.chosen_names] == whole.chosen_names


def test_reading_may_stop_and_others_may_decide_meanwhile(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = begin()
    play(trial, [*range(25)])
    monkeypatch.setattr("rareswitch.log.stored.OFFERS", 10)
    for contexts in (True, False):
        for number, _ in enumerate(trial.logged().chunks(contexts=contexts)):
            play(trial, [100 + number])
            trial.reward(number, 1.0, now=0.0)
            break
    assert len(one_of(trial.logged(), contexts=False)) == 26


def changed(trial: Experiment, at: int, **how: Any) -> StoredLog:
    """The log of a store in which somebody who knows its tables and checksums changed a decision."""
    store = trial.store

    def call(connection: Any) -> None:
        seq, row, _ = store._page(connection, 0, store.marks())[at]
        for table in ("decisions", "contexts"):
            connection.execute(f"DELETE FROM rareswitch_{table} WHERE seq = ?", (seq,))
        (new,) = store._insert_decisions(connection, [row._replace(**how)]).values()
        for table in ("decisions", "contexts"):
            connection.execute(f"UPDATE rareswitch_{table} SET seq = ? WHERE seq = ?", (seq, new))

    store._write(call)
    return trial.logged()


def test_sets_that_were_kept_by_something_else_are_refused(begin_here: Begin) -> None:
    trial = begin_here()
    ids = [*range(20)]
    play(trial, ids)
    first = int(np.argmin(sample_order(id_keys(ids))))
    raises(FileFormatError, "not a random sample", list, changed(trial, first, contexts=None, names=None).chunks())
