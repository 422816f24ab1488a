"""The command line: ``rareswitch COMMAND``."""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from numba.core import event

from rareswitch.cli import agents, begin, contest, demo, design, learners, play, simulate, tradeoff, update, verify
from rareswitch.cli.arguments import check_texts, told
from rareswitch.errors import CertificateError, CertificateWarning, RareswitchError
from rareswitch.version import __version__

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 where a design failed, 2 for bad input, 130 after Ctrl-C."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, and the next file to be opened would take its place
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    parser = argparse.ArgumentParser(
        prog="rareswitch", description="Contextual bandits that need only a handful of policy updates."
    )
    parser.add_argument("--version", action="version", version=f"rareswitch {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (demo, learners, simulate, agents, tradeoff, contest, begin, play, update, verify, design):
        command.add_parser(commands)
    options = argparse.Namespace()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show λ shows a question mark
    try:
        try:
            parser.parse_args(arguments, options)
        finally:
            sys.stdout.flush()  # of --help
        check_texts(options)
        with warnings.catch_warnings(), event.install_listener("numba:compile", _CompilationNotice()):
            warnings.simplefilter("always", CertificateWarning)
            warnings.showwarning = _show_warning
            status: int = options.run(options)
        sys.stdout.flush()
    except CertificateError as error:
        _say(f"error: {error}")
        return 1
    except RareswitchError as error:
        _say(f"error: {told(error, options)}")
        return 2
    except KeyboardInterrupt:
        _say("stopped.")
        return INTERRUPTED
    except MemoryError as error:
        _say(f"error: there is not enough memory ({error}). Use fewer features, arms, seeds or workers.")
        return 2
    except BrokenPipeError:  # the reader of a pipe went away; nothing more can be said to it
        _give_up(sys.stdout)
        return 0
    except OSError as error:
        _say(f"error: the output could not be written ({error.strerror or error}).")
        _give_up(sys.stdout)
        return 2
    return status


def _say(text: str) -> None:
    """Say something beside the output, where that can be written to."""
    try:
        print(f"rareswitch: {text}", file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def _give_up(stream: TextIO) -> None:
    """Write what is still to be written nowhere, or it would be tried again, and fail again, at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _CompilationNotice(event.Listener):  # type: ignore[misc]
    """Says once that the kernels are being compiled; loading them from the cache says nothing."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said:
            self.said = True
            print("rareswitch: compiling kernels, once on this machine …", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"rareswitch: warning: {message}", file=sys.stderr)
