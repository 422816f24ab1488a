"""The calls of Azure Personalizer v1.0 for one slot, answered by an experiment: rank, reward, activate.

An application keeps its client, with the URL of the experiment as its endpoint. What differs is said in
docs/how-to/from-personalizer.md.
"""

from collections.abc import Iterable
from typing import Any, NoReturn
from uuid import uuid4

import msgspec

from rareswitch.errors import ConflictError, ParameterError, UnsuitableError
from rareswitch.service.app import Call
from rareswitch.service.messages import ErrorBody, ErrorForm
from rareswitch.service.routes import ONE, check_ids, post

__all__ = ["RANK_ROUTES"]

AT, SLOTS = f"{ONE}/personalizer/v1.0", f"{ONE}/personalizer/{{version}}/multislot"


class RankedRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Asks which of some actions to show."""

    actions: list["Action"]
    #: Objects whose fields are those of the record; fields of objects in them are called ``outer.inner``.
    context_features: list[dict[str, Any]] = []
    excluded_actions: list[str] = []
    #: Names the decision; drawn if it is not given.
    event_id: str | None = None
    defer_activation: bool = False


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown."""

    id: str
    features: list[dict[str, Any]] = []


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """An action and its propensity."""

    id: str
    probability: float


class Ranking(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The action to show, and all with their propensities."""

    #: The chosen one, then by propensity; excluded actions keep their places.
    ranking: list[Ranked]
    event_id: str
    reward_action_id: str


class EventValue(msgspec.Struct, frozen=True, kw_only=True):
    """What an event earned, from -1 to 1."""

    value: float


class ServiceError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call was refused."""

    #: BadRequest, ResourceNotFound or InternalServerError.
    code: str
    message: str


class ErrorResponse(ErrorForm, frozen=True, kw_only=True):
    """The body of an error."""

    error: ServiceError

    @classmethod
    def of(cls, status: int, error: ErrorBody, name: str) -> tuple[int, ErrorForm]:
        """What the caller can mend has the status 400."""
        status = 400 if status in (409, 422) else status
        code = "ResourceNotFound" if status == 404 else "BadRequest" if status < 500 else "InternalServerError"
        return status, cls(error=ServiceError(code=code, message=error.message))


def record_of_parts(parts: Iterable[dict[str, Any]], prefix: str = "") -> dict[str, Any]:
    """The fields of some objects as one record.

    >>> record_of_parts([{"age": 31}, {"device": {"os": "ios"}}])
    {'age': 31, 'device.os': 'ios'}
    """
    record: dict[str, Any] = {}
    for part in parts:
        for field, value in part.items():
            inner = (
                record_of_parts([value], f"{prefix}{field}.") if isinstance(value, dict) else {prefix + field: value}
            )
            if twice := record.keys() & inner:
                raise ParameterError(f"features must have different names; {min(twice)!r:.60} is there twice.")
            record |= inner
    return record


async def rank(call: Call, body: RankedRequest) -> Ranking:
    """Choose one of the actions; the same eventId again gives the same answer."""
    trial = await call.hub.trial(call.name)
    if trial.description.features is None:
        raise UnsuitableError("this experiment takes vectors. Create one with features, as Personalizer's calls have.")
    names, event = [action.id for action in body.actions], body.event_id or str(uuid4())
    check_ids(call, event)
    if len(set(names)) < len(names):
        raise ParameterError("actions must have different ids; one is there twice.")
    arms = {a.id: record_of_parts(a.features) for a in body.actions if a.id not in body.excluded_actions}
    if not 0 < len(arms) <= call.service.limits.arms:
        raise ParameterError(
            f"actions must be 1 to {call.service.limits.arms:,} that are not excluded; got {len(arms)}."
        )
    record = record_of_parts(body.context_features)
    description = trial.description
    shown = next(iter(arms)) if description.baseline_share is not None and description.baseline_field is None else None
    request = trial.request(record, arms, id=event, baseline=shown, deferred=body.defer_activation)
    choice = await call.hub.decide(trial, request)
    shares = await call.hub.run(trial.probabilities, record, arms, baseline=shown, version=choice.version)
    call.service.metrics.decided(trial.name, choice.version)
    call.notes |= {"decision": event, "version": choice.version}
    order = iter(sorted(arms, key=lambda name: (name != choice.arm, -shares[name])))
    places = [name if name in body.excluded_actions else next(order) for name in names]
    ranking = [Ranked(id=name, probability=shares.get(name, 0.0)) for name in places]
    return Ranking(ranking=ranking, event_id=event, reward_action_id=str(choice.arm))


def event_of(call: Call) -> str:
    """The eventId of the path."""
    event = str(call.request.path_params["event"])
    check_ids(call, event)
    return event


async def reward_event(call: Call, body: EventValue) -> None:
    """Say what an event earned; the first value counts."""
    trial, event = await call.hub.trial(call.name), event_of(call)
    if not -1.0 <= body.value <= 1.0:
        raise ParameterError(f"value must be from -1 to 1; got {body.value:g}.")
    try:
        await call.hub.run(trial.reward, event, body.value)
        call.service.metrics.rewards.labels(trial.name).inc()
    except ConflictError:  # another value came first
        call.notes["repeated"] = event


async def activate_event(call: Call, _: None) -> None:
    """Let a deferred event count, since it was shown."""
    trial = await call.hub.trial(call.name)
    await call.hub.run(trial.activate, event_of(call))


async def refuse_slots(call: Call, _: None) -> NoReturn:
    """Refused: several slots at once are not served; rank each slot by itself."""
    raise UnsuitableError(
        "calls for several slots are not served. Rank each slot by itself, with an eventId of its own."
    )


#: Below the endpoint of an experiment.
RANK_ROUTES = (
    post(f"{AT}/rank", "decide", rank, RankedRequest, Ranking, status=201, refuses=ErrorResponse),
    post(f"{AT}/events/{{event}}/reward", "decide", reward_event, EventValue, None, status=204, refuses=ErrorResponse),
    post(f"{AT}/events/{{event}}/activate", "decide", activate_event, None, None, status=204, refuses=ErrorResponse),
    *(
        post(
            f"{ONE}/personalizer/{{version}}/multislot/{rest}",
            "decide",
            refuse_slots,
            None,
            None,
            refuses=ErrorResponse,
        )
        for rest in ("rank", "events/{event}/reward", "events/{event}/activate")
    ),
)
