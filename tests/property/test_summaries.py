"""Summaries add up, however the decisions are split and in whatever order the parts come."""

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rareswitch.core import ContextSets, id_keys
from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.learner import BatchLinUCBDG, Foresight, Sample
from rareswitch.policy import Policy

ids = st.lists(
    st.one_of(st.integers(0, 2**40), st.text("abcde", min_size=1, max_size=6)), min_size=1, max_size=40, unique=True
)


def split(count: int, cuts: list[int], order: Any) -> list[Any]:
    """Every place in one of at most five parts, none of them empty."""
    parts = np.array([cuts[k % len(cuts)] for k in range(count)])
    found = [np.flatnonzero(parts == part) for part in range(5)]
    found = [order.permutation(part) for part in found if len(part)]
    return [found[k] for k in order.permutation(len(found))]


@settings(max_examples=100)
@given(ids, st.integers(1, 50), st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(0, 2**30))
def test_any_split_gives_the_same_sample(names: list[Any], size: int, cuts: list[int], seed: int) -> None:
    keys = id_keys(names)
    sets = ContextSets(np.arange(len(names), dtype=np.float64)[:, None, None], np.ones((len(names), 1), dtype=np.bool_))
    whole = Sample.of(size, keys, sets)
    parts = [Sample.of(size, keys[at], sets[at]) for at in split(len(names), cuts, np.random.default_rng(seed))]
    found = reduce(add, parts)
    assert len(found) == min(size, len(names))
    np.testing.assert_array_equal(found.keys, whole.keys)
    np.testing.assert_array_equal(found.sets.contexts, whole.sets.contexts)


@settings(max_examples=60)
@given(ids, st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(0, 2**30), st.booleans())
def test_any_split_gives_the_same_summary(names: list[Any], cuts: list[int], seed: int, halves: bool) -> None:
    """Sums to within rounding, all else exactly; also of a learner that sums one half and samples the other."""
    rng = np.random.default_rng(seed)
    learner: Any = BatchLinUCBDG(dim=2, arms=3, horizon=1000) if halves else Foresight(dim=2, horizon=1000)
    state = learner.begin()
    contexts = rng.uniform(-0.7, 0.7, (len(names), 3, 2))
    decisions = state.policy.decide(contexts, ids=names, seed=1)
    rewards = np.where(rng.random(len(names)) < 0.3, np.nan, rng.standard_normal(len(names)))
    rows = DecisionLog.of(contexts, decisions, rewards)
    whole = learner.summarize(state, rows)
    found = reduce(add, [learner.summarize(state, rows.select(at)) for at in split(len(names), cuts, rng)])
    assert (found.decided, found.rewarded) == (whole.decided, whole.rewarded)
    assert found.stats[0].count == whole.stats[0].count
    np.testing.assert_allclose(found.stats[0].gram, whole.stats[0].gram, atol=1e-12)
    # a part whose rewards are all alike has its level taken off
    ours, theirs = (summary.stats[0].shifted(0.0).moment for summary in (found, whole))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert (found.sample is None) == (whole.sample is None)
    if whole.sample is not None:
        np.testing.assert_array_equal(found.sample.keys, whole.sample.keys)
        np.testing.assert_array_equal(found.sample.sets.contexts, whole.sample.sets.contexts)


@settings(max_examples=60)
@given(ids, st.integers(0, 2**30))
def test_rows_fold_to_the_same_whatever_their_order_and_copies(names: list[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((len(names), 3, 2))
    decisions = Policy(dim=2, sampler=Uniform()).decide(contexts, ids=names, seed=1)
    rows = DecisionLog.of(contexts, decisions, rng.standard_normal(len(names)))
    early = DecisionLog.of(contexts, decisions, np.full(len(names), np.nan))
    parts = [early, rows, early]
    mixed = DecisionLog.concatenate([parts[k] for k in rng.permutation(3)])
    expected, mixed = (log.select(np.argsort(log.ids[:, 0], kind="stable")) for log in (rows, mixed))
    for name in ("ids", "rewards", "features", "contexts"):
        np.testing.assert_array_equal(getattr(mixed, name), getattr(expected, name))
