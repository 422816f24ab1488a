"""The routes of experiments: what Python's verbs do, over HTTP."""

import zipfile
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prometheus_client import generate_latest
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from rareswitch.errors import ParameterError, did_you_mean
from rareswitch.evaluation import Always, Candidate, Effects, Evaluation, effects, evaluate
from rareswitch.experiment import (
    Activated,
    Advance,
    Audit,
    Choice,
    Experiment,
    Gate,
    Id,
    Rewarded,
    Rewards,
    Status,
    create,
)
from rareswitch.features import Features
from rareswitch.learner import all_learners, takes
from rareswitch.log import export_parts
from rareswitch.planning import duration_of
from rareswitch.service.app import Call, Route, check_allowed
from rareswitch.service.hub import MissingError
from rareswitch.service.messages import (
    ActivateRequest,
    AdvanceRequest,
    ApproveRequest,
    CreateRequest,
    DecideManyAnswer,
    DecideManyRequest,
    DecideRequest,
    EffectsRequest,
    EvaluateRequest,
    Experiments,
    Health,
    Probabilities,
    RewardManyRequest,
    RewardRequest,
)

__all__ = ["EDGE_ROUTES", "ROUTES"]

#: The media types of policy files, of exports and of metrics.
BINARY, ZIP, TEXT = "application/octet-stream", "application/zip", "text/plain; version=0.0.4; charset=utf-8"


def is_whole(text: str) -> bool:
    """Whether it is a whole number of 64 bits, as a text.

    >>> [is_whole(text) for text in ("12", "-3", "--3", "\u00b2", "9" * 5000)]
    [True, True, False, False, False]
    """
    return len(text) <= 20 and text.removeprefix("-").isdecimal()


def check_ids(call: Call, *ids: Id) -> None:
    """Refuse ids that are longer than the service keeps."""
    most = call.service.limits.id
    for name in ids:
        if len(str(name).encode(errors="replace")) > most:
            raise ParameterError(f"id must be at most {most} bytes; got {str(name)!r:.40} and more. Give a hash of it.")


def asked(call: Call, trial: Experiment, body: DecideRequest) -> tuple[Any, Any]:
    """The context and the arms of a request, as experiments take them."""
    check_ids(call, body.id)
    arms, most = body.arms, call.service.limits.arms
    if max(len(arms or ()), len(body.vectors or ())) > most:
        raise ParameterError(f"arms must be at most {most:,} in a request of this service. Offer fewer.")
    records = trial.policy.features is not None
    if not records and body.vectors is None:
        raise ParameterError("vectors must be given: this experiment has no features.")
    return (body.context if records else body.vectors), arms


async def decide(call: Call, body: DecideRequest) -> Choice:
    """Choose an arm, durably; the same id again gives the same answer."""
    trial = await call.hub.trial(call.name)
    context, arms = asked(call, trial, body)
    request = trial.request(context, arms, id=body.id, baseline=body.baseline, deferred=body.deferred)
    choice = await call.hub.decide(trial, request)
    call.service.metrics.decided(trial.name, choice.version)
    call.notes |= {"decision": choice.id, "version": choice.version}
    return choice


async def decide_many(call: Call, body: DecideManyRequest) -> DecideManyAnswer:
    """Choose an arm for each of many requests, which is much faster."""
    trial = await call.hub.trial(call.name)
    check_ids(call, *body.ids)
    contexts = body.sets() if trial.policy.features is None else body.contexts
    choices = await call.hub.run(
        trial.decide_many, contexts, body.arms, ids=body.ids, baseline=body.baselines, deferred=body.deferred
    )
    call.notes |= {"decisions": len(choices), "version": choices[-1].version}
    call.service.metrics.decided(trial.name, choices[-1].version, len(choices))
    return DecideManyAnswer(
        ids=[choice.id for choice in choices],
        arms=[choice.arm for choice in choices],
        propensities=[choice.propensity for choice in choices],
        policy_ids=[choice.policy_id for choice in choices],
        versions=[choice.version for choice in choices],
        repeated=[choice.repeated for choice in choices],
        deferred=[choice.deferred for choice in choices],
    )


