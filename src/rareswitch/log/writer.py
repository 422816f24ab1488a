"""Write parts of a log, each whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from rareswitch.errors import FileFormatError, NonFiniteError, ParameterError, ShapeError
from rareswitch.log.schema import ROWS, log_schema, pyarrow
from rareswitch.validation import finite_array, vector, whole


class LogWriter:
    """One part, written in as many pieces as the caller likes.

    The file appears under its name when the ``with`` block ends; if it ends by an exception, nothing appears. Row
    groups have 65,536 rows, pages have checksums, and memory holds one row group at a time.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "part-0001.parquet"
    >>> with LogWriter(path, dim=2, policy_id="0" * 64) as part:
    ...     part.write(
    ...         decisions=[0, 1],
    ...         features=[[1.0, 0.0], [0.0, 1.0]],
    ...         propensities=[0.5, 0.5],
    ...         rewards=[1.0, float("nan")],
    ...         contexts={0: [[1.0, 0.0], [0.0, 1.0]]},
    ...     )
    >>> path.exists()
    True

    Parameters
    ----------
    path
        Where the part shall be; a file that is there is not replaced.
    dim
        d, features of an arm.
    policy_id
        Of the policy that made the decisions.
    """

    def __init__(self, path: str | Path, *, dim: int, policy_id: str) -> None:
        self.path = Path(path)
        self.dim = whole("dim", dim)
        self.policy_id = policy_id
        self.schema = log_schema(self.dim)
        self._temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        self._waiting: list[Any] = []
        self._writer: Any = None

    def __enter__(self) -> Self:
        if self.path.exists():
            raise FileFormatError(f"{self.path}: exists already, and a log is never overwritten. Name another file.")
        _, parquet = pyarrow()
        try:
            # chosen vectors are as good as random, so that stronger compression gains little and costs much
            self._writer = parquet.ParquetWriter(
                self._temporary,
                self.schema,
                compression="snappy",
                use_dictionary=["policy"],
                write_page_checksum=True,
            )
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._flush(everything=True)
                self._writer.close()
                self._temporary.replace(self.path)
            else:
                self._writer.close()
        except OSError as reason:
            raise self._unwritable(reason) from reason
        finally:
            self._temporary.unlink(missing_ok=True)

    def write(
        self,
        *,
        decisions: Any,
        features: Any,
        propensities: Any,
        rewards: Any,
        contexts: Mapping[int, Any] | None = None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        decisions
            (n,) their numbers over the whole run.
        features
            (n, d) the chosen vectors.
        propensities
            (n,) in (0, 1].
        rewards
            (n,), NaN where the reward is not known yet, which becomes a null.
        contexts
            By decision, the living arms (K, d) that were offered; for those decisions only that the learner samples.
        """
        pa, _ = pyarrow()
        numbers = np.asarray(decisions)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise ShapeError(f"decisions must be whole numbers (n,); got {numbers.dtype} of shape {numbers.shape}.")
        count = len(numbers)
        chosen = finite_array("features", features)
        if chosen.shape != (count, self.dim):
            raise ShapeError(f"features must have shape {(count, self.dim)}; got {chosen.shape}.")
        chances = vector("propensities", propensities, count)
        if count and not (chances.min() > 0.0 and chances.max() <= 1.0):
            raise ParameterError(f"propensities must lie in (0, 1]; got {chances.min()} to {chances.max()}.")
        paid = np.array(rewards, dtype=np.float64)
        if paid.shape != (count,):
            raise ShapeError(f"rewards must have shape {(count,)}; got {paid.shape}.")
        if np.isinf(paid).any():
            raise NonFiniteError("rewards must be finite, or NaN where they are not known yet; one is infinite.")
        columns = [
            pa.array(numbers.astype(np.int64)),
            pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array([self.policy_id])),
            pa.FixedSizeListArray.from_arrays(pa.array(chosen.flatten()), type=self.schema.field("features").type),
            pa.array(chances),
            pa.array(paid, mask=np.isnan(paid)),
            self._lists(numbers, contexts or {}),
        ]
        self._waiting.append(pa.table(columns, schema=self.schema))
        self._flush(everything=False)

    def _lists(self, numbers: Any, contexts: Mapping[int, Any]) -> Any:
        pa, _ = pyarrow()
        offered = np.isin(numbers, np.fromiter(contexts, dtype=np.int64, count=len(contexts)))
        if np.count_nonzero(offered) != len(contexts):
            raise ShapeError("contexts must be of decisions that are written with them, each of them once.")
        sets = [finite_array("contexts", contexts[decision]) for decision in numbers[offered].tolist()]
        for arms in sets:
            if arms.ndim != 2 or arms.shape[1] != self.dim or not len(arms):
                raise ShapeError(f"the contexts of a decision must be its arms (K, {self.dim}); got {arms.shape}.")
        ends = np.zeros(len(numbers) + 1, dtype=np.int64)
        ends[1:][offered] = [arms.size for arms in sets]
        ends = np.cumsum(ends)
        if ends[-1] >= 1 << 31:
            raise ShapeError(
                f"the contexts of one call may have 2³¹ numbers; got {ends[-1]}. Write fewer rows at a time."
            )
        offsets = pa.array(ends.astype(np.int32))
        values = pa.array(np.concatenate([arms.reshape(-1) for arms in sets]) if sets else np.zeros(0))
        kind = self.schema.field("contexts").type
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=pa.array(~offered))

    def _flush(self, *, everything: bool) -> None:
        pa, _ = pyarrow()
        waiting = sum(len(table) for table in self._waiting)
        if not waiting or (waiting < ROWS and not everything):
            return
        table = pa.concat_tables(self._waiting)
        count = waiting if everything else waiting - waiting % ROWS
        try:
            self._writer.write_table(table.slice(0, count), row_group_size=ROWS)
        except OSError as error:
            raise self._unwritable(error) from error
        self._waiting = [table.slice(count)]

    def _unwritable(self, error: OSError) -> FileFormatError:
        return FileFormatError(f"{self.path}: cannot be written ({error.strerror or error}).")


def write_part(
    path: str | Path,
    *,
    decisions: Any,
    policy_id: str,
    features: Any,
    propensities: Any,
    rewards: Any,
    contexts: Mapping[int, Any] | None = None,
) -> None:
    """Write a part at once; see :meth:`LogWriter.write` for what it takes."""
    chosen = finite_array("features", features)
    if chosen.ndim != 2:
        raise ShapeError(f"features must have shape (n, dim); got {chosen.shape}.")
    with LogWriter(path, dim=chosen.shape[1], policy_id=policy_id) as part:
        part.write(decisions=decisions, features=chosen, propensities=propensities, rewards=rewards, contexts=contexts)
