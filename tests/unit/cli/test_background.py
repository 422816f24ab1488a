"""Commands in the background of a script, where the shell has them ignore Ctrl-C."""

import signal
import subprocess
import sys
import time


def test_a_command_that_was_told_to_ignore_ctrl_c_goes_on() -> None:
    """From the first import to the end: signals come all the while, and nothing takes its own handler instead."""
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
        assert process.stdout is not None
        assert "foresight" in process.stdout.read()
    assert process.returncode == 0
