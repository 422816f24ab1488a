"""The verbs of experiments over HTTP, and who may use them."""

import asyncio
import errno
import io
import json
import logging
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import numpy as np
import pytest

import rareswitch
from rareswitch.experiment import create
from rareswitch.features import Features
from rareswitch.policy import policy_from_bytes
from rareswitch.service import (
    ALL_ROUTES,
    COOKIE,
    MSGPACK,
    SCOPES,
    BusyError,
    Hub,
    Limits,
    Route,
    Service,
    Together,
    application,
    description,
)
from rareswitch.service.messages import ErrorForm

Ask = Callable[..., httpx.Response]
SPRING = "/v1/experiments/spring"
ONE: dict[str, Any] = {"id": "r1", "context": {"age": 31, "device": "ios"}, "arms": ["red", "blue"]}


def test_what_is_decided_over_http_is_what_python_finds(ask: Ask, service: Service) -> None:
    first = ask("POST", f"{SPRING}/decide", ONE).json()
    again = ask("POST", f"{SPRING}/decide", ONE).json()
    assert again == first | {"repeated": True}
    other = {**ONE, "id": 7, "arms": {"red": {}, "green": {}}}
    assert ask("POST", f"{SPRING}/decide", other).json()["arm"] in ("red", "green")
    many = {"ids": ["r1", "r2"], "contexts": [ONE["context"]] * 2, "arms": ["red", "blue"]}
    decided = ask("POST", f"{SPRING}/decide-many", many).json()
    assert (decided["arms"][0], decided["repeated"]) == (first["arm"], [True, False])
    assert ask("POST", f"{SPRING}/reward", {"id": "r1", "value": True}).json()["rewards"] == 1
    rewarded = ask("POST", f"{SPRING}/reward-many", {"ids": ["r2", 7, "r9"], "values": [0.0, 1.0, 1.0]}).json()
    assert (rewarded["rewards"], rewarded["unmatched"]) == (3, 1)
    trial = service.hub._open("spring")
    audit = ask("GET", f"{SPRING}/decisions/r1").json()
    assert audit == msgspec.json.decode(msgspec.json.encode(trial.audit("r1")))
    assert audit["verdict"] == "matches"
    assert ask("GET", f"{SPRING}/decisions/7?number=true").json()["arm"] in ("red", "green")
    status = ask("GET", SPRING).json()
    assert [(batch["decisions"], batch["rewarded"]) for batch in status["batches"]] == [(3, 3)]
    shares = ask("POST", f"{SPRING}/probabilities", ONE).json()
    assert dict(zip(shares["arms"], shares["probabilities"], strict=True)) == trial.probabilities(
        ONE["context"], ONE["arms"]
    )
    assert ask("POST", f"{SPRING}/evaluate", {"candidates": ["uniform", "always:red", "policy:1"]}).status_code == 200
    assert ask("POST", f"{SPRING}/effects", {"arm": "red", "over": "blue"}).json()["effects"][0]["arm"] == "red"
    assert ask("GET", "/v1/experiments").json() == {"names": ["spring", "vectors"]}


