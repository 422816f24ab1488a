"""``rareswitch experiment COMMAND``: what the commands of this family share."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rareswitch.cli.commands import EXPERIMENT
from rareswitch.cli.options import add_command, add_key, given_key, moment_option

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment


def add_verb(commands: Any, name: str, run: Any, *, key: str, **texts: str) -> argparse.ArgumentParser:
    """A parser for a command about one experiment."""
    parser = add_command(commands, name, run, EXPERIMENT, **texts)
    parser.add_argument("url", metavar="STORE", help="spring.db, postgresql://… or another URL of a store")
    parser.add_argument("name", metavar="NAME", help="of the experiment")
    add_key(parser, key)
    return parser


def add_now(parser: argparse.ArgumentParser, text: str = "when it happens (default: now)") -> None:
    """Add the option that stands for the clock."""
    parser.add_argument("--now", type=moment_option, metavar="ISO", help=text)


@contextmanager
def opened(options: argparse.Namespace) -> Iterator["Experiment"]:
    """The experiment that is named, for a command; where its signatures were not checked, that is said."""
    from rareswitch.experiment import open_experiment

    with open_experiment(options.url, options.name, key=given_key(options)) as trial:
        if trial.signature == "unchecked":
            print(
                f"rareswitch: warning: {options.name} is signed, and its signatures were not checked. Give its key: "
                "--key-file.",
                file=sys.stderr,
            )
        yield trial


def id_option(text: str) -> int | str:
    """An id as JSON writes it, or as a bare text.

    >>> id_option("17"), id_option('"17"'), id_option("request-1")
    (17, '17', 'request-1')
    """
    try:
        given = json.loads(text)
    except ValueError:
        return text
    return given if isinstance(given, (int, str)) and not isinstance(given, bool) else text


def json_option(text: str) -> Any:
    """JSON, of an option."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is not JSON ({error})") from None
