"""What commands read: records from files, for samples of users and for arms; logs, of an experiment or from files."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rareswitch.cli.experiment import add_now, opened
from rareswitch.cli.options import add_key
from rareswitch.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment

ENDINGS = ".csv, .parquet, .json or .jsonl"


def read_records(path: str) -> list[dict[str, Any]]:
    """Records of a table (CSV, Parquet), of a JSON list, or of lines of JSON."""
    from rareswitch.files import read_whole

    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".parquet", ".json", ".jsonl"):
        raise FileFormatError(f"{path}: records are read from files that end in {ENDINGS}.")
    data = read_whole(path)
    found = _from_table(path, data, kind) if kind in (".csv", ".parquet") else _from_json(path, data, kind)
    if not found:
        raise FileFormatError(f"{path}: it holds no records.")
    return found


def _from_table(path: str, data: bytes, kind: str) -> list[dict[str, Any]]:
    from rareswitch.files import pyarrow

    pa, parquet = pyarrow()
    from pyarrow import csv

    source = pa.BufferReader(data)
    try:
        return list((parquet.read_table(source) if kind == ".parquet" else csv.read_csv(source)).to_pylist())
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(f"{path}: not a table ({reason!a:.200}).") from error


def _from_json(path: str, data: bytes, kind: str) -> list[dict[str, Any]]:
    try:
        found = (
            [json.loads(line) for line in data.splitlines() if line.strip()] if kind == ".jsonl" else json.loads(data)
        )
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not JSON ({error!s:.200}).") from error
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise FileFormatError(f"{path}: it must hold records, a list of objects.")
    return found


def given_arms(given: list[str] | None) -> Any:
    """Arms as options name them: ids, or one file with their records, each with its ``id``."""
    if given is None or len(given) > 1 or Path(given[0]).suffix.lower() not in (".csv", ".parquet", ".json", ".jsonl"):
        return given
    return read_records(given[0])


def arm_count(given: list[str]) -> int:
    """The number of arms, where they are vectors and have no records."""
    if len(given) == 1 and given[0].isdecimal():
        return int(given[0])
    raise ParameterError(f"arms must be a number where requests are vectors; got {' '.join(given)!r:.60}.")


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
