"""An experiment's store as a source of logged decisions, read some rows at a time."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rareswitch.errors import EmptySetError, StoreError, several
from rareswitch.files import pyarrow
from rareswitch.log.ahead import ahead
from rareswitch.log.block import Block
from rareswitch.log.logged import DecisionLog
from rareswitch.log.logged_blocks import About, LoggedBlocks
from rareswitch.log.schema import MORE
from rareswitch.policy import Policy
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, rows_table

#: Decisions of a chunk at the most, and about how many bytes of context sets.
ROWS, BYTES = 1 << 15, 1 << 25

_Kept = tuple[DecisionRow, list[RewardRow]]


def check_newest(store: Store, decided: int, published: int) -> None:
    """Refuse decisions of a policy that the store does not hold: a policy of that number would be taken for theirs."""
    if decided > published:
        raise StoreError(
            f"policy {decided} of experiment '{store.name}' has decided, and {store.url} holds {published}: its "
            "policies were taken back to an older state. Restore the newest copy, and open the experiment again."
        )


class StoredLog:
    """The decisions of an experiment, a :class:`~rareswitch.log.Source`; a batch is what one of its policies decided.

    All passes see the same decisions and rewards: those that were there when it was made. Rewards count as they do when
    the next policy is learned.

    Parameters
    ----------
    policies
        Of the experiment, the first first; only those that decided something are batches.
    dim
        d, features of an arm.
    upto
        What is looked at; all that is there by default.
    only
        Number of the one policy whose decisions are wanted.
    window, now, default, sums
        As :func:`~rareswitch.log.summarize_version` takes them; with a window, ``now`` is needed.

    Examples
    --------
    >>> from rareswitch.experiment import create
    >>> with create("memory:", "spring", dim=2, horizon=100) as trial:
    ...     choices = trial.decide_many([[[1.0, 0.0], [0.0, 1.0]]] * 3, ids=[1, 2, 3])
    ...     trial.reward(2, 1.0)
    ...     log = trial.logged()
    ...     [chunk.rewards.tolist() for chunk in log.chunks()]
    [[nan, 1.0, nan]]
    """

    estimated = ""

    def __init__(
        self,
        store: Store,
        policies: Sequence[Policy],
        *,
        dim: int,
        upto: Marks | None = None,
        only: int | None = None,
        window: float | None = None,
        now: float | None = None,
        default: float | None = None,
        sums: bool = False,
    ) -> None:
        self.store, self.dim = store, dim
        self.upto = store.marks() if upto is None else upto
        self._window, self._sums = window, sums
        counts = [one for one in store.counts(self.upto) if only in (None, one.version)]
        #: How many there are.
        self.decisions = sum(one.decisions for one in counts)
        if not counts:
            raise EmptySetError(
                f"experiment '{store.name}' has not decided anything yet: there is nothing to evaluate."
            )
        check_newest(store, max(one.version for one in counts), len(policies))
        made = {one.version: policies[one.version - 1] for one in counts}
        self._batches = {version: number for number, version in enumerate(made)}
        self.batch_names = tuple(policy.id for policy in made.values())
        #: Of all versions in order, those too that have not decided yet.
        self.policies: Mapping[str, Policy] = {policy.id: policy for policy in policies}
        pa, _ = pyarrow()
        self._names = pa.array(self.batch_names)
        counting = {} if window is None else {"window": window, "now": now}
        counting |= {} if default is None else {"default": default}
        self._about = About(batch_names=self.batch_names, policies=self.policies, dim=dim, counting=counting)

    def __repr__(self) -> str:
        batches = len(self.batch_names)
        return f"<log of {self.store.name}: {several(self.decisions, 'decision')}, {several(batches, 'batch')}>"

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; with ``contexts`` those of which all offered arms are known."""
        reading = LoggedBlocks(self._about)
        for block in ahead(self._with_sets() if contexts else self._chosen()):
            found = reading.with_sets(block) if contexts else reading.chosen(block)
            if found is not None:
                yield found

    def _chosen(self) -> Generator[Block]:
        """The decisions batch by batch, without what was offered: as updates read them."""
        pa, _ = pyarrow()
        how: dict[str, Any] = {"sums": self._sums, "window": self._window, "propensities": True}
        for version, batch in self._batches.items():
            for number, part in enumerate(self.store.slices(version, self.upto, **how), 1):
                table = part.read().combine_chunks()
                made = pa.array(np.full(len(table), batch, dtype=np.int32))
                table = table.append_column("policy", pa.DictionaryArray.from_arrays(made, self._names))
                source = f"{self.store.name}, version {version}, slice {number}"
                for piece in table.to_batches():
                    yield Block(source, np.arange(piece.num_rows), piece)

    def _with_sets(self) -> Generator[Block]:
        """All decisions with what was offered, as it was kept, so many at a time that they fit into memory."""
        waiting: list[_Kept] = []
        size = first = 0
        for _, some in self.store.rows(0, self.upto):
            for one in some:
                if one[0].version not in self._batches:
                    continue
                waiting.append(one)
                size += len(one[0].contexts or b"")
                if len(waiting) == ROWS or size > BYTES:
                    yield self._block(waiting, first)
                    first, size = first + len(waiting), 0
                    waiting = []
        if waiting:
            yield self._block(waiting, first)

    def _block(self, some: Sequence[_Kept], first: int) -> Block:
        """Rows as an Arrow record batch."""
        pa, _ = pyarrow()
        rows, held = [row for row, _ in some], [rewards for _, rewards in some]
        table = rows_table(rows, held, sums=self._sums, window=self._window, propensities=True)
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        batches = pa.array([self._batches[row.version] for row in rows], pa.int32())
        columns["policy"] = pa.DictionaryArray.from_arrays(batches, self._names)
        for name in ("arm_index", "baseline", "names"):
            columns[name] = pa.array([getattr(row, name) for row in rows], pa.type_for_alias(MORE[name]))
        columns["contexts"] = self._sets(rows)
        numbers = np.arange(first, first + len(rows))
        return Block(f"the decisions of {self.store.name}", numbers, pa.record_batch(columns))

    def _sets(self, rows: Sequence[DecisionRow]) -> Any:
        """The context sets as lists of numbers, null where they were not kept."""
        pa, _ = pyarrow()
        sizes = np.array([len(row.contexts or b"") for row in rows])
        odd = sizes % (8 * self.dim) != 0
        if odd.any():
            row = rows[int(np.flatnonzero(odd)[0])]
            raise StoreError(
                f"decision {row.id} has contexts of {len(row.contexts or b'')} bytes, and arms of {self.dim} features "
                f"take {8 * self.dim} each: the store was changed by something else."
            )
        ends = pa.array(np.concatenate([[0], np.cumsum(sizes // 8)]), pa.int64())
        data = np.frombuffer(b"".join([row.contexts for row in rows if row.contexts is not None]), dtype="<f8")
        absent = pa.array([row.contexts is None for row in rows])
        return pa.LargeListArray.from_arrays(ends, pa.array(data.astype(np.float64, copy=False)), mask=absent)
