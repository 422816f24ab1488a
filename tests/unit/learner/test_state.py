"""A state is a value: whatever happens while the next one is made, it stays as it was."""

from typing import Any

import pytest

from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, state_to_bytes
from rareswitch.learner import foresight as room
from reference.loop import after, rows_of
from reference.refusals import raises

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.5)
LEARNER = Foresight(dim=3, horizon=2000, policies=5)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("where", ["posterior", "best_prospect", "log_growth", "Policy"])
def test_an_exception_within_the_rule_leaves_the_state_usable(
    error: type[BaseException], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the beginning, in the middle and at the end of learning: the retry gives the very policy."""
    state = after(LEARNER, WORLD, 1)
    rows = rows_of(state, WORLD, 1)
    summary, before = LEARNER.summarize(state, rows), state_to_bytes(state)
    expected = state_to_bytes(LEARNER.next(state, summary))

    def fails(*_: Any, **__: Any) -> None:
        raise error("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(room, where, fails)
        raises(error, "in the middle", LEARNER.next, state, summary)
    assert state_to_bytes(state) == before
    assert state_to_bytes(LEARNER.next(state, summary)) == expected


def test_the_end_keeps_the_last_policy_and_counts_its_batch() -> None:
    """Nothing is learned from the last batch, which no policy follows; its sums are there all the same."""
    before, over = after(LEARNER, WORLD, 4), after(LEARNER, WORLD, 5)
    assert over.policy is not before.policy
    assert over.policy.id == before.policy.id
    assert (over.policies, len(over.past), over.sums[0].count) == (5, 5, 2000)
    assert over.notes == before.notes
