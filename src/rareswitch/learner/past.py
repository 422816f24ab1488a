"""Batches that were learned from: which one a policy decided, and what rewards that came late make of them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from rareswitch.errors import BatchError
from rareswitch.learner.state import Batch, State
from rareswitch.learner.summary import Summary, added
from rareswitch.stats import Stats


def remembered(summary: Summary, *, pooled: bool) -> Batch:
    """What is kept of a batch: its own sums only where policies rest on all batches, so that they may be replaced."""
    return Batch(
        policy_id=summary.policy_id,
        decided=summary.decided,
        rewarded=summary.rewarded,
        stats=summary.stats if pooled else (),
    )


def position(state: State, policy_id: str, *, steps: bool) -> int:
    """Which of the batches that were learned from is of this policy.

    Parameters
    ----------
    steps
        Whether the learner has a new policy at every step, and so no batches.
    """
    for place, batch in enumerate(state.past):
        if batch.policy_id == policy_id:
            return place
    raise BatchError(
        f"these decisions are of policy {policy_id[:12]}…, which this run never had; the current one is "
        f"{state.policy.id[:12]}…"
        + (", and the run is over." if state.done else ".")
        + (" A learner that is updated at every step does not tell batches apart." if steps else "")
    )


def with_late(
    state: State, late: Sequence[Summary], *, pooled: bool, steps: bool
) -> tuple[tuple[Batch, ...], tuple[Stats, ...]]:
    """The past and the sums of the run, with earlier batches as they are known now.

    Parameters
    ----------
    pooled
        Whether policies rest on all batches; where they do not, late rewards are only counted.
    """
    past = list(state.past)
    for summary in late:
        if summary.policy_id == state.policy.id:
            raise BatchError("late is for earlier batches, and this is the current one: give it as the summary.")
        place = position(state, summary.policy_id, steps=steps)
        if past[place] is not state.past[place]:
            raise BatchError(f"late has batch {place + 1} twice. Add the parts of a batch first: late=[a + b].")
        old = past[place]
        if summary.decided < old.decided or summary.rewarded < old.rewarded:
            raise BatchError(
                f"batch {place + 1} was learned from with {old.decided} decisions, {old.rewarded} of them "
                f"rewarded; these rows have {summary.decided} and {summary.rewarded}. A batch's rows, given again, "
                "replace what was counted: give all of them, the old and the late ones."
            )
        unused = replace(old, late=summary.rewarded - old.rewarded)
        past[place] = remembered(summary, pooled=True) if pooled else unused
    if not late or not pooled:
        return tuple(past), state.sums
    return tuple(past), reduce(added, (batch.stats for batch in (*state.before, *past)))
