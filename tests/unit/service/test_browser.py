"""The page in a real browser: the Chromium of this machine, which Playwright drives."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn

import rareswitch
from rareswitch.service import Hub, Security, Service, Tokens, application, login_path

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(__file__).parents[2] / "reference" / "axe" / "axe.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
ARMS = ["<script>document.title = 'taken'</script>", '"><img src=x onerror="document.title=1">', "plain"]
SAMPLE = "\n".join(f'{{"age": {20 + k % 50}, "device": "{("ios", "web")[k % 2]}"}}' for k in range(100))
SIZES = [(width, theme) for width in (1440, 390) for theme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser; where there is none they are skipped, and fail in CI. `make test` installs one, where it can."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        text = "no Chromium on this machine: the page was not tried in a browser (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        environment: dict[str, str | float | bool] = {**os.environ, "HOME": folder}
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, env=environment)
        yield browser
        browser.close()


class Site:
    """A running service, and pages that opened it by its link."""

    def __init__(self, url: str, browser: "Browser") -> None:
        self.service = Service(hub=Hub(url), security=Security(tokens=Tokens(), hosts=frozenset({"127.0.0.1"})))
        config = uvicorn.Config(application(self.service), port=0, log_level="error", ws="none")
        self._server, self._browser = uvicorn.Server(config), browser
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        #: What browsers complained of.
        self.complaints: list[str] = []

    def open(self, width: int = 1440, theme: Any = "light") -> "Page":
        """A page at the list of experiments."""
        page = self._browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self._only_here(request.url))
        page.goto(f"{self.address}{login_path(self.service.security.tokens.link())}")
        page.wait_for_url(f"{self.address}/")
        return page

    def _only_here(self, url: str) -> None:
        if not url.startswith(self.address):
            self.complaints.append(f"asked for {url}")

    def decide(self, name: str, first: int, count: int) -> None:
        """Requests and their rewards, over HTTP."""
        token = self.service.security.tokens.add(f"shop {first}", ["decide"])
        records = [{"age": 20 + k % 50, "device": ("ios", "web")[k % 2]} for k in range(count)]
        base, ids = f"{self.address}/v1/experiments/{name}", [f"r{first + k}" for k in range(count)]
        with httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
            body = {"ids": ids, "contexts": records, "arms": ARMS}
            chosen = client.post(f"{base}/decide-many", json=body).raise_for_status().json()["arms"]
            paid = [float(arm == ARMS[k % 2]) for k, arm in enumerate(chosen)]
            client.post(f"{base}/reward-many", json={"ids": ids, "values": paid}).raise_for_status()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)


@pytest.fixture
def site(browser: "Browser", tmp_path: Path) -> Iterator[Site]:
    """A service of an empty store; nothing that browsers see there is to complain of."""
    url = f"sqlite:///{tmp_path}/page.db"
    rareswitch.create(url, "quiet", dim=2, policies=3, horizon=100, seed=1).close()
    site = Site(url, browser)
    yield site
    site.close()
    assert site.complaints == []


def begin(page: "Page", site: Site) -> None:
    """Fill in the form of a new experiment."""
    page.get_by_role("link", name="New experiment").first.click()
    page.get_by_label("Name", exact=True).fill("spring")
    page.get_by_label("Arms").fill("\n".join(ARMS))
    page.get_by_label("Sample of requests").fill(SAMPLE)
    page.get_by_label("Decisions in all").fill("900")
    page.get_by_label("New policies wait for my approval").check()
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url(f"{site.address}/experiments/spring")


def test_an_experiment_is_begun_watched_previewed_approved_and_audited(site: Site) -> None:
    page = site.open()
    begin(page, site)
    assert page.get_by_text("Nobody has asked yet").is_visible()
    site.decide("spring", 0, 120)
    page.locator("#summary dd", has_text="120").wait_for(timeout=30_000)  # it is renewed while one looks
    page.get_by_text("100 %", exact=True).first.wait_for()
    page.get_by_role("link", name="Preview the next policy").click()
    assert page.get_by_role("heading", name="Coefficients that moved").is_visible()
    page.get_by_role("button", name="Update now").click()
    page.get_by_role("heading", name="Policy 2 waits for approval").wait_for()
    assert page.get_by_role("rowheader", name=ARMS[0]).first.is_visible()
    page.get_by_role("button", name="Approve policy 2").click()
    page.get_by_role("row", name="2 ").get_by_text("decides now").wait_for()
    site.decide("spring", 120, 60)
    page.locator("#summary dd", has_text="180").wait_for(timeout=30_000)
    page.get_by_label("Id of the decision").fill("r130")
    page.keyboard.press("Enter")
    page.get_by_text("Matches: the frozen policy gives the same arm").wait_for()
    assert "taken" not in page.title()
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0


def test_a_page_of_another_site_cannot_use_the_session(site: Site) -> None:
    page = site.open()
    page.goto(f"{site.address}/experiments/quiet")
    cookies = page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert page.evaluate("document.cookie") == ""
    refused = page.evaluate("fetch('/experiments/quiet/advance', {method: 'POST', body: new URLSearchParams()})"
                            ".then(answer => answer.status)")  # fmt: skip
    assert refused == 403
    site.complaints.clear()  # the browser says so, too


@pytest.mark.parametrize(("width", "theme"), SIZES)
def test_pages_are_accessible_and_fit(site: Site, width: int, theme: str) -> None:
    page = site.open(width, theme)
    begin(page, site)
    site.decide("spring", 0, 120)
    base = f"{site.address}/experiments/spring"
    paths = [f"{site.address}/", f"{site.address}/new", f"{site.address}/docs", base, f"{base}/preview"]
    paths += [f"{base}/decision?id=r7", f"{site.address}/experiments/quiet"]
    for path in paths:
        page.goto(path)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        faults = page.evaluate("axe.run().then(result => result.violations)")
        serious = [fault for fault in faults if fault["impact"] in ("serious", "critical")]
        assert not serious, (path, [(fault["id"], fault["nodes"][0]["html"]) for fault in serious])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert (
            page.locator("svg[role=img]:visible").count() == page.locator("svg[role=img][aria-label]:visible").count()
        )
    colors = page.evaluate("['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])")
    ink, paper = (sum(map(int, color[4:-1].split(","))) for color in colors)
    assert (ink < paper) == (theme == "light")


def test_the_keyboard_reaches_everything(site: Site) -> None:
    page = site.open()
    page.goto(f"{site.address}/experiments/quiet")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
    assert {"rareswitch", "API", "Preview the next policy", "id", "Audit"} <= set(reached)


def test_a_report_opens_from_a_file(site: Site, browser: "Browser", tmp_path: Path) -> None:
    page = site.open()
    begin(page, site)
    site.decide("spring", 0, 120)
    trial = rareswitch.open(site.service.hub.url, "spring")
    trial.report().to_html(tmp_path / "out.html")
    trial.close()
    complaints: list[str] = []
    file = browser.new_page()
    file.on("console", lambda message: complaints.append(message.text))
    file.on("request", lambda request: complaints.append(request.url) if request.url[:5] != "file:" else None)
    file.goto(f"file://{tmp_path}/out.html")
    assert file.get_by_role("heading", name="What is shown").is_visible()
    assert file.get_by_role("img").first.is_visible()
    assert complaints == []
