"""An experiment's store as a source of decisions, read some rows at a time."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import EmptySetError, StoreError, several
from rareswitch.files import pyarrow
from rareswitch.ids import KeyArray, keys_of_bytes
from rareswitch.learner import Rows, Sample
from rareswitch.log.batch_sums import Learnable, Task
from rareswitch.log.blocks import Block
from rareswitch.log.chunks import About
from rareswitch.log.decision_log import DecisionLog
from rareswitch.policy import Policy
from rareswitch.store import DecisionRow, Marks, RewardRow, Slice, Store, rows_table
from rareswitch.validation import FloatArray, Sets

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


@dataclass(frozen=True, eq=False)
class _Part:
    """A slice of a store."""

    slice: Slice
    #: What it is called in errors.
    source: str

    def blocks(self) -> Iterator[Block]:
        """Its rows: one block, or none where there are no rows."""
        for batch in self.slice.read().combine_chunks().to_batches():
            block = Block(self.source, np.arange(batch.num_rows), batch)
            block.check_present("key", "features")
            yield block

    def read(self, task: Task) -> Iterator[Rows]:
        """The decisions; stores know that their propensities are some."""
        for block in self.blocks():
            features, rewards, times = block.features(task.learner.dim), block.rewards(), dict[str, Any]()
            block.check_numbers(features, rewards)
            block.check_lengths(features, task.learner)
            if task.timed:
                times = {"times": block.times("time", needed=True), "reward_times": block.times("reward_time")}
            yield Rows(ids=block.keys(), policy_id=task.policy_id, features=features, rewards=rewards, **times)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredBatch:
    """The decisions of one policy of an experiment, up to marks: what :func:`~rareswitch.log.summarize` takes.

    Examples
    --------
    >>> from rareswitch.ids import id_keys, key_bytes
    >>> from rareswitch.learner import make_learner
    >>> from rareswitch.log import summarize
    >>> from rareswitch.store import VersionRow, open_store
    >>> learner, store = make_learner("foresight", dim=1), open_store("memory:", "spring")
    >>> store.create("{}", VersionRow(1, b"", b"", b"", "{}", "", 0.0))
    >>> (key,), one, state = key_bytes(id_keys([7])), np.ones(1).tobytes(), learner.begin()
    >>> row = DecisionRow(key, "7", 1, "banner", 0, 1.0, one, bytes(16), time=0.0, rank=0.5, contexts=one)
    >>> _ = store.add_decisions([row]), store.add_rewards([RewardRow(key, "7", "", 0.25, time=60.0)])
    >>> summarize(learner, state, StoredBatch(store=store, version=1, upto=Marks(1, 1)))
    <summary of policy ...: 1 decision, 1 rewarded, 0 missing>
    """

    store: Store
    #: Number of the policy that decided.
    version: int
    upto: Marks
    #: Whether several rewards of a decision are summed.
    sums: bool = False
    #: Of rewards, in seconds: those that came later are not summed, where others came in time.
    window: float | None = None

    def parts(self, *, propensities: bool = False) -> list[_Part]:
        """Its slices."""
        how: dict[str, Any] = {"sums": self.sums, "window": self.window, "propensities": propensities}
        slices = self.store.slices(self.version, self.upto, **how)
        name = f"{self.store.name}, version {self.version}, slice"
        return [_Part(part, f"{name} {number} of {len(slices)}") for number, part in enumerate(slices, 1)]

    def learnable(self, policy_id: str) -> Learnable:
        """Its slices, which are only summed, as ids occur once; and the sample that the store has an index for."""
        return Learnable(self.parts(), self._sample)

    def _sample(self, task: Task, size: int) -> Sample | None:
        """The sample of those decisions whose context sets were kept, which come in the order of their ranks."""
        kept, dim = self.store.sample(self.version, self.upto), task.learner.dim
        keys, sets = list[KeyArray](), list[FloatArray]()
        while len(sets) < size and (some := list(islice(kept, size - len(sets)))):
            words = keys_of_bytes(b"".join(key for key, _ in some), len(some))
            for at in task.sampled(words).tolist():
                key, arms = some[at]
                if not arms or len(arms) % (8 * dim):
                    raise _odd_size(f"the decision with the key {key.hex()}", len(arms), dim)
                keys.append(words[at])
                sets.append(np.frombuffer(arms, dtype="<f8").reshape(-1, dim))
        if not sets:
            return None
        found = ContextSets.from_ragged(sets)
        task.learner.check(Sets(found.contexts, found.available, False))
        return Sample.of(size, np.array(keys), found)


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
    window, now, default
        As :func:`~rareswitch.log.summarize` takes them; with a window, ``now`` is needed.
    sums
        Whether several rewards of a decision are summed.

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
        counts = {one.version: one.decisions for one in store.counts(self.upto) if only in (None, one.version)}
        #: How many there are.
        self.decisions = sum(counts.values())
        if not counts:
            raise EmptySetError(
                f"experiment '{store.name}' has not decided anything yet: there is nothing to evaluate."
            )
        check_newest(store, max(counts), len(policies))
        self._batches = {version: number for number, version in enumerate(counts)}
        self.batch_names = tuple(policies[version - 1].id for version in counts)
        #: Of all versions in order, those too that have not decided yet.
        self.policies: Mapping[str, Policy] = {policy.id: policy for policy in policies}
        counting: dict[str, Any] = {} if window is None else {"window": window, "now": now}
        counting |= {} if default is None else {"default": default}
        self._about = About(batch_names=self.batch_names, policies=self.policies, dim=dim, counting=counting)

    def __repr__(self) -> str:
        batches = len(self.batch_names)
        return f"<log of {self.store.name}: {several(self.decisions, 'decision')}, {several(batches, 'batch')}>"

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; with ``contexts`` those of which all offered arms are known."""
        return self._about.chunks(self._with_sets() if contexts else self._chosen(), contexts=contexts)

    def _named(self, batches: Any) -> Any:
        """The column ``policy`` of rows of these batches."""
        pa, _ = pyarrow()
        return pa.DictionaryArray.from_arrays(pa.array(batches, pa.int32()), pa.array(self.batch_names))

    def _chosen(self) -> Generator[Block]:
        """The decisions batch by batch, without what was offered: as updates read them."""
        for version, batch in self._batches.items():
            batch_rows = StoredBatch(
                store=self.store, version=version, upto=self.upto, sums=self._sums, window=self._window
            )
            for part in batch_rows.parts(propensities=True):
                for block in part.blocks():
                    policy = self._named(np.full(len(block.numbers), batch))
                    yield block._replace(batch=block.batch.append_column("policy", policy))

    def _with_sets(self) -> Generator[Block]:
        """All decisions with what was offered, as it was kept, so many at a time that they fit into memory."""
        waiting: list[_Kept] = []
        size = first = 0
        for _, some in self.store.rows(0, self.upto):
            for kept in some:
                if kept[0].version not in self._batches:
                    continue
                waiting.append(kept)
                size += len(kept[0].contexts or b"")
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
        columns["policy"] = self._named([self._batches[row.version] for row in rows])
        columns["arm_index"] = pa.array([row.arm_index for row in rows], pa.int64())
        columns["baseline"] = pa.array([row.baseline for row in rows], pa.int64())
        columns["names"] = pa.array([row.names for row in rows], pa.string())
        columns["contexts"] = self._sets(rows)
        numbers = np.arange(first, first + len(rows))
        return Block(f"the decisions of {self.store.name}", numbers, pa.record_batch(columns))

    def _sets(self, rows: Sequence[DecisionRow]) -> Any:
        """The context sets as lists of numbers, null where they were not kept."""
        pa, _ = pyarrow()
        sizes = np.array([len(row.contexts or b"") for row in rows])
        odd = sizes % (8 * self.dim) != 0
        if odd.any():
            at = int(np.flatnonzero(odd)[0])
            raise _odd_size(f"decision {rows[at].id}", int(sizes[at]), self.dim)
        ends = pa.array(np.concatenate([[0], np.cumsum(sizes // 8)]), pa.int64())
        data = np.frombuffer(b"".join([row.contexts for row in rows if row.contexts is not None]), dtype="<f8")
        absent = pa.array([row.contexts is None for row in rows])
        return pa.LargeListArray.from_arrays(ends, pa.array(data.astype(np.float64, copy=False)), mask=absent)


def _odd_size(which: str, size: int, dim: int) -> StoreError:
    return StoreError(
        f"{which} has contexts of {size} bytes, and arms of {dim} features take {8 * dim} each: the store was changed "
        "by something else."
    )
