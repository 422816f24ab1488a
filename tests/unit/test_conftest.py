"""Tests do not depend on how they are started."""

import signal
import subprocess
import sys
from pathlib import Path

STARTED = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
import conftest
signal.raise_signal(signal.SIGINT)
print("still here")
child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
subprocess.run([sys.executable, "-c", child])
"""


def test_children_can_be_interrupted_where_the_runner_ignores_it() -> None:
    """As after ``sh -c 'make test &'``. The runner itself goes on to ignore it, which is what its starter wanted."""
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-uc", STARTED], cwd=tests, capture_output=True, text=True, check=True)
    assert done.stdout == "still here\nTrue\n"


def test_this_runner_catches_it() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
