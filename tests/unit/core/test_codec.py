"""What every kind of file promises: the same bytes for equal values, and no other content under its id."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rareswitch.core import codec
from rareswitch.core.codec import pack, unpack
from rareswitch.decisions import DecisionLog
from rareswitch.errors import FileFormatError
from rareswitch.learner import Foresight, State, summaries_from_bytes
from rareswitch.policy import Policy
from reference.hostile import resealed
from reference.refusals import raises


def state() -> State:
    learner = Foresight(dim=3, horizon=400)
    begun = learner.begin()
    contexts = np.random.default_rng(1).standard_normal((20, 4, 3))
    decisions = begun.policy.decide(contexts, ids=range(20), seed=1)
    return learner.next(begun, learner.summarize(begun, DecisionLog.of(contexts, decisions, np.arange(20.0))))


DATA = codec.to_bytes(state())


def test_values_come_back_with_their_bytes() -> None:
    again, content_id, signature = codec.from_bytes(State, DATA)
    assert codec.to_bytes(again) == DATA == codec.to_bytes(state())
    assert (content_id, signature) == (codec.content_id(again), None)
    assert again.policy.id == state().policy.id
    np.testing.assert_array_equal(again.sums[0].gram, state().sums[0].gram)


@pytest.mark.parametrize("junk", [b"", b"x", b"\x00" * 8, b"\xff" * 64, json.dumps({"a": 1}).encode(), DATA[:-1]])
def test_what_is_no_file_is_refused(junk: bytes) -> None:
    raises(FileFormatError, "not a state, or a damaged one", codec.from_bytes, State, junk)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, r"files of this version of rareswitch have schema 1; this one has 2, which is newer\. Install"),
        ({"schema": 0}, "files have a schema, a whole number; this has 0"),
        ({"schema": True}, "this has True"),
        ({"id": "0" * 64}, "the content does not match its id"),
        ({"content": None}, "the content does not match its id"),
        ({"extra": 1}, "not a state: it holds content, extra, id, schema"),
    ],
)
def test_edited_files_are_refused(change: dict[str, Any], words: str) -> None:
    meta, arrays = unpack(DATA)
    raises(FileFormatError, words, codec.from_bytes, State, pack(meta | change, arrays))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content, _: content.update(policies=3.0), "state: Expected int, got float at policies"),
        (lambda content, _: content.update(policies=True), "Expected int, got bool at policies"),
        (lambda content, _: content.update(batch_sizes=7), "Expected array, got int at batch_sizes"),
        (lambda content, _: content.update(more=1), "state has no setting 'more'; it has learner"),
        (lambda content, _: content.update(kind="stata"), r"there is no kind 'stata'\. Did you mean"),
        (lambda content, _: content.pop("learner"), "state needs the setting 'learner'"),
        (lambda content, _: content["policy"].update(kind="uniform"), "uniform has no setting 'dim'"),
        (lambda content, _: content["policy"]["sampler"].update(share=2.0), "share must be"),
        (lambda content, _: content["policy"]["sampler"].update(share=1), "canonical form"),
        (lambda _, arrays: arrays.update(more=np.ones(1)), "state has no setting 'more'"),
        (lambda _, arrays: arrays.update(policies=np.ones(1)), "has the place of something else"),
        (lambda _, arrays: arrays.pop("sums.0.gram"), "stats needs the setting 'gram'"),
        (lambda _, arrays: arrays["sums.0.gram"].__setitem__(0, np.nan), "gram must be finite"),
    ],
)
def test_content_that_makes_no_sense_is_refused_although_its_id_fits(
    change: Callable[[Any, Any], Any], words: str
) -> None:
    meta, arrays = unpack(DATA)
    change(meta["content"], arrays)
    raises(FileFormatError, words, codec.from_bytes, State, resealed(meta, arrays))


def test_a_file_of_another_kind_is_named() -> None:
    with pytest.raises(FileFormatError, match=r"a policy was expected, and this is a state\. Name another file"):
        codec.from_bytes(Policy, DATA)
    raises(FileFormatError, "a summaries was expected, and this is a state", summaries_from_bytes, DATA)
