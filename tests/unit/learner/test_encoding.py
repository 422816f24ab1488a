"""States in files: kept for years, read without learning anything again."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from golden.record_state import FILE, LEARNER, SEED, rows, world
from rareswitch.errors import FileFormatError
from rareswitch.files import pack, unpack
from rareswitch.lab.worlds import make_world
from rareswitch.learner import (
    Foresight,
    Rows,
    Summary,
    make_learner,
    planning,
    state_from_bytes,
    state_to_bytes,
    summary_from_bytes,
    summary_to_bytes,
)
from rareswitch.learner import planned_exploration as room
from rareswitch.policy import policy_to_bytes
from rareswitch.stats import Stats
from reference.loop import after, rows_of

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.5)
SHORT = Foresight(dim=3, horizon=1000, updates=5)


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing can be learned or planned."""

    def fails(*_: Any, **__: Any) -> None:
        raise AssertionError("loading learned something")

    monkeypatch.setattr(room, "plan", fails)
    monkeypatch.setattr(planning, "plan", fails)
    monkeypatch.setattr(room.PlannedExploration, "next", fails)


def test_a_state_that_was_kept_is_read_and_continued() -> None:
    data = FILE.read_bytes()
    state = state_from_bytes(data)
    assert repr(state) == "<state of foresight: policy 3, planned for decisions 50 to 172, then 2 more for 1,827>"
    assert state_to_bytes(state) == data
    assert [(batch.decided, batch.rewarded) for batch in state.past] == [(15, 15), (35, 32)]
    found = LEARNER.next(state, LEARNER.summarize(state, rows(state)))
    assert (found.updates, found.start) == (4, 173)
    assert len(found.notes) == len(state.notes) + 1
    # what it has learned is worth something: half of what chance loses, in the mean over 400 sets
    sets = world().draw(400, seed=SEED, first=10_000)
    played = (found.policy.probabilities(sets.contexts) * sets.means).sum(axis=1)
    best, chance = sets.means.max(axis=1), sets.means.mean(axis=1)
    assert (best - played).mean() < 0.5 * (best - chance).mean()


def test_loading_learns_and_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = state_to_bytes(after(SHORT, WORLD, 3))
    forbid(monkeypatch)
    for kept in (data, FILE.read_bytes()):
        assert state_to_bytes(state_from_bytes(kept)) == kept


