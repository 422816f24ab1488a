"""Whether the learner asks for an update before its time, because other features come than before."""

from rareswitch.experiment.description import Description
from rareswitch.experiment.versions import Version
from rareswitch.log import summarize_version
from rareswitch.store import Store


def early_update(told: Description, store: Store, current: Version, *, now: float) -> str:
    """Why an update should be made before the batch was to end; '' where it need not.

    It reads the decisions of the current policy that an update would learn from, and only where the learner keeps
    policies back. Which rewards they have plays no part.
    """
    learner, rewards, state = told.learner, told.rewards, current.state
    if not learner.clock.uses_features or state.done:
        return ""
    summary = summarize_version(
        learner,
        state,
        store,
        version=current.number,
        policy_id=current.policy.id,
        upto=store.marks(),
        window=rewards.window,
        now=None if rewards.window is None else now,
        default=rewards.default,
        clip=rewards.clip,
        sums=rewards.sums,
    )
    return learner.early(state, summary) or ""
