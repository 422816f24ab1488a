"""Read context sets from .npy, .npz, .csv and .parquet files. Nothing is unpickled."""

import csv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import FileFormatError, InputError, MissingExtraError
from rareswitch.validation import FloatArray, IntArray

_MOST_ENTRIES = 1 << 29
SUFFIXES = (".npy", ".npz", ".csv", ".parquet")


@dataclass(frozen=True, eq=False, kw_only=True)
class ContextFile:
    """The context sets of a file, in its order."""

    sets: ContextSets
    #: One for each set: the value of the set-id column, or its number.
    names: tuple[str, ...]
    #: (n,) how many arms of each set the file holds; what follows in ``sets`` is padding.
    arm_counts: IntArray
    #: One name for each dimension.
    features: tuple[str, ...]


def read_context_file(path: str | Path, *, set_column: str = "set") -> ContextFile:
    """Read one context set or many.

    - ``.npy``: an array (arms, dim) or (sets, arms, dim);
    - ``.npz``: such an array under the name ``contexts`` (or alone), with an optional boolean ``available``;
    - ``.csv``: one row an arm, one column a feature, an optional header; rows with the same value in ``set_column``
      form a set. Without such a column all rows form one set;
    - ``.parquet``: the same, with the extra ``rareswitch[parquet]``.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        if suffix not in SUFFIXES:
            raise FileFormatError(f"the file name must end in one of {', '.join(SUFFIXES)}; got '{suffix}'.")
        if path.is_dir():
            raise FileFormatError("a folder; name a file in it.")
        if not path.is_file():
            raise FileFormatError("no such file.")
        if path.stat().st_size == 0:
            raise FileFormatError("the file is empty; at least one arm is needed.")
        if suffix in (".npy", ".npz"):
            return _from_arrays(*_load_numpy(path))
        return _from_rows(*(_read_csv if suffix == ".csv" else _read_parquet)(path, set_column))
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: a .csv file must be UTF-8 text; byte {error.start} is not.") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _load_numpy(path: Path) -> tuple[Any, Any]:
    try:
        with path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return loaded, None
            held = list(loaded)
            name = "contexts" if "contexts" in held else held[0] if len(held) == 1 else None
            if name is None:
                raise FileFormatError(f"an .npz file must hold an array named 'contexts'; it holds {held}.")
            return loaded[name], loaded["available"] if "available" in held else None
    except FileFormatError:
        raise
    except (ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        causes = "It may be truncated, or hold Python objects, which are never loaded"
        remedy = "Save it anew with numpy.save or numpy.savez."
        raise FileFormatError(f"not a readable NumPy file of plain numbers ({error}). {causes}. {remedy}") from error


def _from_arrays(contexts: Any, available: Any) -> ContextFile:
    if not isinstance(contexts, np.ndarray):
        raise FileFormatError("'contexts' must be an array, and is not one.")
    if contexts.ndim not in (2, 3):
        raise FileFormatError(f"the array must be (arms, dim) or (sets, arms, dim); it has shape {contexts.shape}.")
    if contexts.ndim == 2:
        contexts, available = contexts[None], None if available is None else np.asarray(available)[None]
    sets = ContextSets(contexts, np.ones(contexts.shape[:2], dtype=np.bool_) if available is None else available)
    names, counts = tuple(map(str, range(len(sets)))), np.full(len(sets), sets.contexts.shape[1])
    return ContextFile(sets=sets, names=names, arm_counts=counts, features=_numbered(sets.dim))


def _read_csv(path: Path, set_column: str) -> tuple[list[str], FloatArray, list[str]]:
    """Names of the features, rows of arms, and the set of each row where there is a column that tells it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            lines = [(number, row) for number, row in enumerate(csv.reader(file, strict=True), 1) if row]
        except csv.Error as error:
            raise FileFormatError(f"not a readable .csv file ({error}).") from error
    if not lines:
        raise FileFormatError("the file has no rows; at least one arm is needed.")
    header = [cell.strip() for cell in lines[0][1]]
    numeric = [cell for cell in header if _is_number(cell)]
    if len(numeric) == len(header):
        header = list(_numbered(len(header)))
    elif numeric:
        odd = next(cell for cell in header if not _is_number(cell))
        given = f"it holds {odd!r} beside {numeric[0]!r}. Correct the cell, or give every column a name."
        raise FileFormatError(f"line 1 must be all names (a header) or all numbers; {given}")
    elif not (lines := lines[1:]):
        raise FileFormatError("the file has a header and no rows; at least one arm is needed.")
    at, features = _set_column(header, set_column)
    names: list[str] = []
    rows: list[list[float]] = []
    for number, cells in lines:
        if len(cells) != len(header):
            raise FileFormatError(f"line {number} has {len(cells)} cells where {len(header)} columns are expected.")
        if at is not None:
            names.append(cells.pop(at).strip())
            if not names[-1]:
                raise FileFormatError(f"line {number} has no value in the set-id column '{header[at]}'.")
        try:
            rows.append(list(map(float, cells)))
        except ValueError:
            bad = next(cell for cell in cells if not _is_number(cell))
            remedies = "Separate columns by commas, encode categories as numbers, or name the set-id column"
            what = f"line {number} holds {bad!r} where a number is needed"
            raise FileFormatError(f"{what}. {remedies} with --set-column (it is '{set_column}' now).") from None
        if not np.isfinite(rows[-1]).all():
            raise FileFormatError(f"line {number} holds a value that is not finite. Clean or impute it first.")
    return features, np.array(rows), names


