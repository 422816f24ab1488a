"""Parts of a log: Parquet files with one row a decision, and blocks of their rows as checked Arrow columns.

What is wrong with a row is raised with the name of its part and its number.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rareswitch.core import (
    EXACT,
    LARGEST_SCALE,
    LONGEST,
    BoolArray,
    ContextSets,
    FloatArray,
    IntArray,
    KeyArray,
    Sets,
    id_keys,
    keys_of_bytes,
    opened_parquet,
    pyarrow,
    read_only,
    sealed,
    text_keys,
    whole,
)
from rareswitch.decisions import CERTAIN, DecisionLog, row_hashes
from rareswitch.errors import FileFormatError, InputError
from rareswitch.learner import Learner

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

N = TypeVar("N", bound=np.generic)

__all__ = ["log_schema"]

#: How many foreign policies are told apart.
MOST_POLICIES = 100
ONE_ORDER = "All columns of a row must be of the arms that were offered, in one order."
#: Rows of a row group that is written, and rows that are read at a time.
ROWS = 1 << 16
#: Columns that every part has.
NEEDED = ("id", "policy", "features", "propensity", "reward")
#: Columns that an experiment adds, and their types.
MORE = {
    "arm": "string",
    "arm_index": "int64",
    "digest": "binary",
    "baseline": "int64",
    "names": "string",
    "cohort": "string",
    "record": "string",
}
#: Where the schema of a part says, in JSON, what counts as a reward: window, in seconds, and default.
COUNTING = b"rareswitch.rewards"
#: Where it says how propensities were estimated.
ESTIMATED = b"rareswitch.estimated"
#: About how many bytes of all columns are held at a time.
_BYTES = 1 << 25
#: Bytes of texts that are unpacked at a time.
_TEXTS = 1 << 28


def log_schema(dim: int, *, strings: bool = False, times: bool = False) -> "pa.Schema":
    """The Arrow schema of a log of ``dim`` features.

    - ``id``: int64 or string, the name of the decision, unique under its policy;
    - ``policy``: string, the id of the policy that made it;
    - ``features``: fixed_size_list<double>[dim], the vector of the arm that was chosen;
    - ``propensity``: double in (0, 1], the probability with which the policy chose it;
    - ``reward``: double, or other numbers or bool, null while it is not known;
    - ``contexts``: list<double>, the available arms, one after the other; null where they were not kept;
    - ``time`` and ``reward_time``: timestamp, or double in seconds; for an attribution window only.

    >>> log_schema(3).names
    ['id', 'policy', 'features', 'propensity', 'reward', 'contexts']
    """
    pa, _ = pyarrow()
    number = pa.field("element", pa.float64(), nullable=False)
    return pa.schema(
        [
            pa.field("id", pa.string() if strings else pa.int64(), nullable=False),
            pa.field("policy", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("features", pa.list_(number, whole("dim", dim)), nullable=False),
            pa.field("propensity", pa.float64(), nullable=False),
            pa.field("reward", pa.float64()),
            pa.field("contexts", pa.list_(number)),
            *([pa.field("time", pa.float64()), pa.field("reward_time", pa.float64())] if times else []),
        ]
    )


_TEXT, _NUMBERS = "(large_)?string", r"(large_|fixed_size_)?list<\w+: double( not null)?>(\[\d+\])?"
#: What each column may be, as Arrow writes its types and as errors say it.
_KINDS = {
    "id": (f"int64|{_TEXT}", "int64 or string"),
    "policy": (_TEXT, "string, or a dictionary of strings"),
    "features": (_NUMBERS, "fixed_size_list<double>[{dim}], or list<double>"),
    "propensity": ("double", "double"),
    "reward": ("double|float|bool|u?int(8|16|32|64)", "a number (double, float, whole numbers) or bool"),
    "contexts": (_NUMBERS, "list<double>"),
    "time": (r"timestamp\[.*|double", "a timestamp, or double in seconds"),
    "behavior_probs": (_NUMBERS, "list<double>"),  # of all offered arms
    "key": (r"fixed_size_binary\[16\]", "fixed_size_binary[16]"),  # of ids that are not written as such
    **{name: (f"(large_)?{kind}", kind) for name, kind in MORE.items()},
    "reward_time": (r"timestamp\[.*|double", "a timestamp, or double in seconds"),
}


def check_columns(path: str, schema: "pa.Schema", dim: int | None) -> None:
    """Refuse a file whose columns are not those of a log of ``dim`` features; other columns are let be."""
    names = [name for name in schema.names if name in _KINDS]
    needed = [name for name in NEEDED if name != "features" or dim is not None]
    missing = [name for name in needed if name not in names]
    if missing:
        raise FileFormatError(
            f"{path}: a log needs the columns {', '.join(needed)}; here {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. It has {', '.join(schema.names) or 'none'}."
        )
    if len(set(names)) != len(names):
        raise FileFormatError(f"{path}: column names must differ; got {', '.join(schema.names)}.")
    for name in names:
        kind, (right, wanted) = _plain(schema.field(name).type), _KINDS[name]
        if not re.fullmatch(right, str(kind)):
            raise FileFormatError(
                f"{path}: column '{name}' must be {wanted.format(dim=dim)}; it is {kind}. Cast or rename it."
            )
    size = getattr(schema.field("features").type, "list_size", dim) if "features" in names else dim
    if size != dim and dim is not None:
        raise FileFormatError(f"{path}: the learner is for {dim} features, and column 'features' has {size}.")


def _plain(kind: "pa.DataType") -> "pa.DataType":
    """The type of the values of a column; texts may be read as codes of a dictionary."""
    pa, _ = pyarrow()
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@contextmanager
def open_part(path: str, dim: int | None) -> "Iterator[ParquetFile]":
    """A part of ``dim`` features, any number or none where it is None, checked to have the columns it needs."""
    with opened_parquet(path, _KINDS) as file:
        check_columns(path, file.schema_arrow, dim)
        yield file


def blocks(path: str, file: "ParquetFile", columns: Sequence[str]) -> "Iterator[Block]":
    """The rows of a part, of one row group at a time; of the columns it has.

    There are at most 65,536, and fewer where rows are long: the file alone says how sums are split.
    """
    first, names = 0, file.schema_arrow.names
    columns = [name for name in columns if name in names]
    for group in range(file.metadata.num_row_groups):
        held = file.metadata.row_group(group)  # not asked for its columns: malformed ones would end the process
        count = max(64, min(ROWS, _BYTES * held.num_rows // max(1, held.total_byte_size)))
        stop = first + held.num_rows
        for batch in file.iter_batches(count, row_groups=[group], columns=columns, use_threads=False):
            for piece in _unpacked(batch):
                yield Block(path, np.arange(first, first + piece.num_rows), piece)
                first += piece.num_rows
        if first != stop:  # pages whose headers are damaged may be passed over
            raise OSError(f"it tells of {stop} rows up to here, and {first} are found")


def _unpacked(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    """The rows of a batch with texts in place of their codes, in pieces that fit into memory."""
    pa, _ = pyarrow()
    names = batch.schema.names
    if "policy" in names and not pa.types.is_dictionary(batch.schema.field("policy").type):
        encoded = batch.column("policy").dictionary_encode()
        batch = batch.set_column(names.index("policy"), "policy", encoded)
    coded = [
        name
        for name, kind in zip(batch.schema.names, batch.schema.types, strict=True)
        if pa.types.is_dictionary(kind) and name != "policy"
    ]
    if not coded:
        yield batch
        return
    from pyarrow import compute

    size = 0
    for name in coded:
        column = batch.column(name)
        lengths = compute.binary_length(column.dictionary).take(column.indices)
        size += compute.sum(lengths).as_py() or 0
    if size > _TEXTS and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _unpacked(batch.slice(0, half))
        yield from _unpacked(batch.slice(half))
        return
    columns = [
        column.dictionary_decode() if name in coded else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


class Block(NamedTuple):
    """Rows of a part of a log, or of a slice of a store."""

    #: What they are from, as errors say it: the path of the part.
    source: str
    #: (n,) which of its rows they are.
    numbers: IntArray
    #: Their columns, an Arrow record batch.
    batch: "pa.RecordBatch"

    def wrong(self, at: int, what: str, rule: str) -> FileFormatError:
        """The error that one of these rows deserves."""
        return FileFormatError(f"{self.source}: row {int(self.numbers[at])} (the first is 0) {what}. {rule}")

    def refuse(self, bad: BoolArray | np.bool, what: Callable[[int], str] | str, rule: str) -> None:
        """Raise it for the first of the rows that are bad (n,), if any are."""
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise self.wrong(at, what if isinstance(what, str) else what(at), rule)

    def sizes(self, name: str) -> IntArray:
        """(n,) the lengths of the lists of a column."""
        return np.diff(bounds(self.batch.column(name)))

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.batch.schema.names

    def take(self, rows: IntArray) -> "Block":
        """Some of the rows."""
        return Block(self.source, self.numbers[rows], self.batch.take(rows))

    def check_present(self, *names: str) -> None:
        """Refuse nulls where a value is needed."""
        for name in names:
            if self.batch.column(name).null_count:
                absent = ~np.asarray(self.batch.column(name).is_valid())
                self.refuse(absent, f"has no {name}", "Only rewards and contexts may be missing.")

    def count_policies(self, counts: Counter[str], known: Mapping[str, int]) -> None:
        """Add the rows of each policy; where some are known, those of all beyond the hundredth are under ''."""
        self.check_present("policy")
        column = self.batch.column("policy")
        names = column.dictionary.to_pylist()
        rows = np.bincount(numbers_of(column.indices, np.int64), minlength=len(names)).tolist()
        for name, count in zip(names, rows, strict=True):
            named = not known or name in known or name in counts or len(counts) < MOST_POLICIES
            if count:
                counts[name if named else ""] += count

    def by_policy(self, known: Mapping[str, int]) -> Iterator[tuple[str, "Block"]]:
        """The rows of each known policy, in the order of their numbers."""
        codes, names = self.policy_numbers(known), {number: name for name, number in known.items()}
        present = np.unique(codes).tolist()
        for code in present:
            if code >= 0:
                yield names[code], self if len(present) == 1 else self.take(np.flatnonzero(codes == code))

    def policy_numbers(self, known: Mapping[str, int]) -> IntArray:
        """(n,) the number of the policy of each row; -1 where it is not known."""
        column = self.batch.column("policy")
        numbers = np.array([known.get(name, -1) for name in column.dictionary.to_pylist()] or [-1], dtype=np.int64)
        return np.asarray(numbers[numbers_of(column.indices, np.int64)])

    def keys(self) -> KeyArray:
        """(n, 2) the keys of the ids; stores keep these themselves."""
        pa, _ = pyarrow()
        if self.has("key"):
            column = self.batch.column("key")
            try:
                return id_keys(keys_of_bytes((column.buffers()[1] or b"")[16 * column.offset :], len(column)))
            except InputError as error:
                raise FileFormatError(f"{self.source}: {error}") from error
        column = self.batch.column("id")
        if pa.types.is_int64(column.type):
            ids = numbers_of(column, np.int64)
            self.refuse(ids < 0, "has a negative id", "A number as id is at least 0: write others as strings.")
            return id_keys(ids)
        texts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        try:
            texts.validate(full=True)  # it may be anything but Unicode
        except pa.ArrowInvalid as error:
            raise FileFormatError(f"{self.source}: not a readable Parquet file ({error}). Write it anew.") from error
        names = texts.cast(pa.large_binary()).to_pylist()
        sizes, rule = np.fromiter(map(len, names), int), f"A string as id has 1 to {LONGEST} bytes: write a hash of it."
        self.refuse((sizes < 1) | (sizes > LONGEST), lambda at: f"has an id of {sizes[at]} bytes", rule)
        return text_keys(names)

    def log(self, dim: int | None, learner: Learner | None = None, *, timed: bool = False) -> DecisionLog:
        """The decisions with the chosen arms alone, checked; also to be what a learner is for, where there is one.

        With ``timed``, for an attribution window, each must have a time.
        """
        has_vectors = dim is not None
        self.check_present("key" if self.has("key") else "id", "policy", "propensity", *["features"] * has_vectors)
        features = np.zeros((len(self.numbers), 0)) if dim is None else self.features(dim)
        propensities, rewards = self.propensities(), self.rewards()
        self.check_numbers(features, rewards)
        if learner is not None:
            self.check_lengths(features, learner)
        return DecisionLog.checked(
            propensities=propensities,
            rewards=rewards,
            features=features if has_vectors else None,
            ids=self.keys(),
            times=self.times("time", needed=timed) if self.has("time") or timed else None,
            reward_times=self.times("reward_time"),
            batch_names=(self.source,),
        )

    def features(self, dim: int) -> FloatArray:
        """(n, d) the chosen vectors, without a copy; NaN where there is a null."""
        pa, _ = pyarrow()
        column = self.batch.column("features")
        rule = f"The learner is for {dim}."
        if pa.types.is_fixed_size_binary(column.type):  # as stores keep them
            width = column.type.byte_width
            self.refuse(np.full(len(column), width != 8 * dim), f"has features of {width} bytes", rule)
            words = np.frombuffer(column.buffers()[1] or b"", dtype="<f8")[column.offset * dim :]
            return np.asarray(words[: len(column) * dim].reshape(-1, dim).astype(np.float64, copy=False))
        if hasattr(column, "offsets"):  # else they have a fixed size, which the schema says
            sizes = self.sizes("features")
            self.refuse(sizes != dim, lambda at: f"has {sizes[at]} features", rule)
        return numbers_of(column.flatten(), np.float64).reshape(-1, dim)

    def rewards(self) -> FloatArray:
        """(n,) NaN where they are null."""
        pa, _ = pyarrow()
        column = self.batch.column("reward")
        if pa.types.is_integer(column.type):
            whole, rule = column.fill_null(0).to_numpy(), "Beyond 2^53 whole numbers lose digits: use other units."
            self.refuse((whole > EXACT) | (whole < -EXACT), lambda at: f"has the reward {whole[at]}", rule)
        floats = column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)
        values = numbers_of(floats, np.float64)
        if not np.isfinite(values).all():
            odd = ~np.isfinite(values) & np.asarray(column.is_valid())
            self.refuse(odd, lambda at: f"has the reward {values[at]}", "Write null where a reward is not known.")
        return read_only(values)

    def times(self, name: str, *, needed: bool = False) -> FloatArray:
        """(n,) the column ``time`` or ``reward_time`` in seconds, NaN where it is null or missing."""
        pa, _ = pyarrow()
        seconds = np.full(len(self.numbers), np.nan)
        if self.has(name):
            column = self.batch.column(name)
            timestamps = pa.types.is_timestamp(column.type)
            if timestamps:
                column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()).cast(pa.float64())
            seconds = numbers_of(column, np.float64) / (1e6 if timestamps else 1.0)
        self.refuse(np.isinf(seconds), f"has a {name} that is not finite", "Write null where it is not known.")
        if needed:
            rule = f"An attribution window needs the column '{name}' of every decision."
            self.refuse(np.isnan(seconds), f"has no {name}", rule)
        return read_only(seconds)

    def propensities(self) -> FloatArray:
        """(n,) above 0, and at most 1."""
        values = numbers_of(self.batch.column("propensity"), np.float64)
        bad = ~((values > 0.0) & (values <= CERTAIN))
        self.refuse(bad, lambda at: f"has the propensity {values[at]}", "It must be above 0 and at most 1.")
        return read_only(values)

    def check_numbers(self, vectors: FloatArray, rewards: FloatArray, name: str = "features") -> None:
        """Refuse numbers that cannot be summed."""
        large = np.abs(rewards) > LARGEST_SCALE
        if not sound(vectors):
            odd = ~np.isfinite(vectors).all(axis=1)
            self.refuse(odd, f"has {name} that are not finite", "Clean or impute the data first.")
            large |= (np.abs(vectors) > LARGEST_SCALE).any(axis=1)
        self.refuse(large, f"has a number above {LARGEST_SCALE:g}", "Its square cannot be summed: use other units.")

    def check_lengths(self, vectors: FloatArray, learner: Learner) -> None:
        """Refuse vectors (n, d) longer than 1, where the learner needs that."""
        if learner.in_unit_ball:
            lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
            rule = f"{learner.name} is for vectors of length at most 1: divide all contexts by the longest."
            self.refuse(lengths > 1.0 + 1e-9, lambda at: f"has a vector of length {lengths[at]:.6g}", rule)

    def with_sets(self, dim: int) -> IntArray:
        """(m,) the rows that have a context set, of a size that can be."""
        if not self.has("contexts"):
            return np.zeros(0, dtype=np.int64)
        column = self.batch.column("contexts")
        rows, ends = present_rows(column), bounds(column)
        sizes = ends[rows + 1] - ends[rows]
        Block(self.source, self.numbers[rows], None).refuse(
            (sizes == 0) | (sizes % dim != 0),
            lambda at: f"has contexts of {sizes[at]} numbers, for arms of {dim} features",
            "Write the available arms one after the other, and null where they were not kept.",
        )
        return rows

    def lists(self, name: str, offered: BoolArray, width: int = 1) -> FloatArray:
        """(n, K, width) the numbers of each offered arm, zero for others; without a copy where all rows have K."""
        column = self.batch.column(name)
        sizes, wanted = self.sizes(name), width * offered.sum(axis=1)
        self.refuse(sizes != wanted, lambda at: f"has {sizes[at]} numbers of {name}, not {wanted[at]}", ONE_ORDER)
        flat = numbers_of(column.flatten(), np.float64)
        flat = flat.reshape(-1, width)
        if not sound(flat):
            arms = Block(self.source, np.repeat(self.numbers, sizes // width), None)
            arms.check_numbers(flat, np.zeros(len(flat)), name)
        if offered.all():
            return sealed(flat.reshape(*offered.shape, width))
        padded = np.zeros((*offered.shape, width))
        padded[offered] = flat
        return sealed(padded)

    def offered(self, dim: int) -> ContextSets:
        """The context sets of these rows, one at least, which all have one."""
        available = np.arange((sizes := self.sizes("contexts") // dim).max()) < sizes[:, None]
        return ContextSets.checked(Sets(self.lists("contexts", available, dim), sealed(available), False))

    def sets(self, rows: IntArray, learner: Learner) -> ContextSets:
        """The context sets of some rows, one at least, that have one; checked to be what a learner is for."""
        taken = Block(self.source, self.numbers[rows], self.batch.select(["contexts"]).take(rows))
        sizes = taken.sizes("contexts") // learner.dim
        many, rule = sizes > (learner.arms or np.inf), f"The learner is for at most {learner.arms}."
        taken.refuse(many, lambda at: f"offers {sizes[at]} arms", rule)
        sets = taken.offered(learner.dim)
        arms = Block(self.source, np.repeat(taken.numbers, sizes), None)
        arms.check_lengths(sets.contexts[sets.available], learner)
        return sets

    def index_column(self, name: str, sizes: IntArray) -> IntArray:
        """A column of indices of arms; -1 where there is a null."""
        column = self.batch.column(name)
        indices = numbers_of(column.fill_null(-1), np.int64)
        odd = ((indices < 0) & np.asarray(column.is_valid())) | (indices >= sizes)
        self.refuse(odd, lambda at: f"has the {name} {indices[at]}, of {sizes[at]} arms", ONE_ORDER)
        return indices

    def chosen_indices(
        self, available: BoolArray, features: FloatArray | None, contexts: FloatArray | None, named: IntArray | None
    ) -> IntArray:
        """(n,) where the chosen arms stand: by the column ``arm_index``, by their ids, or by their vectors."""
        count = len(available)
        indices = np.full(count, -1)
        if self.has("arm_index"):
            indices = self.index_column("arm_index", available.sum(axis=1))
        if named is not None:
            odd = (indices >= 0) & (named >= 0) & (indices != named)
            self.refuse(odd, lambda at: f"has an arm that is not the one at its arm_index, {indices[at]}", ONE_ORDER)
            indices = np.where(indices < 0, named, indices)
        unknown = indices < 0
        if contexts is None or features is None:
            rule = "Write its index, from 0, in the column 'arm_index'."
            self.refuse(unknown, "does not say which arm was chosen", rule)
            return indices
        if unknown.any():  # a slice where all are unknown: rows of vectors are much to copy
            rows = slice(None) if unknown.all() else unknown
            indices = indices.copy()
            indices[rows] = Block(self.source, self.numbers[rows], None)._alike(
                available[rows], features[rows], contexts[rows]
            )
        chosen = contexts.reshape(-1, features.shape[1]).take(np.arange(count) * available.shape[1] + indices, axis=0)
        if not np.array_equal(chosen, features):
            rule = "Write as arm_index, from 0, and as features those of the arm that was chosen."
            odd = (chosen != features).any(axis=1)
            self.refuse(odd, lambda at: f"has other features than the arm at its arm_index, {indices[at]}", rule)
        return indices

    def _alike(self, available: BoolArray, features: FloatArray, contexts: FloatArray) -> IntArray:
        """(n,) the first arm with these features; one is looked at only where those before it leave several arms."""
        same = available.copy()
        for k in range(features.shape[1]):
            same &= contexts[:, :, k] == features[:, k, None]
            if same.sum() <= len(same):
                break
        rule = "Write those of the arm that was chosen."
        self.refuse(~same.any(axis=1), "has features that are none of its contexts", rule)
        return np.asarray(same.argmax(axis=1))

    def set_hashes(self, dim: int | None) -> KeyArray:
        """(n,) hashes of context sets; 0 where there is none."""
        hashes = np.zeros(len(self.numbers), dtype=np.uint64)
        rows = self.with_sets(dim) if dim is not None else np.zeros(0, dtype=np.int64)
        if len(rows) and dim is not None:
            sets = self.take(rows).offered(dim)  # zeros behind the last arm change no hash
            numbers = np.column_stack([sets.available.sum(axis=1), sets.contexts.reshape(len(rows), -1)])
            hashes[rows] = row_hashes(numbers) | np.uint64(1)
        return hashes


def sound(numbers: FloatArray) -> bool:
    """Whether numbers are finite and can be summed, in one pass; False where that is not sure.

    >>> sound(np.array([1.0, -2.0])), sound(np.array([1.0, np.nan])), sound(np.array([1e101]))
    (True, False, False)
    """
    flat = numbers.reshape(-1)
    with np.errstate(all="ignore"):
        return bool(np.dot(flat, flat) <= LARGEST_SCALE**2)


def numbers_of(column: "pa.Array", kind: type[N]) -> NDArray[N]:
    """The numbers of a column, NaN where they are null: without a copy where none is, as Arrow's own loads pandas."""
    return np.asarray(column.to_numpy(zero_copy_only=False) if column.null_count else np.from_dlpack(column), kind)


def present_rows(column: "pa.Array") -> IntArray:
    """The rows in which there is something."""
    return np.flatnonzero(column.is_valid()) if column.null_count else np.arange(len(column))


def bounds(column: "pa.Array") -> IntArray:
    """(n + 1,) where each list begins among the values of a column."""
    if hasattr(column, "offsets"):
        return numbers_of(column.offsets, np.int64)
    return np.asarray((column.offset + np.arange(len(column) + 1)) * column.type.list_size)
