"""A start from a log that was there before: what it held, and what is learned from it."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from rareswitch.errors import ParameterError
from rareswitch.experiment.rewards import Rewards
from rareswitch.features import Features
from rareswitch.learner import Learner, Summary
from rareswitch.log import Source, summarize_source
from rareswitch.validation import count_of


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """The log that the first policy of an experiment was learned from."""

    decisions: int
    #: Those that were learned from.
    rewarded: int
    #: How its propensities were estimated; empty where they are those with which decisions were made.
    estimated: str = ""

    def to_plain(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Any) -> Self:
        """What :meth:`to_plain` was given."""
        counts = {name: count_of(name, data[name]) for name in ("decisions", "rewarded")}
        return cls(estimated=str(data["estimated"]), **counts)


def warm_summary(
    given: Any, *, learner: Learner, features: Features | None, rewards: Rewards
) -> tuple[WarmStart, Summary]:
    """What the log held, and the summary that the first policy is learned from."""
    if not learner.begins_with_logs:
        raise ParameterError(
            f"warm_start: {learner.name} concludes from batches of its own policies, and cannot begin with decisions "
            "of others. Use foresight without a noise_bound, or leave the log out."
        )
    from rareswitch.evaluation import source_of  # which takes time to load, and most experiments begin without a log

    source = source_of(given)
    _check_features(source, features)
    summary = summarize_source(learner, source, default=rewards.default, clip=rewards.clip)
    if summary.sample is None and learner.sample_size(learner.begin()):
        raise ParameterError(
            f"warm_start: {learner.name} plans with the vectors of all arms that were offered, and the log has those "
            "of the chosen ones alone. Give a log with the whole sets of some decisions, or use another learner."
        )
    held = WarmStart(decisions=summary.decided, rewarded=summary.rewarded, estimated=source.estimated)
    return held, summary


def _check_features(source: Source, features: Features | None) -> None:
    """Refuse vectors that other features made, as far as that is known."""
    made = {None if one.features is None else one.features.id for one in source.policies.values()}
    wanted = None if features is None else features.id
    if made - {wanted}:
        raise ParameterError(
            "warm_start: the policies of the log have other features than this experiment, so its vectors mean "
            "something else. Create the experiment with the features of the log."
        )
