"""The page, asked without a browser: who may see and change what, and what it says."""

import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

import rareswitch
from rareswitch.experiment import Experiment, report_values
from rareswitch.features import Features
from rareswitch.service import COOKIE, SCOPES, BusyError, Page, Route, Service, login_path
from reference.refusals import raises

Ask = Callable[..., httpx.Response]
PAGES = Page().routes
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "a&amp;b'", "\u202egnp"]
START = 1_772_409_600.0
DAY = 86_400.0


def path_of(route: Route) -> str:
    return route.path.replace("{name}", "spring") + ("?id=r1" if route.path.endswith("decision") else "")


class Tags(HTMLParser):
    """All tags of a page with their attributes, as browsers read them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))


@pytest.fixture
def browse(ask: Ask, service: Service) -> Ask:
    """Ask as a browser whose session was opened by a link; forms come with their token unless ``csrf`` is given."""
    tokens = service.security.tokens
    session = tokens.open_session(tokens.link()) or ""

    def call(method: str, path: str, form: dict[str, str] | None = None, *, csrf: str | None = None) -> httpx.Response:
        headers = {"cookie": f"{COOKIE}={session}", "sec-fetch-site": "same-origin"}
        if method == "GET":
            return ask(method, path, token=None, headers=headers)
        own = tokens.form(tokens.payload(session) or "")
        fields = {**(form or {}), "csrf": own if csrf is None else csrf}
        body = str(httpx.QueryParams(fields)).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return ask(method, path, body, token=None, headers=headers | kind)

    return call


@pytest.fixture
def hostile(service: Service, tmp_path: Any) -> Experiment:
    """An experiment with approval whose arms and fields are hostile, with decisions enough for an update."""
    sample: list[dict[str, Any]] = [{"<b>age</b>": 20 + k % 40, "on": k % 3 == 0} for k in range(120)]
    trial = rareswitch.create(
        service.hub.url, "hostile", features=Features.fit(sample, HOSTILE), policies=3, horizon=400, seed=1,
        approval=True, now=START, rewards=rareswitch.Rewards(window="2d", default=0.0), schedule="3d*3",
    )  # fmt: skip
    service.hub.add(trial)
    choices = [trial.decide(sample[k], HOSTILE, id=f"v{k}", now=START + 600.0 * k) for k in range(120)]
    for k, choice in enumerate(choices):
        trial.reward(choice.id, choice.arm == HOSTILE[k % 2], now=START + 600.0 * k + 60.0)
    return trial


@pytest.mark.parametrize("route", PAGES, ids=lambda route: f"{route.method} {route.path}")
def test_pages_are_for_those_who_may_see_them(ask: Ask, service: Service, route: Route) -> None:
    """The table of routes and scopes comes from the code; a session may do everything, but only with its form."""
    kind = {"content-type": "application/x-www-form-urlencoded"}
    body = None if route.takes is None else b"x="
    tokens = service.security.tokens
    if route.scope is None:
        assert ask(route.method, path_of(route), token=None).status_code == 401  # a link is needed
        return
    for wrong in (None, "x"):
        refused = ask(route.method, path_of(route), body, token=wrong, headers=kind)
        assert (refused.status_code, refused.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert "opened by a link" in refused.text
    for scope in SCOPES:
        allowed = scope in (route.scope, "admin")
        token = tokens.add(f"{scope} all", [scope])
        assert (ask(route.method, path_of(route), body, token=token, headers=kind).status_code != 403) == allowed
    other = tokens.add("other", ["admin"], experiments=["vectors"])
    if "{name}" in route.path:
        assert ask(route.method, path_of(route), body, token=other, headers=kind).status_code == 403
    session = tokens.open_session(tokens.link())
    cookie = {"cookie": f"{COOKIE}={session}"}
    for headers, status in (({"sec-fetch-site": "cross-site"}, 403), ({"host": "evil.example"}, 421)):
        answer = ask(route.method, path_of(route), body, token=None, headers=kind | cookie | headers)
        assert answer.status_code == status
    if route.takes is not None:
        assert ask(route.method, path_of(route), body, token=None, headers=kind | cookie).status_code == 403


def test_a_link_opens_a_session_once(ask: Ask, service: Service) -> None:
    link = login_path(service.security.tokens.link())
    first, again = ask("GET", link, token=None), ask("GET", link, token=None)
    cookie = first.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert (first.status_code, again.status_code, "set-cookie" in again.headers) == (200, 401, False)
    session = cookie.partition(";")[0]
    assert ask("GET", "/", token=None, headers={"cookie": session}).status_code == 200
    assert ask("GET", "/", token=None, headers={"cookie": session[:-3] + "AAA"}).status_code == 401


def test_a_form_of_another_session_changes_nothing(browse: Ask, service: Service, hostile: Experiment) -> None:
    assert hostile.advance(now=START + 4 * DAY).proposed
    for csrf in ("", "x", service.security.tokens.form("session other")):
        assert browse("POST", "/experiments/hostile/approve", csrf=csrf).status_code == 403
    assert len(hostile.policies) == 1


def test_a_proposal_says_what_changes_in_tables_and_no_command(browse: Ask, hostile: Experiment) -> None:
    assert "approve()" in str(hostile.advance(now=START + 4 * DAY))
    text = browse("GET", "/experiments/hostile").text
    assert text.count("<h3>What was learned</h3>") == text.count("Watch: ") == 1
    assert "approve()" not in text


def test_nothing_in_a_page_runs_or_comes_from_elsewhere(browse: Ask, service: Service, hostile: Experiment) -> None:
    service.hub.now = lambda: START + 4 * DAY  # type: ignore[method-assign]
    assert hostile.advance(now=START + 4 * DAY).proposed
    base = "/experiments/hostile"
    paths = (
        "/",
        "/new",
        base,
        f"{base}/preview",
        f"{base}/decision?id=v3",
        f"{base}/report",
        f"{base}/decision?id=<b>",
    )
    pages = {path: browse("GET", path) for path in paths}
    for path, page in pages.items():
        assert page.status_code == (404 if path.endswith("<b>") else 200), page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        tags = Tags(page.text)
        assert not {"img", "b", "iframe"} & {tag for tag, _ in tags.all}
        for tag, attributes in tags.all:
            names = {"style", "srcdoc", *(name for name in attributes if name.startswith("on"))}
            assert not names & set(attributes), attributes
            assert tag != "script" or (attributes.get("src") or "").startswith("/static/htmx")
            for name in {"src", "href", "action", "formaction"} & set(attributes):
                assert (attributes[name] or "").startswith(("/", "#")), attributes
    text = unescape(pages[base].text)
    assert all(arm in text for arm in HOSTILE[:2])
    assert "<b>age</b>" in text
    assert not any("\u202e" in page.text for page in pages.values())  # it would turn what follows around
    assert r"\u202egnp" in text


def test_the_policy_that_was_looked_at_is_approved_or_dropped(
    browse: Ask, service: Service, hostile: Experiment
) -> None:
    service.hub.now = lambda: START + 4 * DAY  # type: ignore[method-assign]
    page = browse("GET", "/experiments/hostile").text
    assert "Update now" in page
    assert browse("POST", "/experiments/hostile/advance").status_code == 303
    page = browse("GET", "/experiments/hostile").text
    policy_id = re.search(r'name="policy_id" value="(\w+)"', page)[1]
    for text in ("Policy 2 waits for approval", "Who would see something else", "Coefficients that moved", "would see"):
        assert text in page
    assert browse("POST", "/experiments/hostile/approve", {"policy_id": "0" * 64}).status_code == 409
    assert browse("POST", "/experiments/hostile/reject", {"policy_id": policy_id}).status_code == 303
    assert hostile.proposal is None
    browse("POST", "/experiments/hostile/advance")
    assert browse("POST", "/experiments/hostile/approve", {"policy_id": policy_id}).status_code == 303
    assert [policy.id for policy in hostile.policies][1:] == [policy_id]
    assert "policies" in browse("GET", "/experiments/hostile").text


def test_a_page_is_told_only_what_has_changed(browse: Ask, hostile: Experiment) -> None:
    answer = browse("GET", "/experiments/hostile")
    for _ in range(100):  # until its values stand, which are estimated beside
        news = re.search(r'hx-get="([^"]*)"', answer.text)[1]
        if (answer := browse("GET", news)).status_code == 204:
            break
    assert answer.status_code == 204
    hostile.decide({"<b>age</b>": 30, "on": True}, HOSTILE, id="new")
    answer = browse("GET", news)
    changed = re.findall(r'id="(\w+)" hx-swap-oob', answer.text)
    assert "summary" in changed
    assert "121" in answer.text
    assert browse("GET", re.search(r'hx-get="([^"]*)"', answer.text)[1]).status_code in (200, 204)


def test_values_that_nobody_waits_for_end_with_the_service(service: Service, hostile: Experiment) -> None:
    history, steps = hostile.history(now=START + 4 * DAY), list[int]()
    assert report_values(hostile, history, now=START + 4 * DAY, progress=service.hub.go_on) is not None

    def step(*counts: int) -> None:
        steps.append(counts[0])
        service.hub.close()  # as a signal does meanwhile
        service.hub.go_on(*counts)

    raises(BusyError, "the service ends", report_values, hostile, history, now=START + 4 * DAY, progress=step)
    assert len(steps) == 1


def test_a_decision_is_looked_up_with_its_audit(browse: Ask, service: Service, hostile: Experiment) -> None:
    assert "Matches: the frozen policy gives the same arm" in browse("GET", "/experiments/hostile/decision?id=v7").text
    trial = service.hub._open("vectors")
    trial.decide([[1.0, 0.0], [0.0, 1.0]], id=7)
    assert "Matches" in browse("GET", "/experiments/vectors/decision?id=7").text
    assert browse("GET", f"/experiments/vectors/decision?id={'9' * 5000}").status_code == 404
    missing = browse("GET", "/experiments/vectors/decision?id=8")
    assert (missing.status_code, "there is none of" in missing.text) == (404, True)


FORM = {"name": "autumn", "arms": "a\nb", "policies": "3", "horizon": "100", "window": "2d", "default": "0"}
RECORDS = "\n".join(f'{{"age": {20 + k}, "device": "ios"}}' for k in range(40))


@pytest.mark.parametrize(
    ("more", "features"),
    [
        ({"sample": RECORDS, "approval": "true"}, True),
        ({"sample": f"[{RECORDS.replace(chr(10), ',')}]", "arms": '{"a": {"price": 1}, "b": {"price": 2}}'}, True),
        ({"dim": "3"}, False),
    ],
)
def test_an_experiment_begins_by_a_form(browse: Ask, service: Service, more: dict[str, str], features: bool) -> None:
    assert browse("POST", "/new", FORM | more).headers["location"] == "/experiments/autumn"
    description = service.hub._open("autumn").description
    assert (description.features is not None, description.approval) == (features, "approval" in more)
    assert (description.rewards.window, description.rewards.default) == (2 * DAY, 0.0)
    assert "Nobody has asked yet" in browse("GET", "/experiments/autumn").text


def test_a_sample_comes_from_a_file(ask: Ask, service: Service) -> None:
    tokens = service.security.tokens
    session = tokens.open_session(tokens.link()) or ""
    fields = FORM | {"csrf": tokens.form(tokens.payload(session) or "")}
    parts = "".join(f'--X\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items())
    file = 'Content-Disposition: form-data; name="sample_file"; filename="s.jsonl"\r\nContent-Type: text/plain\r\n'
    body = f"{parts}--X\r\n{file}\r\n{RECORDS}\r\n--X--\r\n".encode()
    headers = {"cookie": f"{COOKIE}={session}", "content-type": "multipart/form-data; boundary=X"}
    assert ask("POST", "/new", body, token=None, headers=headers).status_code == 303
    features = service.hub._open("autumn").description.features
    assert "age" in features.seen


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": "no/name", "dim": "2"}, "name must"),
        ({"sample": "{"}, "sample must be JSON"),
        ({"arms": "[1"}, "arms must be JSON"),
        ({}, "dim must be given"),
        ({"dim": "3", "window": "2"}, "window must be a duration with a unit"),
    ],
)
def test_a_form_that_cannot_be_says_why_and_keeps_what_was_written(
    browse: Ask, service: Service, more: dict[str, str], message: str
) -> None:
    answer = browse("POST", "/new", FORM | more)
    assert answer.status_code == 422
    assert message in unescape(answer.text)
    assert 'value="100"' in answer.text


@pytest.mark.parametrize(("body", "status"), [(b"dim=many", 422), (b"\xff", 400), (b"&".join([b"a=1"] * 200), 400)])
def test_forms_that_cannot_be_read_are_refused(ask: Ask, service: Service, body: bytes, status: int) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert ask("POST", "/new", body, headers=kind).status_code == status
    assert ask("POST", "/new", {"name": "x"}).status_code == 415
