"""How a command is found, its options are read and it is run."""

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TextIO

from rareswitch.cli.commands import COMMANDS
from rareswitch.cli.plain_text import print_plainly
from rareswitch.errors import CertificateError, CertificateWarning, RareswitchError
from rareswitch.version import __version__


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status: 0, 1 where a design failed, 2 for bad input."""
    print_plainly()
    try:
        options = _parser(arguments).parse_args(arguments)
        from rareswitch.lanes import announced

        with warnings.catch_warnings(), announced(_say_compiling):
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
    except BrokenPipeError:
        # the reader of a pipe went away; nothing more can be said to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"rareswitch: error: the output could not be written ({error.strerror or error}).", file=sys.stderr)
        return 2
    return status


@contextmanager
def noting_stops(stops: list[int]) -> Iterator[None]:
    """Around a command: note each Ctrl-C. In the middle of an import it may come out as any other exception."""

    def note(signal_number: int, frame: object) -> None:
        stops.append(signal_number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield  # whoever started us has other plans
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of all commands, with the options of the one that is asked for: others would take time to load."""
    parser = argparse.ArgumentParser(
        prog="rareswitch", description="Contextual bandits that need only a handful of policy updates."
    )
    parser.add_argument("--version", action="version", version=f"rareswitch {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked = next((argument for argument in arguments if not argument.startswith("-")), "")
    module = COMMANDS[asked].module if asked in COMMANDS else None
    for name, entry in COMMANDS.items():
        if entry.module != module:
            commands.add_parser(name, help=entry.help)
        elif name not in commands.choices:  # a module may have several commands
            import_module(f"rareswitch.cli.{module}").add_parser(commands)
    return parser


def _say_compiling() -> None:
    print("rareswitch: compiling kernels, once on this machine …", file=sys.stderr, flush=True)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"rareswitch: warning: {message}", file=sys.stderr)