def test_a_planner_with_other_constants_goes_on_from_the_same_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state is not worked out anew: a later version may plan otherwise, and the policy that decides stays."""
    state = after(SHORT, WORLD, 2)
    data = state_to_bytes(state)
    monkeypatch.setattr(planning, "SCALES", (0.9,))
    for module in (planning, room):
        monkeypatch.setattr(module, "TRUTHS", 32)
    loaded = state_from_bytes(data)
    assert policy_to_bytes(loaded.policy) == policy_to_bytes(state.policy)
    found = SHORT.next(loaded, SHORT.summarize(loaded, rows_of(loaded, WORLD, 1)))
    assert found.notes[:-1] == state.notes
    assert found.notes[-1]["scale"] == 0.9
    assert found.updates == 4


def test_nothing_of_a_state_is_lost() -> None:
    state = after(SHORT, WORLD, 3)
    found = state_from_bytes(state_to_bytes(state))
    for name in ("learner", "updates", "start", "ahead", "notes", "done", "stop", "horizon"):
        assert getattr(found, name) == getattr(state, name)
    assert found.policy.id == state.policy.id
    sums = ([*(batch.stats for batch in kept.past), kept.sums] for kept in (state, found))
    for one, other in zip(*sums, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left.gram, right.gram)
            np.testing.assert_array_equal(left.moment, right.moment)
            assert (left.count, left.square_sum) == (right.count, right.square_sum)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"schema": 2},
            r"states of this version of rareswitch have schema 1; this one has 2, which is newer\. Install",
        ),
        ({"schema": 0}, "states have a schema, a whole number; this has 0"),
        ({"schema": None}, "this has None"),
        ({"updates": 9}, "it was changed"),
        ({"start": 0}, "it was changed"),
        ({"ahead": [1]}, "it was changed"),
        ({"learner": "oful"}, "it was changed"),
        ({"notes": []}, "it was changed"),
        ({"policy_id": "0" * 64}, "it was changed"),
        ({"sha256": "0" * 64}, "it was changed"),
        ({"extra": 1}, "it was changed"),
        ({"ahead": 7}, "not a state, or a damaged one"),
        ({"past": None}, "not a state, or a damaged one"),
        ({"policy": {}}, "the description of the policy is damaged"),
        ({"sums": [1, 2, 3]}, "not a state, or a damaged one"),
    ],
)
def test_edited_states_are_refused(change: dict[str, Any], words: str) -> None:
    meta, tensors = unpack(FILE.read_bytes())
    with pytest.raises(FileFormatError, match=words):
        state_from_bytes(pack(meta | change, tensors))


def test_states_with_other_numbers_are_refused() -> None:
    meta, tensors = unpack(FILE.read_bytes())
    for name in tensors:
        changed = tensors | {name: tensors[name] * 1.0000001 + 1e-9}
        with pytest.raises(FileFormatError):
            state_from_bytes(pack(meta, changed))
        with pytest.raises(FileFormatError):
            state_from_bytes(pack(meta, {key: part for key, part in tensors.items() if key != name}))


@pytest.mark.parametrize("junk", [b"", b"x", b"\x00" * 8, b"\xff" * 64, json.dumps({"a": 1}).encode()])
def test_what_is_no_state_is_refused(junk: bytes) -> None:
    with pytest.raises(FileFormatError, match="not a state, or a damaged one"):
        state_from_bytes(junk)


def test_a_policy_is_not_a_state() -> None:
    with pytest.raises(FileFormatError, match="states were expected, and this file is one of policies"):
        state_from_bytes(policy_to_bytes(after(SHORT, WORLD, 1).policy))


def test_a_summary_is_not_a_state_nor_a_state_a_summary() -> None:
    state = after(SHORT, WORLD, 1)
    summary = summary_to_bytes(SHORT.summarize(state, rows_of(state, WORLD, 1)))
    with pytest.raises(FileFormatError, match="states were expected, and this file is one of summaries"):
        state_from_bytes(summary)
    with pytest.raises(FileFormatError, match="summaries were expected, and this file is one of states"):
        summary_from_bytes(FILE.read_bytes())


def resealed(data: bytes, change: Callable[[Any, Any], None]) -> bytes:
    """A file that was edited by someone who knows the format, with the hash of what it holds now."""
    meta, tensors = unpack(data)
    change(meta, tensors)
    del meta["sha256"]
    return pack(meta | {"sha256": hashlib.sha256(pack(meta, tensors)).hexdigest()}, tensors)


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, _: meta.update(updates=10**9),
        lambda meta, _: meta.update(updates=0),
        lambda meta, _: meta.update(updates=3.0),
        lambda meta, _: meta.update(start=-1),
        lambda meta, _: meta.update(start=10**18),
        lambda meta, _: meta.update(start=10**30),
        lambda meta, _: meta.update(ahead=[0]),
        lambda meta, _: meta.update(ahead=[True]),
        lambda meta, _: meta.update(ahead=[10**30]),
        lambda meta, _: meta.update(learner=""),
        lambda meta, _: meta.update(learner=7),
        lambda meta, _: meta.update(notes=[{"plan": [[[]]]}]),
        lambda meta, _: meta.update(sums=[10**6]),
        lambda meta, _: meta.update(sums=[-1]),
        lambda meta, _: meta.update(sums=[2]),
        lambda meta, _: meta["past"][0].update(decided=5),
        lambda meta, _: meta["past"][0].update(rewarded=3),
        lambda meta, _: meta["past"][0].update(late=-1),
        lambda meta, _: meta["past"][0].update(policy=None),
        lambda meta, _: meta["past"].pop(),
        lambda _, tensors: tensors["sums.gram"].__imul__(-1.0),
        lambda _, tensors: tensors["sums.moment"].__imul__(1e6),
        lambda _, tensors: tensors["sums.squares"].__setitem__(0, np.inf),
        lambda _, tensors: tensors["past.0.gram"][0].__setitem__((0, 1), 0.5),
        lambda _, tensors: tensors.update({"kept.extra": np.array([np.nan])}),
    ],
)
def test_states_that_no_run_has_are_refused_although_their_hash_fits(change: Callable[[Any, Any], None]) -> None:
    data = FILE.read_bytes()
    assert resealed(data, lambda *_: None) == data
    with pytest.raises(FileFormatError, match="not a state, or a damaged one"):
        state_from_bytes(resealed(data, change))


def test_a_layered_state_keeps_what_its_rule_needs() -> None:
    learner = make_learner("suplinucb", dim=2, arms=3, horizon=50)
    data = state_to_bytes(learner.begin())
    assert state_to_bytes(state_from_bytes(data)) == data
    for change in (
        lambda _, tensors: tensors.pop("kept.frozen_gram"),
        lambda _, tensors: tensors.update({"kept.frozen_count": np.zeros(1)}),
    ):
        with pytest.raises(FileFormatError, match="the rule remembers"):
            state_from_bytes(resealed(data, change))


def test_deep_plain_data_in_a_summary_are_refused() -> None:
    text = "[" * 900 + "]" * 900
    header = json.dumps({"__metadata__": {"rareswitch": f'{{"schema":1,"summaries":{text}}}'}}, separators=(",", ":"))
    header += " " * (-len(header) % 8)
    with pytest.raises(FileFormatError, match="not a summary, or a damaged one"):
        summary_from_bytes(len(header).to_bytes(8, "little") + header.encode())


@pytest.mark.parametrize("level", [0.0, 0.1, -3.7, 1e9, 1e-12])
@pytest.mark.parametrize("noise", [0.0, 1e-9, 1.0])
def test_sums_with_shifts_are_read_however_they_were_rounded(level: float, noise: float) -> None:
    """Rewards that are all but equal leave nothing but rounding when another shift is taken off."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        parts = []
        for count in rng.integers(1, 40, 3):
            x = np.column_stack([rng.standard_normal((count, 2)), np.ones(count)])
            rewards = level + noise * rng.standard_normal(count)
            near = rewards.mean() * (1.0 + rng.uniform(-1.0, 1.0) * 10.0 ** -float(rng.integers(6, 17)))
            parts.append(Stats.of(x, rewards, shift=near))
        total = parts[0] + parts[1] + parts[2]
        summary = Summary(policy_id="a", decided=total.count, rewarded=total.count, stats=(total,))
        assert summary_from_bytes(summary_to_bytes(summary)).stats[0].count == total.count