async def probabilities(call: Call, body: DecideRequest) -> Probabilities:
    """With what probability the current policy would choose each arm; nothing is decided."""
    trial = await call.hub.trial(call.name)
    context, arms = asked(call, trial, body)
    shares = await call.hub.run(trial.probabilities, context, arms, baseline=body.baseline)
    return Probabilities(policy_id=trial.policy.id, arms=[*shares], probabilities=[*shares.values()])


async def reward(call: Call, body: RewardRequest) -> Rewarded:
    """Say what a decision earned; twice the same is as good as once."""
    check_ids(call, body.id)
    return await _reward(call, [body.id], [body.value], None if body.event is None else [body.event], body.overwrite)


async def reward_many(call: Call, body: RewardManyRequest) -> Rewarded:
    """Say what many decisions earned."""
    check_ids(call, *body.ids)
    return await _reward(call, body.ids, body.values, body.events, body.overwrite)


async def _reward(call: Call, ids: list[Id], values: list[float | bool], events: Any, overwrite: bool) -> Rewarded:
    trial = await call.hub.trial(call.name)
    rewarded = await call.hub.run(trial.reward_many, ids, values, events=events, overwrite=overwrite)
    call.service.metrics.rewards.labels(trial.name).inc(len(ids))
    call.notes["rewards"] = len(ids)
    return rewarded


async def activate(call: Call, body: ActivateRequest) -> Activated:
    """Let deferred decisions count, since their arms were shown; again changes nothing."""
    check_ids(call, *body.ids)
    trial = await call.hub.trial(call.name)
    call.notes["activated"] = len(body.ids)
    return await call.hub.run(trial.activate, *body.ids)


async def names(call: Call, _: None) -> Experiments:
    """The experiments that the caller may see."""
    known = await call.hub.names()
    return Experiments(names=[name for name in known if call.caller is not None and call.caller.allows("read", name)])


async def begin(call: Call, body: CreateRequest) -> Status:
    """Begin an experiment."""
    check_allowed(call, "admin", body.name)

    if body.learner not in all_learners():  # a file of this machine is not run because a caller names it
        raise ParameterError(
            f"learner must be one of {', '.join(all_learners())}; got {body.learner!r:.60}."
            f"{did_you_mean(body.learner, all_learners())}",
            parameter="learner",
            given=body.learner,
        )
    known = {*signature(create).parameters} - {"features", "settings"}
    own = {*takes(body.learner)} - known
    if foreign := sorted({*body.settings} - own):
        raise ParameterError(
            f"settings must be of {body.learner}: {', '.join(sorted(own))}; got {foreign[0]!r:.60}."
            f"{did_you_mean(foreign[0], own)}",
            parameter="settings",
        )

    def begun() -> Status:
        features = None
        if body.features is not None:
            features = Features.from_plain(body.features)
        elif body.sample is not None:
            features = Features.fit(body.sample, body.arms)
        settings: dict[str, Any] = dict(body.settings)
        if features is None and isinstance(body.arms, list):
            settings["arms"] = len(body.arms)
        window = None if body.window is None else duration_of("window", body.window)
        trial = create(
            call.hub.url,
            features=features,
            offer=None if features is None else body.arms,
            rewards=Rewards(window=window, default=body.default, several=body.several, kind=body.kind, clip=body.clip),
            key=call.hub.key,
            **{name: getattr(body, name) for name in body.__struct_fields__ if name in known},
            **settings,
        )
        call.hub.add(trial)
        return trial.status()

    return await call.hub.run(begun)


async def status(call: Call, _: None) -> Status:
    """What was decided and earned, and what the next update waits for."""
    trial = await call.hub.trial(call.name)
    return await call.hub.run(trial.status)


