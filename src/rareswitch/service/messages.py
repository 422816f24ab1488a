"""What requests of the service hold, as JSON or MessagePack; answers that are not here are results of experiments."""

from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from rareswitch.core import ContextSets, FloatArray, Result
from rareswitch.errors import ShapeError
from rareswitch.experiment import Id

#: What a field of a record may hold.
JsonValue: TypeAlias = str | int | float | bool | list[str | int | float] | None
JsonRecord: TypeAlias = dict[str, JsonValue]
#: Ids of arms, or their records by id.
ArmsBody: TypeAlias = list[str | int] | dict[str, JsonRecord]


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller sends; fields that are not described are refused."""


class DecideRequest(Message, frozen=True, kw_only=True):
    """Asks for one decision."""

    #: Names the decision: the same id again gives the same answer.
    id: Id
    #: The record of the request, where the experiment has features.
    context: JsonRecord | None = None
    #: What may be chosen.
    arms: ArmsBody | None = None
    #: (K, d) the vectors of the arms, where the experiment has no features.
    vectors: list[list[float]] | None = None
    #: The arm that would have been shown, where the experiment has a baseline.
    baseline: Id | None = None
    #: Whether it counts only once it is activated, as its arm may never be shown.
    deferred: bool = False


class DecideManyRequest(Message, frozen=True, kw_only=True):
    """Asks for many decisions: columns with an entry for each."""

    ids: list[Id]
    contexts: list[JsonRecord] | None = None
    #: Ids or records for all; or a list with ids or records of each.
    arms: list[str | int | list[str | int] | dict[str, JsonRecord]] | dict[str, JsonRecord] | None = None
    #: The vectors of all arms of the first decision, then of the second …: float64, little-endian, row by row.
    vectors: bytes | None = None
    #: d, where there are vectors.
    dim: int | None = None
    #: Arms of each decision, where there are vectors; by default equally many.
    sizes: list[int] | None = None
    baselines: list[Id | None] | None = None
    deferred: bool = False

    def sets(self) -> ContextSets:
        """The vectors as context sets."""
        count, dim, data = len(self.ids), self.dim or 0, self.vectors or b""
        if not count or dim < 1 or not data or len(data) % (8 * dim):
            raise ShapeError(
                f"vectors must be 8 bytes for each of dim numbers of each arm; got {len(data)} bytes, dim={self.dim} "
                f"and {count} ids."
            )
        vectors: FloatArray = np.frombuffer(data, dtype="<f8").reshape(-1, dim)
        sizes = [len(vectors) // count] * count if self.sizes is None else self.sizes
        if len(sizes) != count or min(sizes) < 1 or sum(sizes) != len(vectors):
            raise ShapeError(
                f"sizes must be the number of arms of each of {count} decisions, {len(vectors)} in all; got "
                f"{sizes!r:.60}."
            )
        if len(set(sizes)) == 1:
            return ContextSets(vectors.reshape(count, sizes[0], dim), np.ones((count, sizes[0]), dtype=np.bool_))
        return ContextSets.from_ragged(np.split(vectors, np.cumsum(sizes)[:-1]))


class DecideManyAnswer(Result, frozen=True, kw_only=True):
    """Decisions, in columns."""

    ids: list[Id]
    arms: list[Id]
    propensities: list[float]
    policy_ids: list[str]
    versions: list[int]
    repeated: list[bool]
    deferred: list[bool]


class Probabilities(Result, frozen=True, kw_only=True):
    """With what probability the current policy chooses each offered arm."""

    policy_id: str
    arms: list[Id]
    probabilities: list[float]


class RewardRequest(Message, frozen=True, kw_only=True):
    """What a decision earned."""

    id: Id
    value: float | bool
    #: The name of this reward, where several are summed.
    event: str | None = None
    #: Whether it takes the place of another value.
    overwrite: bool = False


class RewardManyRequest(Message, frozen=True, kw_only=True):
    """What many decisions earned: columns with an entry for each."""

    ids: list[Id]
    values: list[float | bool]
    events: list[str] | None = None
    overwrite: bool = False


class ActivateRequest(Message, frozen=True, kw_only=True):
    """Says which deferred decisions were shown after all."""

    ids: list[Id]


class AdvanceRequest(Message, frozen=True, kw_only=True):
    """Asks for the next policy."""

    #: Whether to learn it although it is not due.
    force: bool = False
    #: Decisions to come, in all or in each batch; by default what the schedule foresees.
    forecast: int | list[int] | None = None
    #: False-promotion rate of a gate; none by default.
    gate: float | None = None


class ApproveRequest(Message, frozen=True, kw_only=True):
    """Publishes the policy that waits for approval."""

    #: Only if it is this one: what was looked at may have been replaced.
    policy_id: str | None = None


class CreateRequest(Message, frozen=True, kw_only=True):
    """Begins an experiment: the parameters of ``rareswitch.create``."""

    name: str
    #: A description of features, as ``rareswitch experiment create --features`` reads it.
    features: dict[str, Any] | None = None
    #: A sample of records, from which features are proposed, and what may be chosen.
    sample: list[JsonRecord] | None = None
    arms: ArmsBody | None = None
    dim: int | None = None
    learner: str = "foresight"
    #: Settings of the learner.
    settings: dict[str, JsonValue] = {}
    schedule: str | None = None
    #: The attribution window, such as "2d"; and what a decision without a reward counts.
    window: str | None = None
    default: float | None = None
    #: Whether rewards of a decision are summed; what they are; the range they are clipped to.
    several: Literal["one", "sum"] = "one"
    kind: Literal["binary", "linear"] | None = None
    clip: tuple[float, float] | None = None
    baseline: bool | str | None = None
    min_propensity: float | None = None
    holdout: float | None = None
    max_arms: int | None = None
    context_sample_rate: float = 1.0
    keep_records: bool = False
    #: Whether a new policy decides only when it was approved.
    approval: bool = False


class EvaluateRequest(Message, frozen=True, kw_only=True):
    """Asks what other policies would have earned."""

    #: By name: ``uniform``, ``logged``, ``always:ARM``, or ``policy:NUMBER`` of this experiment.
    candidates: list[str]
    level: float = 0.95
    simultaneous: bool = True
    anytime: bool = False


class EffectsRequest(Message, frozen=True, kw_only=True):
    """Asks for the effect of one arm over another."""

    arm: str
    over: str
    level: float = 0.95


class Experiments(Result, frozen=True, kw_only=True):
    """The experiments of the store, the oldest first."""

    names: list[str]


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused."""

    #: The name of the error, as in Python.
    type: str
    #: What is wrong, the rule and the remedy.
    message: str
    #: The field of the request that it is about.
    parameter: str | None = None
    given: str | float | bool | None = None


class ErrorForm(msgspec.Struct, frozen=True, kw_only=True):
    """The body of answers with a status of 400 and above, in some form."""

    @classmethod
    def of(cls, status: int, error: ErrorBody, name: str) -> "tuple[int, ErrorForm]":
        """The status and the body for an error; ``name`` is that of the experiment in the path."""
        raise NotImplementedError


class Refusal(ErrorForm, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 and above."""

    error: ErrorBody
    schema_version: int = 1

    @classmethod
    def of(cls, status: int, error: ErrorBody, name: str) -> tuple[int, ErrorForm]:
        """As it is."""
        return status, cls(error=error)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the service can do its work."""

    ready: bool
    #: What is wrong.
    reason: str = ""