@pytest.mark.parametrize("reward", [5.0, 1e9])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_equal_rewards_whose_level_was_taken_off_come_back(count: int, reward: float) -> None:
    """One row, or some alike: the room for rounding of the shift must not look like a row too many."""
    learner = Foresight(dim=3, horizon=1000, intercept=True)
    state = learner.begin()
    contexts = np.repeat(np.eye(3)[None], count, axis=0)
    decisions = state.policy.decide(contexts, ids=range(count), seed=1)
    summary = learner.summarize(state, Rows.of(contexts, decisions, np.full(count, reward)))
    after_it = learner.next(state, summary_from_bytes(summary_to_bytes(summary)), ahead=[10, 20])
    assert state_from_bytes(state_to_bytes(after_it)).start == count


def test_features_whose_squares_vanish_come_back() -> None:
    state = SHORT.begin()
    contexts = np.random.default_rng(1).standard_normal((14, 5, SHORT.dim)) / 4.0
    contexts[:, :, 1] *= 1e-160
    decisions = state.policy.decide(contexts, ids=range(14), seed=1)
    summary = SHORT.summarize(state, Rows.of(contexts, decisions, np.sin(np.arange(14.0))))
    found = summary_from_bytes(summary_to_bytes(summary))
    assert found.extent == summary.extent
    assert found.stats[0].gram.tolist() == summary.stats[0].gram.tolist()


def test_sums_that_are_not_those_of_the_batches_are_refused() -> None:
    def other(meta: Any, tensors: Any) -> None:
        tensors["sums.moment"][0] = 0.0

    with pytest.raises(FileFormatError, match="the sums of all decisions are not those of the batches"):
        state_from_bytes(resealed(FILE.read_bytes(), other))