async def preview(call: Call, body: AdvanceRequest) -> Advance:
    """What an update made now would do; nothing is changed."""
    trial = await call.hub.trial(call.name)
    return await call.hub.run(trial.preview, forecast=_forecast(body), gate=_gate(body))


async def advance(call: Call, body: AdvanceRequest) -> Advance:
    """Learn the next policy, if it is due."""
    trial = await call.hub.trial(call.name)
    outcome = await call.hub.run(trial.advance, forecast=_forecast(body), gate=_gate(body), force=body.force)
    call.notes |= {"made": outcome.made, "version": outcome.version}
    return outcome


async def proposal(call: Call, _: None) -> Advance:
    """The update whose policy waits for approval."""
    trial = await call.hub.trial(call.name)
    waiting = await call.hub.run(lambda: trial.proposal)
    if waiting is None:
        raise MissingError("no policy waits for approval.")
    return waiting


async def approve(call: Call, body: ApproveRequest) -> Advance:
    """Publish the policy that waits for approval."""
    trial = await call.hub.trial(call.name)
    outcome = await call.hub.run(trial.approve, body.policy_id)
    call.notes |= {"made": outcome.made, "version": outcome.version}
    return outcome


async def reject(call: Call, _: None) -> Status:
    """Drop the policy that waits for approval; the one that decides now goes on."""
    trial = await call.hub.trial(call.name)
    await call.hub.run(trial.reject)
    return await call.hub.run(trial.status)


def _forecast(body: AdvanceRequest) -> int | tuple[int, ...] | None:
    return tuple(body.forecast) if isinstance(body.forecast, list) else body.forecast


def _gate(body: AdvanceRequest) -> Gate | None:
    return None if body.gate is None else Gate(level=body.gate)


async def audit(call: Call, _: None) -> Audit:
    """A decision by its id, recomputed from its frozen policy. Ids that are numbers come with ``?number=true``."""
    trial = await call.hub.trial(call.name)
    text = str(call.request.path_params["id"])
    number = call.request.query_params.get("number") == "true"
    if number and not is_whole(text):
        raise ParameterError(f"id must be a whole number with ?number=true; got {text!r:.60}.")
    return await call.hub.run(trial.audit, int(text) if number else text)


async def value(call: Call, body: EvaluateRequest) -> Evaluation:
    """What other policies would have earned."""
    trial = await call.hub.trial(call.name)
    return await call.hub.run(
        evaluate,
        trial,
        {name: _candidate(trial, name) for name in body.candidates},
        level=body.level,
        simultaneous=body.simultaneous,
        anytime=body.anytime,
    )


def _candidate(trial: Experiment, name: str) -> Candidate:
    kind, _, rest = name.partition(":")
    if kind == "always":
        return Always(rest)
    if kind == "policy":
        policies = trial.policies
        if not is_whole(rest) or not 1 <= int(rest) <= len(policies):
            raise ParameterError(f"candidates: policy:NUMBER must be from 1 to {len(policies)}; got {rest!r:.40}.")
        return policies[int(rest) - 1]
    return name


async def difference(call: Call, body: EffectsRequest) -> Effects:
    """The effect of one arm over another."""
    trial = await call.hub.trial(call.name)
    return await call.hub.run(effects, trial, body.arm, body.over, level=body.level)


async def policy(call: Call, _: None) -> Response:
    """The frozen policy that decides now, as a file; its id is the ETag."""
    trial = await call.hub.trial(call.name)
    policy_id, data = await call.hub.run(trial.policy_file)
    headers = {"etag": f'"{policy_id}"', "cache-control": "no-cache"}
    if headers["etag"] in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=BINARY)


