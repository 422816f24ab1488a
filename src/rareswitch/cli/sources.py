"""What commands read: experiments, logs, and records from files, for samples of users and for arms."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rareswitch.cli.options import add_key, add_options, given_key
from rareswitch.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment
    from rareswitch.log import Source

#: How names of files of records end.
RECORDS = (".csv", ".parquet", ".json", ".jsonl")
ENDINGS = ".csv, .parquet, .json or .jsonl"
#: How names of files of logs end, where two words may also be a store and the name of an experiment.
LOGS = (*RECORDS, ".dsjson")


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


def read_records(path: str) -> list[dict[str, Any]]:
    """Records of a table (CSV, Parquet), of a JSON list, or of lines of JSON."""
    from rareswitch.core import read_table

    kind = Path(path).suffix.lower()
    if kind not in RECORDS:
        raise FileFormatError(f"{path}: records are read from files that end in {ENDINGS}.")
    records = read_table(path).records() if kind in (".csv", ".parquet") else _from_json(path, kind)
    if not records:
        raise FileFormatError(f"{path}: it holds no records.")
    return records


def _from_json(path: str, kind: str) -> list[dict[str, Any]]:
    from rareswitch.core import read_whole

    data = read_whole(path)
    try:
        records = (
            json.loads(data) if kind == ".json" else [json.loads(line) for line in data.splitlines() if line.strip()]
        )
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not JSON ({error!s:.200}).") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise FileFormatError(f"{path}: it must hold records, a list of objects.")
    return records


def given_arms(words: list[str] | None) -> list[str] | list[dict[str, Any]] | None:
    """Arms as options name them: ids, or one file with their records, each with its ``id``."""
    if words is None or len(words) > 1 or Path(words[0]).suffix.lower() not in RECORDS:
        return words
    return read_records(words[0])


def arm_count(words: list[str]) -> int:
    """The number of arms, where they are vectors and have no records."""
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    raise ParameterError(f"arms must be a number where requests are vectors; got {' '.join(words)!r:.60}.")


class NamedLog(NamedTuple):
    """The log that a command was asked to read."""

    #: As :func:`rareswitch.evaluate` takes it.
    source: "Source | str | Sequence[str]"
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
    add_columns(parser)
    add_key(parser, "check the experiment with the key in this file")
    add_options(parser, now="the time as of which an experiment's rewards count, for windows (default: now)")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the names of the columns of a table."""
    parser.add_argument(
        "--columns",
        nargs="+",
        metavar="ROLE=COLUMN",
        help="for CSV and Parquet of other tools, the columns that are not called arm, reward, propensity, id, time, "
        "policy, offered (ids separated by |), baseline, features, contexts or behavior_probs; for dsjson arm=FIELD",
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


def column_options(options: argparse.Namespace) -> dict[str, Any]:
    """The names of columns, as readers of logs take them."""
    return {} if options.columns is None else {"columns": given_pairs("columns", options.columns)}


@contextmanager
def opened_source(options: argparse.Namespace, **more: Any) -> Iterator[NamedLog]:
    """The experiment or the log that is named, for a command; ``more`` is how files are read."""
    how = column_options(options) | more
    if is_experiment(options.source):
        if options.columns is not None:
            raise ParameterError("columns are those of files, and SOURCE names an experiment: leave them out.")
        options.url, options.name = options.source
        with opened(options) as trial:
            yield NamedLog(trial.logged(now=options.now), trial)
        return
    for name in ("key", "key_file", "now"):
        if getattr(options, name) is not None:
            raise ParameterError(f"{name} is for an experiment, and SOURCE names files of a log: leave it out.")
    if how:
        from rareswitch.log import read

        yield NamedLog(read(options.source, **how), None)
    else:
        yield NamedLog(options.source[0] if len(options.source) == 1 else options.source, None)


def is_experiment(source: Sequence[str]) -> bool:
    """Whether two words are a store and a name, rather than two files.

    >>> is_experiment(["spring.db", "campaign"]), is_experiment(["a.parquet", "b.parquet"]), is_experiment(["logs/"])
    (True, False, False)
    """
    return len(source) == 2 and not any(Path(word.removesuffix(".gz")).suffix.lower() in LOGS for word in source)
