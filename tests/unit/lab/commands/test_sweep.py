"""Whatever is given as any input of any command: the answer is a message in one form, soon and in little memory."""

import argparse
import contextlib
import functools
import io
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.lab.context_files import SUFFIXES
from rareswitch.learner import LEARNERS, takes

RUN = ["--horizon", "48", "--dim", "2", "--arms", "3"]
CREATED = ["--horizon", "48", "--dim", "2", "--seed", "1", "--now", "2026-03-02"]
#: Arguments with which each command ends well after next to no work. What is in capitals is made before.
COMMANDS: dict[str, list[str]] = {
    "demo": ["--days", "1", "--quiet"],
    "learners": [],
    "worlds": [],
    "plan": ["--dim", "2", "--arms", "3", "--decisions", "48", "--quiet"],
    "key": ["--scheme", "hmac", "--out", "fresh"],
    "simulate": ["--learner", "foresight", "--seeds", "1", "--quiet", *RUN],
    "compare": ["--learners", "foresight", "--seeds", "1", "--quiet", "--horizons", *RUN[1:]],
    "agents": ["--agents", "1", "--quiet", *RUN],
    "contest": ["--learners", "foresight", "--worlds", "fixed", "--horizons", "48", "--seeds", "1", "--quiet"],
    "reproduce": ["--items", "1", "--quick", "--quiet"],
    "experiment create": ["fresh.db", "x", *CREATED],
    "experiment decide": ["STORE", "x", "--id", "r0", "--context", "[[1, 0]]"],
    "experiment reward": ["STORE", "x", "--id", "visit-1", "--value", "0", "--overwrite"],
    "experiment activate": ["STORE", "x", "--id", "visit-1"],
    "experiment status": ["STORE", "x"],
    "experiment list": ["STORE"],
    "experiment end": ["STORE", "x"],
    "experiment delete": ["STORE", "x", "--force"],
    "experiment approve": ["STORE", "y"],
    "experiment reject": ["STORE", "y"],
    "experiment advance": ["STORE", "x", "--preview", "--quiet"],
    "experiment audit": ["STORE", "x", "visit-0"],
    "experiment export": ["STORE", "x", "--out", "fresh", "--quiet"],
    "experiment report": ["STORE", "x", "--html", "fresh.html"],
    "experiment backup": ["STORE", "x", "fresh.db"],
    "experiment import": ["STORE", "x", "--log", "LOG", "--quiet"],
    "experiment simulate": ["STORE", "x", "--days", "0.02", "--no-advance", "--quiet"],
    "evaluate": ["TABLE", "--rule", "logged", "--quiet"],
    "effects": ["TABLE", "--arm", "a"],
    "design": ["SETS"],
    "convert": ["TABLE", "fresh.csv"],
    "token": ["STORE", "fresh", "--scopes", "read"],
    "warm-up": [],
}
#: What runs until it is stopped: tests/unit/service starts it.
ENDLESS = {"serve"}
#: What heeds an option, where the arguments above do not.
HEEDING: dict[tuple[str, str], list[str]] = {
    ("contest", "--data"): ["--worlds", "movielens"],
    **{
        ("design", option): ["--distributional"]
        for option in ("--g-optimal-share", "--regularization", "--seed", "--method")
    },
    ("design", "--power"): ["--distributional", "--method", "core"],
}
#: Names of what is made, names of what is not there, and numbers.
FILES = ("empty", "binary", "truncated", "directory", "/dev/zero", "pipe", "empty/inside", "unreadable")
NUMBERS = ("1e308", "-1", "nan", str(10**12), str(10**18))
#: Numbers that are fine and would be worked through for years.
LONG_WORK = {"--horizon", "--horizons", "--count"}
#: What is read as a number may be any of these; else a number is a name like any other.
FOR_NUMBERS = (*NUMBERS, "missing", "", "\udc80")
FOR_TEXTS = (*FILES, "missing", "-1", "", "\udc80")
_LARGE = {str(10**12), str(10**18)}
#: Values that are as good as any other, and so may be taken: why, which options, which values.
MAY_BE_TAKEN: list[tuple[str, set[str], set[str]]] = [
    ("any name does for what is written", {"--out", "--plots", "--markdown"}, {"missing", "-1"}),
    ("a page is written anew", {"--markdown"}, {"empty", "binary", "truncated"}),
    ("a folder for files may be there already", {"play --out", "contest --out", "--plots"}, {"directory"}),
    ("any text or number names a decision", {"--id"}, {"1e308", "nan", "missing", *_LARGE}),
    ("any text names an arm", {"experiment decide --arms", "--always"}, {*FILES, "missing", "-1"}),
    ("any name does for an experiment", {"experiment create NAME"}, {"missing", "-1"}),
    ("a folder may hold an experiment", {"experiment create STORE"}, {"directory"}),
    ("any name does for finished items", {"reproduce --keep"}, {"missing", "-1"}),
    ("any name does for a copy", {"experiment backup FILE"}, {"missing", "-1"}),
    ("any name does for a policy", {"experiment export --policy"}, {"missing", "-1"}),
    ("parts may be written beside others", {"experiment export --out"}, {"directory"}),
    ("any file may be served", {"token STORE"}, set(FILES)),
    (
        "any name does for a token, and for experiments",
        {"token NAME", "token --experiments"},
        {*FILES, "missing", "-1"},
    ),
    ("a file of tokens is made", {"token --tokens"}, {"missing", "-1"}),
    ("rewards are any number", {"--value", "--default"}, {"-1", *_LARGE}),
    ("any number keys randomness", {"--seed", "--first-seed"}, _LARGE),
    ("more than there can be is all", {"--show", "--threads", "--parts", "--cap", "--caps", "--policies"}, _LARGE),
    (
        "more than there will be is no limit",
        {"begin --arms", "--design-sample", "--warm-batches", "--forecast", "--max-arms"},
        _LARGE,
    ),
    ("plans are of any size", {"plan --decisions", "plan --rate"}, _LARGE),
    (
        "units are anyone's choice",
        {"--noise", "--norm", "--ridge", "--confidence", "--scale", "--noise-bound", "--norm-bound"},
        _LARGE,
    ),
    ("so are weights", {"--ridge", "--regularization", "--tol", "--design-tol", "--growth"}, {*_LARGE, "1e308"}),
    ("nothing is beyond a large power", {"--power"}, {*_LARGE, "1e308"}),
]


