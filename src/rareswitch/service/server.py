"""The server: uvicorn with a deadline for requests, on loopback unless something else is asked for."""

import asyncio
import logging
import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.routing import Router
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.policy import find_key
from rareswitch.service.app import Limits, Security, Service, logger, make_app
from rareswitch.service.edge import EdgeHub, FrozenPolicy
from rareswitch.service.hub import Hub
from rareswitch.service.ofrep import FLAG_ROUTES
from rareswitch.service.openapi import pages
from rareswitch.service.page import Page
from rareswitch.service.personalizer import RANK_ROUTES
from rareswitch.service.routes import EDGE_ROUTES, ROUTES
from rareswitch.service.tokens import Tokens

__all__ = ["ServerSettings", "application", "read_settings", "serve", "service_of", "tokens_path"]
__all__ += ["ALL_ROUTES"]

#: Of the service of a store.
ALL_ROUTES = (*ROUTES, *FLAG_ROUTES, *RANK_ROUTES)
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
#: Seconds in which the head of a request must have come, and for which work that was begun may go on at the end.
HEAD, DRAIN = 10.0, 20
#: Bytes of the head of a request; and of what comes after a request was answered although it was not whole.
MOST_HEAD, MOST_UNREAD = 1 << 16, 1 << 24
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
#: Seconds in which a worker process must show that it is alive: a busy machine takes long to load one.
ALIVE = 60
#: The variable in which worker processes find the settings.
_SETTINGS = "RARESWITCH_SERVICE"


class DeadlineProtocol(HttpToolsProtocol):
    """Closes connections on which the head of a request does not come, or does not end."""

    _waiting: asyncio.TimerHandle | None = None
    #: Whether the head of a request has begun, and not ended.
    _begun = False
    #: Bytes that came and belong to no request that is being answered.
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting = self.loop.call_later(HEAD, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        partly = self._begun or self._waiting is not None
        if partly and self._waiting is None:  # most heads come whole, and need no timer
            self._waiting = self.loop.call_later(HEAD, self.transport.close)
        if partly or (self.cycle is not None and self.cycle.response_complete):
            self._unread += len(data)
            if self._unread > (MOST_HEAD if partly else MOST_UNREAD) and not self.transport.is_closing():
                self.transport.write(TOO_LONG if partly else b"")
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = True

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._ended()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()
        super().connection_lost(exc)

    def _ended(self) -> None:
        self._begun = False
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a service runs: options of ``rareswitch serve``, variables ``RARESWITCH_…``, or ``rareswitch.toml``."""

    #: The store; or a policy file, by which is decided without a store.
    url: str = ""
    policy: str | None = None
    #: Of a policy file: how it is called in paths, the secret by which decisions are drawn, the folder of its log.
    name: str = "policy"
    seed: int | None = None
    logs: str | None = None
    host: str = "127.0.0.1"
    port: int = 8700
    #: The file of tokens; by default beside an SQLite store.
    tokens: str | None = None
    #: Further names under which it may be addressed.
    allow_host: tuple[str, ...] = ()
    #: Files of the certificate and its key, for TLS.
    certificate: str | None = None
    private_key: str | None = None
    #: The key that signs policies: its file, or the variable that holds it.
    key_file: str | None = None
    key: str | None = None
    workers: int = 1
    #: The header in which a proxy on this machine says who is signed in.
    user_header: str | None = None
    max_body: int = Limits().body
    max_arms: int = Limits().arms

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"port must be from 0 to 65535; got {self.port}.")
        if self.workers < 1:
            raise ParameterError(f"workers must be at least 1; got {self.workers}.")
        if self.workers > 1 and not self.url.startswith("postgres"):
            raise ParameterError(
                f"workers must be 1 where the store is a file; got {self.workers}. Processes that write one SQLite "
                "file wait for each other: use PostgreSQL for several."
            )
        if bool(self.url) == (self.policy is not None):
            raise ParameterError("url must name a store, such as spring.db; or give --policy FILE in its place.")
        if self.policy is not None and self.seed is None:
            raise ParameterError(
                "seed must be given with --policy, in RARESWITCH_SEED or rareswitch.toml: the secret whole number by "
                "which decisions are drawn, the same on all servers. That of an experiment is trial.description.seed."
            )
        if (self.certificate is None) != (self.private_key is None):
            raise ParameterError("certificate and private_key belong together: give both for TLS, or none.")

    @property
    def address(self) -> str:
        """Where it is reached."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}"


def read_settings(path: Path | None, variables: Mapping[str, str], options: Mapping[str, Any]) -> ServerSettings:
    """Settings of a file, over these of the environment, over these the options that were given.

    >>> read_settings(None, {"RARESWITCH_URL": "a.db", "RARESWITCH_PORT": "8800"}, {"port": None}).address
    'http://127.0.0.1:8800'
    """
    facts: dict[str, Any] = {}
    if path is not None:
        try:
            facts |= tomllib.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path}: cannot be read as TOML ({error}).") from error
    names = [field.name for field in msgspec.structs.fields(ServerSettings)]
    facts |= {name: text for name in names if (text := variables.get(f"RARESWITCH_{name.upper()}"))}
    facts |= {name: value for name, value in options.items() if name in names and value is not None}
    if isinstance(facts.get("allow_host"), str):
        facts["allow_host"] = facts["allow_host"].split(",")
    try:
        return msgspec.convert(facts, ServerSettings, strict=False)
    except msgspec.ValidationError as error:
        raise ParameterError(f"the settings of the service cannot be read: {error}.") from error