def test_an_update_over_http_publishes_a_policy_that_can_be_fetched_once(ask: Ask) -> None:
    ids = [f"r{k}" for k in range(60)]
    many = {"ids": ids, "contexts": [ONE["context"]] * 60, "arms": ["red", "blue"]}
    ask("POST", f"{SPRING}/decide-many", many)
    ask("POST", f"{SPRING}/reward-many", {"ids": ids, "values": [0.0, 1.0] * 30})
    assert ask("POST", f"{SPRING}/preview", {"force": False}).json()["preview"]
    outcome = ask("POST", f"{SPRING}/advance", {"force": True}).json()
    assert (outcome["made"], outcome["version"]) == (True, 2)
    answer = ask("GET", f"{SPRING}/policy")
    assert policy_from_bytes(answer.content).id == outcome["policy_id"] == answer.headers["etag"].strip('"')
    assert ask("GET", f"{SPRING}/policy", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    archive = zipfile.ZipFile(io.BytesIO(ask("GET", f"{SPRING}/export").content))
    assert archive.namelist() == ["part-00001.parquet"]


def test_an_experiment_is_begun_over_http(ask: Ask) -> None:
    sample = [{"age": age, "device": "ios"} for age in range(20, 60)]
    body = {"name": "autumn", "sample": sample, "arms": ["a", "b"], "settings": {"policies": 3, "horizon": 100}}
    answer = ask("POST", "/v1/experiments", body)
    assert answer.json().get("name") == "autumn", answer.text
    again = ask("POST", "/v1/experiments", body)
    assert (again.status_code, again.json()["error"]["type"]) == (409, "ExistsError")
    one = {"id": 1, "context": {"age": 30, "device": "ios"}, "arms": ["a", "b"]}
    assert ask("POST", "/v1/experiments/autumn/decide", one).status_code == 200


def test_what_python_can_create_can_be_created_over_http_but_for_files_of_the_server(
    ask: Ask, service: Service
) -> None:
    described = Features.fit([{"age": 20 + k, "device": ("ios", "web")[k % 2]} for k in range(40)], ["a", "b"])
    body: dict[str, Any] = {"name": "autumn", "features": described.to_plain(), "settings": {"policies": 3}}
    body |= {"approval": True, "several": "sum", "clip": [0, 5], "baseline": True, "holdout": 0.1, "keep_records": True}
    assert ask("POST", "/v1/experiments", body).status_code == 200
    kept = service.hub._open("autumn").description
    assert (kept.features.id, kept.approval, kept.holdout, kept.keep_records) == (described.id, True, 0.1, True)
    assert (kept.rewards.several, kept.rewards.clip) == ("sum", (0.0, 5.0))
    plain = {"name": "winter", "dim": 2}
    for more in (
        {"learner": "/tmp/learner.py:Learner"},
        {"settings": {"warm_start": "/etc/hostname"}},
        {"settings": {"dim": 3}},
    ):
        refused = ask("POST", "/v1/experiments", plain | more)
        assert (refused.status_code, refused.json()["error"]["parameter"]) == (422, next(iter(more)))


def test_a_policy_that_waits_is_looked_at_and_approved_or_dropped(ask: Ask) -> None:
    ask("POST", "/v1/experiments", {"name": "gated", "dim": 2, "approval": True, "settings": {"policies": 3}})
    gated, ids = "/v1/experiments/gated", [f"r{k}" for k in range(40)]
    vectors = np.random.default_rng(1).normal(size=(80, 2)).astype("<f8").tobytes()
    body = msgspec.msgpack.encode({"ids": ids, "vectors": vectors, "dim": 2})
    assert ask("POST", f"{gated}/decide-many", body, headers={"content-type": MSGPACK}).status_code == 200
    ask("POST", f"{gated}/reward-many", {"ids": ids, "values": [0.0, 1.0] * 20})
    assert ask("GET", f"{gated}/proposal").status_code == 404
    for verb in ("reject", "approve"):
        proposed = ask("POST", f"{gated}/advance", {"force": True}).json()
        assert (proposed["made"], proposed["proposed"]) == (False, True)
        assert ask("GET", f"{gated}/proposal").json()["policy_id"] == proposed["policy_id"]
        assert ask("POST", f"{gated}/approve", {"policy_id": "another"}).status_code == 409
        assert ask("POST", f"{gated}/{verb}", {}).status_code == 200
        assert ask("GET", f"{gated}/proposal").status_code == 404
    assert ask("GET", gated).json()["batches"][-1]["policy_id"] == proposed["policy_id"]


@pytest.mark.parametrize("sizes", [None, [3, 1]])
def test_vectors_come_as_raw_numbers_in_messagepack(ask: Ask, service: Service, sizes: list[int] | None) -> None:
    vectors = np.random.default_rng(1).normal(size=(4, 2))
    body = {"ids": [1, 2], "vectors": vectors.astype("<f8").tobytes(), "dim": 2, "sizes": sizes}
    headers = {"content-type": MSGPACK}
    answer = ask("POST", "/v1/experiments/vectors/decide-many", msgspec.msgpack.encode(body), headers=headers)
    assert answer.headers["content-type"] == MSGPACK
    decided = msgspec.msgpack.decode(answer.content)
    trial = service.hub._open("vectors")
    cuts = np.cumsum([2, 2] if sizes is None else sizes)[:-1]
    single = [trial.decide(part, id=k) for k, part in enumerate(np.split(vectors, cuts), 1)]
    assert decided["arms"] == [choice.arm for choice in single]
    assert all(choice.repeated for choice in single)


def send(ask: Ask, route: Route, **more: Any) -> httpx.Response:
    """A request of a route with an empty body."""
    path = (
        route.path.replace("{name}", "spring")
        .replace("{id}", "r1")
        .replace("{event}", "r1")
        .replace("{version}", "v1.1")
    )
    return ask(route.method, path, None if route.takes is None else {}, **more)


@pytest.mark.parametrize("route", ALL_ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_is_for_those_whose_token_allows_it(ask: Ask, service: Service, route: Route) -> None:
    tokens = service.security.tokens
    if route.scope is None:
        assert send(ask, route, token=None).status_code == 200
        return
    expired = tokens.add("expired", ["admin"], days=1e-9)
    time.sleep(0.001)
    revoked = tokens.add("revoked", ["admin"])
    tokens.remove("revoked")
    for wrong in (None, "x", expired, revoked):
        refused = send(ask, route, token=wrong)
        assert refused.status_code == 401
        assert isinstance(msgspec.json.decode(refused.content, type=route.refuses), ErrorForm)
    for scope in SCOPES:
        allowed = scope in (route.scope, "admin")
        token = tokens.add(f"{scope} all", [scope])
        assert (send(ask, route, token=token).status_code != 403) == allowed
        if allowed:
            own = tokens.add(f"{scope} spring", [scope], experiments=["spring"])
            other = tokens.add(f"{scope} vectors", [scope], experiments=["vectors"])
            assert send(ask, route, token=own).status_code != 403 or route.path == "/metrics"
            assert send(ask, route, token=other).status_code == 403 or "{name}" not in route.path


def test_a_list_names_only_what_the_caller_may_read(ask: Ask, service: Service) -> None:
    token = service.security.tokens.add("own", ["read"], experiments=["vectors"])
    assert ask("GET", "/v1/experiments", token=token).json() == {"names": ["vectors"]}


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 200), ({"sec-fetch-site": "cross-site"}, 403), ({"host": "evil.example"}, 421), ({"host": "test:8700"}, 200)],
)
def test_a_session_of_the_page_is_not_for_other_sites(
    ask: Ask, service: Service, headers: dict[str, str], status: int
) -> None:
    session = service.security.tokens.open_session(service.security.tokens.link())
    cookie = {"cookie": f"{COOKIE}={session}"}
    assert ask("GET", SPRING, token=None, headers=cookie | headers).status_code == status


