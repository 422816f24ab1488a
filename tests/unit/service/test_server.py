"""The server as a process: settings, tokens on the command line, deadlines and the end."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

import rareswitch
from rareswitch.cli import main
from rareswitch.errors import ParameterError
from rareswitch.service import Tokens, application, read_settings, server, service_of
from reference.commands import printed
from reference.refusals import raises
from reference.served import serving

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    url, sample = str(tmp_path / "spring.db"), tmp_path / "sample.csv"
    sample.write_text("age,device\n" + "31,ios\n25,web\n" * 40)
    options = ["--fit", str(sample), "--arms", "A", "B", "--policies", "3", "--horizon", "100"]
    assert main(["experiment", "create", url, "spring", *options]) == 0
    capsys.readouterr()
    return url


def test_a_decision_is_served_and_the_server_ends_in_order(store: str) -> None:
    with serving(store) as server:
        body = {"id": "r1", "context": {"age": 30, "device": "web"}, "arms": ["A", "B"]}
        token, described, link = (line.split()[-1] for line in server.lines()[:3])
        assert (token, described) == (server.token, f"{server.url}/docs")
        with httpx.Client(timeout=60) as browser:
            assert browser.get(link).status_code == 200
            assert "spring" in browser.get(server.url).text
        with server.client() as client:
            choice = client.post("/v1/experiments/spring/decide", json=body).json()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == -signal.SIGTERM
        lines = [json.loads(line) for line in server.lines() if line.startswith("{")]
    assert {"decision": "r1", "version": 1, "status": 200}.items() <= lines[-1].items()
    assert "device" not in str(lines)
    done = subprocess.run(
        [sys.executable, "-m", "rareswitch", "experiment", "audit", store, "spring", "r1", "--json"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(done.stdout)[0]["arm"] == choice["arm"]


def test_the_examples_of_the_page_run_as_written(store: str) -> None:
    blocks = re.findall(r"```(sh|python)\n(.*?)```", (ROOT / "docs/how-to/service.md").read_text(), flags=re.DOTALL)
    with serving(store) as server:
        for language, text in blocks:
            code = text.replace("8700", str(server.port))
            if language == "python":
                exec(code, {"token": server.token})
            elif "curl" in code:
                script, variables = code.replace("curl -s", "curl -sf"), os.environ | {"TOKEN": server.token}
                done = subprocess.run(["bash", "-ec", script], env=variables, capture_output=True)
                assert done.returncode == 0, done
    with rareswitch.open(f"sqlite:///{store}", "spring") as trial:
        assert trial.audit("r1").matches
        assert trial.audit("r1").rewards == {"": 1.0}


def test_two_servers_and_a_command_share_a_file(store: str) -> None:
    """Ids asked of both have one answer, and what each acknowledged is there."""
    with serving(store) as first, serving(store) as second:
        servers, arms = (first, second), dict[tuple[int, int], str]()

        def decide(at: int) -> None:
            with servers[at].client(first.token) as client:
                for k in range(40):
                    body = {"id": k, "context": {"age": 20 + k, "device": "web"}, "arms": ["A", "B"]}
                    answer = client.post("/v1/experiments/spring/decide", json=body)
                    arms[at, k] = answer.raise_for_status().json()["arm"]

        threads = [threading.Thread(target=decide, args=(at,)) for at in (0, 1)]
        for thread in threads:
            thread.start()
        lines = "".join(f'{{"id": "c{k}", "context": {{"age": 30}}, "arms": ["A", "B"]}}\n' for k in range(20))
        command = [sys.executable, "-m", "rareswitch", "experiment", "decide", store, "spring"]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
        for thread in threads:
            thread.join()
    assert [arms[0, k] for k in range(40)] == [arms[1, k] for k in range(40)]
    with rareswitch.open(f"sqlite:///{store}", "spring") as trial:
        assert trial.status().decisions == 60
        assert [trial.audit(k).arm for k in range(40)] == [arms[0, k] for k in range(40)]
        assert all(trial.audit(json.loads(line)["id"]).matches for line in done.stdout.splitlines())


def test_a_proxy_on_this_machine_is_known_though_it_names_who_it_speaks_for(store: str) -> None:
    said = {"x-user": "ada", "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https"}
    with serving(store, "--user-header", "x-user") as server:
        link = server.lines()[2].split()[-1]
        assert httpx.get(f"{server.url}/v1/experiments/spring", headers=said).status_code == 200
        assert httpx.get(f"{server.url}/v1/experiments/spring").status_code == 401
        assert "Secure" in httpx.get(link, headers=said).headers["set-cookie"]


@contextmanager
def guarded(store: str) -> Iterator[tuple[str, int]]:
    """The address of a server in this process, whose connections are watched as those of ``serve``."""
    app = application(service_of(read_settings(None, {}, {"url": store})))
    settings: dict[str, Any] = {"log_level": "error", "ws": "none", "timeout_keep_alive": 60}
    run = uvicorn.Server(uvicorn.Config(app, port=0, http=server.DeadlineProtocol, **settings))
    thread = threading.Thread(target=run.run)
    thread.start()
    while not run.started:
        time.sleep(0.01)
    yield run.servers[0].sockets[0].getsockname()
    run.should_exit = True
    thread.join(30)


HEAD = b"POST /v1/experiments/spring/decide HTTP/1.1\r\nHost: localhost\r\n"


def flooded(half: socket.socket, data: bytes) -> tuple[int, bytes]:
    """Send without an end: the bytes until the connection was closed, and what was answered before."""
    sent, answer = 0, b""
    with suppress(ConnectionError):
        while sent < 1 << 28:
            half.sendall(data)
            sent += len(data)
            if select.select([half], [], [], 0)[0]:
                answer += half.recv(4096)
    return sent, answer


@pytest.mark.parametrize("endless", [b"y" * 4096, b"y: y\r\n" * 700])
def test_the_head_of_a_request_has_an_end(store: str, endless: bytes) -> None:
    with guarded(store) as address, socket.create_connection(address, timeout=30) as half:
        half.sendall(HEAD + b"x: ")
        assert flooded(half, endless)[0] < 1 << 24  # what the buffers of the system hold
    with guarded(store) as address, socket.create_connection(address, timeout=30) as half:
        half.sendall(HEAD + b"x: " + b"y" * server.MOST_HEAD)
        assert half.recv(4096).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(("more", "endless"), [(b"", b"1000\r\n" + b"y" * 4096 + b"\r\n"), (b"0\r\nx: ", b"y" * 4096)])
def test_what_goes_on_after_its_answer_is_cut_off(store: str, more: bytes, endless: bytes) -> None:
    with guarded(store) as address, socket.create_connection(address, timeout=30) as half:
        half.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + more)
        sent, answer = flooded(half, endless)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert sent < 1 << 26


def test_the_head_of_a_request_must_come_in_time(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    monkeypatch.setattr(server, "HEAD", 1.0)
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    with (
        guarded(store) as address,
        httpx.Client(base_url=f"http://localhost:{address[1]}") as whole,
        socket.create_connection(address) as half,
        socket.create_connection(address) as second,
    ):
        half.sendall(head)
        second.sendall(head + b"\r\n" + head)  # a whole one, and the half of another
        for _ in range(2):
            assert whole.get("/healthz").status_code == 200
            time.sleep(0.7)  # an idle connection is not a request that does not come
        for connection in (half, second):
            connection.settimeout(30)
            received = b"".join(iter(lambda ends=connection: ends.recv(4096), b""))  # type: ignore[misc]
            assert received.count(b"200 OK") == (connection is second)


def test_options_stand_over_variables_and_these_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rareswitch.toml"
    path.write_text('url = "file.db"\nport = 1\nallow_host = ["a.example"]\n')
    settings = read_settings(path, {"RARESWITCH_PORT": "2", "RARESWITCH_MAX_BODY": "9"}, {"port": 3, "host": None})
    assert (settings.url, settings.port, settings.max_body, settings.allow_host) == ("file.db", 3, 9, ("a.example",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "url must name a store"),
        ({"url": "a.db", "port": 70000}, "port must be from 0 to 65535; got 70000"),
        ({"url": "a.db", "workers": 2}, "workers must be 1 where the store is a file"),
        ({"url": "a.db", "certificate": "c.pem"}, "belong together"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    raises(ParameterError, message, read_settings, None, {}, options)


def test_a_link_opens_one_session_of_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "spring.tokens.json"
    first = Tokens(path)
    code = first.link()
    others = [Tokens(path) for _ in range(8)]  # each as another process has it
    with ThreadPoolExecutor(8) as threads:
        sessions = [*threads.map(lambda tokens: tokens.open_session(code), others)]
    assert len([session for session in sessions if session is not None]) == 1
    assert first.open_session(code) is None
    assert first.open_session(f"{code[:8]}!{code[8:]}") is None  # base64 skips what is no part of it
    assert first.open_session(first.link()) is not None
    kept = json.loads(path.read_text())["opened"]
    assert len(kept) == 2
    assert code not in path.read_text()


def test_tokens_of_several_processes_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "spring.tokens.json"
    Tokens(path)
    with ThreadPoolExecutor(8) as threads:
        texts = [*threads.map(lambda number: Tokens(path).add(f"shop {number}", ["read"]), range(16))]
    assert [Tokens(path).find(text) is not None for text in texts] == [True] * 16


def test_tokens_are_made_listed_and_revoked(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", store, "shop", "--scopes", "decide", "--experiments", "spring", "--days", "90"]) == 0
    text = capsys.readouterr().out.strip()
    path = Path(f"{store}.tokens.json")
    assert text not in path.read_text()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert "shop: decide; spring; until 20" in printed(capsys, "token", store)
    assert main(["token", store, "shop", "--scopes", "decide"]) == 2
    assert main(["token", store, "other", "--scopes", "decyde"]) == 2
    assert printed(capsys, "token", store, "--link").startswith("http://127.0.0.1:8700/login?code=")
    assert main(["token", store, "other", "--scopes", "decyde"]) == 2
    assert "Did you mean 'decide'?" in capsys.readouterr().err
    assert main(["token", store, "shop", "--revoke"]) == 0
    assert main(["token", store, "shop", "--revoke"]) == 2


def test_the_demo_lives_and_ends_with_a_key(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    (tmp_path / "own").mkdir()
    with serving("--demo", errors=errors, TMPDIR=str(tmp_path / "own")) as server:
        with httpx.Client(timeout=60) as browser:
            assert browser.get(server.lines()[1].split()[-1]).status_code == 200
            seen, end = set[str](), time.monotonic() + 60
            while len(seen) < 2:
                assert time.monotonic() < end
                time.sleep(0.2)
                page = browser.get(f"{server.url}/experiments/campaign").text
                seen |= {text for text in re.findall(r"<dd>([\d,]+)</dd>", page)[:1] if text != "0"}
        server.process.send_signal(signal.SIGINT)
        server.process.wait(60)
    assert "Traceback" not in errors.read_text()
    assert [*(tmp_path / "own").iterdir()] == []