def tokens_path(settings: ServerSettings) -> Path:
    """Where the tokens of a service are kept."""
    if settings.tokens is not None:
        return Path(settings.tokens)
    path = settings.policy or settings.url.removeprefix("sqlite:///")
    if "://" in path or path == "memory:":
        raise ParameterError("tokens must name a file where the store is no file: --tokens FILE.")
    return Path(f"{path}.tokens.json")


def service_of(settings: ServerSettings, hub: Hub | None = None) -> Service:
    """The service of a store, or of a hub that is there."""
    own = () if settings.host in ("0.0.0.0", "::") else (settings.host,)
    key = find_key(settings.key_file, settings.key)
    hub = Hub(settings.url, key=key) if hub is None else hub
    if settings.policy is not None and settings.seed is not None:
        logs = settings.logs is not None
        frozen = FrozenPolicy(settings.policy, name=settings.name, seed=settings.seed, key=key, logs=logs)
        hub = EdgeHub(frozen, settings.logs)
    return Service(
        hub=hub,
        security=Security(
            tokens=Tokens(tokens_path(settings)),
            hosts=frozenset({*settings.allow_host, *own, *LOOPBACK}),
            user_header=settings.user_header,
        ),
        limits=Limits(body=settings.max_body, arms=settings.max_arms),
    )


def application(service: Service) -> Router:
    """All routes of a service."""
    if isinstance(service.hub, EdgeHub):
        return make_app(service, (*EDGE_ROUTES, *pages(EDGE_ROUTES)))
    return make_app(service, (*ALL_ROUTES, *pages(ALL_ROUTES), *Page().routes))


def worker() -> Router:
    """The application of one of several processes, which read the settings of the first from its environment."""
    _log_lines()
    return application(service_of(msgspec.json.decode(os.environ[_SETTINGS], type=ServerSettings)))


def serve(settings: ServerSettings, app: Router | None = None, *, quiet: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C; what was begun by then is finished. With ``quiet`` no requests are logged."""
    if not quiet:
        _log_lines()
    target: Any = app
    if settings.workers > 1:
        os.environ[_SETTINGS], target = msgspec.json.encode(settings).decode(), f"{__name__}:{worker.__name__}"
    uvicorn.run(
        application(service_of(settings)) if target is None else target,
        factory=settings.workers > 1,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        http=DeadlineProtocol,
        ws="none",
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.private_key,
        proxy_headers=False,  # it must be known who is at the other end, not for whom a proxy speaks
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=DRAIN,
        timeout_worker_healthcheck=ALIVE,
    )


def _log_lines() -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
