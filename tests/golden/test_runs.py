"""Every learner decides as it did when these runs were recorded, bit for bit.

Intended exceptions, of foresight and of Algorithm 5, which look at a sample of context sets:

- the sample is the decisions whose ids have the smallest hashes, where it was every so-manieth decision of the batch;
- the halves 𝒜 and ℬ of Algorithm 5 are drawn by a hash of the id, where they were the even and odd places of the batch.

Neither can know the place of a decision in its batch any more. With the old choices put in their place these learners
decide as before too.

Foresight's runs were recorded anew whenever it was meant to decide otherwise: a first batch that follows from the
features and the number of policies, beliefs that are widened and policies on the way where what comes was not believed,
plans in which far batches are played in groups and learn, and draws that are never all alike. No other learner's were.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rareswitch.learner.learner as learner_module
import rareswitch.learner.statistics as statistics_module
import rareswitch.learner.summary as summary_module
from golden.record_runs import HOW, SEEDS, SLOW, WORLDS, record
from rareswitch.ids import KeyArray
from rareswitch.learner import LEARNERS, Learner, Rows, Sample, State, Summary
from rareswitch.validation import BoolArray, FloatArray

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "runs.json").read_text(encoding="utf-8"))
SAMPLING = ("foresight", "batch-linucb-dg", "batch-linucb-dg-certified")


@pytest.fixture
def by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples and halves by the place of a decision in its batch, as they were."""
    now: dict[str, State] = {}
    summarize = Learner.summarize

    def remembering(self: Learner, state: State, rows: Rows) -> Summary:
        now["state"] = state
        return summarize(self, state, rows)

    def places(keys: KeyArray) -> Any:
        return keys[:, 0].astype(np.int64) - now["state"].start

    def sample(rows: Rows, size: int, shown: BoolArray | None) -> Sample | None:
        at, length = places(rows.ids), now["state"].ahead[0]
        if shown is None:
            chosen = np.flatnonzero(at % -(-length // size) == 0)
        else:
            chosen = np.flatnonzero((at % 2 == 1) & (at // 2 % max(1, -(-length // 2 // size)) == 0))
        if not len(chosen) or rows.sets is None:
            return None
        return Sample(size=size, keys=rows.ids[chosen], sets=rows.sets[chosen])

    def in_order(keys: KeyArray) -> FloatArray:
        return keys[:, 0] / 2.0**53

    monkeypatch.setattr(Learner, "summarize", remembering)
    monkeypatch.setattr(learner_module, "_sample", sample)
    monkeypatch.setattr(summary_module, "sample_order", in_order)
    monkeypatch.setattr(statistics_module, "first_half", lambda keys: places(keys) % 2 == 0)


def check(name: str, kind: str) -> None:
    for place in WORLDS:
        for seed in SEEDS:
            assert record(name, place, seed, kind) == GOLDEN[f"{name}/{place}/{seed}/{kind}"], (place, seed)


RUNS = [(name, kind) for kind in HOW for name in LEARNERS if kind == "stepped" or name not in SLOW]


@pytest.mark.parametrize(("name", "kind"), [run for run in RUNS if run[0] not in SAMPLING])
def test_learners_decide_as_they_did(name: str, kind: str) -> None:
    check(name, kind)


@pytest.mark.parametrize("kind", HOW)
@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.usefixtures("by_place")
def test_learners_that_sample_sets_decide_as_they_did_on_the_sets_of_then(name: str, kind: str) -> None:
    check(name, kind)
