"""Write parts of a log, each whole or not at all."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError, ShapeError
from rareswitch.files import pyarrow
from rareswitch.footers import METADATA, seal_footer
from rareswitch.learner import Rows, in_seconds
from rareswitch.log.places import exists, is_url, making_file
from rareswitch.log.schema import ROWS, log_schema
from rareswitch.validation import finite_array, vector, whole


class LogWriter:
    """One part, written in as many pieces as the caller likes.

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

    path: str | Path

    def __init__(self, path: str | Path, *, dim: int, policy_id: str) -> None:
        self.path = str(path) if is_url(path) else Path(path)
        self.dim, self.policy_id = whole("dim", dim), policy_id
        self._stack = ExitStack()
        self._temporary = Path()
        self._waiting: list[Any] = []
        self._writer: Any = None

    def __enter__(self) -> Self:
        pyarrow()
        if exists(self.path):
            raise FileFormatError(f"{self.path}: exists already, and a log is never overwritten. Name another file.")
        self._temporary = self._stack.enter_context(making_file(self.path))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with self._stack:
            try:
                if error is not None:
                    raise error
                self._flush(everything=True)
                self._writer.add_key_value_metadata(METADATA)  # not to the schema, which others copy with the rows
            finally:
                if self._writer is not None:
                    self._writer.close()
            seal_footer(self._temporary)

    def write(
        self,
        *,
        ids: Any,
        features: Any,
        propensities: Any,
        rewards: Any,
        contexts: Mapping[Any, Any] | None = None,
        times: Any = None,
        reward_times: Any = None,
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
        rows = Rows(
            ids=ids,
            policy_id=self.policy_id,
            features=features,
            rewards=rewards,
            times=times,
            reward_times=reward_times,
        )
        names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        strings = any(isinstance(name, str) for name in names)
        if strings and not all(isinstance(name, str) for name in names):
            raise ShapeError("the ids of a part are numbers or strings; these are both. Pass str(id) for all of them.")
        if rows.features.shape[1] != self.dim:
            raise ShapeError(f"features must have shape {(len(rows), self.dim)}; got {rows.features.shape}.")
        chances = vector("propensities", propensities, len(rows))
        if len(rows) and not (chances.min() > 0.0 and chances.max() <= 1.0):
            raise ParameterError(f"propensities must lie in (0, 1]; got {chances.min()} to {chances.max()}.")
        schema = log_schema(self.dim, strings=strings, times=times is not None)
        kind = schema.field("features").type
        columns = {
            "id": names,
            "policy": pa.DictionaryArray.from_arrays(np.zeros(len(rows), dtype=np.int32), pa.array([self.policy_id])),
            "features": pa.FixedSizeListArray.from_arrays(pa.array(rows.features.flatten()), type=kind),
            "propensity": chances,
            "reward": pa.array(rows.rewards, from_pandas=True),
            "contexts": self._sets(names, contexts or {}),
            "time": None if rows.times is None else in_seconds(rows.times),
            "reward_time": pa.array(in_seconds(rows.reward_times), from_pandas=True)
            if reward_times is not None
            else [None] * len(rows),
        }
        table = pa.table([columns[name] for name in schema.names], schema=schema)
        if self._waiting and not self._waiting[0].schema.equals(schema):
            raise ShapeError(
                f"all calls must give the same columns of the same types; after others got {schema.names}, with ids "
                f"of type {schema.field('id').type}."
            )
        self._waiting.append(table)
        self._flush(everything=False)

    def _sets(self, names: list[Any], contexts: Mapping[Any, Any]) -> list[Any]:
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
        pa, _ = pyarrow()
        waiting = sum(len(table) for table in self._waiting)
        if waiting < ROWS and not everything:
            return
        table = pa.concat_tables(self._waiting) if self._waiting else log_schema(self.dim).empty_table()
        count = waiting if everything else waiting - waiting % ROWS
        if self._writer is None:
            self._writer = _writer(self._temporary, table.schema)
        if count:
            self._writer.write_table(table.slice(0, count), row_group_size=ROWS)
        self._waiting = [table.slice(count)]


def write_table(path: str | Path, table: Any) -> None:
    """Write a part that is an Arrow table already, with the columns of a log and perhaps others."""
    with making_file(path) as temporary:
        with _writer(temporary, table.schema) as writer:
            writer.write_table(table, row_group_size=ROWS)
            writer.add_key_value_metadata(METADATA)
        seal_footer(temporary)


def _writer(path: Path, schema: Any) -> Any:
    """Chosen vectors are as good as random: stronger compression gains little."""
    pa, parquet = pyarrow()
    options = {"compression": "snappy", "use_dictionary": ["policy", "arm", "names"], "write_page_checksum": True}
    numbers = pa.types.is_int64(schema.field("id").type)  # counters then take next to nothing
    options |= {"column_encoding": {"id": "DELTA_BINARY_PACKED"}} if numbers else {}
    return parquet.ParquetWriter(path, schema, **options)


def write_part(path: str | Path, *, policy_id: str, features: Any, **columns: Any) -> None:
    """Write a part at once; see :meth:`LogWriter.write` for what it takes."""
    chosen = finite_array("features", features)
    if chosen.ndim != 2:
        raise ShapeError(f"features must have shape (n, dim); got {chosen.shape}.")
    with LogWriter(path, dim=chosen.shape[1], policy_id=policy_id) as part:
        part.write(features=chosen, **columns)
