"""What an experiment was created with: learner, features, schedule, rewards. It never changes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from rareswitch.core import Result, canonical_json, check_value_count, codec, flag, number, whole
from rareswitch.errors import FileFormatError, ParameterError, RareswitchError, UnsuitableError
from rareswitch.experiment.rewards import Rewards
from rareswitch.features import Features
from rareswitch.learner import (
    Learner,
    State,
    Summary,
    add_learner,
    all_learners,
    find_learner,
    make_learner,
    plain_settings,
    required_settings,
)
from rareswitch.planning import Progress, Schedule, date_text, from_settings, plain_fields, schedule_from_plain
from rareswitch.policy import MinPropensity
from rareswitch.version import __version__

__all__ = ["WarmStart"]

SCHEMA = 1
#: Of a description: categories of features are in it.
MOST_VALUES = 1 << 20
#: Characters of a name.
LONGEST_NAME = 64
NAME = re.compile(rf"(?!\.)[\w.-]{{1,{LONGEST_NAME}}}")
#: The most arms of a request by default: an update takes time in proportion.
MAX_ARMS = 1000


class WarmStart(Result, frozen=True, kw_only=True):
    """The log that the first policy of an experiment was learned from."""

    decisions: int
    #: Those that were learned from.
    rewarded: int
    #: How its propensities were estimated; empty where they are those with which decisions were made.
    estimated: str = ""


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
    #: The share of ids that keeps the baseline for good, of every policy; None: there is none.
    holdout: float | None = None
    #: The log that the first policy was learned from; None: it knows nothing.
    warm_start: WarmStart | None = None
    #: What requests that name no arms choose from, ids with their records; None: the arms that features name.
    offer: Sequence[tuple[str, dict[str, Any]]] | None = None
    #: The most arms of a request.
    max_arms: int = MAX_ARMS
    #: Share of the decisions whose whole context sets are kept.
    context_sample_rate: float
    #: Whether the record of each request and of its arms is kept, which may be personal.
    keep_records: bool = False
    #: Whether a new policy decides only when somebody has approved it.
    approval: bool = False
    #: Keys the randomness of all decisions. Who knows it can foretell them.
    seed: int
    #: Seconds since 1970.
    created: float
    #: Of rareswitch.
    version: str = __version__

    def __post_init__(self) -> None:
        rule = f"name must be a text of 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.', and not begin with '.'"
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ParameterError(f"{rule}; got {self.name!r:.80}.")
        whole("max_arms", self.max_arms, low=1)
        flag("keep_records", self.keep_records)
        flag("approval", self.approval)
        number("context_sample_rate", self.context_sample_rate, low=0.0, high=1.0)
        whole("seed", self.seed, low=0, high=None)
        number("created", self.created, low=-1e12)

    @property
    def named_arms(self) -> dict[str, dict[str, Any]]:
        """The arms of requests that name none, with their records as far as they have some; empty where they must."""
        if self.offer is not None:
            return dict(self.offer)
        return (
            {} if self.features is None or self.features.arms is None else {str(k): {} for k in self.features.arms.ids}
        )

    @property
    def needs_baseline(self) -> bool:
        """Whether the first policy plays the arm that requests name; one that was learned from a log does not."""
        return self.baseline_share is not None and self.warm_start is None

    def begin(self, warm: Summary | None) -> State:
        """The state before the first decision, of what the log held where there is one."""
        baseline = self.baseline_share if self.needs_baseline else None
        return self.learner.begin(
            features=self.features,
            baseline=baseline,
            min_propensity=self.min_propensity,
            holdout=self.holdout,
            warm=warm,
        )

    def to_plain(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return vars(self) | {
            "schema": SCHEMA,
            "learner": self.learner.name,
            "settings": plain_settings(self.learner),
            "features": None if self.features is None else self.features.to_plain(),
            "schedule": self.schedule.to_plain(),
            "rewards": plain_fields(self.rewards),
            "min_propensity": None if self.min_propensity is None else codec.plain(self.min_propensity),
            "warm_start": None if self.warm_start is None else self.warm_start.as_dict(),
        }

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Self:
        """What :meth:`to_plain` was given; an error if it is anything else."""
        try:
            if (schema := data.pop("schema")) != SCHEMA:
                raise FileFormatError(
                    f"experiments have schema {SCHEMA}; this one has {schema!r:.60}. Use a matching version."
                )
            if data["learner"] not in all_learners():
                raise UnsuitableError(
                    f"learner: experiment '{data['name']!s:.80}' was created with the learner "
                    f"'{data['learner']!s:.80}', which this process does not have. Give its class: "
                    "rareswitch.open(url, name, learner=Class), or --learner path/to/file.py:Class."
                )
            settings, features = data.pop("settings"), data["features"]
            min_propensity, warm_start = data["min_propensity"], data["warm_start"]
            return cls(
                **data
                | {
                    "learner": deployable(data["learner"], settings),
                    "features": None if features is None else Features.from_plain(features),
                    "schedule": schedule_from_plain(data["schedule"]),
                    "rewards": from_settings(Rewards, data["rewards"]),
                    "min_propensity": None if min_propensity is None else codec.decode(MinPropensity, min_propensity),
                    "warm_start": None if warm_start is None else msgspec.convert(warm_start, WarmStart),
                }
            )
        except (FileFormatError, UnsuitableError):
            raise
        except (LookupError, TypeError, AttributeError, msgspec.ValidationError, RareswitchError) as error:
            raise FileFormatError(f"the description of the experiment is damaged ({error!s:.200}).") from error

    def to_text(self) -> str:
        """Canonical JSON."""
        text = canonical_json(self.to_plain()).decode()
        check_value_count(text, most=MOST_VALUES)
        return text


def check_schedule(schedule: Schedule, created: float, rewards: Rewards) -> None:
    """Refuse a schedule by which no update would ever be made."""
    beginning = Progress.beginning(created, window=rewards.window)
    if not schedule.learner_plans and len(schedule.ends(beginning)) < 2 and not schedule.endless:
        raise ParameterError(
            f"schedule: {schedule}, for an experiment that begins on {date_text(created, schedule.in_zone)}: no update "
            "would be made before the end. Give a later end, more decisions or more times; or a shorter gap, first, "
            "delay or attribution window."
        )


def deployable(name: str, settings: dict[str, Any]) -> Learner:
    """The learner, if its batches may end at any decision and its statistics can be had from rows."""
    # of an example: what it is does not depend on them
    sizes = dict.fromkeys(required_settings(find_learner(name)), 16)
    clock, statistics = (example := make_learner(name, **sizes)).clock, example.parts.statistics
    if clock.uses_features or clock.every_step or statistics.needs_offered:
        raise UnsuitableError(
            f"{name} decides by looking at each decision when its next policy is due, so its batches do not end when "
            "one likes. For experiments use foresight, or a batched learner such as batch-linucb-kw."
        )
    return make_learner(name, **settings)


def learner_of(learner: Learner | str, features: Features | None, dim: int | None, settings: dict[str, Any]) -> Learner:
    """The learner of an experiment: by its name and settings, or as it is."""
    if isinstance(learner, Learner):
        if settings or dim not in (None, learner.dim):
            more = [*settings, *(["dim"] if dim is not None else [])]
            raise ParameterError(
                f"learner is {learner.name} with its settings, and more were given: {', '.join(more)}. Give its name "
                "and all settings, or it alone."
            )
        name, settings = add_learner(type(learner)).name, plain_settings(learner)
    else:
        name, settings = find_learner(learner).name, dict(settings)
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
    chosen = deployable(name, settings)
    plain_settings(chosen)  # refuses what no file can keep
    return chosen
