"""Write decisions to Parquet, each file whole or not at all: parts, logs, the decisions of an experiment."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import (
    BoolArray,
    FloatArray,
    IntArray,
    exists,
    finite_array,
    is_url,
    key_bytes,
    making_file,
    pyarrow,
    seal_footer,
    whole,
)
from rareswitch.decisions import Column, DecisionLog
from rareswitch.errors import FileFormatError, ParameterError, ShapeError
from rareswitch.log.parts import COUNTING, ESTIMATED, MORE, ROWS, log_schema
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, joined_rewards

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

__all__ = ["LogWriter", "export_parts", "write_decisions", "write_log", "write_part"]

#: About how many bytes of context sets a part of an export holds at the most.
_BYTES = 1 << 26
Kept = tuple[DecisionRow, list[RewardRow]]


class LogWriter:
    """One part, written in any number of pieces.

    The file appears under its name when the ``with`` block ends and is on the disk; if it ends by an exception, nothing
    appears. Row groups have 65,536 rows, pages and footer have checksums, and memory holds one row group at a time.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "part-0001.parquet"
    >>> with LogWriter(path, dim=2, policy_id="0" * 64) as part:
    ...     part.write(
    ...         ids=["visit-17", "visit-18"],
    ...         features=[[1.0, 0.0], [0.0, 1.0]],
    ...         propensities=[0.5, 0.5],
    ...         rewards=[True, None],
    ...         contexts={"visit-17": [[1.0, 0.0], [0.0, 1.0]]},
    ...     )
    >>> path.exists()
    True

    Parameters
    ----------
    path
        Where the part shall be, a path or a URL such as s3://…; a file that is there is not replaced.
    dim
        d, features of an arm.
    policy_id
        Of the policy that made the decisions.
    """

    def __init__(self, path: str | Path, *, dim: int = 1, policy_id: str = "") -> None:
        self.path: str | Path = str(path) if is_url(path) else Path(path)
        self.dim, self.policy_id = whole("dim", dim), policy_id
        self._stack = ExitStack()
        self._temporary = Path()
        self._waiting: list[pa.Table] = []
        self._writer: ParquetWriter | None = None

    def __enter__(self) -> Self:
        pyarrow()
        if exists(self.path):
            raise FileFormatError(f"{self.path}: exists already, and a log is never overwritten. Name another file.")
        self._temporary = self._stack.enter_context(making_file(self.path))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._stack:
            try:
                if error is not None:
                    raise error
                self._flush(everything=True)
            finally:
                if self._writer is not None:
                    self._writer.close()
            seal_footer(self._temporary)

    def write(
        self,
        *,
        ids: Sequence[int] | Sequence[str] | IntArray,
        features: ArrayLike,
        propensities: ArrayLike,
        rewards: Column,
        contexts: Mapping[Any, ArrayLike] | None = None,
        times: Column | None = None,
        reward_times: Column | None = None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        ids
            (n,) whole numbers or strings, of one kind within a part.
        features
            (n, d) the chosen vectors.
        propensities
            (n,) in (0, 1].
        rewards
            (n,) numbers or booleans; NaN or None where the reward is not known yet, which becomes a null.
        contexts
            By id, the available arms (K, d); for those decisions only whose sets were kept.
        times, reward_times
            (n,) seconds or datetime64: when each was decided, and when its reward came; kept as seconds.
        """
        pa, _ = pyarrow()
        if not len(ids):
            return
        log = DecisionLog(
            ids=ids,
            batch_names=[self.policy_id],
            features=features,
            propensities=propensities,
            rewards=rewards,
            times=times,
            reward_times=reward_times,
        )
        names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        strings = any(isinstance(name, str) for name in names)
        if strings and not all(isinstance(name, str) for name in names):
            raise ShapeError("the ids of a part are numbers or strings; these are both. Pass str(id) for all of them.")
        if log.dim != self.dim:
            raise ShapeError(f"features must have shape {(len(log), self.dim)}; got {np.shape(features)}.")
        late = np.full(len(log), np.nan) if log.reward_times is None else log.reward_times
        columns = {
            "id": names,
            "policy": _coded(log.batches, log.batch_names),
            "features": log.features,
            "propensity": log.propensities,
            "reward": pa.array(log.rewards, from_pandas=True),
            "contexts": self._sets(names, contexts or {}),
            "time": None if log.times is None else pa.array(log.times, from_pandas=True),
            "reward_time": pa.array(late, from_pandas=True),
        }
        self.add(_table(columns, strings=strings, times=times is not None))

    def add(self, table: "pa.Table") -> None:
        """Add rows of an Arrow table with the columns of a log, and perhaps others."""
        if self._waiting and not self._waiting[0].schema.equals(table.schema):
            raise ShapeError(
                f"all calls must give the same columns of the same types; after others got {table.schema.names}, with "
                f"ids of type {table.schema.field('id').type}."
            )
        self._waiting.append(table)
        self._flush(everything=False)

    def _sets(self, names: list[Any], contexts: Mapping[Any, ArrayLike]) -> list[FloatArray | None]:
        """The numbers of each context set, None where it was not kept."""
        sets = {name: finite_array("contexts", arms) for name, arms in contexts.items()}
        for arms in sets.values():
            if arms.ndim != 2 or arms.shape[1] != self.dim or not len(arms):
                raise ShapeError(f"the contexts of a decision must be its arms (K, {self.dim}); got {arms.shape}.")
        if not sets.keys() <= set(names):
            raise ShapeError("contexts must be of decisions that are written with them.")
        return [sets[name].reshape(-1) if name in sets else None for name in names]

    def _flush(self, *, everything: bool) -> None:
        """Write whole row groups, and at the end the rest."""
        pa, parquet = pyarrow()
        waiting = sum(len(table) for table in self._waiting)
        if waiting < ROWS and not everything:
            return
        table = pa.concat_tables(self._waiting) if self._waiting else log_schema(self.dim).empty_table()
        count = waiting if everything else waiting - waiting % ROWS
        if self._writer is None:  # chosen vectors are as good as random: stronger compression gains little
            options: dict[str, Any] = {"compression": "snappy", "use_dictionary": ["policy", "arm", "names"]}
            numbers = pa.types.is_int64(table.schema.field("id").type)  # counters then take next to nothing
            options |= {"column_encoding": {"id": "DELTA_BINARY_PACKED"}} if numbers else {}
            self._writer = parquet.ParquetWriter(self._temporary, table.schema, write_page_checksum=True, **options)
        if count:
            self._writer.write_table(table.slice(0, count), row_group_size=ROWS)
        self._waiting = [table.slice(count)]