def _read_parquet(path: Path, set_column: str) -> tuple[list[str], FloatArray, list[str]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            "reading .parquet files needs pyarrow. Install it with: pip install 'rareswitch[parquet]'"
        ) from error
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(f"not a readable Parquet file ({str(error).splitlines()[0]})") from error
    if table.num_rows == 0:
        raise FileFormatError("the file has no rows; at least one arm is needed.")
    header = list(table.column_names)
    at, features = _set_column(header, set_column)
    for name in features:
        kind = table.schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise FileFormatError(f"column '{name}' must hold numbers; it holds {kind}.")
        if table[name].null_count:
            raise FileFormatError(f"column '{name}' has {table[name].null_count} missing values. Fill or drop them.")
    rows = np.column_stack([table[name].to_numpy().astype(np.float64) for name in features])
    if at is not None and table[header[at]].null_count:
        raise FileFormatError(f"the set-id column '{header[at]}' has missing values. Fill or drop them.")
    return features, rows, [] if at is None else [str(value) for value in table[header[at]].to_pylist()]


def _set_column(header: list[str], set_column: str) -> tuple[int | None, list[str]]:
    """Where the set-id column stands, if there is one, and the names of the others."""
    if len(set(header)) != len(header):
        raise FileFormatError(f"column names must differ; got {', '.join(header)}.")
    names = header if set_column in header or set_column != "set" else [name.lower() for name in header]
    at = names.index(set_column) if set_column in names else None
    if at is None and set_column != "set":
        raise FileFormatError(f"there is no column '{set_column}'; the columns are {', '.join(header)}.")
    if len(header) == (at is not None):
        raise FileFormatError(f"there is no feature column beside '{set_column}'.")
    return at, [name for j, name in enumerate(header) if j != at]


def _from_rows(features: list[str], rows: FloatArray, names: list[str]) -> ContextFile:
    """Group rows into sets, in the order in which the sets first appear."""
    order: dict[str, int] = {}
    set_of = np.array([order.setdefault(name, len(order)) for name in names or ["0"] * len(rows)])
    counts, by_set = np.bincount(set_of), np.argsort(set_of, kind="stable")
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    entries = len(counts) * int(counts.max()) * rows.shape[1]
    if entries > _MOST_ENTRIES:
        what = f"{len(counts)} sets padded to the largest, of {counts.max()} arms"
        size = f"{entries * 8 / 2**30:.1f} GiB; the limit is {_MOST_ENTRIES * 8 / 2**30:g}"
        raise FileFormatError(f"{what}, would take {size}. Put small and large sets into files of their own.")
    contexts = np.zeros((len(counts), counts.max(), rows.shape[1]))
    available = np.zeros(contexts.shape[:2], dtype=np.bool_)
    contexts[set_of[by_set], within], available[set_of[by_set], within] = rows[by_set], True
    sets = ContextSets(contexts, available)
    return ContextFile(sets=sets, names=tuple(order), arm_counts=counts, features=tuple(features))


def _numbered(count: int) -> tuple[str, ...]:
    """Names for features that have none."""
    return tuple(f"x{j + 1}" for j in range(count))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
