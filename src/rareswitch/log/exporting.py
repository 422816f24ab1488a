"""The decisions of an experiment as a log in Parquet, for other tools and for other stores."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.files import pyarrow
from rareswitch.log.places import exists, is_url
from rareswitch.log.schema import COUNTING, MORE, ROWS, log_schema
from rareswitch.log.writer import write_table
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, reward_value

#: About how many bytes of context sets a part holds at the most.
_BYTES = 1 << 26

Kept = tuple[DecisionRow, list[RewardRow]]


def export_parts(
    store: Store,
    folder: str | Path,
    *,
    policies: Sequence[str],
    upto: Marks | None = None,
    window: float | None = None,
    default: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Write all decisions of an experiment, in the order in which they came, with their rewards so far.

    What is written is a log that :func:`import_parts` and all tools for Parquet read; beside the columns of
    :func:`log_schema` it has ``arm``, ``place``, ``digest``, ``baseline`` and ``names``. Several rewards of a decision
    are summed.

    Parameters
    ----------
    folder
        Where parts are written, ``part-00001.parquet`` and so on: a path, or a URL such as s3://…
    policies
        The ids of the experiment's policies, the first first.
    upto
        What is written; all that is there by default.
    window, default
        What counts as a reward in this experiment. Rewards are written as they came; this is written beside them, so
        that who reads the log, such as :class:`ParquetLog`, counts them alike.
    progress
        Called with the number of decisions that were written, and how many there are.

    Returns
    -------
    paths
        Of the parts.
    """
    marks = store.marks() if upto is None else upto
    base, paths, done = str(folder).rstrip("/"), list[str](), 0
    if not is_url(base):
        Path(base).mkdir(parents=True, exist_ok=True)
    for part in _parts(store, marks):
        path = f"{base}/part-{len(paths) + 1:05d}.parquet"
        if exists(path):
            raise FileFormatError(f"{path}: exists already, and a log is never overwritten. Name another folder.")
        counting = json.dumps({"window": window, "default": default})
        write_table(path, _table(part, policies).replace_schema_metadata({COUNTING: counting}))
        paths.append(path)
        done += len(part)
        if progress is not None:
            progress(done, max(done, sum(one.decisions for one in store.counts(marks))))
    return paths


def _parts(store: Store, marks: Marks) -> Iterator[list[Kept]]:
    """The decisions in pieces of a size that fits into memory, with ids of one kind each."""
    waiting: list[Kept] = []
    size = 0
    for _, some in store.rows(0, marks):
        for one in some:
            row = one[0]
            other = bool(waiting) and waiting[0][0].id.startswith('"') != row.id.startswith('"')
            if other or len(waiting) == ROWS or size > _BYTES:
                yield waiting
                waiting, size = [], 0
            waiting.append(one)
            size += len(row.contexts or b"")
    if waiting:
        yield waiting


def _table(part: Sequence[Kept], policies: Sequence[str]) -> Any:
    """Decisions as Arrow keeps them."""
    pa, _ = pyarrow()
    rows, held = [row for row, _ in part], [rewards for _, rewards in part]
    dim = len(rows[0].features) // 8
    schema = log_schema(dim, strings=rows[0].id.startswith('"'), times=True)
    chosen = np.frombuffer(b"".join(row.features for row in rows), dtype="<f8")
    columns = {
        "id": [json.loads(row.id) for row in rows],
        "policy": pa.DictionaryArray.from_arrays(
            np.array([row.version - 1 for row in rows], dtype=np.int32), pa.array(list(policies))
        ),
        "features": pa.FixedSizeListArray.from_arrays(pa.array(chosen), type=schema.field("features").type),
        "propensity": [row.propensity for row in rows],
        "reward": [reward_value([one.value for one in rewards], sums=len(rewards) > 1) for rewards in held],
        "contexts": [None if row.contexts is None else np.frombuffer(row.contexts, dtype="<f8") for row in rows],
        "time": [row.time for row in rows],
        "reward_time": [max((one.time for one in rewards), default=None) for rewards in held],
    }
    table = pa.table([columns[name] for name in schema.names], schema=schema)
    for name, kind in MORE.items():
        table = table.append_column(name, pa.array([getattr(row, name) for row in rows], pa.type_for_alias(kind)))
    return table
