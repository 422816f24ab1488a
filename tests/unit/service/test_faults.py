"""Servers that are killed, have no room, get new policies, or are told to end, while others ask them."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from rareswitch.service import Service
from reference.postgres import database
from reference.served import serving
from reference.served_faults import Asked, free_files, kill, limit_files, no_room, rolled

pytestmark = pytest.mark.slow


@pytest.fixture
def own_database(postgres_server: str) -> Iterator[str]:
    """The URL of a database of one test, as a server serves all that is in it."""
    with database(postgres_server, f"served-{uuid4().hex}") as url:
        yield url


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_what_a_killed_server_acknowledged_is_there_and_answered_again(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("own_database") if store == "postgres" else None
    found = kill(Asked(tmp_path, url), 2, longest=0.3)
    assert found.clean, found
    assert found.acknowledged > 20


def test_a_server_that_answers_before_it_commits_is_noticed(tmp_path: Path) -> None:
    assert kill(Asked(tmp_path, early=True), 1, longest=0.3).lost >= 5


def test_a_server_without_room_refuses_and_recovers(tmp_path: Path) -> None:
    found = no_room(Asked(tmp_path), limit_files, free_files, seconds=1.0)
    assert found.clean, found


def test_new_policies_are_taken_while_requests_are_answered(tmp_path: Path) -> None:
    found = rolled(tmp_path, 2)
    assert found.clean, found


def test_what_was_begun_ends_before_the_server_does(
    service: Service, listening: Callable[[], AbstractContextManager[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    token, statuses, begun = service.security.tokens.add("shop", ["decide"]), list[int](), list[Any]()
    whole = service.hub.decide

    async def decide(*given: Any) -> Any:
        begun.append(given)
        return await whole(*given)

    def ask(number: int, address: str) -> None:
        body, headers = {"id": number, "vectors": [[1.0, 0.0]]}, {"authorization": f"Bearer {token}"}
        url = f"{address}/v1/experiments/vectors/decide"
        statuses.append(httpx.post(url, json=body, headers=headers, timeout=60).status_code)

    monkeypatch.setattr(service.hub, "decide", decide)
    path = service.hub.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")  # what is asked now waits
        with listening() as address:
            threads = [threading.Thread(target=ask, args=(number, address)) for number in range(8)]
            for thread in threads:
                thread.start()
            while len(begun) < 8:
                time.sleep(0.01)
            release = threading.Timer(0.3, other.execute, ["COMMIT"])
            release.start()
        for thread in [*threads, release]:
            thread.join()
    assert statuses == [200] * 8


def workers(process: int) -> list[str]:
    """The processes that a server has started to answer requests."""
    lines = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes().decode() for child in lines]
    return [command for command in commands if "spawn_main" in command]


def test_several_processes_serve_one_database(tmp_path: Path, own_database: str) -> None:
    asked = Asked(tmp_path, own_database)
    with serving(asked.url, "--tokens", asked.tokens, "--workers", "2") as server:
        running = asked.load(server, 0, 60.0, most=200).run()
        asked.note(0, running)
        assert running.statuses == {200: 400}
        assert len(workers(server.process.pid)) == 2
        asked.again(server, 0, 200)
    asked.look()
    assert asked.found.clean, asked.found
