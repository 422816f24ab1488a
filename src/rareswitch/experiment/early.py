"""Whether the learner asks for an update before its time, because other features come than before."""

from rareswitch.experiment.description import Description
from rareswitch.experiment.versions import Version
from rareswitch.log import StoredBatch, summarize
from rareswitch.store import Store


def early_update(told: Description, store: Store, current: Version, *, now: float) -> str:
    """Why an update should be made before the batch was to end; '' where it need not.

    It reads the decisions of the current policy that an update would learn from, and only where the learner keeps
    policies back. Which rewards they have plays no part.
    """
    learner, rewards, state = told.learner, told.rewards, current.state
    if not learner.clock.uses_features or state.done:
        return ""
    batch = StoredBatch(
        store=store, version=current.number, upto=store.marks(), sums=rewards.sums, window=rewards.window
    )
    counting = {"window": rewards.window, "now": now, "default": rewards.default, "clip": rewards.clip}
    summary = summarize(learner, state, batch, **counting)
    return learner.early(state, summary) or ""
