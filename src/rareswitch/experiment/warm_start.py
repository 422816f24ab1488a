"""A start from a log that was there before: what it held, and what is learned from it."""

from typing import Any

from rareswitch.errors import ParameterError
from rareswitch.experiment.rewards import Rewards
from rareswitch.features import Features
from rareswitch.learner import Learner, Summary
from rareswitch.log import summarize_source
from rareswitch.structs import Result


class WarmStart(Result, frozen=True, kw_only=True):
    """The log that the first policy of an experiment was learned from."""

    decisions: int
    #: Those that were learned from.
    rewarded: int
    #: How its propensities were estimated; empty where they are those with which decisions were made.
    estimated: str = ""


def warm_summary(
    log: Any, *, learner: Learner, features: Features | None, rewards: Rewards
) -> tuple[WarmStart, Summary]:
    """What the log held, and the summary that the first policy is learned from."""
    if not learner.begins_with_logs:
        raise ParameterError(
            f"warm_start: {learner.name} cannot warm-start, because its guarantee needs data from its own policies. "
            "Use foresight without a noise_bound, or leave the log out."
        )
    from rareswitch.evaluation import source_of  # which takes time to load, and most experiments begin without a log

    source = source_of(log)
    features_ids = {None if policy.features is None else policy.features.id for policy in source.policies.values()}
    if features_ids - {None if features is None else features.id}:
        raise ParameterError(
            "warm_start: the policies of the log have other features than this experiment, so its vectors mean "
            "something else. Create the experiment with the features of the log."
        )
    summary = summarize_source(learner, source, default=rewards.default, clip=rewards.clip)
    if summary.sample is None and learner.sample_size(learner.begin()):
        raise ParameterError(
            f"warm_start: {learner.name} plans with the vectors of all arms that were offered, and the log has those "
            "of the chosen ones alone. Give a log with the whole sets of some decisions, or use another learner."
        )
    held = WarmStart(decisions=summary.decided, rewarded=summary.rewarded, estimated=source.estimated)
    return held, summary
