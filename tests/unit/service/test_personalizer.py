"""A session of Azure Personalizer v1.0, as its public description has it, against an experiment."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

import rareswitch
from rareswitch.experiment import Experiment, Rewards
from rareswitch.features import Features
from rareswitch.service import Service

Ask = Callable[..., httpx.Response]
NEWS = {
    "news": {"kind": "news", "length": 4},
    "sports": {"kind": "sports", "length": 2},
    "film": {"kind": "film", "length": 9},
}
CONTEXTS = [{"time": ("morning", "night")[k % 2], "device.os": ("ios", "web")[k % 3 % 2]} for k in range(60)]
RANK: dict[str, Any] = {
    "contextFeatures": [{"time": "morning"}, {"device": {"os": "ios"}}],
    "actions": [{"id": name, "features": [{"kind": r["kind"]}, {"length": r["length"]}]} for name, r in NEWS.items()],
    "excludedActions": ["sports"],
    "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
    "deferActivation": False,
}
ENDPOINT = "/v1/experiments/portal/personalizer/v1.0"
MINUTE = 60.0


@pytest.fixture
def portal(service: Service, request: pytest.FixtureRequest) -> Experiment:
    """Rewards wait ten minutes, and are 0 where none came."""
    features = Features.fit(CONTEXTS, NEWS)
    rewards = Rewards(window="10 min", default=0.0)
    more: dict[str, Any] = {"features": features, "policies": 3, "horizon": 400, "seed": 1}
    more |= getattr(request, "param", {})
    rareswitch.create(service.hub.url, "portal", rewards=rewards, **more).close()
    return service.hub._open("portal")


def test_a_session_of_rank_reward_and_activate(ask: Ask, service: Service, portal: Experiment) -> None:
    key = service.security.tokens.add("portal", ["decide"], experiments=["portal"])
    headers = {"Ocp-Apim-Subscription-Key": key}
    answer = ask("POST", f"{ENDPOINT}/rank", RANK, token=None, headers=headers)
    ranked, event = answer.json(), RANK["eventId"]
    assert (answer.status_code, ranked["eventId"]) == (201, event)
    assert ranked["rewardActionId"] == ranked["ranking"][0]["id"] != "sports"
    assert ranked["ranking"][1] == {"id": "sports", "probability": 0.0}
    assert sum(entry["probability"] for entry in ranked["ranking"]) == pytest.approx(1.0, abs=1e-12)
    audit = portal.audit(event)
    assert audit.matches
    assert (audit.arm, audit.propensity) == (ranked["rewardActionId"], ranked["ranking"][0]["probability"])
    again = ask("POST", f"{ENDPOINT}/rank", RANK, token=None, headers=headers)
    assert again.json() == ranked
    for value in (1, 1, 0.5):  # the earliest counts
        rewarded = ask("POST", f"{ENDPOINT}/events/{event}/reward", {"value": value}, token=None, headers=headers)
        assert (rewarded.status_code, rewarded.content) == (204, b"")
    assert portal.audit(event).rewards == {"": 1.0}
    later = ask("POST", f"{ENDPOINT}/rank", {**RANK, "eventId": None, "deferActivation": True}).json()["eventId"]
    assert portal.status().deferred == 1
    assert ask("POST", f"{ENDPOINT}/events/{later}/activate").status_code == 204
    assert (portal.status().deferred, portal.status().decisions) == (0, 2)


def test_events_without_a_reward_earn_the_default_after_the_wait(ask: Ask, portal: Experiment) -> None:
    for k in range(40):
        ask("POST", f"{ENDPOINT}/rank", {**RANK, "eventId": f"e{k}"})
        if k % 2:
            ask("POST", f"{ENDPOINT}/events/e{k}/reward", {"value": 1.0})
    made = portal.audit("e0").time
    assert portal.status(now=made + 9 * MINUTE).waiting == 40
    outcome = portal.advance(now=made + 11 * MINUTE, force=True)
    assert (outcome.made, outcome.learned, outcome.rewarded) == (True, 40, 20)
    first = ask("POST", f"{ENDPOINT}/rank", {**RANK, "eventId": "e0"}).json()  # by the policy that decided it
    assert {entry["probability"] for entry in first["ranking"]} == {0.0, 0.5}


@pytest.mark.parametrize("portal", [{"baseline": True}], indirect=True)
def test_an_apprentice_shows_what_comes_first_but_for_a_planned_share(ask: Ask, portal: Experiment) -> None:
    ranked = ask("POST", f"{ENDPOINT}/rank", RANK).json()
    explored = portal.description.baseline_share or 0.0
    assert {entry["id"]: entry["probability"] for entry in ranked["ranking"]}["news"] == pytest.approx(1 - explored / 2)
    shown = [ask("POST", f"{ENDPOINT}/rank", {**RANK, "eventId": f"e{k}"}).json()["rewardActionId"] for k in range(20)]
    assert shown == [portal.audit(f"e{k}").arm for k in range(20)]


WRONG: list[tuple[str, Any, int, str]] = [
    ("v1.0/rank", {**RANK, "actions": []}, 400, "actions must be 1 to 1,000"),
    ("v1.0/rank", {**RANK, "excludedActions": ["news", "sports", "film"]}, 400, "actions must be 1 to 1,000"),
    ("v1.0/rank", {**RANK, "actions": RANK["actions"] * 2}, 400, "different ids"),
    ("v1.0/rank", {**RANK, "contextFeatures": [{"a": 1}, {"a": 2}]}, 400, "'a' is there twice"),
    ("v1.0/rank", {**RANK, "eventId": "e" * 300}, 400, "at most 128 bytes"),
    ("v1.0/rank", {"contextFeatures": []}, 400, "actions is needed"),
    ("v1.0/rank", b"{", 400, "cannot be read"),
    ("v1.0/events/none/activate", None, 400, "there is none of 'none'"),
    ("v1.0/events/e/reward", {"value": 2}, 400, "from -1 to 1; got 2"),
    ("v1.0/events/e/reward", {}, 400, "value is needed"),
    ("v1.1-preview.3/multislot/rank", {"slots": []}, 400, "several slots are not served"),
    ("v1.1-preview.1/multislot/events/e/reward", {}, 400, "several slots are not served"),
]


@pytest.mark.parametrize(("path", "body", "status", "message"), WRONG)
def test_what_is_wrong_is_refused_in_the_form_of_there(
    ask: Ask, portal: Experiment, path: str, body: Any, status: int, message: str
) -> None:
    answer = ask("POST", f"/v1/experiments/portal/personalizer/{path}", body)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == "BadRequest"
    assert message in answer.json()["error"]["message"]
    gone = ask("POST", "/v1/experiments/none/personalizer/v1.0/rank", RANK)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "ResourceNotFound")
