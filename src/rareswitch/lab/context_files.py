"""Read context sets from .npy, .npz, .csv and .parquet files. Nothing is unpickled."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from rareswitch.core import BoolArray, ContextSets, FloatArray, IntArray, naming_file, read_table
from rareswitch.errors import FileFormatError

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

    @classmethod
    def of(cls, contexts: FloatArray, available: BoolArray | None) -> Self:
        """Sets (n, K, d) without names; all arms exist by default."""
        sets = ContextSets(contexts, np.ones(contexts.shape[:2], dtype=np.bool_) if available is None else available)
        return cls(
            sets=sets,
            names=tuple(map(str, range(len(sets)))),
            arm_counts=np.full(len(sets), sets.contexts.shape[1]),
            features=tuple(f"x{number}" for number in range(1, sets.dim + 1)),
        )


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
    if suffix not in SUFFIXES:
        raise FileFormatError(f"{path}: the file name must end in one of {', '.join(SUFFIXES)}; got '{suffix}'.")
    with naming_file(path):
        return _from_arrays(path) if suffix in (".npy", ".npz") else _from_table(path, set_column)


def _from_arrays(path: Path) -> ContextFile:
    contexts, available = _load_numpy(path)
    if contexts.ndim not in (2, 3):
        raise FileFormatError(
            f"{path}: the array must be (arms, dim) or (sets, arms, dim); it has shape {contexts.shape}."
        )
    if contexts.ndim == 2:
        contexts, available = contexts[None], None if available is None else available[None]
    return ContextFile.of(contexts, available)


def _load_numpy(path: Path) -> tuple[FloatArray, BoolArray | None]:
    """The arrays ``contexts`` and ``available``, of whatever types they are."""
    if path.is_fifo():  # which would be waited for
        raise FileFormatError(f"{path}: a pipe; name a file.")
    try:
        with path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return loaded, None
            names = list(loaded)
            name = "contexts" if "contexts" in names else names[0] if len(names) == 1 else ""
            if not name:
                raise FileFormatError(f"{path}: an .npz file must hold an array named 'contexts'; it holds {names}.")
            return np.asarray(loaded[name]), np.asarray(loaded["available"]) if "available" in names else None
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            f"{path}: not a readable NumPy file of plain numbers ({error}). It may be truncated, or hold Python "
            "objects, which are never loaded. Save it anew with numpy.save or numpy.savez."
        ) from error


def _from_table(path: Path, set_column: str) -> ContextFile:
    """Group rows into sets, in the order in which the sets first appear."""
    table = read_table(path, header=False)
    sets_of_rows = [
        name for name in table.columns if name == set_column or (set_column == "set" and name.lower() == "set")
    ]
    if not sets_of_rows and set_column != "set":
        table.check_column(set_column, option="--set-column")
    features = [name for name in table.columns if name not in sets_of_rows]
    if not features:
        raise FileFormatError(f"{path}: there is no feature column beside '{set_column}'.")
    try:
        rows = np.column_stack([table.numbers(name) for name in features])
    except FileFormatError as error:
        raise FileFormatError(
            f"{error} Separate columns by commas, encode categories as numbers, or name the set-id column with "
            f"--set-column (it is '{set_column}' now)."
        ) from error
    names = table.texts(sets_of_rows[0]) if sets_of_rows else ["0"] * len(table)
    order: dict[str, int] = {}
    set_of = np.array([order.setdefault(name, len(order)) for name in names])
    sets, counts = _padded(path, rows, set_of)
    return ContextFile(sets=sets, names=tuple(order), arm_counts=counts, features=tuple(features))


def _padded(path: Path, rows: FloatArray, set_of: IntArray) -> tuple[ContextSets, IntArray]:
    """The sets of rows (n, d), and how many arms each has."""
    counts, by_set = np.bincount(set_of), np.argsort(set_of, kind="stable")
    entries = len(counts) * int(counts.max()) * rows.shape[1]
    if entries > _MOST_ENTRIES:
        raise FileFormatError(
            f"{path}: {len(counts)} sets padded to the largest, of {counts.max()} arms, would take "
            f"{entries * 8 / 2**30:.1f} GiB; the limit is {_MOST_ENTRIES * 8 / 2**30:g}. Put small and large sets into "
            "files of their own."
        )
    return ContextSets.from_ragged(np.split(rows[by_set], np.cumsum(counts)[:-1])), counts
