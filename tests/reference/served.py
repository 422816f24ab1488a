"""Servers in processes of their own, on loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

#: Seconds in which a server must answer.
START = 120.0
COMMAND = (sys.executable, "-m", "rareswitch", "serve")


@dataclass(frozen=True, kw_only=True)
class Server:
    """A process that serves."""

    process: subprocess.Popen[bytes]
    port: int
    #: What it prints.
    log: Path
    #: The one that it printed, if it did.
    token: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lines(self) -> list[str]:
        """What it has printed."""
        return self.log.read_text(encoding="utf-8").splitlines()

    def client(self, token: str = "", **more: Any) -> httpx.Client:
        """One with a token, by default its own."""
        return httpx.Client(
            base_url=self.url, headers={"authorization": f"Bearer {token or self.token}"}, timeout=60, **more
        )

    def processor_seconds(self) -> float:
        """What it has taken of processors."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(
    *options: str, command: Sequence[str] = COMMAND, errors: Path | None = None, **environment: str
) -> Iterator[Server]:
    """A process that serves with these options, when it answers; it is killed in the end, if it still runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        line = [*command, *options, "--port", str(port)]
        with ExitStack() as stack:
            out = stack.enter_context(log.open("wb"))
            said = None if errors is None else stack.enter_context(errors.open("wb"))
            process = stack.enter_context(
                subprocess.Popen(line, stdout=out, stderr=said, env={**os.environ, **environment})
            )
            try:
                end = time.monotonic() + START
                while not answers(port):
                    assert process.poll() is None, "it has ended"
                    assert time.monotonic() < end, "it does not answer"
                    time.sleep(0.02)
                first = log.read_text(encoding="utf-8").partition("\n")[0]
                token = first.rpartition(" ")[2] if first.startswith("token") else ""
                yield Server(process=process, port=port, log=log, token=token)
            finally:
                process.kill()


def answers(port: int) -> bool:
    """Whether there is a service."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False