def test_a_session_changes_something_with_the_token_of_its_form_alone(ask: Ask, service: Service) -> None:
    tokens = service.security.tokens
    code = tokens.link()
    session = tokens.open_session(code) or ""
    assert tokens.open_session(code) is None
    cookie = {"cookie": f"{COOKIE}={session}"}
    assert ask("POST", f"{SPRING}/advance", {}, token=None, headers=cookie).status_code == 403
    other = tokens.form("session other")
    assert ask("POST", f"{SPRING}/advance", {}, token=None, headers=cookie | {"x-csrf-token": other}).status_code == 403
    own = tokens.form(tokens.payload(session) or "")
    assert ask("POST", f"{SPRING}/advance", {}, token=None, headers=cookie | {"x-csrf-token": own}).status_code == 200
    assert ask("GET", SPRING, token=None, headers={"cookie": f"{COOKIE}={session[:-4]}AAAA"}).status_code == 401


MALFORMED: list[tuple[str, Any, int]] = [
    ("decide", b"", 400),
    ("decide", b"{", 400),
    ("decide", b"\xff\xfe", 400),
    ("decide", [], 422),
    ("decide", {}, 422),
    ("decide", {**ONE, "id": None}, 422),
    ("decide", {**ONE, "id": 1.5}, 422),
    ("decide", {**ONE, "id": "x" * 200}, 422),
    ("decide", {**ONE, "id": ""}, 422),
    ("decide", {**ONE, "contxt": 1}, 422),
    ("decide", {**ONE, "context": [1]}, 422),
    ("decide", {**ONE, "context": {"age": {"deep": 1}}}, 422),
    ("decide", {**ONE, "context": {"age": "old"}}, 422),
    ("decide", {**ONE, "arms": []}, 422),
    ("decide", {**ONE, "arms": "red"}, 422),
    ("decide", {**ONE, "arms": ["red", "red"]}, 422),
    ("decide", {**ONE, "arms": ["x"] * 2000}, 422),
    ("decide", {**ONE, "baseline": "red"}, 422),
    ("decide", b'{"id": "r1", "context": {"age": NaN}, "arms": ["red"]}', 400),
    ("decide", b'{"id": "r1", "context": {"age": 1e999}, "arms": ["red"]}', 422),
    ("decide", b'{"id": "r1", "context": {"age": "\\ud800"}, "arms": ["red"]}', 400),
    ("decide-many", {"ids": []}, 422),
    ("decide-many", {"ids": ["a"], "contexts": []}, 422),
    ("decide-many", {"ids": ["a"], "vectors": "AAAA"}, 422),
    ("reward", {"id": "r1"}, 422),
    ("reward", {"id": "r1", "value": "much"}, 422),
    ("reward", {"id": "r1", "value": None}, 422),
    ("reward", b'{"id": "r1", "value": 1e999}', 422),
    ("reward", {"id": "r1", "value": 1.0, "event": "e"}, 422),
    ("reward-many", {"ids": ["a"], "values": []}, 422),
    ("evaluate", {"candidates": []}, 422),
    ("evaluate", {"candidates": ["unifrom"]}, 422),
    ("evaluate", {"candidates": ["policy:9"]}, 422),
    ("evaluate", {"candidates": ["uniform"], "level": 2}, 422),
    ("advance", {"forecast": "many"}, 422),
    ("advance", {"gate": 7, "force": True}, 422),
    ("advance", {"forecast": 10**30, "force": True}, 422),
    ("advance", {"forecast": [1, None]}, 422),
    ("advance", {"gate": "high"}, 422),
    ("advance", {"force": "yes"}, 422),
    ("advance", {"force": True, "now": 0}, 422),
    ("approve", {"policy_id": 7}, 422),
    ("approve", {"policy": "x"}, 422),
    ("decide", b"[" * 100_000, 422),
    ("decide", b'{"id": "r1", "context": ' + b'{"a":' * 20_000, 422),
    ("decide", b"null", 422),
    ("decide", b"true", 422),
    ("decide", b'"r1"', 422),
    ("decide", b"{} {}", 422),
    ("decide", b'{"id": "r1"}x', 400),
    ("decide", b"\x00", 400),
    ("decide", b"\xef\xbb\xbf{}", 400),
    ("decide", {**ONE, "id": True}, 422),
    ("decide", {**ONE, "id": -1}, 422),
    ("decide", {**ONE, "id": 2**63}, 422),
    ("decide", {**ONE, "id": ["r1"]}, 422),
    ("decide", {**ONE, "deferred": "no"}, 422),
    ("decide", {**ONE, "deferred": None}, 422),
    ("decide", {**ONE, "context": 7}, 422),
    ("decide", {**ONE, "context": "age=31"}, 422),
    ("decide", {**ONE, "context": {"age": [31, 32]}}, 422),
    ("decide", {**ONE, "x": 1}, 422),
    ("decide", {**ONE, "arms": {}}, 422),
    ("decide", {**ONE, "arms": {"red": 1}}, 422),
    ("decide", {**ONE, "arms": {"red": None}}, 422),
    ("decide", {**ONE, "arms": [None]}, 422),
    ("decide", {**ONE, "arms": [["red"]]}, 422),
    ("decide", {**ONE, "arms": [1, "1"]}, 422),
    ("decide", b'{"id": "r1", "context": {}, "arms": [' + b"9" * 50 + b', "red"]}', 422),
    ("decide", {**ONE, "vectors": "AAAA"}, 422),
    ("decide", {**ONE, "baseline": {"red": 1}}, 422),
    ("decide-many", {}, 422),
    ("decide-many", {"ids": "ab", "contexts": [{}]}, 422),
    ("decide-many", {"ids": ["a", "b"], "contexts": [ONE["context"]]}, 422),
    ("decide-many", {"ids": ["a", "a"], "contexts": [{"age": 1, "device": "ios"}, {"age": 2, "device": "web"}]}, 409),
    ("decide-many", {"ids": ["x" * 200], "contexts": [ONE["context"]]}, 422),
    ("decide-many", {"ids": ["a"], "contexts": [ONE["context"]], "arms": [["red"], ["red"]]}, 422),
    ("decide-many", {"ids": ["a"], "contexts": [ONE["context"]], "baselines": ["red", "red"]}, 422),
    ("decide-many", {"ids": ["a"], "contexts": [ONE["context"]], "sizes": "3"}, 422),
    ("reward", {"id": "r1", "value": [1]}, 422),
    ("reward", {"id": "", "value": 1}, 422),
    ("reward", {"value": 1}, 422),
    ("reward", {"id": "r1", "value": 1, "overwrite": 1}, 422),
    ("reward-many", {"ids": ["a", "b"], "values": [1]}, 422),
    ("reward-many", {"ids": ["a"], "values": ["1"]}, 422),
    ("reward-many", {"ids": ["a"], "values": [1], "events": []}, 422),
    ("activate", {}, 422),
    ("activate", {"ids": "r1"}, 422),
    ("activate", {"ids": ["none"]}, 422),
    ("probabilities", {"context": ONE["context"]}, 422),
    ("evaluate", {}, 422),
    ("evaluate", {"candidates": ["policy:x"]}, 422),
    ("evaluate", {"candidates": ["always:none"]}, 422),
    ("evaluate", {"candidates": ["policy:\u00b2"]}, 422),
    ("evaluate", {"candidates": [f"policy:{'9' * 5000}"]}, 422),
    ("evaluate", {"candidates": "uniform"}, 422),
    ("evaluate", {"candidates": ["/etc/hostname"]}, 422),
    ("effects", {"arm": "red"}, 422),
    ("effects", {"arm": "red", "over": "red"}, 422),
    ("effects", {"arm": "red", "over": "none"}, 422),
    ("effects", {"arm": "red", "over": "blue", "level": 0}, 422),
]