async def export(call: Call, _: None) -> Response:
    """All decisions and rewards: a zip of Parquet parts, as ``rareswitch experiment import`` reads them."""
    trial = await call.hub.trial(call.name)
    folder = TemporaryDirectory(prefix="rareswitch-")  # until it was sent
    path = await call.hub.run(_exported, trial, Path(folder.name))
    return FileResponse(path, media_type=ZIP, filename=f"{trial.name}.zip", background=BackgroundTask(folder.cleanup))


def _exported(trial: Experiment, folder: Path) -> Path:
    rewards, policies = trial.description.rewards, [policy.id for policy in trial.policies]
    parts = export_parts(trial.store, folder, policies=policies, window=rewards.window, default=rewards.default)
    with zipfile.ZipFile(folder / "parts.zip", "w") as archive:  # which stores: Parquet is compressed itself
        for part in parts:
            archive.write(part, Path(part).name)
    return folder / "parts.zip"


async def alive(call: Call, _: None) -> Health:
    """Whether the process answers."""
    return Health(ready=True)


async def ready(call: Call, _: None) -> Response | Health:
    """Whether the store can be written to and the policies are those that were published."""
    await call.hub.run(call.hub.check)
    return Health(ready=True)


async def metrics(call: Call, _: None) -> Response:
    """What was counted, of all experiments, for Prometheus."""
    for name in await call.hub.names():
        check_allowed(call, "read", name)
    return Response(generate_latest(call.service.metrics.registry), media_type=TEXT)


ONE = "/v1/experiments/{name}"


def post(path: str, scope: Any, call: Any, takes: Any, gives: type[Any] | None, **more: Any) -> Route:
    """A route that takes a body."""
    about = str(call.__doc__).splitlines()[0]
    return Route(method="POST", path=path, scope=scope, summary=about, call=call, takes=takes, gives=gives, **more)


def get(path: str, scope: Any, call: Any, gives: type[Any] | None = None, **more: Any) -> Route:
    """A route that takes none."""
    about = str(call.__doc__).splitlines()[0]
    return Route(method="GET", path=path, scope=scope, summary=about, call=call, gives=gives, **more)


#: What Python's verbs do.
ROUTES: tuple[Route, ...] = (
    post(f"{ONE}/decide", "decide", decide, DecideRequest, Choice),
    post(f"{ONE}/decide-many", "decide", decide_many, DecideManyRequest, DecideManyAnswer),
    post(f"{ONE}/probabilities", "read", probabilities, DecideRequest, Probabilities),
    post(f"{ONE}/reward", "decide", reward, RewardRequest, Rewarded),
    post(f"{ONE}/reward-many", "decide", reward_many, RewardManyRequest, Rewarded),
    post(f"{ONE}/activate", "decide", activate, ActivateRequest, Activated),
    get("/v1/experiments", "read", names, Experiments),
    post("/v1/experiments", "admin", begin, CreateRequest, Status),
    get(ONE, "read", status, Status),
    post(f"{ONE}/preview", "read", preview, AdvanceRequest, Advance),
    post(f"{ONE}/advance", "admin", advance, AdvanceRequest, Advance),
    get(f"{ONE}/proposal", "read", proposal, Advance),
    post(f"{ONE}/approve", "admin", approve, ApproveRequest, Advance),
    post(f"{ONE}/reject", "admin", reject, None, Status),
    get(f"{ONE}/decisions/{{id}}", "read", audit, Audit),
    post(f"{ONE}/evaluate", "read", value, EvaluateRequest, Evaluation),
    post(f"{ONE}/effects", "read", difference, EffectsRequest, Effects),
    get(f"{ONE}/policy", "read", policy, media=BINARY),
    get(f"{ONE}/export", "read", export, media=ZIP),
    get("/healthz", None, alive, Health),
    get("/readyz", None, ready, Health),
    get("/metrics", "read", metrics, media=TEXT),
)
_DECIDING = {decide, decide_many, probabilities, names, policy, alive, ready, metrics}
#: Of a server that decides by a policy file, without a store.
EDGE_ROUTES = tuple(route for route in ROUTES if route.call in _DECIDING)
