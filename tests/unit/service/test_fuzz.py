"""Fuzzed bodies of both encodings on every route that takes one: refused or answered as described, never a failure."""

import asyncio
import gc
import random
import re
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from rareswitch.service import ALL_ROUTES, MSGPACK, Route, Service, application, description
from unit.service.conftest import ARMS, RECORDS

#: Requests, and MiB by which memory may grow in the second half of them.
COUNT, GROWTH = 3_000, 24.0
NUMBERS = [0, -1, 1.5, 2**63, -(2**63), 1e308, 1e-320, 10**30]
TEXTS = ["", "x" * 300, "\x00", "\u202e", "😀" * 40, "<script>", "../..", "r1", "NaN", "red", "uniform"]
VALUES: list[Any] = [None, True, False, [], {}, [[]], [None], {"": ""}, *NUMBERS, *TEXTS]
ONE = {"id": "f1", "context": RECORDS[0], "arms": ARMS, "deferred": False}
#: What is mutated, by the end of the path.
BODIES: dict[str, Any] = {
    "decide": ONE,
    "probabilities": ONE,
    "decide-many": {"ids": ["a", "b"], "contexts": RECORDS[:2], "arms": [["red", "blue"], {"green": {}, "red": {}}]},
    "reward": {"id": "f1", "value": 1.0, "overwrite": False},
    "reward-many": {"ids": ["a", "b"], "values": [0.0, True]},
    "activate": {"ids": ["a"]},
    "experiments": {"name": "fuzzed", "sample": RECORDS[:30], "arms": ARMS, "settings": {"policies": 3}},
    "preview": {"forecast": 100},
    "advance": {"force": True, "forecast": [10, 20], "gate": 0.05},
    "approve": {"policy_id": "a"},
    "evaluate": {"candidates": ["uniform", "always:red"], "level": 0.9, "anytime": False},
    "effects": {"arm": "red", "over": "blue", "level": 0.9},
    "flags": {"context": {"targetingKey": "u", **RECORDS[0]}},
    "{name}": {"context": {"targetingKey": "u", **RECORDS[0]}},
    "events": [{"specversion": "1.0", "id": "1", "source": "/", "type": "t", "subject": "u", "data": {"value": 1}}],
    "rank": {"contextFeatures": [RECORDS[0]], "actions": [{"id": "red", "features": [{}]}], "eventId": "f9"},
}

#: Fields of answers that are described as a number or null.
NULLABLE = {
    name
    for schema in description(ALL_ROUTES)["components"]["schemas"].values()
    for name, kind in schema.get("properties", {}).items()
    if kind.get("type") == ["number", "null"]
}


def mutated(rng: random.Random, body: Any) -> Any:
    """A copy of a body in which some value is another one, is gone, or is there twice."""
    if isinstance(body, (dict, list)) and body and rng.random() < 0.85:
        copy = body.copy()
        key = rng.choice([*copy]) if isinstance(copy, dict) else rng.randrange(len(copy))
        action = rng.random()
        if action < 0.1:
            del copy[key]
        elif action < 0.2 and isinstance(copy, dict):
            copy[rng.choice(TEXTS)] = rng.choice(VALUES)
        elif action < 0.2:
            copy.append(rng.choice([*copy, *VALUES]))
        else:
            copy[key] = mutated(rng, copy[key])
        return copy
    return rng.choice(VALUES)


def encoded(rng: random.Random, body: Any, *, packs: bool) -> bytes:
    """A body, now and then with other bytes, or fewer."""
    data = bytearray((msgspec.msgpack if packs else msgspec.json).encode(body))
    if rng.random() < 0.2:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.05 else data)


def packable(body: Any) -> Any:
    """What MessagePack has no form for, as a float."""
    if isinstance(body, dict):
        return {key: packable(value) for key, value in body.items()}
    if isinstance(body, list):
        return [packable(value) for value in body]
    return float(body) if type(body) is int and not -(2**63) <= body < 2**64 else body


def check(answer: httpx.Response, route: Route) -> None:
    """Refuse an answer that is not as described; what is not known is null in JSON, which has no other form for it."""
    if answer.headers["content-type"] == MSGPACK:
        msgspec.msgpack.decode(answer.content, type=route.gives)
        return
    try:
        msgspec.json.decode(answer.content, type=route.gives)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        if not (text == "Expected `float`, got `null`" and re.findall(r"\w+", place)[-1] in NULLABLE):
            raise


def resident() -> float:
    """MiB of this process."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fuzzed_bodies_are_answered_as_described(service: Service) -> None:
    routes = [route for route in ALL_ROUTES if route.takes is not None]
    token, rng, memory, statuses = service.security.tokens.add("admin", ["admin"]), random.Random(1), 0.0, set[int]()

    async def ask(client: httpx.AsyncClient, route: Route, number: int) -> None:
        packs, body = rng.random() < 0.4, BODIES[route.path.rpartition("/")[2]]
        body = mutated(rng, body | {"id": f"f{number}"} if "id" in body else body)
        data = encoded(rng, packable(body) if packs else body, packs=packs)
        names = {"{name}": "spring", "{event}": "f9", "{version}": "v1.1"}
        path = route.path
        for name, value in names.items():
            path = path.replace(name, value)
        kind = {"content-type": MSGPACK if packs else "application/json"}
        answer = await client.post(path, content=data, headers=kind)
        statuses.add(answer.status_code)
        assert answer.status_code < 500, (path, data, answer.text)
        if answer.status_code >= 400:
            msgspec.json.decode(answer.content, type=route.refuses)
        elif answer.content:
            check(answer, route)

    async def run() -> None:
        nonlocal memory
        transport, headers = httpx.ASGITransport(application(service)), {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            for number in range(COUNT):
                await ask(client, routes[number % len(routes)], number)
                memory = resident() if number == COUNT // 2 else memory

    asyncio.run(run())
    assert resident() - memory < GROWTH
    assert {200, 201, 204, 400, 404, 409, 422} >= statuses >= {200, 400, 422}
    trial = service.hub._open("spring")
    rows = [row for page in trial.store.rows(0, trial.store.marks()) for row, _ in page]
    assert len(rows) > 50
    assert all(trial.audit(msgspec.json.decode(row.id)).matches for row in rows)
    assert trial.verify().holds