class Overdue(BaseException):
    """A command took too long."""


@contextlib.contextmanager
def bounded(seconds: float = 600.0, memory: int = 4 << 30) -> Iterator[None]:
    """Raise where a call hangs, or takes that much more memory; kernels may have to be compiled meanwhile."""

    def ring(*_: object) -> None:
        raise Overdue

    before = signal.signal(signal.SIGALRM, ring)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (size + memory, hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str]:
    """Exit status and last line of what was said beside the output, or the exception that got through."""
    try:
        with bounded():
            status: Any = main(arguments)
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        status = f"{type(error).__name__}: {error}"[:200]
    lines = capsys.readouterr().err.strip().splitlines()
    return status, lines[-1] if lines else ""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An experiment, its log, context sets, and things that are none of these, by name."""
    folder = tmp_path_factory.mktemp("given")
    store, log, sets = folder / "store.db", folder / "log", folder / "sets.csv"
    assert main(["experiment", "create", str(store), "x", *CREATED]) == 0
    assert main(["experiment", "simulate", str(store), "x", "--days", "0.1", "--no-advance", "--quiet"]) == 0
    assert main(["experiment", "export", str(store), "x", "--out", str(log), "--quiet"]) == 0
    assert main(["experiment", "create", str(store), "y", *CREATED, "--approval", "required"]) == 0
    assert main(["experiment", "simulate", str(store), "y", "--days", "0.1", "--no-advance", "--quiet"]) == 0
    assert main(["experiment", "advance", str(store), "y", "--force", "--quiet"]) == 0  # its policy waits for approval
    rows = [f"{k // 3},{x},{y}" for k, (x, y) in enumerate(np.random.default_rng(1).uniform(-0.7, 0.7, (12, 2)))]
    sets.write_text("set,x,y\n" + "\n".join(rows))
    (folder / "table.csv").write_text("arm,reward,propensity\n" + "a,1,0.5\nb,0,0.5\na,0,0.5\nb,1,0.5\n" * 50)
    (part,) = log.glob("*.parquet")
    for name in FILES[:6]:
        damage(folder / Path(name).name, name, part.read_bytes())
    found = {name: str(folder / name) for name in ("empty", "binary", "truncated", "directory", "pipe", "empty/inside")}
    shutil.copy(part, folder / "unreadable")
    (folder / "unreadable").chmod(0)
    names = {"unreadable": str(folder / "unreadable"), "STORE": str(store), "LOG": str(part), "SETS": str(sets)}
    return found | names | {"TABLE": str(folder / "table.csv")}


@pytest.fixture
def made(given: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The same, with an experiment of its own: what one test adds to it, others do not find."""
    return given | {"STORE": str(shutil.copy(given["STORE"], tmp_path / "store.db"))}


