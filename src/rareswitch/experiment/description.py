"""What an experiment was created with: learner, features, schedule, rewards. It never changes."""

import secrets
from dataclasses import dataclass, replace
from typing import Any, Self

from rareswitch import codec
from rareswitch.errors import FileFormatError, ParameterError, RareswitchError, UnsuitableError
from rareswitch.experiment.rewards import Rewards
from rareswitch.experiment.warm_start import WarmStart
from rareswitch.features import Features
from rareswitch.files import bounded, canonical_json, plain_json
from rareswitch.learner import Learner, State, Summary, find_learner, make_learner, needed, to_plain
from rareswitch.plan import (
    BestSchedule,
    LearnerSchedule,
    Periodic,
    Progress,
    Schedule,
    baseline_share,
    date_text,
    duration_text,
    schedule_from_plain,
    schedule_of,
)
from rareswitch.policy import MinPropensity, least_probability
from rareswitch.validation import number, whole
from rareswitch.version import __version__

SCHEMA = 1
#: Of a description: categories of features are in it.
MOST_VALUES = 1 << 20
#: Characters of a name.
LONGEST_NAME = 64


#: The most arms of a request by default: an update takes time in proportion.
MAX_ARMS = 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class Description:
    """All choices that are made at creation."""

    name: str
    learner: Learner
    features: Features | None
    schedule: Schedule
    rewards: Rewards
    #: Share of exploration of the first policy, which otherwise plays the arm the caller names; None: it does not.
    baseline_share: float | None
    #: The field of the context record that names this arm; None: it is given with each request.
    baseline_field: str | None
    #: The least probability of arms, of every policy; None: there is none.
    min_propensity: MinPropensity | None = None
    #: The log that the first policy was learned from; None: it knows nothing.
    warm: WarmStart | None = None
    #: The most arms of a request.
    max_arms: int = MAX_ARMS
    #: Share of the decisions whose whole context sets are kept.
    context_sample_rate: float
    #: Keys the randomness of all decisions. Who knows it can foretell them.
    seed: int
    #: Seconds since 1970.
    created: float
    #: Of rareswitch.
    version: str = __version__

    @property
    def needs_baseline(self) -> bool:
        """Whether the first policy plays the arm that requests name; one that was learned from a log does not."""
        return self.baseline_share is not None and self.warm is None

    def begin(self, warm: Summary | None) -> State:
        """The state before the first decision, of what the log held where there is one."""
        baseline = self.baseline_share if self.needs_baseline else None
        return self.learner.begin(
            features=self.features, baseline=baseline, min_propensity=self.min_propensity, warm=warm
        )

    def to_plain(self) -> dict[str, Any]:
        """As JSON keeps it; what there is none of, and earlier versions did not know, is left out."""
        later: dict[str, Any] = (
            {} if self.min_propensity is None else {"min_propensity": codec.plain(self.min_propensity)}
        )
        later |= {} if self.warm is None else {"warm": self.warm.to_plain()}
        return later | {
            "schema": SCHEMA,
            "name": self.name,
            "learner": self.learner.name,
            "settings": to_plain(self.learner),
            "features": None if self.features is None else self.features.to_plain(),
            "schedule": self.schedule.to_plain(),
            "rewards": self.rewards.to_plain(),
            "baseline_share": self.baseline_share,
            "baseline_field": self.baseline_field,
            "max_arms": self.max_arms,
            "context_sample_rate": self.context_sample_rate,
            "seed": self.seed,
            "created": self.created,
            "version": self.version,
        }

    @classmethod
    def from_plain(cls, data: Any) -> Self:
        """What :meth:`to_plain` was given; an error if it is anything else."""
        try:
            if data["schema"] != SCHEMA:
                raise FileFormatError(
                    f"experiments have schema {SCHEMA}; this one has {data['schema']!r:.60}. Use a matching version."
                )
            made = cls(
                name=check_name(data["name"]),
                learner=deployable(data["learner"], data["settings"]),
                features=None if data["features"] is None else Features.from_plain(data["features"]),
                schedule=schedule_from_plain(data["schedule"]),
                rewards=Rewards.from_plain(data["rewards"]),
                baseline_share=data["baseline_share"],
                baseline_field=data["baseline_field"],
                min_propensity=codec.decode(MinPropensity, data["min_propensity"])
                if "min_propensity" in data
                else None,
                warm=WarmStart.from_plain(data["warm"]) if "warm" in data else None,
                max_arms=whole("max_arms", data["max_arms"], low=1),
                context_sample_rate=number("context_sample_rate", data["context_sample_rate"], low=0.0, high=1.0),
                seed=whole("seed", data["seed"], low=0),
                created=number("created", data["created"], low=-1e12),
                version=str(data["version"]),
            )
        except FileFormatError:
            raise
        except (KeyError, TypeError, AttributeError, RareswitchError) as error:
            raise FileFormatError(f"the description of the experiment is damaged ({error!s:.200}).") from error
        if made.to_plain() != data:
            raise FileFormatError("the description of the experiment was changed, or written by something else.")
        return made

    def to_text(self) -> str:
        """Canonical JSON."""
        text = canonical_json(self.to_plain()).decode()
        bounded(text, most=MOST_VALUES)
        return text

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What :meth:`to_text` gave."""
        try:
            data = plain_json(text.encode(), most=MOST_VALUES)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"not the description of an experiment ({error!s:.200})") from error
        return cls.from_plain(data)


def describe(
    name: str,
    *,
    learner: Any,
    features: Features | None,
    dim: int | None,
    schedule: Any,
    rewards: Rewards | None,
    baseline: bool | str | None,
    min_propensity: MinPropensity | float | None,
    max_arms: int | None,
    context_sample_rate: float,
    seed: int | None,
    created: float,
    settings: dict[str, Any],
) -> Description:
    """The description of a new experiment, of what its creator says."""
    rewards = Rewards() if rewards is None else rewards
    if not isinstance(rewards, Rewards):
        raise ParameterError(
            f"rewards must be Rewards(window=…, default=…, several=…, kind=…, clip=…); got {rewards!r:.60}."
        )
    told = settings if rewards.kind is None else settings | {"rewards": rewards.kind}
    made = _learner(learner, features, dim, told)
    rewards = replace(rewards, kind=getattr(made, "rewards", None))  # also of a learner that was told itself
    when = schedule_of(schedule, learner=made)
    if baseline is not None and not isinstance(baseline, (bool, str)):
        raise ParameterError(
            f"baseline must be True, where each request names the arm that would be shown, or the field of the context "
            f"record that does; got {baseline!r:.60}."
        )
    if isinstance(baseline, str) and features is None:
        raise ParameterError(f"baseline names a field of context records, and there are no features; got {baseline!r}.")
    if min_propensity is not None:
        if not isinstance(min_propensity, MinPropensity):
            min_propensity = MinPropensity(least=least_probability("min_propensity", min_propensity))
        made.begin(min_propensity=min_propensity)  # refuses learners that can have none
    context_sample_rate = number("context_sample_rate", context_sample_rate, low=0.0, high=1.0)
    if context_sample_rate == 0.0 and made.sample_size(made.begin()):
        raise ParameterError(
            f"context_sample_rate must be above 0: {made.name} plans its updates with context sets that were kept; got "
            "0. A few hundred a batch are enough, as with context_sample_rate=0.01 of 50,000 decisions."
        )
    refuse_past(when, created, rewards)
    share = None
    if baseline:
        share = baseline_share(made.dim, _lengths(made, when, created))
    return Description(
        name=check_name(name),
        learner=made,
        features=features,
        schedule=when,
        rewards=rewards,
        baseline_share=share,
        baseline_field=baseline if isinstance(baseline, str) else None,
        min_propensity=min_propensity,
        max_arms=_max_arms(made, features) if max_arms is None else whole("max_arms", max_arms, low=1),
        context_sample_rate=context_sample_rate,
        seed=secrets.randbits(62) if seed is None else whole("seed", seed, low=0),
        created=created,
    )


def _max_arms(learner: Learner, features: Features | None) -> int:
    """The most arms of a request where nothing was said of it: all that are known, if those are more than usual."""
    fixed = 0 if features is None or features.arms is None else len(features.arms.ids)
    return max(MAX_ARMS, learner.arms or 0, fixed)


def refuse_past(schedule: Schedule, created: float, rewards: Rewards) -> None:
    """Refuse dates by which no update can be made."""
    if isinstance(schedule, BestSchedule) and schedule.end is not None:
        delay = rewards.window or 0.0 if schedule.delay is None else schedule.delay
        waits = schedule.gap if schedule.first is None else schedule.first
        if created < schedule.end <= created + waits:
            raise ParameterError(
                f"schedule: {schedule}: the first update may come {duration_text(waits)} after the beginning, on "
                f"{date_text(created, schedule.zone)}, and so not before the end. Give a later end, or a shorter "
                f"{'gap' if schedule.first is None else 'first'}."
            )
        if schedule.end <= created + delay:
            known = f" and its rewards are known {duration_text(delay)} later" if delay else ""
            raise ParameterError(
                f"schedule: end is {date_text(schedule.end, schedule.zone)}; the experiment begins on "
                f"{date_text(created, schedule.zone)}{known}: no update could be made before the end. Give a later end"
                f"{', or a shorter window' if delay else ''}."
            )
    if (
        isinstance(schedule, BestSchedule)
        and schedule.decisions is not None
        and len(schedule.lengths(created) or ()) < 2
    ):
        raise ParameterError(
            f"schedule: {schedule}: with {schedule.dim} features an update would save nothing in so few decisions, and "
            "none would be made. Give more decisions, or say where batches end, as in schedule=[20, 50]."
        )
    if isinstance(schedule, Periodic) and not schedule.ends(Progress.beginning(created)):
        raise ParameterError(
            f"schedule: {schedule} has no date after {date_text(created, schedule.zone)}, when the experiment begins: "
            "no update would be made. Give a later start, or more times."
        )


def check_name(name: Any) -> str:
    """Refuse a name that is none."""
    rule = f"name must be a text of 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.'"
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise ParameterError(f"{rule}; got {name!r:.80}.")
    if not all(letter.isalnum() or letter in "-_." for letter in name) or name.startswith("."):
        raise ParameterError(f"{rule}, and not begin with '.'; got {name!r:.80}.")
    return name


def deployable(name: str, settings: dict[str, Any]) -> Learner:
    """The learner, if its batches may end at any decision and its statistics can be had from rows."""
    sizes = dict.fromkeys(needed(find_learner(name)), 16)  # of an example: what it is does not depend on them
    clock, statistics = (example := make_learner(name, **sizes)).clock, example.parts.statistics
    if clock.uses_features or clock.every_step or statistics.needs_offered:
        raise UnsuitableError(
            f"{name} decides by looking at each decision when its next policy is due, so its batches do not end when "
            "one likes. For experiments use foresight, or a batched learner such as batch-linucb-kw."
        )
    return make_learner(name, **settings)


def _learner(given: Any, features: Features | None, dim: int | None, settings: dict[str, Any]) -> Learner:
    if isinstance(given, Learner):
        if settings or dim not in (None, given.dim):
            more = [*settings, *(["dim"] if dim is not None else [])]
            raise ParameterError(
                f"learner is {given.name} with its settings, and more were given: {', '.join(more)}. Give its name and "
                "all settings, or it alone."
            )
        name, settings = given.name, to_plain(given)
    else:
        name, settings = given, dict(settings)
        if dim is not None:
            settings["dim"] = dim
        if features is not None:
            settings.setdefault("dim", features.dim)
        if "dim" not in settings:
            raise ParameterError(
                "dim must be given, the number of features of an arm; or features, which turn records into vectors: "
                "features=Features.fit(…)."
            )
    if features is not None and settings["dim"] != features.dim:
        raise ParameterError(
            f"dim is {settings['dim']}, and the features make vectors of {features.dim}. Leave dim out."
        )
    made = deployable(name, settings)
    to_plain(made)  # refuses what no file can keep
    return made


def _lengths(learner: Learner, schedule: Schedule, created: float) -> tuple[int, ...] | None:
    """How long the batches will be, as far as is known at the start; None where nothing is."""
    return learner.begin().batch_sizes if isinstance(schedule, LearnerSchedule) else schedule.lengths(created)
