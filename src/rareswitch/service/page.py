"""The page at ``/``: experiments as HTML that the server makes, in a session that a link opened."""

import asyncio
import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from email import message_from_bytes
from email.policy import HTTP
from functools import cache, partial
from importlib.resources import files
from typing import Generic, NamedTuple, Self, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote

import msgspec
from starlette.responses import RedirectResponse, Response

from rareswitch.errors import InputError, ParameterError, RareswitchError, several
from rareswitch.evaluation import Evaluation
from rareswitch.experiment import Advance, Experiment, ExperimentReport, History, Id, Status, report_values
from rareswitch.report import PARTS, as_html, as_text, audit_part, changes_part, part_of, templates
from rareswitch.service.app import COOKIE, Call, Endpoint, HttpError, Route, find_caller, problem_of
from rareswitch.service.messages import ArmsBody, CreateRequest, JsonRecord, Message
from rareswitch.service.routes import begin, is_whole
from rareswitch.service.tokens import SESSION, Scope

__all__ = ["Page", "login_path"]

T = TypeVar("T")
M = TypeVar("M", bound=Message)
#: What templates place.
Shown: TypeAlias = str | int | bool | Mapping[str, str] | Sequence[Mapping[str, str | Sequence[str]]] | Message
HTML = "text/html"
#: Nothing comes from elsewhere, and no script or style is in the page itself.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
#: What is sent as it is, with its media type and the package that has it.
FILES = {
    "page.css": ("text/css", "rareswitch.report", "templates"),
    "htmx.min.js": ("text/javascript", "rareswitch.service", "static"),
    "icon.svg": ("image/svg+xml", "rareswitch.service", "static"),
}
#: Seconds for which a page waits for what is being counted anew, and for values that are estimated.
COUNTING, ESTIMATING = 0.05, 0.1
#: After something was counted or estimated it rests for this many times as long as that took.
COUNT_REST, VALUE_REST = 5.0, 10.0
#: Seconds for which a status stands where nothing has come.
STANDS = 5.0
#: By which share decisions or rewards must have grown before values are estimated again.
GROWTH = 0.05
_ONE = "/experiments/{name}"


class Latest(Generic[T]):
    """The newest result of work that takes long: while it is renewed, the one before is shown."""

    def __init__(self, *, rest: float = 0.0) -> None:
        self.value: T | None = None
        self._key: Hashable = None
        self._rest, self._next = rest, 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def fresh(self) -> bool:
        """Whether nobody has asked yet."""
        return self.value is None and self._task is None and self._next == 0.0

    @property
    def pending(self) -> bool:
        """Whether there is no result yet, and there will be."""
        return self.value is None and self._task is not None

    async def get(self, key: Hashable, work: Callable[[], Awaitable[T]], *, wait: float | None) -> T | None:
        """The result, renewed if the key is another one; after ``wait`` seconds the one before."""
        if self._task is None and key != self._key and time.monotonic() >= self._next:
            self._task = asyncio.create_task(self._renew(key, work))
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # seen, if by nobody else
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=wait)
            if task.done() and task.exception() is not None and self.value is None:
                await task
        return self.value

    async def _renew(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> None:
        began = time.monotonic()
        try:
            self.value = await work()
            self._key = key
        finally:
            self._next = time.monotonic() + self._rest * (time.monotonic() - began)
            self._task = None


class PageEndpoint(Endpoint):
    """Answers with pages, and takes forms."""

    def _decode(self, call: Call, body: bytes) -> Message:
        fields = {name: text for name, text in form_fields(call, body).items() if text.strip()}
        call.form_token = fields.pop("csrf", "")
        assert self.route.takes is not None
        form: Message = msgspec.convert(fields, self.route.takes, strict=False)
        return form

    def _refused(self, error: Exception, call: Call) -> Response:
        status, headers, problem = problem_of(error, call)
        template = "closed.html" if status == 401 else "error.html"
        return shown(template, call, status=status, headers=headers, message=problem.message)


def form_fields(call: Call, body: bytes) -> dict[str, str]:
    """The fields of a form, as browsers send it."""
    media = call.request.headers.get("content-type", "")
    try:
        if media.startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100))
        if media.startswith("multipart/form-data"):
            message = message_from_bytes(b"Content-Type: " + media.encode() + b"\r\n\r\n" + body, policy=HTTP)
            return {
                str(part.get_param("name", header="content-disposition")): bytes(part.get_payload(decode=True)).decode()
                for part in message.iter_parts()
            }
    except ValueError as error:
        raise HttpError(400, f"the form cannot be read: {error!s:.100}.") from error
    raise HttpError(415, f"Content-Type must be that of a form; got {media!r:.60}.")


