"""Files of any format that is known, by their endings."""

from pathlib import Path
from typing import Any

from rareswitch.decisions import DecisionLog
from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.log.dsjson import read_dsjson, write_dsjson
from rareswitch.log.parquet import ParquetLog
from rareswitch.log.source import Source
from rareswitch.log.tables import TableOptions, read_csv, write_csv
from rareswitch.log.write import write_log

__all__ = ["ENDINGS", "format_of", "read", "write"]

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
        What :class:`~rareswitch.log.ParquetLog`, :func:`read_csv` or :func:`read_dsjson` takes. With ``columns``, the
        names of columns by role, Parquet is read as :func:`read_csv` reads it, and of dsjson ``arm`` is the field of an
        action.

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
    several = not isinstance(path, (str, Path))
    if several and (others := [one for one in path if format_of(one) != "parquet"]):
        raise FileFormatError(
            f"{others[0]}: only Parquet may be in several files; a log in CSV or dsjson is one. Join them, or convert "
            "each to Parquet: rareswitch convert."
        )
    folder = not several and Path(path).is_dir()
    kind = "parquet" if several or folder else format_of(path)
    columns = how.pop("columns", None)
    if kind == "csv" or (kind == "parquet" and columns is not None):
        if several or folder:
            raise ParameterError("columns are for a single file; got several. Join them, or convert each to Parquet.")
        return read_csv(path, columns=columns, **_taken("tables", how, {*TableOptions.__annotations__}))
    if kind == "parquet":
        parts = Path(path, "*.parquet") if folder else path
        return ParquetLog(parts, **_taken("Parquet", how, {"policies", "window", "now", "default"}))
    if columns is not None and {*columns} != {"arm"}:
        raise ParameterError(f"columns of dsjson must be the field of the arm, such as item.id; got {columns!r:.60}.")
    return read_dsjson(path, **_taken("dsjson", how | (columns or {}), {"features", "arm", "propensities"}))


def write(path: str | Path, log: DecisionLog) -> None:
    """Write a log as its ending says; what is there under the name already is not overwritten."""
    kind = format_of(path)
    if Path(path).exists():
        raise FileFormatError(f"{path}: exists already, and a log is never overwritten. Name another file.")
    if kind == "parquet":
        write_log(path, log.with_behavior_probs())
    else:
        (write_csv if kind == "csv" else write_dsjson)(path, log)


def _taken(kind: str, how: dict[str, Any], known: set[str]) -> dict[str, Any]:
    for name in how:
        if name not in known:
            raise ParameterError(f"{name} is no option of {kind}, which takes {', '.join(sorted(known))}.")
    return how
