"""OpenFeature's remote evaluation protocol, OFREP: a flag is an experiment whose arms were named when it was created.

Rewards of what flags showed come as CloudEvents.
"""

import asyncio
import hashlib
import time
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from rareswitch.errors import ConflictError, InputError, ParameterError
from rareswitch.experiment import Rewarded
from rareswitch.service.app import JSON, Call
from rareswitch.service.hub import MissingError
from rareswitch.service.messages import ErrorBody, ErrorForm
from rareswitch.service.routes import ONE, check_ids, post

__all__ = ["FLAG_ROUTES"]

#: The field of a context that names who is shown something.
ENTITY = "targetingKey"
FLAGS = "/ofrep/v1/evaluate/flags"
CLOUD_EVENTS = ("application/cloudevents+json", "application/cloudevents-batch+json")


class FlagRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the value of one flag, or of all. Fields that hold objects cannot be features, and are left out."""

    context: dict[str, Any] = {}


class FlagValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The value of a flag; of one among all flags that has none, why."""

    key: str
    #: The record of the arm, if it was given one when the experiment was created; else its id.
    value: str | dict[str, Any] | UnsetType = UNSET
    #: The id of the arm.
    variant: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    #: The id of the decision, its propensity, the number of the policy, and whether it waits to be activated.
    metadata: dict[str, str | float | bool] | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    error_details: str | UnsetType = UNSET


class FlagFailure(ErrorForm, frozen=True, kw_only=True, rename="camel"):
    """Why a flag has no value."""

    key: str
    #: Of OpenFeature.
    error_code: str
    error_details: str

    @classmethod
    def of(cls, status: int, error: ErrorBody, name: str) -> tuple[int, ErrorForm]:
        """What the caller can mend has the status 400."""
        status = 400 if status == 422 else status
        code = {404: "FLAG_NOT_FOUND", 400: "INVALID_CONTEXT"}.get(status, "GENERAL")
        if status == 400 and error.type == "RequestError":
            code = "PARSE_ERROR"
        if error.parameter == ENTITY:
            code = "TARGETING_KEY_MISSING"
        return status, cls(key=name, error_code=code, error_details=error.message)


class FlagValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values of all flags that the caller may decide for."""

    flags: list[FlagValue]


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A reward as a CloudEvent: of a decision by its id, or by who earned it and when."""

    specversion: str
    #: Names the reward, where those of a decision are summed.
    id: str
    source: str
    type: str
    #: The targetingKey; not needed where ``data`` has the id of a decision.
    subject: str | None = None
    #: In RFC 3339; by default now.
    time: str | None = None
    data: "EventData"


RewardEvents: TypeAlias = CloudEvent | list[CloudEvent]


class EventData(msgspec.Struct, frozen=True, kw_only=True):
    """What was earned."""

    value: float | bool
    #: Of the decision; by default it is looked for by ``subject`` and ``time``.
    decision: int | str | None = None


async def evaluate_flag(call: Call, body: FlagRequest) -> FlagValue:
    """The value of a flag: decided once for a targetingKey and a policy; the first context counts."""
    return await _flag(call, call.name, body, deferred=False)


async def evaluate_flags(call: Call, body: FlagRequest) -> Response:
    """The values of all flags: decisions that count only when they are activated, by /activate or a single request."""
    _entity(body)

    async def evaluated(name: str) -> FlagValue | None:
        try:
            return await _flag(call, name, body, deferred=True)
        except MissingError:
            return None
        except InputError as error:
            return FlagValue(key=name, error_code="INVALID_CONTEXT", error_details=str(error))

    allowed = [
        name for name in await call.hub.names() if call.caller is not None and call.caller.allows("decide", name)
    ]
    values = await asyncio.gather(*map(evaluated, allowed))
    content = msgspec.json.encode(FlagValues(flags=[value for value in values if value is not None]))
    headers = {"etag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "cache-control": "no-cache"}
    if headers["etag"] in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=JSON)


def _entity(body: FlagRequest) -> str:
    entity = body.context.get(ENTITY)
    if not isinstance(entity, str) or not entity:
        raise ParameterError(f"{ENTITY} must be in the context: a text that names who is shown it.", parameter=ENTITY)
    return entity


async def _flag(call: Call, name: str, body: FlagRequest, *, deferred: bool) -> FlagValue:
    trial = await call.hub.trial(name)
    arms, entity = trial.description.named_arms, _entity(body)
    if not arms:
        raise MissingError(f"{name!r:.100} is no flag: no arms were named when it was created.")
    decision = trial.entity_id(entity)
    check_ids(call, decision)
    record = {field: value for field, value in body.context.items() if field != ENTITY and not isinstance(value, dict)}
    try:
        choice = await call.hub.decide(trial, trial.request(record, id=decision, deferred=deferred))
        arm, propensity, version, waits = str(choice.arm), choice.propensity, choice.version, choice.deferred
    except ConflictError:  # the first context counts
        call.service.metrics.other_contexts.labels(name).inc()
        audit = await call.hub.run(trial.audit, decision)
        waits = audit.deferred and audit.activated is None
        arm, propensity, version = audit.arm, audit.propensity, audit.version
    call.service.metrics.decided(name, version)
    call.notes |= {"decision": decision, "version": version}
    facts: dict[str, str | float | bool] = {"decision": decision, "propensity": propensity, "version": version}
    return FlagValue(
        key=name, value=arms[arm] or arm, variant=arm, reason="SPLIT", metadata=facts | {"deferred": waits}
    )


async def events(call: Call, body: RewardEvents) -> Rewarded:
    """Rewards as CloudEvents, one or many: of decisions by their ids, or by targetingKey and time."""
    trial = await call.hub.trial(call.name)
    sent = body if isinstance(body, list) else [body]
    if any(event.subject is None and event.data.decision is None for event in sent):
        raise ParameterError("subject must be the targetingKey, where data has no decision.", parameter="subject")
    check_ids(call, *(event.data.decision for event in sent if event.data.decision is not None))
    named = [event for event in sent if event.data.decision is not None]
    others = [event for event in sent if event.data.decision is None]
    sums, now = trial.description.rewards.sums, time.time()

    def rewarded_by_both() -> Rewarded:
        by_id = trial.reward_many(
            [event.data.decision for event in named if event.data.decision is not None],
            [event.data.value for event in named],
            events=[event.id for event in named] if sums else None,
        )
        by_entity = trial.reward_by_entity(
            [str(event.subject) for event in others],
            [event.data.value for event in others],
            [now if event.time is None else event.time for event in others],
            events=[event.id for event in others] if sums else None,
        )
        counts = {name: getattr(by_id, name) + getattr(by_entity, name) for name in Rewarded.__struct_fields__}
        return Rewarded(**counts)

    rewarded = await call.hub.run(rewarded_by_both)
    call.service.metrics.rewards.labels(trial.name).inc(rewarded.rewards)
    call.notes["rewards"] = rewarded.rewards
    return rewarded


#: What OpenFeature asks, and the rewards of what it showed.
FLAG_ROUTES = (
    post(f"{FLAGS}/{{name}}", "decide", evaluate_flag, FlagRequest, FlagValue, refuses=FlagFailure),
    post(FLAGS, "decide", evaluate_flags, FlagRequest, FlagValues, refuses=FlagFailure),
    post(f"{ONE}/events", "decide", events, RewardEvents, Rewarded, medias=CLOUD_EVENTS),
)
