"""Files of any format that is known, by their endings."""

import inspect
from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.log.csv import read_csv, write_csv
from rareswitch.log.decision_log import DecisionLog, Source
from rareswitch.log.dsjson import read_dsjson, write_dsjson
from rareswitch.log.parquet import ParquetLog
from rareswitch.log.write import write_log

ENDINGS = ".parquet, .csv, .dsjson, .json or .jsonl (text also with .gz)"


def format_of(path: str | Path) -> str:
    """What a file holds, by its ending: ``parquet``, ``csv`` or ``dsjson``.

    >>> format_of("log.csv.gz"), format_of("log.jsonl"), format_of("parts/*.parquet")
    ('csv', 'dsjson', 'parquet')
    """
    name = str(path).lower()
    kind = Path(name.removesuffix(".gz")).suffix
    if kind == ".parquet" and not name.endswith(".gz"):
        return "parquet"
    found = {".csv": "csv", ".dsjson": "dsjson", ".json": "dsjson", ".jsonl": "dsjson"}.get(kind)
    if found is None:
        raise FileFormatError(f"{path}: logs are kept in files that end in {ENDINGS}.")
    return found


def read(path: Any, **how: Any) -> Source:
    """A log in a file, by its ending: Parquet, CSV, or dsjson of Vowpal Wabbit.

    Parameters
    ----------
    path
        Of the file; of Parquet also several, a pattern or a folder.
    how
        What :class:`~rareswitch.log.ParquetLog`, :func:`read_csv` or :func:`read_dsjson` takes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "log.csv.gz")
    >>> write(path, DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.9], rewards=[1.0, 0.0]))
    >>> read(path)
    <decision log: 2 decisions, 2 rewarded, 1 batch, at most 2 arms>
    """
    if not isinstance(path, (str, Path)) and len(path) == 1:
        (path,) = path
    elif not isinstance(path, (str, Path)) and (others := [one for one in path if format_of(one) != "parquet"]):
        raise FileFormatError(
            f"{others[0]}: only Parquet may be in several files; a log in CSV or dsjson is one. Join them, or convert "
            "each to Parquet: rareswitch convert."
        )
    if not isinstance(path, (str, Path)) or _is_folder(path) or format_of(path) == "parquet":
        parts = Path(path, "*.parquet") if isinstance(path, (str, Path)) and _is_folder(path) else path
        return ParquetLog(parts, **_taken("Parquet", how, {"policies", "window", "now", "default"}))
    if format_of(path) == "csv":
        return read_csv(path, **_taken("CSV", how, {*inspect.signature(read_csv).parameters} - {"path"}))
    return read_dsjson(path, **_taken("dsjson", how, {*inspect.signature(read_dsjson).parameters} - {"path"}))


def write(path: str | Path, log: DecisionLog) -> None:
    """Write a log as its ending says; what is there under the name already is not overwritten."""
    kind = format_of(path)
    if Path(path).exists():
        raise FileFormatError(f"{path}: exists already, and a log is never overwritten. Name another file.")
    if kind == "parquet":
        write_log(path, log.with_behavior_probs())
    else:
        (write_csv if kind == "csv" else write_dsjson)(path, log)


def _is_folder(path: str | Path) -> bool:
    return Path(path).is_dir()


def _taken(kind: str, how: dict[str, Any], known: set[str]) -> dict[str, Any]:
    for name in how:
        if name not in known:
            raise ParameterError(f"{name} is no option of {kind}, which takes {', '.join(sorted(known))}.")
    return how
