"""The server as a process: settings, tokens on the command line, deadlines and the end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rareswitch.cli import main
from rareswitch.errors import ParameterError
from rareswitch.service import read_settings


@pytest.fixture
def store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    url = str(tmp_path / "spring.db")
    assert main(["experiment", "create", url, "spring", "--dim", "2", "--policies", "3", "--horizon", "100"]) == 0
    capsys.readouterr()
    return url


@pytest.fixture
def server(store: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A process that serves the store, its port and its token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rareswitch", "serve", store, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        token = process.stdout.readline().rpartition(" ")[2].strip()
        assert f":{port}" in process.stdout.readline()
        end = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz")
                break
            except httpx.TransportError:
                assert time.monotonic() < end
                time.sleep(0.05)
        yield process, port, token
        process.kill()


def test_a_decision_is_served_and_the_server_ends_in_order(
    server: tuple[subprocess.Popen[str], int, str], store: str
) -> None:
    process, port, token = server
    base = f"http://127.0.0.1:{port}/v1/experiments/spring"
    body = {"id": "r1", "vectors": [[1.0, 0.0], [0.0, 1.0]]}
    with httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        choice = client.post(f"{base}/decide", json=body).json()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    assert process.stdout is not None
    lines = [json.loads(line) for line in process.stdout if line.startswith("{")]
    assert {"decision": "r1", "version": 1, "status": 200}.items() <= lines[-1].items()
    assert "vectors" not in str(lines)
    done = subprocess.run(
        [sys.executable, "-m", "rareswitch", "experiment", "audit", store, "spring", "r1", "--json"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(done.stdout)[0]["arm"] == str(choice["arm"])


def test_the_head_of_a_request_must_come_in_time(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    import threading

    import uvicorn

    from rareswitch.service import application, server, service_of

    monkeypatch.setattr(server, "HEAD", 1.0)
    app = application(service_of(read_settings(None, {}, {"url": store})))
    run = uvicorn.Server(uvicorn.Config(app, port=0, http=server.DeadlineProtocol, log_level="error", ws="none"))
    thread = threading.Thread(target=run.run)
    thread.start()
    while not run.started:
        time.sleep(0.01)
    address = run.servers[0].sockets[0].getsockname()
    with httpx.Client(base_url=f"http://localhost:{address[1]}") as whole, socket.create_connection(address) as half:
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(2):
            assert whole.get("/healthz").status_code == 200
            time.sleep(0.7)  # an idle connection is not a request that does not come
        half.settimeout(30)
        assert half.recv(4096) == b""
    run.should_exit = True
    thread.join(30)


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
    with pytest.raises(ParameterError, match=message):
        read_settings(None, {}, options)


def test_tokens_are_made_listed_and_revoked(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", store, "shop", "--scopes", "decide", "--experiments", "spring", "--days", "90"]) == 0
    text = capsys.readouterr().out.strip()
    path = Path(f"{store}.tokens.json")
    assert text not in path.read_text()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert main(["token", store]) == 0
    assert "shop: decide; spring; until 20" in capsys.readouterr().out
    assert main(["token", store, "shop", "--scopes", "decide"]) == 2
    assert main(["token", store, "other", "--scopes", "decyde"]) == 2
    assert "Did you mean 'decide'?" in capsys.readouterr().err
    assert main(["token", store, "shop", "--revoke"]) == 0
    assert main(["token", store, "shop", "--revoke"]) == 2
