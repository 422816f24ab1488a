"""A log in Parquet: its parts, and which of their rows count."""

import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rareswitch.core import (
    BoolArray,
    FloatArray,
    IntArray,
    KeyArray,
    find_parts,
    number,
    pyarrow,
    run_shards,
    sample_order,
)
from rareswitch.decisions import ArmCodes, DecisionLog, deduplicate, row_hashes
from rareswitch.errors import EmptySetError, FileFormatError, ParameterError, several
from rareswitch.learner import Learner, Sample
from rareswitch.log.batch_sums import Learnable, Task
from rareswitch.log.parts import COUNTING, ESTIMATED, NEEDED, ONE_ORDER, Block, blocks, open_part
from rareswitch.log.source import KeyedSample, prefetched
from rareswitch.policy import Policy

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

__all__ = ["ParquetLog"]

R = TypeVar("R")
P = TypeVar("P")
#: Hashes of ids that are compared at a time.
SWEEP = 1 << 24
#: Columns that are read of chosen arms alone, and those that tell of all that were offered.
CHOSEN = ("id", "key", "policy", "features", "propensity", "reward", "time", "reward_time")
OFFERED = (*CHOSEN, "contexts", "arm_index", "arm", "names", "baseline", "behavior_probs")
_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class PartFile:
    """A file of a log, as a first look found it; and what is done with rows of ids that occur several times."""

    path: str
    rows: int
    #: Features of an arm; None where there are no vectors.
    dim: int | None
    meta: Mapping[bytes, bytes]
    #: Rows by the id of their policy; those of all policies beyond the hundredth are under ''.
    policies: Counter[str]
    #: The latest time, if it was asked for.
    latest: float
    #: Rows that do not count.
    dropped: IntArray = field(default_factory=lambda: _NO_ROWS)
    #: Rows that take their reward from a copy, that reward, and when it came.
    changed: tuple[IntArray, FloatArray, FloatArray] = (_NO_ROWS, np.zeros(0), np.zeros(0))

    def blocks(self, columns: Sequence[str]) -> Generator[Block]:
        """The rows that count."""
        with open_part(self.path, self.dim) as file:
            if file.metadata.num_rows != self.rows:
                raise FileFormatError(f"{self.path}: it changed while it was read. Name whole parts.")
            for block in map(self._settled, blocks(self.path, file, columns)):
                if len(block.numbers):
                    yield block

    def _settled(self, block: Block) -> Block:
        """Without the rows that do not count, and with the rewards that copies of others know."""
        pa, _ = pyarrow()
        numbers, (rows, *values) = block.numbers, self.changed
        within = (rows >= numbers[0]) & (rows <= numbers[-1])
        if within.any() and block.has("reward"):
            before = block.rewards(), block.times("reward_time")
            for name, new, old in zip(("reward", "reward_time"), values, before, strict=True):
                if block.has(name):
                    column = np.array(old)
                    column[rows[within] - numbers[0]] = new[within]
                    at = block.batch.schema.get_field_index(name)
                    block = block._replace(batch=block.batch.set_column(at, name, pa.array(column, from_pandas=True)))
        left = ~np.isin(numbers, self.dropped)
        return block if left.all() else block.take(np.flatnonzero(left))


@dataclass(frozen=True, eq=False)
class _Part:
    """Decisions of one policy in a file, which can be read in another process."""

    file: PartFile
    policy_id: str
    learner: Learner
    #: Whether there is an attribution window.
    timed: bool

    def read(self) -> Iterator[DecisionLog]:
        """Those that a learner sums."""
        for block in prefetched(self._blocks([*NEEDED, "key"] + ["time", "reward_time"] * self.timed)):
            yield block.log(self.learner.dim, self.learner, timed=self.timed)

    def sample(self, task: Task, size: int) -> Sample | None:
        """The context sets of those that may be sampled: of the smallest ranks."""
        samples = list[Sample]()
        for block in prefetched(self._blocks(["id", "key", "policy", "contexts"])):
            rows = block.with_sets(task.learner.dim)
            if len(rows):
                keys = block.keys()
                rows = rows[task.sampled(keys[rows])]
                rows = rows[np.argsort(sample_order(keys[rows]), kind="stable")[:size]]
            if len(rows):
                part = Sample.of(size, keys[rows], block.sets(rows, task.learner))
                samples = [reduce(add, [*samples, part])]
        return samples[0] if samples else None

    def _blocks(self, columns: Sequence[str]) -> Generator[Block]:
        for block in self.file.blocks(columns):
            for _, own in block.by_policy({self.policy_id: 0}):
                yield own


