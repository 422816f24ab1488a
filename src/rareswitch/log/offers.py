"""The context sets of single rows of a part, read where they are needed and nowhere else."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.log.schema import CONTEXTS, ROWS, open_part
from rareswitch.validation import FloatArray, IntArray

_BYTES = 1 << 23
"""About how many bytes of sets are read at a time."""


class Offers:
    """Reads the column of context sets of a part forwards, and skips row groups in which no set is wanted."""

    def __init__(self, path: str, metadata: Any, dim: int) -> None:
        self.path, self.metadata, self.dim = path, metadata, dim
        self.ends: IntArray = np.cumsum([metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)])
        """Row after the last of each row group."""
        columns = [metadata.schema.column(c).path.split(".")[0] for c in range(metadata.num_columns)]
        self.leaf = columns.index(CONTEXTS) if CONTEXTS in columns else None
        self.file: Any = None
        """Opened when it is needed, and apart from where other columns are read: batch sizes belong to an open file."""
        self.group = -1
        self.pieces: Iterator[Any] = iter(())
        self.first = self.stop = 0
        """Rows of the piece at hand."""
        self._values: Any = None
        self._bounds: Any = None
        self._valid: Any = None

    def close(self) -> None:
        """Let go of the file."""
        if self.file is not None:
            self.file.close()

    def at(self, rows: IntArray) -> list[FloatArray | None]:
        """The sets (K, d) of these rows, in increasing order from call to call; None where there is none."""
        found: list[FloatArray | None] = []
        for row in rows.tolist() if self.leaf is not None else ():
            self._seek(row)
            at = row - self.first
            start, stop = self._bounds[at : at + 2] if self._valid is None or self._valid[at] else (0, 0)
            found.append(self._arms(row, start, stop) if stop > start else None)
        return found or [None] * len(rows)

    def _seek(self, row: int) -> None:
        while row >= self.stop:
            group = int(np.searchsorted(self.ends, row, side="right"))
            if self.file is None:
                self.file = open_part(self.path, metadata=self.metadata)
            if group != self.group:
                self.group = group
                self.stop = int(self.ends[group - 1]) if group else 0
                self.pieces = self.file.iter_batches(
                    batch_size=self._size(group), row_groups=[group], columns=[CONTEXTS], use_threads=False
                )
            batch = next(self.pieces, None)
            if batch is None:
                raise FileFormatError(f"{self.path}: a row group has fewer rows than it tells. Write the part anew.")
            piece = batch.column(0)
            self.first, self.stop = self.stop, self.stop + len(piece)
            if row < self.stop:
                self._open(piece)

    def _size(self, group: int) -> int:
        """How many rows of a group to read at a time, so that long lists do not fill the memory."""
        held = self.metadata.row_group(group)
        each = int(held.column(self.leaf).total_uncompressed_size) // max(1, int(held.num_rows))
        return max(64, min(ROWS, _BYTES // max(1, each)))

    def _open(self, piece: Any) -> None:
        self._valid = None if piece.null_count == 0 else np.asarray(piece.is_valid())
        if hasattr(piece, "offsets"):
            self._bounds = piece.offsets.to_numpy(zero_copy_only=False)
        else:  # lists of a fixed size
            self._bounds = (piece.offset + np.arange(len(piece) + 1)) * piece.type.list_size
        self._values = piece.values

    def _arms(self, row: int, start: int, stop: int) -> FloatArray:
        flat = self._values.slice(start, stop - start)
        if flat.null_count:
            raise FileFormatError(f"{self.path}: row {row} (the first is 0) has a null among its contexts.")
        numbers = flat.to_numpy()
        if len(numbers) % self.dim:
            raise FileFormatError(
                f"{self.path}: row {row} (the first is 0) has contexts of {len(numbers)} numbers, which is no multiple "
                f"of the {self.dim} features of an arm. Write the living arms one after the other."
            )
        if not np.isfinite(numbers).all():
            raise FileFormatError(f"{self.path}: row {row} (the first is 0) has contexts that are not finite.")
        return np.array(numbers.reshape(-1, self.dim))