class Confirmed(Message, frozen=True, kw_only=True):
    """A button that was pressed."""

    #: Of the policy that was looked at.
    policy_id: str | None = None
    #: Whether to update although that is not due.
    force: bool = False


class NewExperiment(Message, frozen=True, kw_only=True):
    """The form that begins an experiment; what is left empty has its default."""

    name: str = ""
    #: Ids of arms by line, or JSON: a list of ids, or records by id.
    arms: str = ""
    #: Records as a JSON list or as lines of JSON, typed or from a file.
    sample: str = ""
    sample_file: str = ""
    dim: int | None = None
    policies: int | None = None
    horizon: int | None = None
    schedule: str | None = None
    window: str | None = None
    default: float | None = None
    baseline: str | None = None
    approval: bool = False

    def request(self) -> CreateRequest:
        """What the service is asked for."""
        sample = self.sample or self.sample_file
        settings = {"policies": self.policies, "horizon": self.horizon}
        return CreateRequest(
            name=self.name,
            arms=self._arms(),
            sample=_records(sample) if sample else None,
            dim=self.dim,
            settings={name: value for name, value in settings.items() if value is not None},
            schedule=self.schedule,
            window=self.window,
            default=self.default,
            baseline=self.baseline,
            approval=self.approval,
        )

    def _arms(self) -> ArmsBody | None:
        text = self.arms.strip()
        if text[:1] in ("[", "{"):
            lists: ArmsBody = (
                _from_json("arms", text, list[str | int])
                if text[0] == "["
                else _from_json("arms", text, dict[str, JsonRecord])
            )
            return lists
        return [line.strip() for line in text.splitlines() if line.strip()] or None


def _records(text: str) -> list[JsonRecord]:
    """Records as people have them: a list, or lines of JSON."""
    text = text.strip()
    lines = text if text.startswith("[") else f"[{','.join(line for line in text.splitlines() if line.strip())}]"
    return _from_json("sample", lines, list[JsonRecord])