def write_part(path: str | Path, *, policy_id: str, features: ArrayLike, **columns: Any) -> None:
    """Write a part at once; see :meth:`LogWriter.write` for what it takes."""
    chosen = finite_array("features", features)
    if chosen.ndim != 2:
        raise ShapeError(f"features must have shape (n, dim); got {chosen.shape}.")
    with LogWriter(path, dim=chosen.shape[1], policy_id=policy_id) as part:
        part.write(features=chosen, **columns)


def write_log(path: str | Path, log: DecisionLog) -> None:
    """Write a decision log, for :class:`~rareswitch.log.ParquetLog` and other tools to read, batch by batch.

    The columns are those of :func:`~rareswitch.log.log_schema`, without vectors where there are none, and as far as
    these are known ``arm_index``, ``names``, ``baseline``, ``time`` and ``behavior_probs``, of the offered arms alone.
    Ids that are texts are known by their keys alone, which are kept. How propensities were estimated is in the schema.
    Policies are not written: keep their files beside.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.log import ParquetLog
    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.5], rewards=[1.0, None], arms=["red", "blue"])
    >>> path = Path(tempfile.mkdtemp()) / "log.parquet"
    >>> write_log(path, log)
    >>> next(ParquetLog(path).chunks()).chosen_names
    ['red', 'blue']
    """
    table = log_table(log.by_batch())
    with LogWriter(path) as part:
        part.add(table.replace_schema_metadata({ESTIMATED: log.estimated}) if log.estimated else table)


def log_table(log: DecisionLog, ids: Sequence[str | int] | None = None) -> "pa.Table":
    """A log as an Arrow table with the columns of a log; ``ids`` as they are written, where they are known."""
    pa, _ = pyarrow()
    rows, available = np.arange(len(log)), log.available
    order = np.cumsum(available, axis=1) - 1  # where each arm stands among those that were offered
    columns: dict[str, Any] = {
        "id": ids,
        "policy": _coded(log.batches, log.batch_names),
        "propensity": log.propensities,
        "reward": pa.array(log.rewards, from_pandas=True),
        "arm_index": order[rows, log.arm_indices],
    }
    if ids is None and log.ids[:, 1].any():
        keys = key_bytes(log.ids)
        columns |= {"id": [key.hex() for key in keys], "key": pa.array(keys, pa.binary(16))}
    elif ids is None:
        columns["id"] = pa.array(log.ids[:, 0].astype(np.int64))
    if log.features is not None:
        columns["features"] = _fixed(log.features)
    if log.contexts is not None:
        columns["contexts"] = _lists(log.contexts[available].reshape(-1), available, log.contexts.shape[2])
    if log.codes is not None or log.contexts is None or (order != np.arange(available.shape[1]))[available].any():
        names, codes = log.arm_codes
        columns["names"] = _names(names, codes)
        columns["arm"] = pa.array(log.chosen_names)
    if log.behavior_probs is not None:
        columns["behavior_probs"] = _lists(log.behavior_probs[available], available)
    if log.baselines is not None:
        named = log.baselines >= 0
        if (named & ~available[rows, np.maximum(log.baselines, 0)]).any():
            raise ParameterError("baselines must be those of offered arms, or -1 where none was named.")
        columns["baseline"] = pa.array(order[rows, np.maximum(log.baselines, 0)], mask=~named)
    if log.times is not None:
        columns["time"] = pa.array(log.times, from_pandas=True)
    return pa.table(columns)


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
    :func:`log_schema` it has ``arm``, ``arm_index``, ``digest``, ``baseline``, ``names``, ``cohort`` and ``record``.
    Several rewards of a decision are summed.

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
    counting = json.dumps({"window": window, "default": default})
    for rows in _parts(store, marks):
        path = f"{base}/part-{len(paths) + 1:05d}.parquet"
        with LogWriter(path) as part:
            part.add(_kept_table(rows, policies).replace_schema_metadata({COUNTING: counting}))
        paths.append(path)
        done += len(rows)
        if progress is not None:
            progress(done, max(done, sum(one.decisions for one in store.counts(marks))))
    return paths


