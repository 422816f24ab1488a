"""Commands that are killed at a chosen call of a file, or at any moment, and what must hold afterwards.

A command runs in a fork of a process that has everything imported and compiled. It dies by SIGKILL, so that nothing of
its own can clean up; a write of a whole file dies in the middle of it.
"""

import contextlib
import io
import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.cli import main
from rareswitch.lab import Run as SimulatedRun
from rareswitch.lab import load_runs
from rareswitch.lab.sweep import add_runs
from reference.runs import run_of

#: Calls that Python tells of; those of synchronizing and of writing a whole file are told of by hand.
WATCHED = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "fcntl.flock")
PATIENCE = 120.0
SMALL = ("--dim", "3", "--arms", "4", "--quiet", "--horizons", "200")


@dataclass(frozen=True)
class Command:
    """A command line: HERE stands for its folder, OUT for its output, which is the last word where it is none else."""

    name: str
    words: tuple[str, ...]
    out: str

    def line(self, folder: Path, out: str) -> list[str]:
        words = (*self.words, "OUT")
        return [word.replace("HERE", str(folder)).replace("OUT", str(folder / out)) for word in words]


COMMANDS = (
    Command(
        "compare", ("compare", "--learners", "linucb", "pure-exploitation", *SMALL, "--seeds", "2", "--out"), "runs"
    ),
    Command(
        "contest",
        (
            *("contest", "--learners", "linucb 1", "linucb 2", "--worlds", "fixed", "gaussian", "--horizons", "200"),
            *("--seeds", "1", "--quiet", "--markdown", "HERE/contest.md", "--out"),
        ),
        "contest",
    ),
)


@dataclass
class Bench:
    """A folder with what undisturbed commands make, and room for those that are killed."""

    root: Path
    #: By command.
    expected: dict[str, Any] = field(default_factory=dict)
    #: Calls of files that an undisturbed command makes, and how long it takes.
    calls: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    kills: int = 0

    @classmethod
    def prepared(cls, root: Path, commands: tuple[Command, ...] = COMMANDS) -> "Bench":
        """Run every command once here, and once in a fork, to have its calls counted."""
        bench = cls(root)
        template = root / "template"
        template.mkdir()
        for command in commands:
            assert run_here(command.line(template, command.out)) == (0, ""), command.name
            bench.expected[command.name] = found(command, template, command.out)
        for command in commands:
            folder, began = bench.fresh(command), time.perf_counter()
            assert waited(commanded(command.line(folder, command.out), folder, 0)) == 0, said(folder)
            bench.seconds[command.name] = time.perf_counter() - began
            bench.calls[command.name] = int((folder.parent / "calls").read_text())
        return bench

    def fresh(self, command: Command) -> Path:
        """A folder for one more run of a command."""
        folder = self.root / f"{command.name}-{self.kills}" / "here"
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
        if command.name == "compare":  # what was there before must stay too
            add_runs({"before": run_of("x", "w", 0, 1.0)}, folder / command.out)
        return folder

    def kill_at(self, command: Command, call: int) -> list[str]:
        """Kill it before a call of a file, or in the middle of it; say what is wrong afterwards."""
        folder = self.fresh(command)
        return self._judge(command, folder, waited(commanded(command.line(folder, command.out), folder, call)))

    def kill_after(self, command: Command, seconds: float) -> list[str]:
        """Kill it after some time."""
        folder = self.fresh(command)
        child = commanded(command.line(folder, command.out), folder, 0)
        return self._judge(command, folder, waited(child, seconds))

    def _judge(self, command: Command, folder: Path, status: int) -> list[str]:
        faults = list(self._faults(command, folder, status))
        self.kills += status == -signal.SIGKILL
        shutil.rmtree(folder.parent)
        return [f"{command.name}: {fault}" for fault in faults]

    def _faults(self, command: Command, folder: Path, status: int) -> Iterator[str]:
        if status not in (0, -signal.SIGKILL):
            yield f"ended with {status}: {said(folder)}"
        expected = self.expected[command.name]
        try:
            there = found(command, folder, command.out)
        except Exception as error:
            yield f"what it left cannot be read: {error}"
            return
        saved = reported(folder) | ({"before"} if command.name == "compare" else set())
        if not saved <= there.keys():
            yield f"{len(saved - there.keys())} runs that were reported are lost"
        if not all(same(run, expected.get(key, run_of("x", "w", 0, 1.0))) for key, run in there.items()):
            yield "a run is another"
        page = folder / "contest.md"
        if page.exists() and len(page.read_text().splitlines()) < 10:
            yield "a page is half written"
        ended = run_here(command.line(folder, command.out))
        again = found(command, folder, command.out)
        if ended != (0, ""):
            yield f"run again, it ends with {ended}"
        elif not expected.keys() <= again.keys() or not all(same(again[key], run) for key, run in expected.items()):
            yield "run again, it makes something else"
        left = sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))
        if left:
            yield f"left over: {', '.join(left)}"


