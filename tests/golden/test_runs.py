"""Every learner decides as it did when these runs were recorded: the same arms, counts and ends on every processor.

Numbers agree to 1e-9: the linear algebra of another processor rounds otherwise. Learners are recorded anew only where
they are meant to decide otherwise. Last: foresight, whose rewards have a level by default, whose plans draw the noise
of the next batch by a root that does not depend on rounding, and which draws what no plan has seen from the prior.
"""

import json
from typing import Any

import numpy as np
import pytest

from golden.record_runs import FILE, HOW, SEEDS, SLOW, WORLDS, record
from rareswitch.learner import LEARNERS

GOLDEN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
RUNS = [(name, kind) for kind in HOW for name in LEARNERS if kind == "stepped" or name not in SLOW]


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_learners_decide_as_they_did(name: str, kind: str) -> None:
    for place in WORLDS:
        for seed in SEEDS:
            run, recorded = record(name, place, seed, kind), GOLDEN[f"{name}/{place}/{seed}/{kind}"]
            assert_same(run, recorded, f"{name} in {place} with seed {seed}")


def assert_same(run: Any, recorded: Any, text: str) -> None:
    """Arms, counts and ends exactly, numbers to 1e-9."""
    if "unsuitable" in (run, recorded):
        assert run == recorded, text
        return
    assert run.keys() == recorded.keys(), text
    for name, entry in recorded.items():
        if isinstance(entry, list):
            np.testing.assert_allclose(run[name], entry, rtol=1e-9, atol=1e-12, err_msg=f"{name} of {text}")
        else:
            assert run[name] == entry, f"{name} of {text}"