def write_decisions(path: str | Path, rows: Sequence[DecisionRow], policies: Sequence[str]) -> None:
    """Write decisions whose rewards are not known yet as a part, as :func:`export_parts` does.

    Their versions are numbers of ``policies``, from 1; their ids are of one kind.
    """
    with LogWriter(path) as part:
        part.add(_kept_table([(row, []) for row in rows], policies))


def _parts(store: Store, marks: Marks) -> Iterator[list[Kept]]:
    """The decisions in pieces of a size that fits into memory, with ids of one kind each."""
    waiting: list[Kept] = []
    size = 0
    for some in store.rows(0, marks):
        for kept in some:
            row = kept[0]
            other = bool(waiting) and waiting[0][0].id.startswith('"') != row.id.startswith('"')
            if other or len(waiting) == ROWS or size > _BYTES:
                yield waiting
                waiting, size = [], 0
            waiting.append(kept)
            size += len(row.contexts or b"")
    if waiting:
        yield waiting


def _kept_table(part: Sequence[Kept], policies: Sequence[str]) -> "pa.Table":
    """Decisions of a store as Arrow keeps them."""
    pa, _ = pyarrow()
    rows = [row for row, _ in part]
    at = np.repeat(np.arange(len(part)), [len(rewards) for _, rewards in part])
    came = np.array([(reward.value, reward.time) for _, rewards in part for reward in rewards]).reshape(-1, 2)
    rewards, reward_times = joined_rewards(len(part), at, came[:, 0], came[:, 1], sums=True)
    columns = {
        "id": [json.loads(row.id) for row in rows],
        "policy": _coded(np.array([row.version - 1 for row in rows]), policies),
        "features": np.frombuffer(b"".join(row.features for row in rows), dtype="<f8").reshape(len(rows), -1),
        "propensity": [row.propensity for row in rows],
        "reward": pa.array(rewards, from_pandas=True),
        "contexts": [None if row.contexts is None else np.frombuffer(row.contexts, dtype="<f8") for row in rows],
        "time": [row.time for row in rows],
        "reward_time": pa.array(reward_times, from_pandas=True),
    }
    table = _table(columns, strings=rows[0].id.startswith('"'), times=True)
    for name, kind in MORE.items():
        values = [getattr(row, name) for row in rows]
        table = table.append_column(name, pa.array(values, pa.type_for_alias(kind)))
    return table


def _table(columns: dict[str, Any], *, strings: bool, times: bool) -> "pa.Table":
    """A table with the schema of a log."""
    pa, _ = pyarrow()
    schema = log_schema(columns["features"].shape[1], strings=strings, times=times)
    columns["features"] = _fixed(columns["features"], schema.field("features").type)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _coded(numbers: FloatArray | IntArray, names: Sequence[str]) -> "pa.DictionaryArray":
    """Names by their numbers."""
    pa, _ = pyarrow()
    return pa.DictionaryArray.from_arrays(numbers.astype(np.int32), pa.array(list(names)))


def _fixed(vectors: FloatArray, kind: "pa.DataType | None" = None) -> "pa.FixedSizeListArray":
    """Vectors (n, d) as lists of one length."""
    pa, _ = pyarrow()
    kind = pa.list_(pa.float64(), vectors.shape[1]) if kind is None else kind
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), type=kind)


def _lists(flat: FloatArray, available: BoolArray, width: int = 1) -> "pa.LargeListArray":
    """A list for each row, of ``width`` values for each of its arms."""
    pa, _ = pyarrow()
    ends = np.concatenate([[0], np.cumsum(available.sum(axis=1) * width)])
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(flat))


def _names(names: Sequence[str], codes: IntArray) -> "pa.Array":
    """The ids of the offered arms, a text for each row, of which each is made once."""
    different, which = np.unique(codes, axis=0, return_inverse=True)
    texts = [
        json.dumps([names[code] for code in row if code >= 0], ensure_ascii=False, separators=(",", ":"))
        for row in different.tolist()
    ]
    return _coded(which.reshape(-1), texts).dictionary_decode()
