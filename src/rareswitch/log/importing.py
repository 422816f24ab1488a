"""Logs that servers wrote with the frozen policy, taken into the store of an experiment: every row under one name."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.core import FloatArray, Result, find_parts, key_bytes, read_table, sample_order
from rareswitch.errors import ConflictError, FileFormatError
from rareswitch.features import Features
from rareswitch.learner import Learner
from rareswitch.log.parts import MORE, NEEDED, Block, blocks, open_part
from rareswitch.log.tables import ColumnNames, log_of_table
from rareswitch.log.write import log_table
from rareswitch.store import DecisionRow, RewardRow, Store

__all__ = ["ImportReport", "import_parts"]

_TEXT = json.JSONEncoder(ensure_ascii=False).encode
_READ = [*NEEDED, "contexts", "time", "reward_time", *MORE]


class ImportReport(Result, frozen=True, kw_only=True):
    """What was read, and what became of it. Prints as text.

    ``rows`` is the sum of ``new``, ``rewarded``, ``copies``, ``conflicting`` and the rows of ``foreign`` policies.
    """

    #: Files that were read.
    parts: int
    rows: int
    #: Rows whose decision was not there before, with its reward or without.
    new: int
    #: Rows whose decision was there without this reward.
    rewarded: int
    #: Rows that say nothing new.
    copies: int
    #: Rows that contradict what was there, which stays.
    conflicting: int
    #: Rows by policy, of those that the experiment never had; nothing of them was kept. All beyond the 100th are
    #: under ''.
    foreign: dict[str, int]
    #: Rewards that were not there before.
    rewards: int


def import_parts(
    store: Store,
    paths: Iterable[str | Path],
    *,
    learner: Learner,
    policies: Sequence[str],
    columns: ColumnNames | None = None,
    features: Features | None = None,
    conflicts: bool = False,
    now: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Take decisions and rewards of a log into an experiment, some at a time; again is as good as once.

    Of several rows of a decision the first is kept, and a reward that it lacks is taken from the others. A row that
    contradicts what is there is an error that names file and row; what was read before it stays.

    Parameters
    ----------
    paths
        Files or patterns, also at URLs such as s3://…: see :func:`find_parts`.
    learner
        Of the experiment: what it is not made for is refused.
    policies
        The ids of the experiment's policies, the first first; rows of others are counted and left out.
    columns
        The names of columns by their roles, as :func:`~rareswitch.log.read_csv` takes them: for files of other tools.
        Those in CSV are always read like this; they need the columns ``id`` and ``policy``.
    features
        Of the experiment, for files of other tools: by which their other columns become vectors.
    conflicts
        Whether to leave out rows that contradict what is there, and go on.
    now
        The time of decisions for which the log has none, in seconds since 1970; by default the clock's. Rewards
        without a time of their own are taken to have come at once.
    progress
        Called with the number of parts that were read, and how many there are.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.learner import make_learner
    >>> from rareswitch.log import write_part
    >>> from rareswitch.store import VersionRow, open_store
    >>> learner, store = make_learner("foresight", dim=2), open_store("memory:", "spring")
    >>> store.create("{}", VersionRow(1, b"", b"", b"", "{}", "", 0.0))
    >>> path = Path(tempfile.mkdtemp()) / "part-1.parquet"
    >>> columns = {"ids": ["a", "b"], "features": [[1.0, 0.0], [0.0, 1.0]], "propensities": [0.5, 0.5]}
    >>> write_part(path, policy_id="0" * 64, rewards=[1.0, None], **columns)
    >>> print(import_parts(store, [path], learner=learner, policies=["0" * 64]))
    2 rows in 1 part:
                 2 of decisions that are new
    """
    files, taking = find_parts(paths), _Taking(store, learner, policies, conflicts, time.time() if now is None else now)
    for done, path in enumerate(files, 1):
        own = columns is None and not path.removesuffix(".gz").endswith(".csv")
        for block in _parquet_blocks(path, learner.dim) if own else _table_blocks(path, learner.dim, columns, features):
            taking.take(block)
        if progress is not None:
            progress(done, len(files))
    counts = {name: taking.counts[name] for name in ("rows", "new", "rewarded", "copies", "conflicting", "rewards")}
    foreign = {name: rows for name, rows in taking.policies.items() if name not in taking.known}
    return ImportReport(parts=len(files), foreign=foreign, **counts)


def _parquet_blocks(path: str, dim: int) -> Iterator[Block]:
    with open_part(path, dim) as file:
        yield from blocks(path, file, _READ)


def _table_blocks(path: str, dim: int, columns: ColumnNames | None, features: Features | None) -> Iterator[Block]:
    """The rows of a file of another tool."""
    log, ids = log_of_table(read_table(path), columns, features=features)
    if ids is None or log.dim is None:
        raise FileFormatError(
            f"{path}: an import needs the ids of decisions and vectors of {dim} features, and here "
            f"{'ids' if ids is None else 'vectors'} are missing. Name their columns: columns=… (--columns)."
        )
    numbers = not log.ids[:, 1].any()
    for batch in log_table(log, [*map(int, ids)] if numbers else ids).combine_chunks().to_batches():
        yield Block(path, np.arange(len(log)), batch)


