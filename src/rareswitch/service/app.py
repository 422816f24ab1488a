"""The service as an ASGI application: who calls, what is read and written, what went wrong, what is counted."""

import asyncio
import hmac
import logging
import math
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.routing import Route as HttpRoute
from starlette.routing import Router

from rareswitch.core import plain_number
from rareswitch.errors import (
    BatchError,
    ConflictError,
    DeletedError,
    ExistsError,
    InputError,
    MissingExtraError,
    RareswitchError,
    StoreError,
)
from rareswitch.service.hub import BusyError, Hub, MissingError
from rareswitch.service.messages import ErrorBody, ErrorForm, Refusal
from rareswitch.service.tokens import Scope, Token, Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Send
    from starlette.types import Scope as AsgiScope

__all__ = ["COOKIE", "MSGPACK", "Limits", "Route", "Security", "Service", "make_app"]

logger = logging.getLogger("rareswitch.service")
JSON, MSGPACK = "application/json", "application/msgpack"
#: What ``curl -d`` says of any body.
FORM = "application/x-www-form-urlencoded"
#: Where else than in Authorization a token may be: as OpenFeature and as Personalizer have it.
KEY_HEADERS = ("x-api-key", "ocp-apim-subscription-key")
#: The cookie of a browser that opened the page by its link.
COOKIE = "rareswitch_session"
_TO_JSON = msgspec.json.Encoder(enc_hook=plain_number)
_TO_LINE = msgspec.json.Encoder(enc_hook=str)
_TO_MSGPACK = msgspec.msgpack.Encoder(enc_hook=plain_number)
#: What types of JSON are called.
KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text", "array": "a list"}
KINDS |= {"object": "an object", "null": "null"}
#: The status of errors; others of the library are 500. The first class that fits counts.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (MissingError, 404),
    (DeletedError, 404),
    (BusyError, 503),
    (ConflictError, 409),
    (ExistsError, 409),
    (BatchError, 409),
    (InputError, 422),
    (MissingExtraError, 501),
    (StoreError, 503),
)


class HttpError(RareswitchError):
    """A request that is refused before anything is looked at."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        parameter: str | None = None,
        value: Any = None,
    ) -> None:
        super().__init__(message, parameter=parameter, given=value)
        self.status, self.headers = status, dict(headers or {})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the service bears."""

    #: Bytes of a body; arms of a request; bytes of an id.
    body: int = 4 << 20
    arms: int = 1_000
    id: int = 128
    #: Seconds in which a request must have come.
    receive: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Security:
    """Who is heard."""

    tokens: Tokens = field(default_factory=Tokens)
    #: Host names under which the service may be addressed; empty: all.
    hosts: frozenset[str] = frozenset()
    #: A header in which a proxy says who is signed in, the addresses of this proxy, and what these users may do.
    user_header: str | None = None
    proxies: frozenset[str] = frozenset({"127.0.0.1", "::1"})
    user_scopes: tuple[Scope, ...] = ("read",)


