"""What commands read: experiments, logs, and records from files, for samples of users and for arms."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rareswitch.cli.options import Arguments, Json, add_key_options, add_options, add_own_learner, given_key
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment
    from rareswitch.log import Source

#: A record with fields by name.
RecordData: TypeAlias = dict[str, Json]
#: How names of files of records end.
RECORDS = (".csv", ".parquet", ".json", ".jsonl")
ENDINGS = ".csv, .parquet, .json or .jsonl"
#: How names of files of logs end, where two words may also be a store and the name of an experiment.
LOGS = (*RECORDS, ".dsjson")


@contextmanager
def opened(options: argparse.Namespace) -> Iterator["Experiment"]:
    """The experiment of a command, with a warning where its signatures were not verified."""
    from rareswitch.experiment import open_experiment

    with open_experiment(options.url, options.name, key=given_key(options), learner=options.learner) as trial:
        if trial.signature == "unchecked":
            print(
                f"rareswitch: warning: {options.name} is signed, but its signatures were not verified. Give its key: "
                "--key-file FILE.",
                file=sys.stderr,
            )
        yield trial


def given_arms(words: list[str] | None) -> list[str] | list[RecordData] | None:
    """Arms as options name them: ids, or one file with their records, each with its ``id``."""
    if words is None or len(words) > 1 or Path(words[0]).suffix.lower() not in RECORDS:
        return words
    from rareswitch.core import read_records

    return read_records(words[0])


def arm_count(words: list[str]) -> int:
    """The number of arms, where they are vectors and have no records."""
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    raise ParameterError(
        f"arms must be a number where requests are vectors; got {' '.join(words)!r:.60}. For arms with ids, give "
        "--fit or --features too."
    )


class NamedLog(NamedTuple):
    """The log that a command was asked to read."""

    source: "Source"
    #: None where it is files.
    experiment: "Experiment | None"


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add what a log is read from, and the key and the clock of an experiment."""
    parser.add_argument(
        "source",
        nargs="+",
        metavar="SOURCE",
        help="an experiment: STORE and NAME; or a log: Parquet files or patterns in quotes, a CSV file, or a file in "
        "Vowpal Wabbit's dsjson",
    )
    add_columns(parser)
    add_key_options(parser, "key file: verify the experiment")
    add_own_learner(parser)
    add_options(parser, now="attribution windows as of this time, for an experiment (default: its last decision)")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the names of the columns of a table."""
    parser.add_argument(
        "--columns",
        nargs="+",
        metavar="ROLE=COLUMN",
        help="columns of CSV or Parquet by role: arm, reward, propensity, id, time, policy, offered (ids separated by "
        "|), baseline, features, contexts, behavior_probs (default: columns of these names); for dsjson arm=FIELD",
    )


def given_pairs(name: str, words: Sequence[str]) -> dict[str, str]:
    """Words such as ROLE=COLUMN.

    >>> given_pairs("columns", ["arm=item", "reward=click"])
    {'arm': 'item', 'reward': 'click'}
    """
    pairs = {}
    for word in words:
        left, equals, right = word.partition("=")
        if not equals or not left:
            raise ParameterError(f"{name} must be NAME=VALUE; got {word!r:.60}.")
        pairs[left] = right
    return pairs


def column_options(options: argparse.Namespace) -> Arguments:
    """The names of columns, as readers of logs take them."""
    return {} if options.columns is None else {"columns": given_pairs("columns", options.columns)}


@contextmanager
def named_log(words: Sequence[str] | None, **settings: Json) -> Iterator["Experiment | Source | None"]:
    """The experiment that two words name, or the log in files, with settings for reading it; None without words."""
    if words is None:
        yield None
    elif is_experiment(words):
        from rareswitch.experiment import open_experiment

        with open_experiment(*words) as trial:
            yield trial
    else:
        from rareswitch.log import read

        yield read(words, **settings)


@contextmanager
def opened_source(options: argparse.Namespace, **more: Json) -> Iterator[NamedLog]:
    """The experiment or the log of a command; ``more`` are settings for reading files."""
    settings = column_options(options) | more
    if is_experiment(options.source):
        if options.columns is not None:
            raise ParameterError("columns are for files, and SOURCE is an experiment. Leave them out.")
        options.url, options.name = options.source
        with opened(options) as trial:
            yield NamedLog(trial.logged(now=options.now), trial)
        return
    for name in ("key", "key_file", "learner", "now"):
        if getattr(options, name) is not None:
            raise ParameterError(f"{name} is for an experiment, and SOURCE is a log. Leave it out.")
    from rareswitch.log import read

    yield NamedLog(read(options.source, **settings), None)


def is_experiment(source: Sequence[str]) -> bool:
    """Whether two words are a store and a name, rather than two files.

    >>> is_experiment(["spring.db", "campaign"]), is_experiment(["a.parquet", "b.parquet"]), is_experiment(["logs/"])
    (True, False, False)
    """
    return len(source) == 2 and not any(Path(word.removesuffix(".gz")).suffix.lower() in LOGS for word in source)
