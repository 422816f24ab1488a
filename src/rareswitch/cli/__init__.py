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
from rareswitch.cli import recommend as advice
from rareswitch.errors import CertificateError, CertificateWarning, RareswitchError
from rareswitch.version import __version__

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 where a design failed, 2 for bad input, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="rareswitch", description="Contextual bandits that need only a handful of policy updates."
    )
    parser.add_argument("--version", action="version", version=f"rareswitch {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (demo, learners, advice, simulate, agents, tradeoff, contest, begin, play, update, verify, design):
        command.add_parser(commands)
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show λ shows a question mark
    try:
        with warnings.catch_warnings(), event.install_listener("numba:compile", _CompilationNotice()):
            warnings.simplefilter("always", CertificateWarning)
            warnings.showwarning = _show_warning
            status: int = options.run(options)
        sys.stdout.flush()
    except CertificateError as error:
        print(f"rareswitch: error: {error}", file=sys.stderr)
        return 1
    except RareswitchError as error:
        print(f"rareswitch: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rareswitch: stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of a pipe went away; nothing more can be said to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"rareswitch: error: the output could not be written ({error.strerror or error}).", file=sys.stderr)
        return 2
    return status


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
