"""OpenFeature asks by configuration alone: its own SDK against the served application, and what the protocol says."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

import rareswitch
from rareswitch.experiment import Experiment, Rewards
from rareswitch.features import Features
from rareswitch.service import Service

Ask = Callable[..., httpx.Response]
FLAGS = "/ofrep/v1/evaluate/flags"
RECORDS = [{"age": 20 + 7 * k % 50, "device": ("ios", "web")[k % 2]} for k in range(200)]
BANNERS = {"long": {"words": 40, "title": "All about it"}, "short": {"words": 4, "title": "Buy"}}
CONTEXT: dict[str, Any] = {"targetingKey": "user-7", "age": 31, "device": "ios", "geo": {"city": "Bern"}, "extra": 1}


@pytest.fixture
def banner(service: Service) -> Experiment:
    """A second flag, whose arms have records."""
    features = Features.fit(RECORDS, BANNERS, drop=["title"])
    settings: dict[str, Any] = {"features": features, "offer": BANNERS, "policies": 4, "horizon": 1000, "seed": 1}
    rareswitch.create(service.hub.url, "banner", rewards=Rewards(several="sum"), **settings).close()
    return service.hub._open("banner")


def test_a_flag_is_decided_once_for_a_targeting_key_and_a_policy(
    ask: Ask, service: Service, banner: Experiment
) -> None:
    answer = ask("POST", f"{FLAGS}/spring", {"context": CONTEXT}).json()
    trial = service.hub._open("spring")
    audit = trial.audit("user-7@1")
    assert answer == {
        "key": "spring",
        "value": audit.arm,
        "variant": audit.arm,
        "reason": "SPLIT",
        "metadata": {"decision": "user-7@1", "propensity": audit.propensity, "version": 1, "deferred": False},
    }
    assert audit.matches
    assert ask("POST", f"{FLAGS}/spring", {"context": CONTEXT | {"extra": 2}}).json() == answer
    assert "rareswitch_other_contexts_total{" not in ask("GET", "/metrics").text
    assert ask("POST", f"{FLAGS}/spring", {"context": CONTEXT | {"age": 60}}).json() == answer
    assert 'rareswitch_other_contexts_total{experiment="spring"} 1.0' in ask("GET", "/metrics").text
    assert trial.status().fields == {"extra": {"extra": 1}}
    shown = ask("POST", f"{FLAGS}/banner", {"context": CONTEXT}).json()
    assert shown["value"] == BANNERS[shown["variant"]]
    trial.decide_many(RECORDS, ids=range(200))
    trial.reward_many(range(200), [0.0, 1.0] * 100)
    trial.advance(force=True)
    later = ask("POST", f"{FLAGS}/spring", {"context": CONTEXT}).json()
    assert (later["metadata"]["decision"], later["metadata"]["version"]) == ("user-7@2", 2)


def test_all_flags_wait_to_be_activated(ask: Ask, service: Service, banner: Experiment) -> None:
    answer = ask("POST", FLAGS, {"context": CONTEXT})
    assert [flag["key"] for flag in answer.json()["flags"]] == ["spring", "banner"]
    assert all(flag["metadata"]["deferred"] for flag in answer.json()["flags"])
    tag = {"if-none-match": answer.headers["etag"]}
    assert ask("POST", FLAGS, {"context": CONTEXT}, headers=tag).status_code == 304
    assert ask("POST", FLAGS, {"context": CONTEXT | {"targetingKey": "user-8"}}, headers=tag).status_code == 200
    assert (banner.status().decisions, banner.status().deferred) == (0, 2)
    assert ask("POST", "/v1/experiments/banner/activate", {"ids": ["user-7@1"]}).status_code == 200
    single = ask("POST", f"{FLAGS}/spring", {"context": CONTEXT | {"age": 60}}).json()  # which is shown at once
    assert not single["metadata"]["deferred"]
    assert service.hub._open("spring").status().decisions == 1
    again = ask("POST", FLAGS, {"context": CONTEXT}, headers=tag)
    assert [flag["metadata"]["deferred"] for flag in again.json()["flags"]] == [False, False]
    own = service.security.tokens.add("own", ["decide"], experiments=["banner"])
    named = ask("POST", FLAGS, {"context": CONTEXT}, token=own).json()["flags"]
    assert [flag["key"] for flag in named] == ["banner"]


REFUSED: list[tuple[str, Any, int, str]] = [
    ("none", {"context": CONTEXT}, 404, "FLAG_NOT_FOUND"),
    ("vectors", {"context": CONTEXT}, 404, "FLAG_NOT_FOUND"),
    ("spring", {"context": {"age": 31}}, 400, "TARGETING_KEY_MISSING"),
    ("spring", {}, 400, "TARGETING_KEY_MISSING"),
    ("spring", {"context": CONTEXT | {"targetingKey": 7}}, 400, "TARGETING_KEY_MISSING"),
    ("spring", {"context": CONTEXT | {"targetingKey": "k" * 200}}, 400, "INVALID_CONTEXT"),
    ("spring", {"context": CONTEXT | {"age": "old"}}, 400, "INVALID_CONTEXT"),
    ("spring", {"context": 7}, 400, "PARSE_ERROR"),
    ("spring", b"{", 400, "PARSE_ERROR"),
]


@pytest.mark.parametrize(("name", "body", "status", "code"), REFUSED)
def test_what_has_no_value_is_refused_as_the_protocol_says(
    ask: Ask, name: str, body: Any, status: int, code: str
) -> None:
    answer = ask("POST", f"{FLAGS}/{name}", body)
    assert (answer.status_code, answer.json()["key"], answer.json()["errorCode"]) == (status, name, code)
    assert len(answer.json()["errorDetails"]) > 20


def test_of_all_flags_those_without_a_value_say_why(ask: Ask, banner: Experiment) -> None:
    banner.end()
    assert ask("POST", FLAGS, {"context": {"age": 31}}).json()["errorCode"] == "TARGETING_KEY_MISSING"
    first, second = ask("POST", FLAGS, {"context": CONTEXT}).json()["flags"]
    assert (first["key"], second["key"], second["errorCode"]) == ("spring", "banner", "INVALID_CONTEXT")
    assert "was ended" in second["errorDetails"]


def test_a_token_may_be_where_openfeature_puts_it(ask: Ask, service: Service) -> None:
    token = service.security.tokens.add("web", ["decide"])
    sent = {"context": CONTEXT}
    assert ask("POST", f"{FLAGS}/spring", sent, token=None, headers={"x-api-key": token}).status_code == 200
    assert ask("POST", f"{FLAGS}/spring", sent, token=None, headers={"x-api-key": "x"}).status_code == 401


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": f"e{number}", "source": "/shop", "type": "purchase", "traceparent": "00"} | more


def test_rewards_come_as_cloud_events(ask: Ask, service: Service, banner: Experiment) -> None:
    for name in ("spring", "banner"):
        ask("POST", f"{FLAGS}/{name}", {"context": CONTEXT})
    now = {"subject": "user-7"}
    kind = {"content-type": "application/cloudevents+json; charset=utf-8"}
    body = json.dumps(event(1, **now, data={"value": True})).encode()
    assert ask("POST", "/v1/experiments/spring/events", body, headers=kind).json()["rewards"] == 1
    assert service.hub._open("spring").audit("user-7@1").rewards == {"": 1.0}
    many = [
        event(1, **now, data={"value": 3}),
        event(1, **now, data={"value": 3}),
        event(2, data={"value": 0.5, "decision": "user-7@1"}),
        event(3, **now, time="2020-01-01T00:00:00Z", data={"value": 9}),
        event(4, subject="user-8", data={"value": 9}),
    ]
    kind = {"content-type": "application/cloudevents-batch+json"}
    answer = ask("POST", "/v1/experiments/banner/events", json.dumps(many).encode(), headers=kind).json()
    assert {name: answer[name] for name in ("rewards", "repeated", "skipped")} == {
        "rewards": 3,
        "repeated": 1,
        "skipped": 2,
    }
    assert banner.audit("user-7@1").rewards == {"e1": 3.0, "e2": 0.5}
    for wrong in ({"data": {"value": 1}}, {**now, "data": {}}, {**now, "time": "soon", "data": {"value": 1}}):
        assert ask("POST", "/v1/experiments/banner/events", event(5, **wrong)).status_code == 422


def test_the_sdk_of_openfeature_is_served(
    service: Service, banner: Experiment, listening: Callable[[], AbstractContextManager[str]]
) -> None:
    ofrep = pytest.importorskip("openfeature.contrib.provider.ofrep")
    from openfeature import api
    from openfeature.evaluation_context import EvaluationContext
    from openfeature.exception import ErrorCode

    token = service.security.tokens.add("sdk", ["decide"])
    with listening() as address:
        headers = {"authorization": f"Bearer {token}"}
        api.set_provider(ofrep.OFREPProvider(address, headers_factory=lambda: headers))
        client = api.get_client()
        who = EvaluationContext("user-7", {"age": 31, "device": "ios"})
        details = client.get_string_details("spring", "none", who)
        audit = service.hub._open("spring").audit("user-7@1")
        assert (details.value, details.variant, details.reason) == (audit.arm, audit.arm, "SPLIT")
        assert details.flag_metadata["decision"] == "user-7@1"
        assert client.get_object_value("banner", {}, who) == BANNERS[banner.audit("user-7@1").arm]
        codes = [
            client.get_string_details("none", "default", who).error_code,
            client.get_string_details("spring", "default", EvaluationContext(None, {"age": 31})).error_code,
            client.get_string_details("spring", "default", EvaluationContext("u", {"age": "old"})).error_code,
            client.get_integer_details("spring", 1, who).error_code,
        ]
        assert codes == [
            ErrorCode.FLAG_NOT_FOUND,
            ErrorCode.TARGETING_KEY_MISSING,
            ErrorCode.INVALID_CONTEXT,
            ErrorCode.TYPE_MISMATCH,
        ]
        headers["authorization"] = "Bearer x"
        assert client.get_string_details("spring", "default", who).error_code == ErrorCode.GENERAL
        api.shutdown()
