"""Runs in one Parquet file, written whole or not at all; several writers of one file all keep their runs."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.core import lock, pyarrow, read_whole, replacing
from rareswitch.errors import FileFormatError
from rareswitch.lab.simulate import Run

#: The fields of a run and their types, for Arrow; and those that are arrays.
SCALARS = {
    **{"learner": "string", "world": "string", "horizon": "int64", "seed": "int64"},
    **{"regret": "double", "policies": "int64", "seconds": "double", "linear_regret": "double"},
}
LISTS = {"times": np.int64, "regrets": np.float64, "batch_ends": np.int64, "survivors": np.float64}
FORMAT = b"rareswitch-runs-3"
#: What was written before: the second without linear regrets, which are not known for such runs, and the first also
#: without seals. They are read, and written in the current format when a run is added.
SECOND, UNSEALED = b"rareswitch-runs-2", b"rareswitch-runs-1"
#: Beyond ten times its size a file may hold so many bytes more: numbers are not compressed, but once were.
_SLACK = 1 << 25
_REMEDY = "Put back a copy, or remove it and run again."
_DAMAGED = f"a damaged results file: its content is not that of its checksum. {_REMEDY}"
_MARK, _BLANK = b"rareswitch-sha256:", 64 * b"0"
#: What is written where the digest of the file shall be.
ROOM = _MARK + _BLANK


def add_runs(runs: Mapping[str, Run], path: str | Path) -> dict[str, Run]:
    """Add runs under their keys to those of a file, which is made if it is not there, and return all of them.

    Processes and threads that add to one file take turns, so that the runs of all of them stay.
    """
    pyarrow()
    path = Path(path)
    with _locked(path):
        kept = load_runs(path) if path.exists() else {}
        kept |= runs
        data = seal(_to_bytes(kept))
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    return kept


def load_runs(path: str | Path) -> dict[str, Run]:
    """The runs of a file by their keys, if they are those that were written."""
    pa, parquet = pyarrow()
    data = read_whole(path)  # at once: the file may be replaced by a sweep that is under way
    intact = seal_holds(data)
    if intact is False:
        raise FileFormatError(f"{path}: {_DAMAGED}")
    try:
        with parquet.ParquetFile(pa.BufferReader(data)) as file:
            form = (file.schema_arrow.metadata or {}).get(b"format")
            if form not in (FORMAT, SECOND, UNSEALED):
                raise FileFormatError("a Parquet file, but not one of runs. Name another file.")
            if form != UNSEALED and not intact:
                raise FileFormatError(_DAMAGED)
            return _from_table(_read(file, len(data), _schema() if form == FORMAT else _earlier_schema()))
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(f"{path}: not a readable results file ({text}). {_REMEDY}") from error


def _to_bytes(runs: Mapping[str, Run]) -> bytes:
    """A Parquet file with room for a seal; without compression, so that it cannot claim more than it has."""
    pa, parquet = pyarrow()
    columns = [pa.array(list(runs), pa.string())]
    columns += [pa.array([getattr(run, name) for run in runs.values()], kind) for name, kind in SCALARS.items()]
    for name, kind in LISTS.items():
        parts = [np.zeros(0, kind), *(np.asarray(getattr(run, name), kind) for run in runs.values())]
        bounds = np.cumsum([*map(len, parts)], dtype=np.int32)
        columns.append(pa.ListArray.from_arrays(bounds, pa.array(np.concatenate(parts))))
    buffer = pa.BufferOutputStream()
    table = pa.table(columns, _schema().with_metadata({b"format": FORMAT, b"seal": ROOM}))
    parquet.write_table(table, buffer, compression="none", use_dictionary=False)
    return bytes(buffer.getvalue())


def _schema() -> Any:
    pa, _ = pyarrow()
    lists = {name: pa.list_(pa.from_numpy_dtype(kind)) for name, kind in LISTS.items()}
    return pa.schema({"key": "string"} | SCALARS | lists)


def _earlier_schema() -> Any:
    schema = _schema()
    return schema.remove(schema.get_field_index("linear_regret"))


def _read(file: Any, size: int, schema: Any) -> Any:
    """The table of a file of so many bytes, unless its columns are others or cannot be in it."""
    file.scan_contents()  # before any look at its columns, which malformed ones answer by ending the process
    held = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
    columns = [group.column(column) for group in held for column in range(group.num_columns)]
    claimed = sum(max(8 * column.num_values, column.total_uncompressed_size) for column in columns)
    if claimed > 10 * size + _SLACK:
        raise FileFormatError(f"a results file of {size} bytes cannot hold {claimed}: it was not written here.")
    missing = [name for name in schema.names if name not in file.schema_arrow.names]
    if missing:
        raise FileFormatError(f"a results file has a column '{missing[0]}', and this one has none. Name another file.")
    return file.read(schema.names).cast(schema)


def _from_table(table: Any) -> dict[str, Run]:
    arrays: dict[str, list[Any]] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if column.null_count or (name in LISTS and column.flatten().null_count):
            raise FileFormatError(f"column '{name}' of a results file has a value in every row; here one is missing.")
        if name in LISTS:
            bounds = column.offsets.to_numpy()
            arrays[name] = np.split(column.values.to_numpy(), bounds)[1:-1]
        else:
            arrays[name] = column.to_pylist()
    keys = arrays.pop("key")
    runs = [Run(**dict(zip(arrays, row, strict=True))) for row in zip(*arrays.values(), strict=True)]
    for run in runs:
        if (
            len(run.times) != len(run.regrets)
            or not len(run.times)
            or not np.isfinite([run.regret, *run.regrets]).all()
            or np.isinf(run.linear_regret)
        ):
            raise FileFormatError(f"a run of a results file has a finite regret at each of its times; got {run}.")
    return dict(zip(keys, runs, strict=True))


def seal(data: bytes) -> bytes:
    """The bytes with their digest in the last room that was left for it.

    >>> seal_holds(seal(b"content, " + ROOM)), seal_holds(b"contend" + seal(b"content, " + ROOM)[7:])
    (True, False)
    """
    start = data.rindex(ROOM) + len(_MARK)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[start + len(_BLANK) :]


def seal_holds(data: bytes) -> bool | None:
    """Whether bytes are as they were sealed; None if they never were."""
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK):
        return None
    return data == seal(data[:start] + _BLANK + data[start + len(_BLANK) :])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A block in which nobody else is for the same file; others wait until it is left, or its process has died."""
    name = path.with_name(f".{path.name[:100]}.lock")
    try:
        handle = _lock(name)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error
    try:
        yield
    finally:
        with suppress(OSError):  # it is empty, and may stay
            name.unlink()
        os.close(handle)


def _lock(name: Path) -> int:
    """An open file of this name that only this caller holds."""
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            with suppress(OSError):  # some file systems have no locks: then writers only merge
                lock(handle)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(name)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # who held it has removed it, and others may lock a new one