class _Taking:
    """Takes a log block by block."""

    def __init__(self, store: Store, learner: Learner, policies: Sequence[str], conflicts: bool, now: float) -> None:
        self.store, self.learner, self.conflicts, self.now = store, learner, conflicts, now
        self.known = {name: number for number, name in enumerate(policies, 1)}
        self.counts: Counter[str] = Counter()
        #: Rows by policy.
        self.policies: Counter[str] = Counter()

    def take(self, block: Block) -> None:
        """The next rows."""
        self.counts["rows"] += len(block.numbers)
        block.count_policies(self.policies, self.known)
        for name, mine in block.by_policy(self.known):
            self._take(mine, self.known[name])

    def _take(self, block: Block, version: int) -> None:
        """Rows of one version."""
        rows, rewards = self._rows(block, version)
        stored = self.store.add_decisions(rows)
        pairs = [*zip(rows, stored, strict=True)]
        wrong = {at for at, (row, old) in enumerate(pairs) if not _same(row, old)}
        self._refuse(block, wrong, "was decided otherwise: another version, arm or propensity, or other features")
        paid = [(at, reward) for at, reward in enumerate(rewards) if reward is not None and at not in wrong]
        before = self.store.add_rewards([reward for _, reward in paid])
        earned = {at for (at, _), old in zip(paid, before, strict=True) if old is None}
        other = zip(paid, before, strict=True)
        clashing = {at for (at, reward), old in other if old is not None and old.value != reward.value}
        self._refuse(block, clashing, "has another reward")
        wrong |= clashing
        new = {at for at, (row, old) in enumerate(pairs) if row is old} - wrong
        self.counts += Counter(
            new=len(new),
            rewarded=len(earned - new),
            rewards=len(earned),
            conflicting=len(wrong),
            copies=len(rows) - len(new | earned | wrong),
        )

    def _refuse(self, block: Block, wrong: set[int], what: str) -> None:
        if wrong and not self.conflicts:
            first, many = min(wrong), f"{len(wrong)} of {len(block.numbers)} rows"
            name, row = block.batch.column("id")[first].as_py(), int(block.numbers[first])
            raise ConflictError(
                f"{block.source}: row {row} (the first is 0) contradicts what is there: decision {name!r:.100} {what}. "
                f"So do {many} that were read with it. Keep the right ones, or leave these out: conflicts=True "
                "(--skip-conflicts)."
            )

    def _rows(self, block: Block, version: int) -> tuple[list[DecisionRow], list[RewardRow | None]]:
        """What stores keep of these rows."""
        log = block.log(self.learner.dim, self.learner)
        ids = block.batch.column("id").to_pylist()
        names = [str(name) if isinstance(name, int) else _TEXT(name) for name in ids]
        none = [None] * len(names)
        times, late = (none if column is None else _known(column) for column in (log.times, log.reward_times))
        more: dict[str, list[Any]] = {
            name: block.batch.column(name).to_pylist() if block.has(name) else none for name in MORE
        }
        chosen = np.ascontiguousarray(log.features, dtype="<f8")
        arms, arm_indices = self._arms(block, chosen)
        keys, ranks, propensities = key_bytes(log.ids), sample_order(log.ids).tolist(), log.propensities.tolist()
        rows = []
        for at, name in enumerate(names):
            data, arm_index = chosen[at].tobytes(), arm_indices[at]
            rows.append(
                DecisionRow(
                    key=keys[at],
                    id=name,
                    version=version,
                    arm=str(arm_index) if more["arm"][at] is None else more["arm"][at],
                    arm_index=arm_index,
                    propensity=propensities[at],
                    features=data,
                    digest=more["digest"][at] or hashlib.blake2b(data, digest_size=16).digest(),
                    time=self.now if (moment := times[at]) is None else moment,
                    rank=ranks[at],
                    baseline=more["baseline"][at],
                    cohort=more["cohort"][at],
                    contexts=arms[at],
                    names=more["names"][at],
                    record=more["record"][at],
                )
            )
        values = [
            None if value is None else RewardRow(row.key, row.id, "", value, row.time if moment is None else moment)
            for row, value, moment in zip(rows, _known(log.rewards), late, strict=True)
        ]
        return rows, values

    def _arms(self, block: Block, features: FloatArray) -> tuple[list[bytes | None], list[int]]:
        """(n) the vectors of all available arms, where they were kept; and the index of the chosen one, or -1."""
        vectors: list[bytes | None] = [None] * len(block.numbers)
        indices = np.full(len(block.numbers), -1)
        if block.has("arm_index"):
            indices = np.array(block.batch.column("arm_index").fill_null(-1).to_numpy(zero_copy_only=False))
        rows = block.with_sets(self.learner.dim)
        if len(rows):
            sets = block.sets(rows, self.learner)
            indices[rows] = block.take(rows).chosen_indices(sets.available, features[rows], sets.contexts, None)
            for at, arms, available in zip(rows.tolist(), sets.contexts, sets.available, strict=True):
                vectors[at] = arms[available].astype("<f8").tobytes()
        return vectors, indices.tolist()


def _known(column: FloatArray) -> list[float | None]:
    """Numbers (n,), None where they are not known."""
    return [None if np.isnan(value) else value for value in column.tolist()]


def _same(row: DecisionRow, old: DecisionRow) -> bool:
    """Whether two rows tell of one decision; context sets may be missing in one of them."""
    return row is old or (
        (row.version, row.propensity, row.features) == (old.version, old.propensity, old.features)
        and (row.digest == old.digest or row.contexts is None or old.contexts is None or row.contexts == old.contexts)
    )
