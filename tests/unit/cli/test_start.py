"""How commands start: what they load, what is printed where a stream lacks characters, and Ctrl-C before they run."""

import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rareswitch.cli import main
from rareswitch.cli.commands import COMMANDS, EXPERIMENT
from rareswitch.cli.running import _parser
from reference.commands import printed


def test_every_command_is_in_the_table_and_has_a_parser() -> None:
    listed = dict(COMMANDS) | {f"experiment-{name}": entry for name, entry in EXPERIMENT.items()}
    del listed["experiment"]
    for name, entry in listed.items():
        for module, verb in ((entry.options, "add"), (entry.run or entry.options, "run")):
            loaded = importlib.import_module(f"rareswitch.{module}")
            assert callable(getattr(loaded, f"{verb}_{name.replace('-', '_')}"))
    for name in COMMANDS:
        made = choices(_parser([name]))
        assert list(made) == list(COMMANDS)
        assert made[name].get_default("run") is not None
    for name in EXPERIMENT:
        made = choices(choices(_parser(["experiment", name]))["experiment"])
        assert list(made) == list(EXPERIMENT)
        assert made[name].get_default("run") is not None


def test_a_warm_up_uses_every_kernel() -> None:
    script = """
import importlib, pkgutil
import rareswitch
from rareswitch.cli import main
from rareswitch.lanes import kernels
from rareswitch.lanes.kernel import Kernel

assert main(["warm-up"]) == 0
for module in pkgutil.walk_packages(rareswitch.__path__, "rareswitch."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
used = [kernel for kernel in kernels if "numba_dispatcher" in vars(kernel) and kernel.numba_dispatcher.signatures]
for kernel in used:  # those that a kernel calls are a part of its machine code
    names = kernel.function.__code__.co_names
    called = (kernel.function.__globals__.get(name) for name in names)
    used += [one for one in called if isinstance(one, Kernel) and one not in used]
unused = [f"{kernel.__module__}.{kernel.__name__}" for kernel in kernels if kernel not in used]
assert not unused, unused
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"[0-9]+ kernels are compiled\. [0-9]+ s\n", done.stdout)


def choices(parser: Any) -> Any:
    return next(action.choices for action in parser._actions if action.choices)


def test_help_loads_no_arrays_and_errors_and_lists_neither_numba_nor_scipy() -> None:
    script = """
import contextlib, io, json, sys
from rareswitch.cli import main
from rareswitch.cli.commands import COMMANDS, EXPERIMENT

def loaded(*arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            status = main(arguments)
        except SystemExit as end:
            status = end.code
    assert "Traceback" not in errors.getvalue()
    return status, [name for name in ("numpy", "scipy", "numba") if name in sys.modules]

verbs = ("decide", "reward", "status", "advance", "audit", "export", "import", "backup", "simulate")
words = [[name] for name in COMMANDS] + [["experiment", name] for name in EXPERIMENT]
helps = [loaded(*entry, "--help") for entry in words]
wrong = [["learners"], ["experiment"], ["evaluate"], *(["experiment", name] for name in verbs), ["demo"]]
print(json.dumps([
    loaded("--help"), loaded("--bogus"), loaded("nonesuch"), loaded("experiment", "nonesuch"),
    [status for status, _ in helps], sorted({name for _, names in helps for name in names}),
    [loaded(*entry, "--bogus") for entry in wrong],
    loaded("learners"), loaded("simulate", "--learner", "oful", "--bogus"), loaded("simulate", "--learner", "nobody"),
    loaded("simulate", "--learner", "oful", "--help"),
]))
"""
    *early, helped, by_help, wrong, learners, bogus, nobody, settings = json.loads(
        subprocess.check_output([sys.executable, "-c", script], text=True)
    )
    assert early == [[0, []], *[[2, []]] * 3]
    assert helped == [0] * (len(COMMANDS) + len(EXPERIMENT))
    assert by_help == []
    assert wrong == [[2, []]] * len(wrong)
    assert [learners, bogus, nobody, settings] == [[0, ["numpy"]], *[[2, ["numpy"]]] * 2, [0, ["numpy"]]]


def test_what_a_stream_cannot_show_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = io.BytesIO(), io.BytesIO()
    for name, into in zip(("stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(into, encoding="ascii"))
    assert main(["learners"]) == 0
    assert main(["simulate", "--learner", "λ"]) == 2
    printed, errors = (stream.getvalue().decode("ascii") for stream in streams)
    assert "d?T, adversarial" in printed
    assert "there is no learner '?'" in errors


def test_the_list_of_learners_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "learners").splitlines()
    assert max(map(len, lines)) <= 80
    assert "linucb                     T                    d√T, adversarial" in lines


@pytest.mark.parametrize("module", ["argparse", "datetime", "rareswitch.learner", "numba"])
def test_ctrl_c_while_modules_are_loaded(module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background hands down that it is ignored

class Finder:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            exec("os.kill(os.getpid(), signal.SIGINT)")  # as where a dataclass is made

sys.meta_path.insert(0, Finder)
""")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "rareswitch", "simulate", "--learner", "linucb", "--horizon", "9", "--quiet"]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 130, "NumPy turns the interruption of datetime into an ImportError"
    assert re.fullmatch(r"rareswitch: stopped( after 0 finished runs)?\.\n", done.stderr)


def test_a_command_that_was_told_to_ignore_ctrl_c_goes_on() -> None:
    """Where a shell starts it in the background: signals come all the while, and nothing takes its own handler."""
    command = [sys.executable, "-m", "rareswitch", "learners"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which children inherit
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        assert "foresight" in process.stdout.read()
    assert process.returncode == 0
