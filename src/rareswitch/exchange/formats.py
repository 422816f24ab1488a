"""Files of any format that is known, by their endings."""

import inspect
from pathlib import Path
from typing import Any

from rareswitch.errors import EmptySetError, FileFormatError, ParameterError
from rareswitch.exchange.csv_files import read_csv, write_csv
from rareswitch.exchange.dsjson import read_dsjson, write_dsjson
from rareswitch.exchange.joining import joined_logs
from rareswitch.exchange.probabilities import with_probabilities
from rareswitch.log import DecisionLog, Source

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
        from rareswitch.log import ParquetLog

        parts = Path(path, "*.parquet") if isinstance(path, (str, Path)) and _is_folder(path) else path
        return ParquetLog(parts, **_taken("Parquet", how, {"policies", "window", "now", "default"}))
    if format_of(path) == "csv":
        return read_csv(path, **_taken("CSV", how, {*inspect.signature(read_csv).parameters} - {"path"}))
    return read_dsjson(path, **_taken("dsjson", how, {*inspect.signature(read_dsjson).parameters} - {"path"}))


def write(path: str | Path, logged: DecisionLog) -> None:
    """Write a log as its ending says; what is there under the name already is not overwritten."""
    kind = format_of(path)
    if Path(path).exists():
        raise FileFormatError(f"{path}: exists already, and a log is never overwritten. Name another file.")
    if kind == "parquet":
        from rareswitch.log import write_logged

        write_logged(path, with_probabilities(logged))
    else:
        (write_csv if kind == "csv" else write_dsjson)(path, logged)


def whole(source: Source) -> DecisionLog:
    """All decisions of a source in memory, of which all offered arms are known.

    >>> log = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[0.0])
    >>> whole(log) is log
    True
    """
    if isinstance(source, DecisionLog):
        return source
    chunks = [*source.chunks()]
    if not chunks:
        raise EmptySetError("of no decision of this log it is known which arms were offered.")
    return chunks[0] if len(chunks) == 1 else joined_logs(chunks)


def _is_folder(path: str | Path) -> bool:
    return Path(path).is_dir()


def _taken(kind: str, how: dict[str, Any], known: set[str]) -> dict[str, Any]:
    for name in how:
        if name not in known:
            raise ParameterError(f"{name} is no option of {kind}, which takes {', '.join(sorted(known))}.")
    return how