def _from_json(name: str, text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text.encode(), type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ParameterError(f"{name} must be JSON: {error!s:.200}.", parameter=name) from error


@cache
def static_file(name: str) -> tuple[bytes, str, str]:
    """The content, the media type and the address of a file that all pages share."""
    media, package, folder = FILES[name]
    data = files(package).joinpath(folder, name).read_bytes()
    return data, media, f"/static/{name}?v={hashlib.sha256(data).hexdigest()[:12]}"


async def shared_file(call: Call, _: None) -> Response:
    """A style sheet, a script or an icon."""
    name = str(call.request.path_params["file"])
    if name not in FILES:
        raise HttpError(404, "there is no such file.")
    data, media, _address = static_file(name)
    headers = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
    return Response(data, headers=headers, media_type=media)


def shown(
    template: str, call: Call, *, status: int = 200, headers: dict[str, str] | None = None, **view: Shown
) -> Response:
    """A page of a template."""
    tokens, session = call.service.security.tokens, call.session
    common: dict[str, Shown] = {name.partition(".")[0]: static_file(name)[2] for name in FILES}
    common |= {"csrf": tokens.form(session) if session else "", "admin": _may(call, "admin")}
    text = templates("rareswitch.service").get_template(template).render(common | view)
    return Response(text, status, HEADERS | (headers or {}), HTML)


def _may(call: Call, scope: Scope) -> bool:
    name = call.request.path_params.get("name")
    return call.caller is not None and call.caller.allows(scope, name)


def login_path(code: str) -> str:
    """The path of a link that opens a session, once."""
    return f"/login?code={quote(code)}"


class Snapshot(NamedTuple):
    """Where an experiment stood."""

    at: float
    status: Status
    proposal: Advance | None

    @classmethod
    def of(cls, trial: Experiment, now: float) -> Self:
        """Where it stands."""
        return cls(now, trial.status(now=now), trial.proposal)


class Page:
    """What pages share: counts and values that are renewed while others look at the ones before."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Latest[Snapshot]] = defaultdict(Latest)
        self._histories: dict[str, Latest[History]] = defaultdict(partial(Latest, rest=COUNT_REST))
        self._values: dict[str, Latest[Evaluation | None]] = defaultdict(partial(Latest, rest=VALUE_REST))

    @property
    def routes(self) -> tuple[Route, ...]:
        """All that a browser asks for."""
        return (
            _get("/", "read", self.experiments),
            _get("/login", None, self.login),
            _get("/new", "admin", self.new),
            _post("/new", "admin", self.create, NewExperiment),
            _get(_ONE, "read", self.experiment),
            _get(f"{_ONE}/news", "read", self.news),
            _get(f"{_ONE}/report", "read", self.report),
            _get(f"{_ONE}/decision", "read", self.decision),
            _get(f"{_ONE}/preview", "read", self.preview),
            _post(f"{_ONE}/advance", "admin", self.advance, Confirmed),
            _post(f"{_ONE}/approve", "admin", self.approve, Confirmed),
            _post(f"{_ONE}/reject", "admin", self.reject, Confirmed),
        )

    async def login(self, call: Call, _: None) -> Response:
        """Open a session by a link, which works once."""
        tokens = call.service.security.tokens
        session = tokens.open_session(call.request.query_params.get("code", ""))
        if session is None:
            if find_caller(call) is not None:
                return RedirectResponse("/", 303)
            raise HttpError(401, "this link was used before, or has expired.")
        answer = shown("opened.html", call)
        secure = "https" in (call.request.url.scheme, call.headers.get("x-forwarded-proto"))
        answer.set_cookie(COOKIE, session, max_age=int(SESSION), httponly=True, samesite="strict", secure=secure)
        return answer

    async def experiments(self, call: Call, _: None) -> Response:
        """The experiments that the caller may see."""
        rows = list[dict[str, str | list[str]]]()
        for name in reversed(await call.hub.names()):
            if call.caller is None or not call.caller.allows("read", name):
                continue
            try:
                trial = await call.hub.trial(name)
                status = await call.hub.run(partial(trial.status, now=call.hub.now()))
            except RareswitchError as error:
                rows.append({"name": name, "lines": [str(error)]})
                continue
            counts = f"{several(len(status.batches), 'policy')}, {several(status.decisions, 'decision')}"
            state = "ended" if status.ended is not None else "an update is due" if status.due else "running"
            rows.append({"name": name, "lines": [f"{status.learner}, {counts}, {state}."]})
        return shown("list.html", call, rows=rows)

    async def new(self, call: Call, _: None) -> Response:
        """The form that begins an experiment."""
        return shown("new.html", call, form=NewExperiment(), error="")

    async def create(self, call: Call, body: NewExperiment) -> Response:
        """Begin an experiment."""
        try:
            await begin(call, body.request())
        except InputError as error:
            return shown("new.html", call, status=422, form=body, error=str(error))
        return RedirectResponse(f"/experiments/{quote(body.name)}", 303)

    async def experiment(self, call: Call, _: None) -> Response:
        """All that is known of an experiment."""
        parts, seen = await self._parts(call)
        trial = await call.hub.trial(call.name)
        records = trial.description.features is not None
        request = '"context": {…}, "arms": […]' if records else '"vectors": [[…], […]]'
        fresh = "" if await call.hub.run(trial.store.counts) else request
        address = f"{call.request.base_url}v1/experiments/{quote(trial.name)}"
        return shown("experiment.html", call, name=call.name, parts=parts, seen=seen, fresh=fresh, address=address)

    async def news(self, call: Call, _: None) -> Response:
        """The parts of a page that have changed since it was looked at."""
        parts, seen = await self._parts(call)
        before = call.request.query_params.get("seen", "").split(".")
        if before == seen.split("."):
            return Response(status_code=204, headers=HEADERS)
        changed = [part for part, digest in zip(parts.items(), seen.split("."), strict=True) if digest not in before]
        return shown("news.html", call, name=call.name, parts=dict(changed), seen=seen)

    async def report(self, call: Call, _: None) -> Response:
        """The same as one file, to keep."""
        trial = await call.hub.trial(call.name)
        text = await call.hub.run(lambda: as_html(trial.report(now=call.hub.now())))
        file = {"content-disposition": f'attachment; filename="{trial.name}.html"'}
        return Response(text, headers=HEADERS | file, media_type=HTML)

    async def decision(self, call: Call, _: None) -> Response:
        """A decision by its id, recomputed from its frozen policy."""
        trial, text = await call.hub.trial(call.name), call.request.query_params.get("id", "")
        error: InputError | None = None
        keys: list[Id] = [text]
        keys += [int(text)] if is_whole(text) else []
        for key in keys:
            try:
                part = audit_part(await call.hub.run(trial.audit, key))
                return shown("decision.html", call, name=call.name, id=text, part=part, error="")
            except InputError as refused:
                error = error or refused
        return shown("decision.html", call, status=404, name=call.name, id=text, part="", error=str(error))

    async def preview(self, call: Call, _: None) -> Response:
        """What an update made now would change."""
        trial = await call.hub.trial(call.name)
        outcome = await call.hub.run(partial(trial.preview, now=call.hub.now()))
        return shown(
            "preview.html",
            call,
            name=call.name,
            ready=bool(outcome.decided),
            due=not outcome.waits,
            waits=as_text(outcome),
            version=outcome.version,
            part=changes_part(outcome),
        )

    async def advance(self, call: Call, body: Confirmed) -> Response:
        """Learn the next policy, if it is due."""
        trial = await call.hub.trial(call.name)
        outcome = await call.hub.run(partial(trial.advance, now=call.hub.now(), force=body.force))
        call.notes |= {"made": outcome.made, "version": outcome.version}
        return self._back(call)

    async def approve(self, call: Call, body: Confirmed) -> Response:
        """Publish the policy that waits, if it is the one that was looked at."""
        trial = await call.hub.trial(call.name)
        await call.hub.run(partial(trial.approve, body.policy_id, now=call.hub.now()))
        return self._back(call)

    async def reject(self, call: Call, body: Confirmed) -> Response:
        """Drop the policy that waits."""
        trial = await call.hub.trial(call.name)
        await call.hub.run(trial.reject)
        return self._back(call)

    def _back(self, call: Call) -> Response:
        self._snapshots.pop(call.name, None)
        return RedirectResponse(f"/experiments/{quote(call.name)}", 303)

    async def _parts(self, call: Call) -> tuple[dict[str, str], str]:
        """The parts of the page of an experiment by name, and what tells whether they have changed."""
        trial = await call.hub.trial(call.name)
        report, pending = await self._report(call, trial)
        link = f"/experiments/{quote(trial.name)}"
        csrf = call.service.security.tokens.form(call.session) if call.session and _may(call, "admin") else ""
        parts = {name: part_of(report, name, pending=pending, csrf=csrf, link=link) for name in PARTS}
        seen = (hashlib.sha256(text.encode()).hexdigest()[:10] for text in parts.values())
        return parts, ".".join(seen)

    async def _report(self, call: Call, trial: Experiment) -> tuple[ExperimentReport, bool]:
        """What is known of an experiment, and whether its values are still being estimated."""
        hub, now, store = call.hub, call.hub.now(), trial.store
        counted, valued = self._histories[trial.name], self._values[trial.name]
        key = await hub.run(lambda: (store.marks(), store.head(), now // STANDS))
        snapshot = await self._snapshots[trial.name].get(key, lambda: hub.run(Snapshot.of, trial, now), wait=None)
        assert snapshot is not None
        status = snapshot.status
        history = await counted.get(
            key, lambda: hub.run(partial(trial.history, now=now)), wait=None if counted.value is None else COUNTING
        )
        assert history is not None
        values = None
        if status.decisions:
            policies, rewarded = len(status.batches), sum(batch.rewarded for batch in status.batches)
            sizes = (math.log1p(size) / math.log1p(GROWTH) for size in (status.decisions, rewarded))
            work = partial(hub.run, partial(report_values, trial, history, now=now, progress=hub.go_on))
            grown = (policies, *map(math.floor, sizes))
            values = await valued.get(grown, work, wait=ESTIMATING if valued.fresh else 0.0)
        report = ExperimentReport(
            at=snapshot.at, status=status, history=history, proposal=snapshot.proposal, values=values
        )
        return report, valued.pending


def _get(path: str, scope: Scope | None, call: Callable[[Call, None], Awaitable[Response]]) -> Route:
    summary = str(call.__doc__).splitlines()[0]
    return Route(method="GET", path=path, scope=scope, summary=summary, call=call, media=HTML, endpoint=PageEndpoint)


def _post(path: str, scope: Scope, call: Callable[[Call, M], Awaitable[Response]], takes: type[M]) -> Route:
    summary = str(call.__doc__).splitlines()[0]
    kind = PageEndpoint
    return Route(
        method="POST", path=path, scope=scope, summary=summary, call=call, takes=takes, media=HTML, endpoint=kind
    )


#: What all pages share, the description of the routes too.
STATIC = _get("/static/{file}", None, shared_file)