def forked(call: Callable[[], int | None]) -> tuple[int, int]:
    """Do something in a fork, which ends with the status it gives: its number, and a pipe that ends with it."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads do not come along, and none is needed
        child = os.fork()
    if not child:
        status: int | None = 99
        try:
            status = call()
        finally:
            os._exit(status or 0)
    os.close(theirs)
    return child, ours


def commanded(line: list[str], folder: Path, die_at: int) -> tuple[int, int]:
    """Run a command in a fork that dies at a call, never if it is 0."""
    return forked(lambda: _live(line, folder, die_at))


def _live(line: list[str], folder: Path, die_at: int) -> int:
    status = 99
    try:
        out = os.open(folder.parent / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(out, stream)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
        _tell_of_runs(folder.parent / "saved")
        calls = _watch(folder, die_at)
        status = main(line)
        (folder.parent / "calls").write_text(str(calls()))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _watch(folder: Path, die_at: int) -> Callable[[], int]:
    """Count the calls of files from now on, and die at one of them."""
    count, synchronize, write = 0, os.fsync, Path.write_bytes

    def call() -> bool:
        nonlocal count
        count += 1
        return count == die_at

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WATCHED:
            what = arguments[0]
            name = "" if isinstance(what, int) else os.fsdecode(what)
            if (not os.path.isabs(name) or name.startswith(str(folder))) and call():
                os.kill(os.getpid(), signal.SIGKILL)

    def fsync(handle: int) -> None:
        if call():
            os.kill(os.getpid(), signal.SIGKILL)
        synchronize(handle)

    def write_bytes(path: Path, data: Any) -> int:
        if call():
            write(path, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(path, data)

    os.fsync, Path.write_bytes = fsync, write_bytes  # type: ignore[assignment, method-assign]
    sys.addaudithook(hook)
    return lambda: count


def _tell_of_runs(path: Path) -> None:
    """From now on, note the keys of runs that are said to be saved."""
    module: Any = sys.modules["rareswitch.lab.sweep"]
    add, handle = module.add_runs, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def noted(runs: Any, target: Any) -> Any:
        kept = add(runs, target)
        os.write(handle, "".join(f"{key}\n" for key in runs).encode())
        return kept

    module.add_runs = noted


def waited(child: tuple[int, int], seconds: float | None = None) -> int:
    """The status of a fork, minus the signal that ended it; it is killed after some time."""
    number, pipe = child
    ended, _, _ = select.select([pipe], [], [], PATIENCE if seconds is None else seconds)
    if not ended:
        os.kill(number, signal.SIGKILL)
    os.close(pipe)
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    return 98 if not ended and seconds is None else status


def run_here(line: list[str]) -> tuple[int, str]:
    """The status of a command, and what it complains of."""
    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        status = main(line)
    return status, "" if status == 0 else complaints.getvalue()


def said(folder: Path) -> str:
    path = folder.parent / "said"
    return path.read_text(errors="replace") if path.exists() else ""


def reported(folder: Path) -> set[str]:
    path = folder.parent / "saved"
    return set(path.read_text().splitlines()) if path.exists() else set()


def found(command: Command, folder: Path, out: str) -> dict[str, Any]:
    """The runs of an output, by key."""
    files = [folder / out] if command.name == "compare" else sorted((folder / out).glob("[!.]*"))
    return {key: run for file in files if file.exists() for key, run in load_runs(file).items()}


def same(one: SimulatedRun, other: SimulatedRun) -> bool:
    """Whether runs are the same but for the time they took."""
    names = [name for name in vars(other) if name != "seconds"]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def kept_of_two(folder: Path, seeds: int) -> tuple[int, int]:
    """Two compares into one file, started together: how many runs it has, of how many."""
    folder.mkdir(parents=True)
    command = Command("compare", ("compare", "--learners", "linucb", *SMALL, "--seeds", str(seeds), "--out"), "runs")
    lines = [command.line(folder, command.out), command.line(folder, command.out)]
    lines[1][1:1] = ["--first-seed", "100"]
    statuses = [waited(child) for child in [commanded(line, folder, 0) for line in lines]]
    runs = load_runs(folder / command.out)
    left = list(folder.glob(".*"))
    return (len(runs) if statuses == [0, 0] and not left else -1), 2 * seeds


def moments(count: int, longest: float, seed: int) -> list[float]:
    """Times at which to kill, spread over a run and a little beyond."""
    draw = random.Random(seed)
    return [1.1 * longest * draw.random() for _ in range(count)]
