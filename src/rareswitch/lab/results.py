"""Runs in one Parquet file, written whole or not at all; several writers of one file all keep their runs."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rareswitch.core import lock, opened_parquet, pyarrow, replacing, seal_footer
from rareswitch.errors import FileFormatError
from rareswitch.lab.simulate import Run

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = {b"format": b"rareswitch-runs-1"}
#: The fields of a run, and the types of Arrow in which they are kept; those of arrays are of their entries.
SCALARS = {
    **{"learner": "string", "world": "string", "horizon": "int64", "seed": "int64", "policies": "int64"},
    **{"regret": "double", "linear_regret": "double", "seconds": "double"},
}
ARRAYS = {"times": "int64", "regrets": "double", "batch_ends": "int64", "survivors": "double"}


def add_runs(runs: Mapping[str, Run], path: str | Path) -> dict[str, Run]:
    """Add runs under their keys to those of a file, which is made if it is not there, and return all of them.

    Processes and threads that add to one file take turns, so that the runs of all of them stay.
    """
    pa, parquet = pyarrow()
    path = Path(path)
    with _locked(path):
        every = load_runs(path) if path.exists() else {}
        every |= runs
        rows = [{"key": key, **vars(run)} for key, run in every.items()]
        with replacing(path) as temporary:
            parquet.write_table(pa.Table.from_pylist(rows, _schema()), temporary, write_page_checksum=True)
            seal_footer(temporary)
    return every


def load_runs(path: str | Path) -> dict[str, Run]:
    """The runs of a file by their keys, if they are those that were written."""
    schema = _schema()
    with opened_parquet(str(path)) as file:
        if file.schema_arrow.metadata != FORMAT or file.schema_arrow.names != schema.names:
            raise FileFormatError(f"{path}: a Parquet file, but not one of runs. Name another file.")
        table = file.read().cast(schema)
    columns = {name: table[name].to_pylist() for name in ("key", *SCALARS)}
    columns |= {name: [*table[name].to_numpy()] for name in ARRAYS}
    keys = columns.pop("key")
    runs = (Run(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
    return dict(zip(keys, runs, strict=True))


def _schema() -> "pa.Schema":
    pa, _ = pyarrow()
    types = {"key": "string", **SCALARS, **{name: pa.list_(pa.type_for_alias(kind)) for name, kind in ARRAYS.items()}}
    return pa.schema(types, FORMAT)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A block in which nobody else adds runs to a file of its folder; others wait until it is left, or has died."""
    try:
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error
    try:
        with suppress(OSError):  # some file systems have no locks: then writers only merge
            lock(handle)
        yield
    finally:
        os.close(handle)
