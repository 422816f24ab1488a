"""How a command is found, its options are read and it is run."""

import argparse
import io
import math
import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import getdoc
from typing import Any, NoReturn, TextIO

from rareswitch.cli.commands import COMMANDS, EXPERIMENT, Entry
from rareswitch.cli.options import add_experiment, check_texts, option_of, with_option
from rareswitch.cli.output import Output, print_json, show
from rareswitch.errors import CertificateError, CertificateWarning, RareswitchError
from rareswitch.version import __version__


class JsonParser(argparse.ArgumentParser):
    """A parser whose usage errors are JSON."""

    def error(self, message: str) -> NoReturn:
        _print_error({"type": "UsageError", "message": message, "parameter": None, "given": None})
        self.exit(2)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status: 0, 1 where a design failed, 2 for bad input."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, and the next file to be opened would take its place
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no λ shows a question mark
    options, finished = argparse.Namespace(), False
    try:
        try:
            _parser(arguments).parse_args(arguments, options)
        finally:
            sys.stdout.flush()  # of --help
        check_texts(options)
        options.command = shlex.join(["rareswitch", *arguments])  # for the captions of pictures
        from rareswitch.lanes import announced

        with warnings.catch_warnings(), announced(_say_compiling):
            warnings.simplefilter("always", CertificateWarning)
            warnings.showwarning = _show_warning
            output: Output | int = options.run(options)
        finished = True
        status = show(output, as_json=options.json) if isinstance(output, Output) else output
        sys.stdout.flush()
    except RareswitchError as error:
        _refuse(error, options)
        return 1 if isinstance(error, CertificateError) else 2
    except MemoryError as error:
        _say(f"error: there is not enough memory ({error}). Use fewer features, arms, seeds or workers.")
        return 2
    except BrokenPipeError:  # the reader of a pipe went away; nothing more can be said to it
        _give_up(sys.stdout)
        return 0
    except OSError as error:
        done = ", but the command has done its work" if finished else ""
        _say(f"error: the output could not be written ({error.strerror or error}){done}.")
        _give_up(sys.stdout)
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


def _refuse(error: RareswitchError, options: argparse.Namespace) -> None:
    """Say what is wrong, in the output itself where a program reads that."""
    message = with_option(error, options)
    if not getattr(options, "json", False):
        _say(f"error: {message}")
        return
    finite = not isinstance(error.given, float) or math.isfinite(error.given)
    facts = {
        "type": type(error).__name__,
        "message": message,
        "parameter": option_of(error, options),
        "given": error.given if finite else str(error.given),
    }
    _print_error(facts)


def _print_error(facts: Mapping[str, Any]) -> None:
    try:
        print_json({"error": facts})
        sys.stdout.flush()
    except OSError:
        _give_up(sys.stdout)


def _say(text: str) -> None:
    """Say something beside the output, where that can be written to."""
    try:
        print(f"rareswitch: {text}", file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def _give_up(stream: TextIO) -> None:
    """Write what is still to be written nowhere, or it would be tried again, and fail again, at the end."""
    with suppress(OSError):  # what stands for a stream may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of all commands, with the options of the one that is asked for: others would take time to load."""
    kind = JsonParser if "--json" in arguments else argparse.ArgumentParser
    parser = kind(prog="rareswitch", description="Contextual bandits that need only a handful of policies.")
    parser.add_argument("--version", action="version", version=f"rareswitch {__version__}")
    words = [argument for argument in arguments if not argument.startswith("-")]
    asked, verb = [*words, "", ""][:2]
    family = _add_commands(parser, COMMANDS, asked)["experiment"]
    family.description = f"{COMMANDS['experiment'].help.partition(';')[0].capitalize()}."
    _add_commands(family, EXPERIMENT, verb if asked == "experiment" else "")
    return parser


def _add_commands(
    parser: argparse.ArgumentParser, table: Mapping[str, Entry], asked: str
) -> dict[str, argparse.ArgumentParser]:
    """Add commands, of which only the one that is asked for has its options."""
    parser.set_defaults(run=lambda _: parser.error(f"a COMMAND is needed; see {parser.prog} --help"))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    parsers = {name: commands.add_parser(name, help=entry.help) for name, entry in table.items()}
    if asked in table and table[asked].module:
        command, module = parsers[asked], import_module(f"rareswitch.{table[asked].module}")
        command.description = getdoc(module.run)
        if table is EXPERIMENT:
            add_experiment(command)
        module.add_arguments(command)
        command.add_argument("--json", action="store_true", help="print JSON in place of text")
        command.set_defaults(run=module.run)
    return parsers


def _say_compiling() -> None:
    _say("compiling kernels, once on this machine …")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _say(f"warning: {message}")
