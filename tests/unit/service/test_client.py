"""The client has the verbs of an experiment, and sends again what was not answered."""

import asyncio
from typing import Any

import httpx
import pytest

from rareswitch.client import AsyncClient, Client
from rareswitch.errors import ConflictError, ParameterError, RareswitchError, StoreError
from rareswitch.experiment import Experiment
from rareswitch.service import Service, application
from reference.refusals import raises

RECORD = {"age": 31, "device": "ios"}


class Blocking(httpx.BaseTransport):
    """Asks a service without a socket; some answers are lost on the way."""

    def __init__(self, service: Service, lost: int = 0) -> None:
        self.app, self.lost = httpx.ASGITransport(application(service)), lost
        self.sent: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self.answer(request))

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        response = await self.app.handle_async_request(request)
        content = await response.aread()
        if len(self.sent) <= self.lost:
            raise httpx.ReadError("lost")
        return httpx.Response(response.status_code, headers=response.headers, content=content)


class Awaited(Blocking, httpx.AsyncBaseTransport):
    """The same for programs that do not block."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self.answer(request)


@pytest.fixture
def token(service: Service) -> str:
    return service.security.tokens.add("client", ["admin"])


def test_its_verbs_are_those_of_an_experiment(service: Service, token: str) -> None:
    with Client("http://test", "spring", token=token, transport=Blocking(service)) as client:
        choice = client.decide(RECORD, ["red", "blue"], id="r1")
        assert client.decide_many([RECORD, RECORD], ["red", "blue"], ids=["r1", 2])[0].arm == choice.arm
        assert client.reward("r1", True).rewards == 1
        assert client.reward_many([2, 3], [0.0, 1.0]).unmatched == 1
        shares = client.probabilities(RECORD, ["red", "blue"])
        assert shares == service.hub._open("spring").probabilities(RECORD, ["red", "blue"])
        assert client.decide(RECORD, ["red", "blue"], id="r3", deferred=True).deferred
        assert client.decide_many([RECORD], ["red", "blue"], ids=["r3"], deferred=True)[0].deferred
        assert (client.status().deferred, client.activate("r3", "r1").repeated, client.status().deferred) == (1, 1, 0)
        trial = service.hub._open("spring")
        assert client.audit("r1") == trial.audit("r1")
        assert client.audit(2).arm in ("red", "blue")
        assert client.status() == trial.status(now=None)
        assert not client.preview().made or client.preview().preview
        assert not client.advance().made
        raises(ParameterError, "approv", client.approve)
        client.reject()
        assert client.policy_file() == trial.policy_file()[1]
        raises(ConflictError, "used before", client.decide, {**RECORD, "age": 40}, ["red", "blue"], id="r1")
    names = [name for name in vars(Client) if not name.startswith("_")]
    assert all(hasattr(Experiment, name) for name in names)
    assert names == [name for name in vars(AsyncClient) if not name.startswith("_")]


def test_what_was_not_answered_is_sent_again_under_its_id(service: Service, token: str) -> None:
    transport = Awaited(service, lost=2)

    async def run() -> Any:
        async with AsyncClient("http://test", "spring", token=token, transport=transport) as client:
            return await client.decide(RECORD, ["red", "blue"], id="r1")

    assert asyncio.run(run()).repeated
    assert len({request.content for request in transport.sent}) == 1
    assert len(transport.sent) == 3
    assert service.hub._open("spring").status().decisions == 1


def test_an_update_is_not_sent_again_and_retries_end(service: Service, token: str) -> None:
    transport = Blocking(service, lost=9)
    client = Client("http://test", "spring", token=token, transport=transport, retries=1)
    raises(StoreError, "tried 2 times", client.reward, "r1", 1.0)
    assert len(transport.sent) == 2
    raises(StoreError, "cannot be reached", client.advance)
    assert len(transport.sent) == 3
    with pytest.raises(RareswitchError, match="no experiment"):
        Client("http://test", "none", token=token, transport=Blocking(service)).status()
