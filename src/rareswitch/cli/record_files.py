"""Records from files, for samples of users and for arms."""

import json
from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, ParameterError

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
        raise FileFormatError(f"{path}: not a table ({error!s:.200}).") from error


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
