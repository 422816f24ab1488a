"""Runs in one Parquet file, written whole or not at all."""

from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.files import pyarrow, replacing
from rareswitch.sim.run import Run

SCALARS = ("learner", "world", "horizon", "seed", "regret", "updates", "seconds")
LISTS = ("times", "regrets", "batch_ends", "survivors")
FORMAT = b"rareswitch-runs-1"


def save_runs(runs: dict[str, Run], path: str | Path) -> None:
    """Write runs under their keys, replacing the file at once."""
    pa, parquet = pyarrow()
    columns: dict[str, Any] = {"key": list(runs)}
    columns |= {name: [getattr(run, name) for run in runs.values()] for name in SCALARS}
    columns |= {name: [getattr(run, name).tolist() for run in runs.values()] for name in LISTS}
    table = pa.table(columns).replace_schema_metadata({b"format": FORMAT})
    with replacing(path) as temporary:
        parquet.write_table(table, temporary)


def load_runs(path: str | Path) -> dict[str, Run]:
    """The runs of a file by their keys."""
    pa, parquet = pyarrow()
    try:
        # read at once: the file may be replaced by a sweep that is under way
        table = parquet.read_table(pa.BufferReader(Path(path).read_bytes()))
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(f"{path}: not a readable results file ({str(error).splitlines()[0]}).") from error
    if (table.schema.metadata or {}).get(b"format") != FORMAT:
        raise FileFormatError(f"{path}: a Parquet file, but not one of runs. Name another file.")
    runs = {}
    for row in table.to_pylist():
        values: dict[str, Any] = {name: row[name] for name in SCALARS}
        runs[row["key"]] = Run(**values | {name: np.array(row[name]) for name in LISTS})
    return runs