class ParquetLog:
    """A decision log in Parquet, a :class:`~rareswitch.log.Source`; a batch is what one policy decided.

    The columns are those of :func:`~rareswitch.log.log_schema`, those that experiments export (``arm_index``, ``arm``,
    ``names``, ``baseline``), and ``behavior_probs``, list<double>, those of all offered arms. Without ``arm_index``
    the chosen arm is the first whose vector is in ``features``. Several rows of one decision count once: the reward is
    that of the row that knows it, of several the one that came first.

    Parameters
    ----------
    paths
        Files or patterns, also at URLs such as s3://…: see :func:`~rareswitch.log.find_parts`.
    policies
        The frozen policies in the order in which they were made, as far as they are at hand, those too that have not
        decided yet. If they are all that the log names, batches have their order; else that in which rows of each
        first appear.
    window, now, default
        As :meth:`~rareswitch.learner.Learner.summarize` takes them; by default what the experiment that wrote the log
        wrote beside it, and for ``now`` the latest time in it.
    only
        The ids of policies whose rows count; all by default.
    dim
        d, where it is known beforehand: other files are refused.
    conflicts
        Whether to leave out decisions whose rows contradict each other; by default they are an error.
    executor
        Where parts are read; here by default.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.log import write_part
    >>> path = Path(tempfile.mkdtemp()) / "part-1.parquet"
    >>> sets = {0: [[1.0], [2.0]], 1: [[3.0], [4.0]]}
    >>> write_part(
    ...     path, policy_id="first", ids=[0, 1], features=[[1.0], [4.0]], propensities=[0.5, 0.5], rewards=[1.0, None],
    ...     contexts=sets,
    ... )
    >>> log = ParquetLog(path)
    >>> log
    <log in Parquet: 2 decisions, 1 batch, 1 part>
    >>> [chunk.arm_indices.tolist() for chunk in log.chunks()]
    [[0, 1]]
    """

    def __init__(
        self,
        paths: str | Path | Iterable[str | Path],
        policies: Sequence[Policy] = (),
        *,
        window: float | None = None,
        now: float | None = None,
        default: float | None = None,
        only: Sequence[str] | None = None,
        dim: int | None = None,
        conflicts: bool = False,
        executor: Executor | None = None,
    ) -> None:
        self.paths = find_parts([paths] if isinstance(paths, (str, Path)) else paths)
        self._run = partial(run_shards, executor=executor, label="part")
        known = {name: at for at, name in enumerate(only or ())}
        look = partial(_look, dim=dim, known=known, timed=window is not None and now is None)
        self.parts: list[PartFile] = [*self._run(look, self.paths)]
        #: Rows by the id of their policy, foreign ones too; those of all policies beyond the hundredth are under ''.
        self.rows = sum((part.policies for part in self.parts), Counter[str]())
        self.dim = dim or _common_dim(self.parts)
        meta = _common_meta(self.parts)
        self.estimated = meta.get(ESTIMATED, b"").decode(errors="replace")
        self.cautions: tuple[str, ...] = ()
        names = [name for name in (self.rows if only is None else only) if self.rows[name] or only is not None]
        if only is None and not names:
            raise EmptySetError(f"a log needs one decision at least; the {len(self.paths)} files have none.")
        ids = [policy.id for policy in policies]
        ordered = dict.fromkeys(name for name in ids if name in names)
        self.batch_names = tuple(ordered if {*names} <= {*ids} else names)
        self.policies: Mapping[str, Policy] = {policy.id: policy for policy in policies}
        if policies and not ordered:
            raise ParameterError(
                f"policies must be those that decided; the log has rows of {', '.join(names)[:100]}, and "
                f"{', '.join(name[:12] for name in ids[:3])} were given. Name the policies of this log."
            )
        #: Rows that are left out since their decision is counted already; decisions whose rows contradict each other,
        #: and their rows: by policy.
        self.copies_of, self.conflicting, self.conflicting_rows = Counter[str](), Counter[str](), Counter[str]()
        #: Where the first contradiction is.
        self.contradiction = ""
        self._deduplicate()
        if self.conflicting and not conflicts:
            raise FileFormatError(
                f"{several(self.conflicting.total(), 'decision')} with rows that contradict each other; the first are "
                f"{self.contradiction}: other features, another propensity, reward or context set. Keep the right "
                "ones, give each decision an id of its own, or leave these decisions out: conflicts=True."
            )
        #: Those that count.
        self.decisions = sum(self.rows[name] for name in names) - self.copies - self.conflicting_rows.total()
        counting = _counting(self.paths[0], meta)
        window, default = counting[0] if window is None else window, counting[1] if default is None else default
        self.now = max(part.latest for part in self.parts) if now is None else now
        self._counting: dict[str, float | None] = {} if default is None else {"default": default}
        if window is not None:
            self._counting |= {"window": number("window", window, low=0.0), "now": self.now}

    def __repr__(self) -> str:
        batches, parts = len(self.batch_names), len(self.paths)
        return (
            f"<log in Parquet: {several(self.decisions, 'decision')}, {several(batches, 'batch')}, "
            f"{several(parts, 'part')}>"
        )

    @property
    def copies(self) -> int:
        """Rows that are left out since their decision is counted already."""
        return self.copies_of.total()

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; with ``contexts`` those of which all offered arms are known."""
        numbers = {name: number for number, name in enumerate(self.batch_names)}
        shared = {name: getattr(self, name) for name in ("batch_names", "policies", "estimated")}
        arms, sample = ArmCodes(), KeyedSample(len(numbers))
        columns = OFFERED if contexts else CHOSEN
        for block in prefetched(block for part in self.parts for block in part.blocks(columns)):
            log = block.log(self.dim, timed="window" in self._counting)
            log = log.checked(**vars(log) | shared | {"batches": block.policy_numbers(numbers)})
            log = log.attributed(**self._counting)
            if contexts:
                rows = _rows_with_sets(block, self.dim)
                sample.check(block.source, log.batches, log.ids, rows)
                if not len(rows):
                    continue
                if len(rows) < len(log):
                    block, log = block.take(rows), log.select(rows)
                log = log.checked(**vars(log) | _offered(block, log.features, log.propensities, arms))
            yield log

    def learnable(self, policy_id: str, learner: Learner) -> Learnable:
        """The parts that have rows of a policy."""
        timed = "window" in self._counting
        parts = [_Part(part, policy_id, learner, timed) for part in self.parts if part.policies[policy_id]]
        rows = sum(part.file.policies[policy_id] for part in parts)

        def sample(task: Task, size: int, executor: Executor | None) -> Sample | None:
            results = run_shards(partial(_Part.sample, task=task, size=size), parts, executor, label="part")
            samples = [part for part in results if part is not None]
            return reduce(add, samples) if samples else None

        return Learnable(parts, rows, sample, self._counting)

    def _deduplicate(self) -> None:
        """Find ids that occur more than once: by hash, many at a time."""
        numbers = {name: at for at, name in enumerate(self.batch_names)}
        at = [k for k, part in enumerate(self.parts) if any(part.policies[name] for name in numbers)]
        parts = [self.parts[k] for k in at]
        sweeps = -(-sum(part.policies[name] for part in parts for name in numbers) // SWEEP)
        twice = [np.zeros(0)]
        for sweep in range(sweeps):
            look = partial(_hashes, numbers=numbers, low=sweep / sweeps, high=(sweep + 1) / sweeps)
            hashes = np.sort(np.concatenate([*self._run(look, parts)]))
            twice.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
        repeated = np.concatenate(twice)  # sorted, as the sweeps are
        if len(repeated):
            columns = [*self._run(partial(_copied_rows, numbers=numbers, repeated=repeated), parts)]
            files = np.repeat(at, [len(part[0]) for part in columns])
            self._settle(files, *(np.concatenate(column) for column in zip(*columns, strict=True)))

    def _settle(self, files: IntArray, rows: IntArray, batches: IntArray, keys: KeyArray, *content: Any) -> None:
        """Of several rows of a decision one counts, with the reward that one of them knows."""
        everything = np.column_stack([keys, batches.astype(np.uint64)])
        copies = deduplicate(everything, *content)
        _, _, rewards, times = content
        wrong, left = copies.wrong[copies.decisions], np.ones(len(rows), dtype=np.bool_)
        left[copies.rows[~copies.wrong]] = False
        for batch, name in enumerate(self.batch_names):
            mine, count = batches == batch, int((batches[copies.rows[copies.wrong]] == batch).sum())
            self.copies_of += Counter({name: int((mine & left & ~wrong).sum())})
            self.conflicting += Counter({name: count})
            self.conflicting_rows += Counter({name: int((mine & wrong).sum())})
        if wrong.any():
            pair = np.flatnonzero(copies.decisions == copies.decisions[np.flatnonzero(wrong)[0]])[:2]
            self.contradiction = " and ".join(f"{self.parts[files[k]].path}, row {rows[k]}" for k in pair)
        moved = np.flatnonzero(~copies.wrong & (copies.paid != copies.rows) & ~np.isnan(rewards[copies.paid]))
        for file in np.unique(files).tolist():
            mine = moved[files[copies.rows[moved]] == file]
            mine = mine[np.argsort(rows[copies.rows[mine]])]
            paid = copies.paid[mine]
            changed = rows[copies.rows[mine]], rewards[paid], times[paid]
            self.parts[file] = replace(self.parts[file], dropped=np.sort(rows[left & (files == file)]), changed=changed)


def _look(path: str, *, dim: int | None, known: Mapping[str, int], timed: bool) -> PartFile:
    """Count the rows of a part by policy; with the latest time where it is needed."""
    counts, latest = Counter[str](), -np.inf
    with open_part(path, dim) as file:
        meta = file.schema_arrow.metadata or {}
        timed |= _counting(path, meta)[0] is not None
        for block in blocks(path, file, ["policy"] + ["time"] * timed):
            block.count_policies(counts, known)
            if timed:
                latest = max(latest, float(np.fmax.reduce(block.times("time"), initial=-np.inf)))
        return PartFile(
            path=path,
            rows=file.metadata.num_rows,
            dim=_dim(file) if dim is None and file.metadata.num_rows else dim,
            meta={name: meta[name] for name in (ESTIMATED, COUNTING) if name in meta},
            policies=counts,
            latest=latest,
        )


def _hashes(part: PartFile, *, numbers: Mapping[str, int], low: float, high: float) -> FloatArray:
    """Those of the ids of a part that lie between two bounds."""
    within = [np.zeros(0)]
    for block in part.blocks(["id", "key", "policy"]):
        for name, mine in block.by_policy(numbers):
            mine.check_present("id")
            hashes = _id_hashes(numbers[name], mine.keys())
            within.append(hashes[(hashes >= low) & (hashes < high)])
    return np.concatenate(within)


def _copied_rows(part: PartFile, *, numbers: Mapping[str, int], repeated: FloatArray) -> list[Any]:
    """Rows whose ids occur several times: their numbers, policies and keys, and what :func:`deduplicate` takes."""
    kinds = (np.int64, np.int64, np.uint64, np.uint64, np.uint64, np.float64, np.float64)
    copied: list[list[Any]] = [[np.zeros((0, 2) if at == 2 else 0, dtype=kind) for at, kind in enumerate(kinds)]]
    for block in part.blocks([*CHOSEN, "contexts"]):
        for name, mine in block.by_policy(numbers):
            keys = mine.keys()
            hashes = _id_hashes(numbers[name], keys)
            at = np.flatnonzero(repeated[np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)] == hashes)
            if len(at):
                rows = mine.take(at)
                log = rows.log(part.dim)
                content = log.propensities.view(np.uint64)
                content = content if log.features is None else content + row_hashes(log.features)
                settled = [content, rows.set_hashes(part.dim), log.rewards, log.reward_times]
                copied.append([rows.numbers, np.full(len(at), numbers[name]), log.ids, *settled])
    return [np.concatenate(column) for column in zip(*copied, strict=True)]


def _id_hashes(policy: int, keys: KeyArray) -> FloatArray:
    """(n,) a hash in [0, 1) of ids under a policy: the finalizer of SplitMix64, which keeps numbers apart."""
    mixed = keys[:, 0] ^ (keys[:, 1] + np.uint64((2 * policy + 1) * 0x9E3779B97F4A7C15 % 2**64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def _common_dim(parts: Sequence[PartFile]) -> int | None:
    """How many features arms have, in all files that have rows."""
    dims = {part.dim: part.path for part in reversed(parts) if part.rows}
    if len(dims) > 1:
        (path, dim), (before, expected) = ((path, dim) for dim, path in [*dims.items()][-2:])
        raise FileFormatError(
            f"{path}: has {dim or 'no'} features, and {before} has {expected or 'none'}. Name the parts of one log."
        )
    return next(iter(dims), None)


def _common_meta(parts: Sequence[PartFile]) -> dict[bytes, bytes]:
    """What is said of a file is said of the log."""
    common: dict[bytes, bytes] = {}
    for part in parts:
        for name, text in part.meta.items() if part.rows else ():
            if common.setdefault(name, text) != text and name == COUNTING:
                raise FileFormatError(
                    f"{part.path}: counts rewards otherwise ({text.decode(errors='replace'):.100}) than the files "
                    f"before it ({common[name].decode(errors='replace'):.100}). Name the parts of one log."
                )
            if text not in common[name]:
                common[name] += b"; " + text
    return common


def _counting(path: str, meta: Mapping[bytes, bytes]) -> tuple[float | None, float | None]:
    """Window and default of rewards, as the experiment that wrote the log has them."""
    try:
        counting = json.loads(meta.get(COUNTING, b"{}"))
        window, default = (None if counting.get(k) is None else float(counting[k]) for k in ("window", "default"))
    except (AttributeError, TypeError, ValueError):
        raise FileFormatError(
            f"{path}: '{COUNTING.decode()}' of its schema must be JSON with window and default."
        ) from None
    return window, default


def _dim(file: "ParquetFile") -> int | None:
    """Features of an arm, as the schema or the first row says; None where there are no vectors."""
    if "features" not in file.schema_arrow.names:
        return None
    size = getattr(file.schema_arrow.field("features").type, "list_size", None)
    if size is not None:
        return int(size)
    first = next(file.iter_batches(1, columns=["features"])).column("features")
    return max(1, len(first[0])) if first[0].is_valid else None


# blocks of rows as chunks of a decision log


def _rows_with_sets(block: Block, dim: int | None) -> IntArray:
    """(m,) the rows of which all offered arms are known."""
    if block.has("contexts"):
        if dim is None:
            raise FileFormatError(f"{block.source}: a log with contexts needs the column 'features' too. Write it.")
        return block.with_sets(dim)
    column = next((name for name in ("names", "behavior_probs") if block.has(name)), None)
    return np.zeros(0, dtype=np.int64) if column is None else np.flatnonzero(block.batch.column(column).is_valid())


def _offered(block: Block, features: FloatArray | None, propensities: FloatArray, arms: ArmCodes) -> dict[str, Any]:
    """What was offered in rows of which all arms are known, one at least; features (n, d), propensities (n,)."""
    count = len(block.numbers)
    has = {name for name in block.batch.schema.names if block.batch.column(name).null_count < count}
    named = _Named(block, arms) if "names" in has else None
    dim = features.shape[1] if features is not None and "contexts" in has else 0
    sets = block.offered(dim) if dim else None
    if sets is not None:
        sizes = sets.available.sum(axis=1)
    elif named is not None:
        sizes = named.sizes
    else:
        sizes = block.sizes("behavior_probs")
    block.refuse(sizes < 1, "offers no arm", "A decision has one arm at least.")
    available = np.arange(sizes.max()) < sizes[:, None] if sets is None else sets.available
    contexts = None if sets is None else sets.contexts
    codes = None if named is None else named.codes(available)
    indices = block.chosen_indices(available, features, contexts, None if codes is None else named.chosen(codes))  # type: ignore[union-attr]
    probabilities = block.lists("behavior_probs", available)[:, :, 0] if "behavior_probs" in has else None
    if probabilities is not None:
        own = probabilities[np.arange(count), indices]
        odd = (probabilities < 0.0).any(axis=1) | ~np.isclose(own, propensities, rtol=1e-6, atol=1e-12)
        block.refuse(
            odd, lambda at: f"has the propensity {propensities[at]:g} and behavior_probs {own[at]:g}", ONE_ORDER
        )
    return {
        "available": available,
        "arm_indices": indices,
        "contexts": contexts,
        "codes": codes,
        "arms": None if codes is None else arms.names,
        "behavior_probs": probabilities,
        "baselines": block.index_column("baseline", sizes) if "baseline" in has else None,
    }


class _Named:
    """The ids of the offered arms, of which each list is read once however many rows have it."""

    def __init__(self, block: Block, arms: ArmCodes) -> None:
        self.block, self.arms = block, arms
        column = block.batch.column("names").dictionary_encode()
        #: (n,) which list each row has; -1 where arms have no ids.
        self.which = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self.lists = [self._read(at, text) for at, text in enumerate(column.dictionary.to_pylist())]
        #: (n,) their lengths; 0 where arms have no ids.
        self.sizes: IntArray = np.array([*map(len, self.lists), 0], dtype=np.int64)[self.which]

    def _read(self, at: int, text: str) -> IntArray:
        try:
            return self.arms.listed([text])[0]
        except FileFormatError as error:
            row = int(np.flatnonzero(self.which == at)[0])
            raise self.block.wrong(row, f"has the names {text!r:.60}", str(error)) from None

    def codes(self, available: BoolArray) -> IntArray:
        """(n, K) the numbers of the arms; those without ids are called by their indices."""
        named, sizes, width = self.which >= 0, available.sum(axis=1), available.shape[1]
        odd = named & (self.sizes != sizes)
        self.block.refuse(odd, lambda at: f"has {self.sizes[at]} names, for {sizes[at]} arms", ONE_ORDER)
        table = np.full((len(self.lists) + 1, width), -1)
        for at, numbers in enumerate(self.lists):
            table[at, : len(numbers)] = numbers[:width]
        if not named.all():
            table[-1] = self.arms.codes(map(str, range(width)))
        return np.where(available, table[self.which], -1)

    def chosen(self, codes: IntArray) -> IntArray | None:
        """(n,) the indices of the arms of the column ``arm``, -1 where it has none; None without such a column."""
        if not self.block.has("arm"):
            return None
        column = self.block.batch.column("arm").dictionary_encode()
        numbers = np.append(self.arms.codes(column.dictionary.to_pylist()), -2)
        same = codes == numbers[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)][:, None]
        known = (self.which >= 0) & np.asarray(column.is_valid())
        self.block.refuse(known & ~same.any(axis=1), "has an arm that is none of its names", ONE_ORDER)
        return np.where(known, same.argmax(axis=1), -1)
