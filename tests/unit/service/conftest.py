"""A service of one experiment, asked without a socket."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import rareswitch
from rareswitch.features import Features
from rareswitch.service import Hub, Security, Service, Tokens, application

ARMS = ["red", "green", "blue"]
RECORDS = [{"age": 20 + 7 * k % 50, "device": ("ios", "web")[k % 2]} for k in range(200)]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Of a store with the experiments spring (records) and vectors (vectors of two features)."""
    url = f"sqlite:///{tmp_path}/spring.db"
    features = Features.fit(RECORDS, ARMS)
    rareswitch.create(url, "spring", features=features, policies=4, horizon=1000, seed=1).close()
    rareswitch.create(url, "vectors", dim=2, policies=4, horizon=1000, seed=1).close()
    service = Service(hub=Hub(url), security=Security(tokens=Tokens(), hosts=frozenset({"test"})))
    yield service
    service.hub.close()


Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(service: Service) -> Ask:
    """Ask the service: method, path and body; with the token of an admin unless another one is given."""
    admin = service.security.tokens.add("admin", ["admin"])

    def call(method: str, path: str, body: Any = None, *, token: str | None = admin, **more: Any) -> httpx.Response:
        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
            headers = {"authorization": f"Bearer {token}"} if token else {}
            async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
                kind = {} if body is None else {"content": body} if isinstance(body, bytes) else {"json": body}
                return await client.request(method, path, **kind, **more)

        return asyncio.run(answer())

    return call
