"""Bounded load on a server of this machine, from a process of its own: so many connections, seconds and requests."""

import asyncio
import sys
import time
from collections import deque
from functools import partial
from subprocess import PIPE, Popen
from typing import Self

import msgspec
import uvloop

#: Where the number of a request is written into it.
MARK = b"@@@@@@@@@@@@"
#: Seconds for which answers are waited for in the end.
PATIENCE = 30.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: request n sends all requests of ``scripts[n % len(scripts)]``, one after the other."""

    port: int
    scripts: list[list[bytes]]
    connections: int
    seconds: float
    #: Scripts that begin in a second, whether or not others were answered; None: as soon as a connection is free.
    rate: float | None = None
    most: int = 1_000_000
    #: The first number.
    first: int = 0
    #: Whether answers are kept.
    keeps: bool = False

    def begin(self) -> "Running":
        """Start it."""
        return Running(self)

    def run(self) -> "Outcome":
        """Start it, and wait for its end."""
        return self.begin().end()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered."""

    #: By status.
    statuses: dict[int, int]
    #: Requests whose connection ended before they were answered, or that were not answered in time.
    unanswered: int
    #: Scripts that were begun, and the seconds until the last answer.
    begun: int
    seconds: float
    #: Of a script, from when it was due to its last answer, in order.
    latencies: list[float]
    #: Bodies of answers with status 200, by number and place in the script.
    answers: dict[int, dict[int, bytes]]

    @property
    def rate(self) -> float:
        """Scripts that were answered, by second."""
        return len(self.latencies) / self.seconds

    @property
    def errors(self) -> int:
        """Requests without an answer, or with another status than 200."""
        return self.unanswered + sum(count for status, count in self.statuses.items() if status != 200)

    def latency(self, share: float) -> float:
        """Within which this share was answered, in seconds."""
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


class Running:
    """A process that asks."""

    def __init__(self, load: Load) -> None:
        self._process = Popen([sys.executable, __file__], stdin=PIPE, stdout=PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._answer = self._process.stdout
        self._process.stdin.write(msgspec.msgpack.encode(load))
        self._process.stdin.close()
        self._answer.read(1)  # it is connected

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._answer.close()
        self._process.wait()

    def end(self) -> Outcome:
        """Wait for its end."""
        with self:
            data, status = self._answer.read(), self._process.wait()
            if status:
                raise RuntimeError(f"the load ended with {status}")
            return msgspec.msgpack.decode(data, type=Outcome)


def request(port: int, path: str, body: bytes, *, token: str, media: str = "application/json") -> bytes:
    """A POST as it is sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class _Caller(asyncio.Protocol):
    """A connection, which carries out one script at a time."""

    def __init__(self, crowd: "_Crowd") -> None:
        self._crowd, self._received, self._whole = crowd, bytearray(), 0
        self.waits = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def begin(self, number: int, due: float) -> None:
        """Carry out a script."""
        self._number, self._due, self._step, self.waits = number, due, 0, True
        self._send()

    def _send(self) -> None:
        script = self._crowd.load.scripts[self._number % len(self._crowd.load.scripts)]
        self._transport.write(script[self._step].replace(MARK, b"%012d" % self._number))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._whole:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._received[:end]).lower() + b"\r\n"
            _, _, after = head.partition(b"content-length:")
            self._start, self._whole = end + 4, end + 4 + int(after.partition(b"\r\n")[0] or 0)
        if len(self._received) < self._whole:
            return
        status, body = int(self._received[9:12]), bytes(self._received[self._start : self._whole])
        self._received, self._whole = bytearray(), 0
        more = self._crowd.answered(self._number, self._step, self._due, status, body)
        if more:
            self._step += 1
            self._send()
        else:
            self.waits = False
            self._crowd.free(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._crowd.lost(self)


class _Crowd:
    def __init__(self, load: Load) -> None:
        self.load, self.begun = load, 0
        self.statuses: dict[int, int] = {}
        self.latencies = list[float]()
        self.answers: dict[int, dict[int, bytes]] = {}
        self.unanswered, self.open, self.last = 0, 0, 0.0
        self._free: deque[_Caller] = deque()
        self._due: deque[tuple[int, float]] = deque()

    def answered(self, number: int, step: int, due: float, status: int, body: bytes) -> bool:
        """Note an answer; whether the script goes on."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.last = time.perf_counter()
        if status == 200 and self.load.keeps:
            self.answers.setdefault(number, {})[step] = body
        if status != 200:  # what comes next rests on it
            return False
        if step + 1 < len(self.load.scripts[number % len(self.load.scripts)]):
            return True
        self.latencies.append(self.last - due)
        return False

    def free(self, caller: _Caller) -> None:
        """A connection that can carry out another script."""
        if self.load.rate is not None:
            if self._due:
                caller.begin(*self._due.popleft())
            else:
                self._free.append(caller)
        elif self.begun < self.load.most and (now := time.perf_counter()) < self._end:
            caller.begin(self.load.first + self.begun, now)
            self.begun += 1

    def lost(self, caller: _Caller) -> None:
        """A connection that has ended; what it had asked is not asked again."""
        self.open -= 1
        self.unanswered += caller.waits
        caller.waits = False
        if caller in self._free:
            self._free.remove(caller)

    async def run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        callers = list[_Caller]()
        for _ in range(self.load.connections):
            _, caller = await loop.create_connection(partial(_Caller, self), "127.0.0.1", self.load.port)
            callers.append(caller)
            self.open += 1
        sys.stdout.buffer.write(b".")
        sys.stdout.buffer.flush()
        began = time.perf_counter()
        self._end = began + self.load.seconds
        for caller in callers:
            self.free(caller)
        while self.open and (now := time.perf_counter()) < self._end and self.begun < self.load.most:
            if self.load.rate is None:
                await asyncio.sleep(0.005)
                continue
            while self.begun < min(self.load.most, (now - began) * self.load.rate):
                number, due = self.load.first + self.begun, began + self.begun / self.load.rate
                self.begun += 1
                if self._free:
                    self._free.popleft().begin(number, due)
                else:
                    self._due.append((number, due))
            await asyncio.sleep(0.001)
        end = time.perf_counter() + PATIENCE
        while time.perf_counter() < end and self.open and (self._due or any(caller.waits for caller in callers)):
            await asyncio.sleep(0.002)
        left = self.unanswered + len(self._due) + sum(caller.waits for caller in callers)
        self.latencies.sort()
        return Outcome(
            statuses=self.statuses,
            unanswered=left,
            begun=self.begun,
            seconds=max(self.last - began, 1e-9),
            latencies=self.latencies,
            answers=self.answers,
        )


def ask(load: Load) -> Outcome:
    """In this process: carry out a load."""
    run = asyncio.run if load.keeps else uvloop.run  # which is faster, and where connections are reset may crash
    return run(_Crowd(load).run())


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(ask(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Load))))
