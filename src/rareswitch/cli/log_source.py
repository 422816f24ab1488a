"""Where commands read logged decisions from: an experiment in a store, or files."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rareswitch.cli.experiment import add_now, opened
from rareswitch.cli.signing import add_key
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment

#: How names of files of logs end, where two words may also be a store and the name of an experiment.
_ENDINGS = (".parquet", ".csv", ".dsjson", ".json", ".jsonl")


class Opened(NamedTuple):
    """What a command was asked to read."""

    #: As :func:`rareswitch.evaluate` takes it.
    source: Any
    #: None where it is files.
    experiment: "Experiment | None"


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add what a log is read from, and the key and the clock of an experiment."""
    parser.add_argument(
        "source",
        nargs="+",
        metavar="SOURCE",
        help="an experiment: its STORE and its NAME; or a log: files of Parquet or patterns in quotes, a CSV file, or "
        "a file in Vowpal Wabbit's dsjson",
    )
    add_key(parser, "check the experiment with the key in this file")
    add_now(parser, "the time at which an experiment's rewards are looked at, for windows (default: now)")


@contextmanager
def opened_source(options: argparse.Namespace) -> Iterator[Opened]:
    """The experiment or the log that is named, for a command."""
    if is_experiment(options.source):
        options.url, options.name = options.source
        with opened(options) as trial:
            yield Opened(trial.logged(now=options.now), trial)
        return
    for name in ("key", "key_file", "now"):
        if getattr(options, name) is not None:
            raise ParameterError(
                f"{name} is that of an experiment, and what was named are files of a log: leave it out."
            )
    yield Opened(options.source[0] if len(options.source) == 1 else options.source, None)


def is_experiment(source: list[str]) -> bool:
    """Whether two words are a store and a name, rather than two files.

    >>> is_experiment(["spring.db", "campaign"]), is_experiment(["a.parquet", "b.parquet"]), is_experiment(["logs/"])
    (True, False, False)
    """
    return len(source) == 2 and not any(Path(one.removesuffix(".gz")).suffix.lower() in _ENDINGS for one in source)
