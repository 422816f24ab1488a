"""How a command is found, its options are read and it is run."""

import argparse
import io
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from inspect import getdoc
from typing import Any, NoReturn, TextIO

from rareswitch.cli.commands import COMMANDS, EXPERIMENT, Entry
from rareswitch.cli.options import add_experiment, check_texts, option_of, with_option
from rareswitch.cli.output import Output, print_json, show
from rareswitch.errors import CertificateError, CertificateWarning, RareswitchError, did_you_mean
from rareswitch.version import __version__

DESCRIPTION = "Contextual bandits that need only a handful of policies."


class _Store(argparse.Action):
    """Keeps what an option is given; of one that takes several words, all that all its uses are given."""

    def __call__(
        self, parser: argparse.ArgumentParser, options: argparse.Namespace, words: Any, option: str | None = None
    ) -> None:
        before = getattr(options, self.dest)
        again = self.nargs in ("+", "*") and before is not None and before is not self.default
        setattr(options, self.dest, [*before, *words] if again else words)


class Parser(argparse.ArgumentParser):
    """A parser of which no word is lost where an option is repeated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.register("action", None, _Store)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(value, action.choices or ())
            raise

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """An error for words that no option takes."""
        if words:
            meant = did_you_mean(words[0], [word for action in self._actions for word in action.option_strings])
            self.error(f"unrecognized arguments: {' '.join(words)}.{meant}")


class JsonParser(Parser):
    """A parser whose usage errors are JSON."""

    def error(self, message: str) -> NoReturn:
        _print_error("UsageError", message)
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
            parser = _parser(arguments)
            _, unknown = parser.parse_known_args(arguments, options)
            getattr(options, "parser", parser).refuse_unknown(unknown)
        finally:
            sys.stdout.flush()  # of --help
        check_texts(options)
        from rareswitch.lanes import announced

        with warnings.catch_warnings(), announced(_say_compiling):
            warnings.simplefilter("always", CertificateWarning)
            warnings.showwarning = _show_warning
            output: Output | int = options.run(options)
        finished = True
        status = show(output, as_json=options.json) if isinstance(output, Output) else output
        sys.stdout.flush()
    except RareswitchError as error:
        value = str(error.given) if isinstance(error.given, float) and not math.isfinite(error.given) else error.given
        _refuse(options, type(error).__name__, with_option(error, options), option_of(error, options), value)
        return 1 if isinstance(error, CertificateError) else 2
    except MemoryError as error:
        text = f"there is not enough memory ({error}). Use fewer features, arms, seeds or workers."
        _refuse(options, type(error).__name__, text)
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


def _refuse(
    options: argparse.Namespace, kind: str, message: str, parameter: str | None = None, value: object = None
) -> None:
    """Say what is wrong, in the output itself where a program reads that."""
    if getattr(options, "json", False):
        _print_error(kind, message, parameter, value)
    else:
        _say(f"error: {message}")


def _print_error(kind: str, message: str, parameter: str | None = None, value: object = None) -> None:
    try:
        print_json({"error": {"type": kind, "message": message, "parameter": parameter, "given": value}})
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


def _parser(arguments: Sequence[str]) -> Parser:
    """A parser of all commands, with the options of the one that is asked for: others would take time to load."""
    as_json = any(len(word) > 2 and "--json".startswith(word) for word in arguments)
    parser = (JsonParser if as_json else Parser)(prog="rareswitch", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"rareswitch {__version__}")
    words = [argument for argument in arguments if not argument.startswith("-")]
    asked, verb = [*words, "", ""][:2]
    family = _add_commands(parser, COMMANDS, asked, arguments)["experiment"]
    family.description = f"{COMMANDS['experiment'].help.partition(';')[0].capitalize()}."
    _add_commands(family, EXPERIMENT, verb if asked == "experiment" else "", arguments)
    return parser


def _add_commands(parser: Parser, table: Mapping[str, Entry], asked: str, typed: Sequence[str]) -> dict[str, Parser]:
    """Add commands, of which only the one that is asked for has its options."""
    parser.set_defaults(run=lambda _: parser.error(f"a COMMAND is needed; see {parser.prog} --help"))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    parsers = {name: commands.add_parser(name, help=entry.help) for name, entry in table.items()}
    if asked in table and table[asked].options:
        command, entry = parsers[asked], table[asked]
        name = ("experiment_" if table is EXPERIMENT else "") + asked.replace("-", "_")
        add = getattr(import_module(f"rareswitch.{entry.options}"), f"add_{name}")
        command.description = getdoc(add)
        command.set_defaults(parser=command, typed=typed, run=partial(_run, entry.run or entry.options, f"run_{name}"))
        if table is EXPERIMENT:
            add_experiment(command, named=asked != "list")
        add(command)
        command.add_argument("--json", action="store_true", help="print JSON in place of text")
    return parsers


def _run(module: str, name: str, options: argparse.Namespace) -> Output | int:
    """Run a command, which is loaded now."""
    output: Output | int = getattr(import_module(f"rareswitch.{module}"), name)(options)
    return output


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
