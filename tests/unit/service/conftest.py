"""A service of one experiment, asked without a socket."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

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


@pytest.fixture
def listening(service: Service) -> Callable[[], AbstractContextManager[str]]:
    """Serves it on a socket, as a server does; says its address."""

    @contextmanager
    def served() -> Iterator[str]:
        object.__setattr__(service, "security", replace(service.security, hosts=frozenset({"127.0.0.1"})))
        run = uvicorn.Server(uvicorn.Config(application(service), port=0, log_level="error", ws="none"))
        thread = threading.Thread(target=run.run)
        thread.start()
        while not run.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{run.servers[0].sockets[0].getsockname()[1]}"
        run.should_exit = True
        thread.join(30)

    return served


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