@pytest.mark.parametrize(
    ("verb", "body", "message", "parameter", "given"),
    [
        (
            "reward",
            {"id": "r1", "value": "much"},
            "value must be true or false or a number; got 'much'.",
            "value",
            "much",
        ),
        ("reward", {"id": "r1", "value": [1]}, "value must be true or false or a number; got [1].", "value", "[1]"),
        ("reward", {"id": "r1"}, "value is needed.", "value", None),
        ("decide", {**ONE, "contxt": 1}, "contxt is not a field of this request.", "contxt", None),
        ("decide", {**ONE, "arms": {"red": 1}}, "arms[...] must be an object; got {'red': 1}.", "arms", "{'red': 1}"),
        ("advance", {"forecast": [1, "2"]}, "forecast[1] must be a whole number; got '2'.", "forecast", "2"),
        ("decide", [], "the body must be an object; got a list.", None, None),
        ("decide", b"[" * 100_000, "the body must be an object; got a list.", None, None),
        (
            "decide",
            b'{"id": "r1", "deferred": 1, x',
            "deferred must be true or false; got a whole number.",
            "deferred",
            None,
        ),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_with_the_rule(
    ask: Ask, verb: str, body: Any, message: str, parameter: str | None, given: Any
) -> None:
    answer = ask("POST", f"{SPRING}/{verb}", body)
    error = {"type": "RequestError", "message": f"{message} See /docs.", "parameter": parameter, "given": given}
    assert (answer.status_code, answer.json()["error"]) == (422, error)
    if not isinstance(body, bytes):
        packed = ask("POST", f"{SPRING}/{verb}", msgspec.msgpack.encode(body), headers={"content-type": MSGPACK})
        assert packed.json()["error"] == error


def test_a_learner_that_is_not_there_is_refused_in_one_sentence(ask: Ask) -> None:
    error = ask("POST", "/v1/experiments", {"name": "x", "dim": 2, "learner": "forsight"}).json()["error"]
    assert error["message"].endswith("; got 'forsight'. Did you mean 'foresight'?")
    assert ".;" not in error["message"]
    assert (error["parameter"], error["given"]) == ("learner", "forsight")


@pytest.mark.parametrize(("verb", "body", "status"), MALFORMED)
def test_what_is_malformed_is_refused_in_one_form(ask: Ask, verb: str, body: Any, status: int) -> None:
    ask("POST", f"{SPRING}/decide", {**ONE, "id": "first"})
    answer = ask("POST", f"{SPRING}/{verb}", body)
    assert answer.status_code == status, answer.text
    assert answer.json()["schema_version"] == 1
    assert len(answer.json()["error"]["message"]) > 20


@pytest.mark.parametrize(
    ("path", "body", "more", "status"),
    [
        (f"{SPRING}/decide", b"x" * 5000, {}, 413),
        (f"{SPRING}/decide", b"{}", {"content-encoding": "gzip"}, 415),
        (f"{SPRING}/decide", b"{}", {"content-type": "text/plain"}, 415),
        ("/v1/experiments/none/decide", ONE, {}, 404),
        ("/nowhere", {}, {}, 404),
        ("/healthz", {}, {}, 405),
    ],
)
def test_what_cannot_be_read_is_refused(
    ask: Ask, service: Service, path: str, body: Any, more: dict[str, str], status: int
) -> None:
    object.__setattr__(service, "limits", Limits(body=4000))
    answer = ask("POST", path, body, headers=more)
    assert (answer.status_code, answer.json()["error"]["parameter"]) == (status, "name" if "none" in path else None)


def test_a_path_says_which_methods_it_takes(ask: Ask) -> None:
    assert ask("PUT", "/v1/experiments", {}).headers["allow"] == "GET, POST, HEAD"
    assert ask("HEAD", "/healthz", token=None).status_code == 200
    assert ask("GET", f"{SPRING}/", headers={"host": "evil.example"}).status_code == 404  # and is led nowhere


def test_a_log_that_cannot_be_written_stops_nobody(
    ask: Ask, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "rareswitch.service")
    with monkeypatch.context() as full:
        full.setattr(sys, "stdout", FullFile())
        assert ask("GET", "/healthz").status_code == 200
    assert ask("GET", "/readyz").status_code == 200
    assert [json.loads(line)["route"] for line in capsys.readouterr().out.splitlines()] == ["GET /readyz"]


class FullFile:
    """Of a disk that has no room."""

    @property
    def buffer(self) -> "FullFile":
        return self

    def write(self, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")


def test_a_body_that_does_not_come_is_given_up(service: Service) -> None:
    object.__setattr__(service, "limits", Limits(receive=0.05))

    sent: list[Any] = []
    token = service.security.tokens.add("slow", ["decide"])

    async def receive() -> Any:
        await asyncio.sleep(10)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"test"), (b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "POST", "path": f"{SPRING}/decide", "headers": headers, "query_string": b""}
    asyncio.run(application(service)(scope, receive, send))
    assert sent[0]["status"] == 408


def test_a_store_may_begin_with_its_service(tmp_path: Path) -> None:
    hub = Hub(f"sqlite:///{tmp_path}/new.db")
    assert asyncio.run(hub.names()) == []
    hub.add(create(hub.url, "first", dim=2))
    assert asyncio.run(hub.names()) == ["first"]
    hub.close()


def test_a_service_whose_store_is_gone_is_not_ready(ask: Ask, service: Service, tmp_path: Any) -> None:
    ask("GET", SPRING)
    assert ask("GET", "/readyz").status_code == 200
    (tmp_path / "spring.db").unlink()
    assert (ask("GET", "/readyz").status_code, ask("GET", "/healthz").status_code) == (503, 200)


@pytest.mark.parametrize("number", ["\u00b2", "--1", "-", "", "9" * 5000, "1e3", "1_0"])
def test_an_id_that_is_no_number_is_refused_where_one_is_asked_for(ask: Ask, number: str) -> None:
    answer = ask("GET", f"{SPRING}/decisions/{quote(number)}?number=true")
    assert answer.status_code == (422 if number else 404)
    assert answer.json()["error"]["type"] == ("ParameterError" if number else "RequestError")


def test_an_experiment_that_was_deleted_elsewhere_is_gone(ask: Ask, service: Service) -> None:
    body = {"id": "r1", "vectors": [[1.0, 0.0], [0.0, 1.0]]}
    path = "/v1/experiments/vectors"
    assert ask("POST", f"{path}/decide", body).status_code == 200
    rareswitch.open(service.hub.url, "vectors").delete("vectors")
    assert ask("POST", f"{path}/decide", {**body, "id": "r2"}).json()["error"]["type"] == "DeletedError"
    assert [ask("GET", each).status_code for each in (path, "/readyz")] == [404, 200]
    create(service.hub.url, "vectors", dim=2).close()
    for number in (1, 2):  # the first one under an id of the one before
        answer = ask("POST", f"{path}/decide", {**body, "id": f"r{number}"})
        assert (answer.status_code, answer.json()["repeated"]) == (200, False)
    rareswitch.open(service.hub.url, "vectors").delete("vectors")
    assert ask("GET", "/readyz").status_code == 200
    assert ask("POST", "/v1/experiments", {"name": "vectors", "dim": 2}).status_code == 200
    assert ask("POST", f"{path}/decide", body).json()["repeated"] is False


def test_the_description_has_every_route() -> None:
    document = description(ALL_ROUTES)
    operations = {(method.upper(), path) for path, entry in document["paths"].items() for method in entry}
    assert operations == {(route.method, route.path) for route in ALL_ROUTES}
    names = [operation["operationId"] for entry in document["paths"].values() for operation in entry.values()]
    assert len(set(names)) == len(ALL_ROUTES)
    text = msgspec.json.encode(document).decode()
    used = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= set(document["components"]["schemas"])


def test_the_description_says_which_numbers_may_be_null(ask: Ask) -> None:
    schemas = description(ALL_ROUTES)["components"]["schemas"]
    interval, kinds = schemas["Interval"]["properties"], {"number", "null"}
    assert [{*interval[name]["type"]} for name in ("value", "low", "high")] == [kinds] * 3
    assert interval["level"]["type"] == schemas["Choice"]["properties"]["propensity"]["type"] == "number"
    assert "prefixItems" not in str(schemas)  # few readers of descriptions know types by position
    assert schemas["Choice"]["properties"]["cautions"]["items"]["items"] == {"type": "string"}
    ask("POST", f"{SPRING}/decide", ONE)
    ask("POST", f"{SPRING}/reward", {"id": ONE["id"], "value": 1})
    value = ask("POST", f"{SPRING}/evaluate", {"candidates": ["logged"]}).json()["values"][0]
    assert value["overlap"]["mean_weight_error"] is None
    assert {*schemas["Overlap"]["properties"]["mean_weight_error"]["type"]} == kinds


def test_a_service_with_too_much_to_do_says_so(service: Service) -> None:
    token, going, released = service.security.tokens.add("shop", ["decide"]), threading.Event(), threading.Event()

    def slow(requests: list[Any]) -> list[Any]:
        going.set()
        released.wait(30)
        return trial.decide_together(requests)

    trial = service.hub._open("spring")
    service.hub._together[trial] = Together(slow, most=3)

    async def run() -> list[httpx.Response]:
        transport, headers = httpx.ASGITransport(application(service)), {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            asked = [asyncio.create_task(client.post(f"{SPRING}/decide", json={**ONE, "id": "r0"}))]
            await asyncio.to_thread(going.wait, 30)
            waiting = (client.post(f"{SPRING}/decide", json={**ONE, "id": f"r{k}"}) for k in (1, 2, 3))
            asked += [*map(asyncio.create_task, waiting)]
            await asyncio.sleep(0.2)
            refused = await client.post(f"{SPRING}/decide", json={**ONE, "id": "r4"})
            released.set()
            return [refused, *await asyncio.gather(*asked)]

    refused, *answers = asyncio.run(run())
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["error"]["type"] == "BusyError"
    assert [answer.status_code for answer in answers] == [200] * 4
    assert trial.status().decisions == 4


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 200), ({"x-user": ""}, 401), ({"sec-fetch-site": "cross-site"}, 403), ({"authorization": "Bearer x"}, 401)],
)
def test_a_proxy_that_is_trusted_says_who_is_signed_in(
    ask: Ask, service: Service, headers: dict[str, str], status: int
) -> None:
    signed_in = {"x-user": "ada"} | headers
    assert ask("GET", SPRING, token=None, headers=signed_in).status_code == 401  # nobody said so
    object.__setattr__(service, "security", replace(service.security, user_header="x-user"))
    assert ask("GET", SPRING, token=None, headers=signed_in).status_code == status
    assert ask("POST", f"{SPRING}/advance", {}, token=None, headers=signed_in).status_code in (401, 403)
    object.__setattr__(service, "security", replace(service.security, proxies=frozenset({"10.0.0.1"})))
    assert ask("GET", SPRING, token=None, headers=signed_in).status_code in (401, 403)


def test_what_comes_while_a_call_runs_is_carried_out_together() -> None:
    calls: list[list[int]] = []

    def call(items: list[int]) -> list[int | Exception]:
        calls.append(items)
        time.sleep(0.02)
        return [ValueError("odd") if item % 2 else item for item in items]

    async def run() -> list[Any]:
        together = Together(call, most=40)
        answers = asyncio.gather(*(together.ask(item) for item in range(40)), return_exceptions=True)
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="40 calls wait"):
            await together.ask(41)
        return await answers

    answers = asyncio.run(run())
    assert [answer for answer in answers if isinstance(answer, int)] == [*range(0, 40, 2)]
    assert len(calls) <= 2