def damage(path: Path, kind: str, content: bytes) -> None:
    """Put something else where a file of that content should be."""
    path.unlink(missing_ok=True)
    if kind == "directory":
        path.mkdir()
        (path / "file").touch()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "/dev/zero":
        path.symlink_to(kind)
    else:
        path.write_bytes(
            {"empty": b"", "binary": bytes(range(256)) * 9, "truncated": content[: len(content) // 2]}[kind]
        )


@functools.cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command, caught at work."""
    caught: dict[str, argparse.ArgumentParser] = {}
    parse = argparse.ArgumentParser.parse_known_args

    def catch(self: argparse.ArgumentParser, *given: Any, **named: Any) -> Any:
        caught[self.prog] = self
        return parse(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(argparse.ArgumentParser, "parse_known_args", catch)
        helped = ["--help", "--learner", *LEARNERS]  # which shows the settings of them all
        for arguments in [["--help"], ["experiment", "--help"], *([*name.split(), *helped] for name in COMMANDS)]:
            with contextlib.suppress(SystemExit):
                main(arguments)

    def below(name: str) -> set[str]:
        (found,) = (action.choices for action in caught[name]._actions if isinstance(action.choices, dict))
        return set(found)

    commands = below("rareswitch") - {"experiment"} | {f"experiment {name}" for name in below("rareswitch experiment")}
    assert commands - ENDLESS == set(COMMANDS), "a command is not swept: say above with what arguments it ends well"
    return {name: caught[f"rareswitch {name}"] for name in COMMANDS}


def inputs(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What takes a value."""
    return [action for action in parser._actions if action.nargs != 0 and not isinstance(action.choices, dict)]


def without(arguments: list[str], option: str) -> list[str]:
    """The arguments but for an option and its values."""
    if option not in arguments:
        return arguments
    at = arguments.index(option)
    end = next((k for k in range(at + 1, len(arguments)) if arguments[k].startswith("--")), len(arguments))
    return arguments[:at] + arguments[end:]


def placed(arguments: list[str], command: str, action: argparse.Action, value: str) -> list[str]:
    """The arguments with another value where this one stands, which has no option."""
    place = [other.dest for other in parsers()[command]._actions if not other.option_strings].index(action.dest)
    return [*arguments[:place], value, *arguments[place + 1 :]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_input_of_every_command(
    command: str,
    given: dict[str, str],
    made: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = [made.get(argument, argument) for argument in COMMANDS[command]]
    here = tmp_path / "here"
    wrong = []

    def tried(arguments: list[str]) -> tuple[Any, str]:
        for folder in (here, Path(made["directory"])):  # where a command may have left something
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        (Path(made["directory"]) / "file").touch()
        shutil.copy(given["STORE"], made["STORE"])
        Path(f"{made['STORE']}.tokens.json").unlink(missing_ok=True)
        monkeypatch.chdir(here)
        return called(capsys, *command.split(), *arguments)

    assert tried(usual)[0] == 0
    for action in inputs(parsers()[command]):
        option = action.option_strings[-1] if action.option_strings else ""
        label = option or str(action.metavar)
        base, learner = usual, ""
        for extra in HEEDING.get((command, option), [])[:1]:
            base = without(base, extra) + HEEDING[command, option]
        takers = [name for name in LEARNERS if action.dest in takes(name)]
        for choosing in ("--learner", "--learners"):  # one that heeds the setting
            if takers and choosing in base and takers[0] != "foresight" and option not in base:
                learner = takers[0]
                base = [*without(base, choosing), choosing, learner]
        base = without(base, option) if option else base
        for kind in FOR_TEXTS if action.type is None else FOR_NUMBERS:
            if kind == "pipe" and option == "--key-file":
                continue  # a key may come through a pipe, as from another program, and is waited for
            if (kind == "unreadable" and os.geteuid() == 0) or (kind == str(10**12) and option in LONG_WORK):
                continue  # nothing is unreadable to root
            value = made.get(kind, kind)
            status, line = tried([*base, f"{option}={value}"] if option else placed(base, command, action, value))
            taken = any({label, f"{command} {label}"} & options and kind in kinds for _, options, kinds in MAY_BE_TAKEN)
            form = f"rareswitch {command}: error: argument {option}" if option else "rareswitch"
            named = [word for word in (option.lstrip("-") or str(action.metavar), value, learner) if word]
            refused = status == 2 and line.startswith(("rareswitch: error: ", form)) and any(w in line for w in named)
            if not refused and not (taken and status == 0):
                wrong.append((f"{label}={kind}", status, line[:300]))
    assert not wrong


#: What stands for a file of that suffix, as an argument of a command.
FORMS = [
    *(("design", [], suffix) for suffix in SUFFIXES),
    *(("simulate", [*COMMANDS["simulate"], "--world"], suffix) for suffix in SUFFIXES),
    ("simulate", [*COMMANDS["simulate"], "--out"], ".parquet"),
    ("experiment import", ["STORE", "x", "--log"], ".parquet"),
    *(("experiment create", ["fresh.db", "x", "--fit"], suffix) for suffix in (".csv", ".parquet", ".json", ".jsonl")),
    *(("experiment create", ["fresh.db", "x", "--features"], suffix) for suffix in (".toml", ".json")),
]


@pytest.mark.parametrize("kind", FILES[:6])
def test_files_that_are_something_else(
    kind: str, made: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for k, (command, arguments, suffix) in enumerate(FORMS):
        path = tmp_path / f"{k}{suffix}"
        whole = {".npy": b"\x93NUMPY\x01\x00" * 2, ".npz": b"PK\x03\x04" * 2, ".csv": b"set,x\n0,1,2,3"}
        damage(path, kind, whole.get(suffix, Path(made["LOG"]).read_bytes()))
        words = [made.get(word, word) for word in arguments]
        status, line = called(capsys, *command.split(), *words, str(path))
        if status != 2 or not line.startswith("rareswitch: error: ") or str(path) not in line:
            wrong.append((command, path.name, status, line[:300]))
    assert not wrong