class Metrics:
    """What is counted, for ``/metrics``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self.requests = Counter("rareswitch_requests", "By route and status.", ["route", "status"], registry=own)
        self.seconds = Histogram("rareswitch_request_seconds", "Of a request, by route.", ["route"], registry=own)
        by_policy = ["experiment", "version"]
        self.decisions = Counter("rareswitch_decisions", "By experiment and policy.", by_policy, registry=own)
        self.rewards = Counter("rareswitch_rewards", "By experiment.", ["experiment"], registry=own)
        about = "Requests of flags whose context was another when it was decided, by experiment."
        self.other_contexts = Counter("rareswitch_other_contexts", about, ["experiment"], registry=own)
        self._decided: dict[tuple[str, int], Counter] = {}

    def decided(self, experiment: str, version: int, count: int = 1) -> None:
        """Count decisions of a policy."""
        counter = self._decided.get((experiment, version))
        if counter is None:
            counter = self._decided.setdefault((experiment, version), self.decisions.labels(experiment, version))
        counter.inc(count)


@dataclass(frozen=True, eq=False, kw_only=True)
class Service:
    """All that the handlers of requests share."""

    hub: Hub
    security: Security = field(default_factory=Security)
    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)


@dataclass(eq=False)
class Call:
    """One request, as its handler sees it."""

    service: Service
    request: Request
    caller: Token | None = None
    #: By their names in small letters; of several the first.
    headers: dict[str, str] = field(default_factory=dict)
    #: Of a browser: what its forms must be signed for; empty for others.
    session: str = ""
    #: By which a change shows that it comes from a form of the page.
    form_token: str = ""
    #: What is written to the log beside the usual: ids of decisions and versions of policies, never values of features.
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def hub(self) -> Hub:
        """The experiments."""
        return self.service.hub

    @property
    def name(self) -> str:
        """Of the experiment in the path."""
        return str(self.request.path_params["name"])


@dataclass(frozen=True, kw_only=True)
class Route:
    """A method of a path, what it takes and gives: the application, its description and its tests are made of these."""

    method: str
    path: str
    #: What the caller must be allowed to do; None: everyone may.
    scope: Scope | None
    summary: str
    call: Callable[[Call, Any], Awaitable[Any]]
    #: The type of the body, a struct or lists of it; None: there is none.
    takes: Any = None
    #: The struct of the answer; None: something else, of this media type.
    gives: type[Any] | None = None
    media: str = JSON
    #: Other media types of bodies that are JSON.
    medias: tuple[str, ...] = ()
    #: The status of an answer, and the form of refusals.
    status: int = 200
    refuses: type[ErrorForm] = Refusal
    #: The kind of :class:`Endpoint`; None: that one.
    endpoint: "type[Endpoint] | None" = None


class EncodedAnswer(Response):
    """What a call gives, encoded; its headers are ready."""

    def __init__(self, status: int, content: bytes, media: bytes) -> None:
        self.status_code, self.body, self.background = status, content, None
        self.raw_headers = [(b"content-length", b"%d" % len(content)), (b"content-type", media)]


class Endpoint:
    """Answers the requests of a route."""

    def __init__(self, service: Service, route: Route) -> None:
        self.service, self.route, self._title = service, route, f"{route.method} {route.path}"
        self._seconds, self._requests = service.metrics.seconds.labels(self._title), dict[int, Counter]()
        if route.takes is not None:
            from_json = msgspec.json.Decoder(route.takes)
            self._decoders: dict[str, Any] = {
                **dict.fromkeys((JSON, FORM, *route.medias), from_json),
                MSGPACK: msgspec.msgpack.Decoder(route.takes),
            }

    async def __call__(self, scope: "AsgiScope", receive: "Receive", send: "Send") -> None:
        began = time.perf_counter()
        headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in reversed(scope["headers"])}
        call = Call(self.service, Request(scope, receive), headers=headers)
        try:
            check_host(call)
            call.caller = find_caller(call)
            check_allowed(call, self.route.scope, scope.get("path_params", {}).get("name"))
            call.form_token = headers.get("x-csrf-token", "")
            body = None if self.route.takes is None else self._decode(call, await self._read(call, receive))
            check_form(call)
            answer = await self.route.call(call, body)
            response = answer if isinstance(answer, Response) else self._encode(call, answer)
        except Exception as error:
            response = self._refused(error, call)
        status, seconds = response.status_code, time.perf_counter() - began
        if status not in self._requests:
            self._requests[status] = self.service.metrics.requests.labels(self._title, str(status))
        self._requests[status].inc()
        self._seconds.observe(seconds)
        log("request", route=self._title, status=status, ms=round(1e3 * seconds, 2), **call.notes)
        await response(scope, receive, send)

    async def _read(self, call: Call, receive: "Receive") -> bytes:
        """The body, if it comes whole in time."""
        limits, length = self.service.limits, call.headers.get("content-length", "0")
        if (encoding := call.headers.get("content-encoding", "identity")) != "identity":
            raise HttpError(415, f"Content-Encoding must not be used; got {encoding!r:.40}.")
        too_long = f"the body must be at most {limits.body:,} bytes. Send fewer requests at once."
        if not length.isdecimal() or int(length) > limits.body:
            raise HttpError(413, too_long, {"connection": "close"})
        parts, size, task = list[bytes](), 0, asyncio.current_task()
        assert task is not None
        limit = asyncio.get_running_loop().call_later(limits.receive, task.cancel)  # asyncio.timeout takes far longer
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpError(400, "the body ended before it was whole.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body:
                    raise HttpError(413, too_long, {"connection": "close"})
                if not message.get("more_body", False):
                    return b"".join(parts)
        except asyncio.CancelledError:
            if limit.when() > asyncio.get_running_loop().time():  # by another
                raise
            task.uncancel()
            text = f"the body must come within {limits.receive:g} seconds."
            raise HttpError(408, text, {"connection": "close"}) from None
        finally:
            limit.cancel()

    def _refused(self, error: Exception, call: Call) -> Response:
        return refusal(error, call, self.route.refuses)

    def _decode(self, call: Call, body: bytes) -> Any:
        media = call.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        decoder = self._decoders.get(media)
        if decoder is None:
            raise HttpError(415, f"Content-Type must be {JSON} or {MSGPACK}; got {media!r:.60}.")
        try:
            return decoder.decode(body)
        except msgspec.ValidationError as error:
            raise wrong_value(error, body, msgspec.msgpack if media == MSGPACK else msgspec.json) from error
        except (UnicodeError, RecursionError) as error:
            raise HttpError(400, f"the body cannot be read: {error!s:.100}.") from error

    def _encode(self, call: Call, answer: Any) -> Response:
        """In the form of the request, unless another one is asked for."""
        if self.route.status == 204:
            return Response(status_code=204)
        wanted, sent = call.headers.get("accept", "*/*"), call.headers.get("content-type", JSON)
        packs = MSGPACK in wanted or (MSGPACK in sent and JSON not in wanted)
        content = (_TO_MSGPACK if packs else _TO_JSON).encode(answer)
        return EncodedAnswer(self.route.status, content, (MSGPACK if packs else JSON).encode())


def find_caller(call: Call) -> Token | None:
    """Who calls, by a token, by a session of the page, or by the word of a trusted proxy."""
    security, headers = call.service.security, call.headers
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if text:
        return security.tokens.find(text.strip()) if scheme.lower() == "bearer" else None
    for header in KEY_HEADERS:
        if text := headers.get(header, ""):
            return security.tokens.find(text.strip())
    if session := cookie_parser(headers.get("cookie", "")).get(COOKIE):
        payload = security.tokens.payload(session)
        if payload is not None and payload.startswith("session "):
            check_same_site(call)
            call.session = payload
            return Token(name=payload, hash="", scopes=("admin",))
    if security.user_header is not None and (user := headers.get(security.user_header)):
        peer = call.request.client
        if peer is not None and peer.host in security.proxies:
            check_same_site(call)
            call.session = f"user {user}"
            return Token(name=call.session, hash="", scopes=security.user_scopes)
    return None


def check_same_site(call: Call) -> None:
    """Refuse what a browser sends by itself from other pages."""
    if call.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HttpError(403, "requests of a browser must come from the page of this service.")


def check_form(call: Call) -> None:
    """Refuse changes by a browser without the token of a form."""
    if call.session and call.request.method not in ("GET", "HEAD"):
        token = call.service.security.tokens.form(call.session)
        if not hmac.compare_digest(token.encode(), call.form_token.encode()):
            raise HttpError(403, "the form has expired. Load the page again.")


def check_host(call: Call) -> None:
    """Refuse names that this service is not known by: a page elsewhere could let its name point here."""
    hosts = call.service.security.hosts
    host = call.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if hosts and name.lower() not in hosts:
        raise HttpError(421, f"Host must be one of {', '.join(sorted(hosts))}; got {name!r:.100}. See --allow-host.")


def check_allowed(call: Call, scope: Scope | None, experiment: str | None) -> None:
    """Refuse callers that may not do this, with an experiment or with some."""
    if scope is None:
        return
    if call.caller is None:
        text = "a valid token is needed: Authorization: Bearer TOKEN. rareswitch token makes one."
        raise HttpError(401, text, {"www-authenticate": "Bearer"})
    if not call.caller.allows(scope, experiment):
        raise HttpError(403, f"this token does not allow it: the scope '{scope}' is needed, for this experiment.")


def wrong_value(error: msgspec.ValidationError, body: bytes, reader: Any) -> Exception:
    """What is wrong with a value of a body: its place, the rule, and what was given."""
    text, _, place = str(error).partition(" - at `$")
    if member := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", text):
        name, must = f"{place[:-1]}.{member[2]}".lstrip("."), "is needed"
        must = must if "missing" in member[1] else "is not a field of this request"
        return HttpError(422, f"{name} {must}. See /docs.", parameter=member[2])
    rule = re.fullmatch(r"Expected `(.*?)`(.*?)(?:, got `(.*)`)?", text)
    if rule is None:
        return error
    kinds = [kind for kind in rule[1].split(" | ") if kind != "int" or "float" not in rule[1]]
    value: Any = None
    got = KINDS.get(rule[3] or "", rule[3])
    with suppress(msgspec.DecodeError, RecursionError, LookupError, TypeError, ValueError):
        value = reader.decode(body) if place else None
        for step in re.findall(r"[^.\[\]`]+", place):
            value = value[int(step)] if isinstance(value, list) else value[step]
        got = f"{value!r:.60}" if place else got
    parameter = next(iter(re.findall(r"[A-Za-z_]\w*", place)), None)
    name, must = place[:-1].lstrip(".") or "the body", " or ".join(KINDS.get(kind, kind) for kind in kinds)
    return HttpError(422, f"{name} must be {must}{rule[2]}; got {got}. See /docs.", parameter=parameter, value=value)


def refusal(error: Exception, call: Call, form: type[ErrorForm] = Refusal) -> Response:
    """The answer to a request that failed."""
    status, headers, problem = problem_of(error, call)
    status, body = form.of(status, problem, str(call.request.path_params.get("name", "")))
    return Response(_TO_JSON.encode(body), status, headers, JSON)


def problem_of(error: Exception, call: Call) -> tuple[int, dict[str, str], ErrorBody]:
    """The status, the headers and the content of the answer to a request that failed."""
    parameter, value, headers = None, None, dict[str, str]()
    if isinstance(error, HttpError):
        status, headers, message = error.status, error.headers, str(error)
        parameter, value = error.parameter, error.given
    elif isinstance(error, msgspec.MsgspecError):
        status = 422 if isinstance(error, msgspec.ValidationError) else 400
        message = f"the body cannot be read: {error}."
        parameter = str(error).partition("`$.")[2].partition("`")[0] or None
    elif isinstance(error, RareswitchError):
        status = next((number for kind, number in STATUS if isinstance(error, kind)), 500)
        message, parameter, value = str(error), error.parameter, error.given
    else:
        logger.exception("unexpected error")
        status, message = 500, "the service failed; its log has the reason. The same request may be sent again."
    if status == 503:
        headers["retry-after"] = "1"
    call.notes["error"] = type(error).__name__
    kind = "RequestError" if isinstance(error, (HttpError, msgspec.MsgspecError)) else type(error).__name__
    value = str(value) if isinstance(value, float) and not math.isfinite(value) else value
    return status, headers, ErrorBody(type=kind, message=message, parameter=parameter, given=value)


#: Lines that were not written yet.
_lines = list[bytes]()


def log(event: str, **facts: Any) -> None:
    """A line of JSON in the log; what is answered together is written together."""
    if logger.isEnabledFor(logging.INFO):
        if not _lines:
            asyncio.get_running_loop().call_soon(_write_lines)
        _lines.append(_TO_LINE.encode({"event": event, "time": round(time.time(), 3), **facts}))


def _write_lines() -> None:
    lines = b"\n".join([*_lines, b""])
    _lines.clear()
    with suppress(OSError):  # a log that cannot be written stops nobody
        sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()


class Methods:
    """Answers the requests of a path, by the endpoints of its methods; without any there is nothing at this path."""

    def __init__(self, service: Service, endpoints: Mapping[str, Endpoint]) -> None:
        self._service, self._endpoints = service, endpoints

    def __call__(self, scope: "AsgiScope", receive: "Receive", send: "Send") -> Awaitable[None]:
        method = scope["method"]
        endpoint = self._endpoints.get("GET" if method == "HEAD" else method)
        return endpoint(scope, receive, send) if endpoint is not None else self._refused(scope, receive, send)

    async def _refused(self, scope: "AsgiScope", receive: "Receive", send: "Send") -> None:
        error = HttpError(404, "there is nothing at this path. See /docs.")
        if self._endpoints:
            allowed = ", ".join([*self._endpoints, *(["HEAD"] if "GET" in self._endpoints else [])])
            error = HttpError(405, f"this path takes {allowed} alone.", {"allow": allowed})
        await refusal(error, Call(self._service, Request(scope, receive)))(scope, receive, send)


def make_app(service: Service, routes: Sequence[Route]) -> Router:
    """The application: each path has the endpoints of its methods; what is not there is refused in the same form."""

    @asynccontextmanager
    async def lifespan(_: Router) -> "AsyncIterator[None]":
        watching = asyncio.create_task(service.hub.watch())
        yield
        watching.cancel()
        await asyncio.to_thread(service.hub.close)

    paths: dict[str, dict[str, Endpoint]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = (route.endpoint or Endpoint)(service, route)
    entries = [HttpRoute(path, Methods(service, endpoints)) for path, endpoints in paths.items()]
    # slashes at the end would lead to whatever host was named
    return Router(entries, lifespan=lifespan, default=Methods(service, {}), redirect_slashes=False)
