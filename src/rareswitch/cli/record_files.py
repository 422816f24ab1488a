"""Records from files, for samples of users and for arms."""

import json
from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, ParameterError

ENDINGS = ".csv, .parquet, .json or .jsonl"


def read_records(path: str) -> list[dict[str, Any]]:
    """Records of a table (CSV, Parquet), of a JSON list, or of lines of JSON."""
    kind = Path(path).suffix.lower()
    if kind in (".json", ".jsonl"):
        return _read_json(path, lines=kind == ".jsonl")
    if kind not in (".csv", ".parquet"):
        raise FileFormatError(f"{path}: records are read from files that end in {ENDINGS}.")
    from rareswitch.files import pyarrow

    pa, parquet = pyarrow()
    try:
        if kind == ".parquet":
            return list(parquet.read_table(path).to_pylist())
        from pyarrow import csv

        return list(csv.read_csv(path).to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise FileFormatError(f"{path}: cannot be read ({error}).") from error


def _read_json(path: str, *, lines: bool) -> list[dict[str, Any]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: cannot be read ({error}).") from error
    try:
        found = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not JSON ({error}).") from error
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
