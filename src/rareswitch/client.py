"""A client of the service: the verbs of an experiment over HTTP, blocking or not."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from urllib.parse import quote

import msgspec

from rareswitch import errors
from rareswitch.errors import MissingExtraError, RareswitchError, StoreError
from rareswitch.experiment import Activated, Advance, Audit, Choice, Id, Rewarded, Status
from rareswitch.features import OfferedArms

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("the client needs httpx. Install it with: pip install 'rareswitch[client]'") from error

P = ParamSpec("P")
T = TypeVar("T")
#: Answers after which the same request may be sent again.
_AGAIN = {429, 502, 503, 504}
#: Seconds before the second attempt; twice as long before each further one.
_PAUSE = 0.1


class _Exchange(Generic[T]):
    """What is sent, and how the answer is read."""

    def __init__(
        self, method: str, path: str, body: Mapping[str, Any] | None, read: Callable[[bytes], T], *, again: bool = True
    ) -> None:
        self.method, self.path, self.read, self.again = method, path, read, again
        self.content = b"" if body is None else msgspec.json.encode({k: v for k, v in body.items() if v is not None})


def _reading(kind: type[T]) -> Callable[[bytes], T]:
    return msgspec.msgpack.Decoder(kind).decode  # which has a form for numbers that are not known


_choice, _status, _advance = _reading(Choice), _reading(Status), _reading(Advance)
_audit, _columns, _activated = _reading(Audit), _reading(dict[str, list[Any]]), _reading(Activated)
_rewarded = _reading(Rewarded)


def _field(context: Mapping[str, Any] | Sequence[Sequence[float]]) -> str:
    return "context" if isinstance(context, Mapping) else "vectors"


def _decide(
    context: Mapping[str, Any] | Sequence[Sequence[float]],
    arms: OfferedArms = None,
    *,
    id: Id,  # noqa: A002
    baseline: Id | None = None,
    deferred: bool = False,
) -> _Exchange[Choice]:
    """Choose an arm for a record, or for vectors of arms (K, d); the same id again gives the same answer."""
    body = {"id": id, _field(context): context, "arms": arms, "baseline": baseline, "deferred": deferred or None}
    return _Exchange("POST", "/decide", body, _choice)


def _decide_many(
    contexts: Sequence[Mapping[str, Any]], arms: OfferedArms = None, *, ids: Sequence[Id], deferred: bool = False
) -> _Exchange[list[Choice]]:
    """Choose an arm for each of many records; ``arms`` once for all, or for each."""

    def read(data: bytes) -> list[Choice]:
        answer = _columns(data)
        names = {"ids": "id", "arms": "arm", "propensities": "propensity", "policy_ids": "policy_id"}
        columns = {names.get(field, field.removesuffix("s")): values for field, values in answer.items()}
        return [Choice(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    body = {"ids": [*ids], "contexts": [*contexts], "arms": arms, "deferred": deferred or None}
    return _Exchange("POST", "/decide-many", body, read)


def _reward(
    id: Id,  # noqa: A002
    value: float,
    *,
    event: str | None = None,
    overwrite: bool = False,
) -> _Exchange[Rewarded]:
    """Say what a decision earned; twice the same is as good as once."""
    body = {"id": id, "value": value, "event": event, "overwrite": overwrite}
    return _Exchange("POST", "/reward", body, _rewarded)


def _reward_many(
    ids: Sequence[Id], values: Sequence[float], *, events: Sequence[str] | None = None, overwrite: bool = False
) -> _Exchange[Rewarded]:
    """Say what many decisions earned."""
    body = {"ids": [*ids], "values": [*values], "events": events, "overwrite": overwrite}
    return _Exchange("POST", "/reward-many", body, _rewarded)


def _activate(*ids: Id) -> _Exchange[Activated]:
    """Let deferred decisions count, since their arms were shown; again changes nothing."""
    return _Exchange("POST", "/activate", {"ids": [*ids]}, _activated)


def _read_status() -> _Exchange[Status]:
    """What was decided and earned, and what the next update waits for."""
    return _Exchange("GET", "", None, _status)


def _preview() -> _Exchange[Advance]:
    """What an update made now would do."""
    return _Exchange("POST", "/preview", {}, _advance)


def _make_update(*, force: bool = False) -> _Exchange[Advance]:
    """Learn the next policy, if it is due; it is not sent again by itself."""
    return _Exchange("POST", "/advance", {"force": force}, _advance, again=False)


def _approve(policy_id: str | None = None) -> _Exchange[Advance]:
    """Publish the policy that waits for approval, with ``policy_id`` only if it is that one."""
    return _Exchange("POST", "/approve", {"policy_id": policy_id}, _advance, again=False)


def _reject() -> _Exchange[None]:
    """Drop the policy that waits for approval."""
    return _Exchange("POST", "/reject", None, lambda _: None)


def _read_probabilities(
    context: Mapping[str, Any] | Sequence[Sequence[float]], arms: OfferedArms = None, *, baseline: Id | None = None
) -> _Exchange[dict[Id, float]]:
    """With what probability the current policy would choose each arm; nothing is decided."""
    body = {"id": 0, _field(context): context, "arms": arms, "baseline": baseline}

    def read(data: bytes) -> dict[Id, float]:
        shares = msgspec.msgpack.decode(data)
        return dict(zip(shares["arms"], shares["probabilities"], strict=True))

    return _Exchange("POST", "/probabilities", body, read)


def _read_audit(id: Id) -> _Exchange[Audit]:  # noqa: A002
    """A decision, recomputed from its frozen policy."""
    number = "?number=true" if isinstance(id, int) else ""
    return _Exchange("GET", f"/decisions/{quote(str(id), safe='')}{number}", None, _audit)


def _read_policy() -> _Exchange[bytes]:
    """The file of the policy that decides, for ``rareswitch.policy.policy_from_bytes``."""
    return _Exchange("GET", "/policy", None, bytes)


class _Settings:
    """Where a client asks, and how often it tries."""

    def __init__(
        self, url: str, name: str, *, token: str, retries: int = 3, timeout: float = 10.0, transport: Any = None
    ) -> None:
        self.name, self.retries = name, retries
        self._base = f"/v1/experiments/{quote(name, safe='')}"
        self._options: dict[str, Any] = {
            "base_url": url,
            "timeout": timeout,
            "transport": transport,
            "headers": {
                "authorization": f"Bearer {token}",
                "content-type": "application/json",
                "accept": "application/msgpack",
            },
        }

    def _pause(self, attempt: int, response: "httpx.Response | None") -> float:
        """Seconds before the next attempt."""
        wanted = "0" if response is None else response.headers.get("retry-after", "0")
        return max(float(wanted) if wanted.isdigit() else 0.0, _PAUSE * (1 << attempt)) * random.uniform(0.5, 1.0)

    def _given_up(self, error: Exception) -> StoreError:
        return StoreError(
            f"the service cannot be reached: {error!s:.200}. It was tried {self.retries + 1} times; the same request "
            "may be sent again under its id."
        )


def _read(exchange: _Exchange[T], response: "httpx.Response") -> T:
    """What was answered; an error of the service is raised as the one it is in Python."""
    if response.status_code < 400:
        return exchange.read(response.content)
    try:
        problem = response.json()["error"]
        kind, text = getattr(errors, problem["type"], RareswitchError), problem["message"]
    except (ValueError, LookupError, TypeError):
        raise RareswitchError(f"the service answered {response.status_code}: {response.text:.200}") from None
    raise kind(text, parameter=problem.get("parameter"), given=problem.get("given"))


def _blocking(build: Callable[P, _Exchange[T]]) -> Callable[Concatenate["Client", P], T]:
    @wraps(build)
    def verb(self: "Client", /, *arguments: P.args, **options: P.kwargs) -> T:
        return self._exchange(build(*arguments, **options))

    return verb


def _awaited(build: Callable[P, _Exchange[T]]) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    @wraps(build)
    async def verb(self: "AsyncClient", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._exchange(build(*arguments, **options))

    return verb


class Client(_Settings):
    """An experiment that is served somewhere else.

    Requests are sent again where the service is busy or cannot be reached: a decision under its id, and a reward, count
    once however often they come.

    Parameters
    ----------
    url, name, token
        Of the service, of the experiment, and what allows its use.
    retries
        Attempts after the first.
    timeout
        Seconds for each.

    Examples
    --------
    >>> trial = Client("http://localhost:8700", "spring", token="rareswitch_abc")
    >>> trial.decide({"age": 31}, ["red", "blue"], id="r1").arm  # doctest: +SKIP
    'blue'
    """

    def __init__(self, url: str, name: str, **settings: Any) -> None:
        super().__init__(url, name, **settings)
        self._http = httpx.Client(**self._options)

    decide = _blocking(_decide)
    decide_many = _blocking(_decide_many)
    reward = _blocking(_reward)
    reward_many = _blocking(_reward_many)
    activate = _blocking(_activate)
    status = _blocking(_read_status)
    preview = _blocking(_preview)
    advance = _blocking(_make_update)
    approve = _blocking(_approve)
    reject = _blocking(_reject)
    probabilities = _blocking(_read_probabilities)
    audit = _blocking(_read_audit)
    policy_file = _blocking(_read_policy)

    def _exchange(self, exchange: _Exchange[T]) -> T:
        for attempt in range(self.retries + 1):
            response, last = None, attempt == self.retries or not exchange.again
            try:
                response = self._http.request(exchange.method, self._base + exchange.path, content=exchange.content)
                if response.status_code not in _AGAIN or last:
                    return _read(exchange, response)
            except httpx.TransportError as error:
                if last:
                    raise self._given_up(error) from error
            time.sleep(self._pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Settings):
    """:class:`Client` for programs that do not block: each verb is awaited."""

    def __init__(self, url: str, name: str, **settings: Any) -> None:
        super().__init__(url, name, **settings)
        self._http = httpx.AsyncClient(**self._options)

    decide = _awaited(_decide)
    decide_many = _awaited(_decide_many)
    reward = _awaited(_reward)
    reward_many = _awaited(_reward_many)
    activate = _awaited(_activate)
    status = _awaited(_read_status)
    preview = _awaited(_preview)
    advance = _awaited(_make_update)
    approve = _awaited(_approve)
    reject = _awaited(_reject)
    probabilities = _awaited(_read_probabilities)
    audit = _awaited(_read_audit)
    policy_file = _awaited(_read_policy)

    async def _exchange(self, exchange: _Exchange[T]) -> T:
        for attempt in range(self.retries + 1):
            response, last = None, attempt == self.retries or not exchange.again
            try:
                path = self._base + exchange.path
                response = await self._http.request(exchange.method, path, content=exchange.content)
                if response.status_code not in _AGAIN or last:
                    return _read(exchange, response)
            except httpx.TransportError as error:
                if last:
                    raise self._given_up(error) from error
            await asyncio.sleep(self._pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
