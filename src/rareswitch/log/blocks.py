"""Some rows as Arrow columns, checked; what is wrong with them is raised with the name of their source and the row."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

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
    pyarrow,
    read_only,
    sealed,
    text_keys,
)
from rareswitch.errors import FileFormatError, InputError
from rareswitch.learner import Learner

#: How many foreign policies are told apart.
MOST_POLICIES = 100


class Span(NamedTuple):
    """Where some ids lie that are numbers."""

    low: int
    high: int
    #: Whether each is above the one before it, so that none occurs twice.
    rise: bool

    def then(self, other: "Span") -> "Span":
        """That of these ids and others after them."""
        rises = self.high < other.low and self.rise and other.rise
        return Span(min(self.low, other.low), max(self.high, other.high), rises)


class Decided(NamedTuple):
    """What every row tells."""

    #: (n, 2)
    keys: KeyArray
    #: (n, d) the vectors of the chosen arms; d = 0 where there are none.
    features: FloatArray
    #: (n,)
    propensities: FloatArray
    #: (n,) NaN where they are not known.
    rewards: FloatArray


class Block(NamedTuple):
    """Rows of a part of a log, or of a slice of a store."""

    #: What they are from, as errors say it: the path of the part.
    source: str
    #: (n,) which of its rows they are.
    numbers: IntArray
    #: Their columns, an Arrow record batch.
    batch: Any

    def wrong(self, at: int, what: str, rule: str) -> FileFormatError:
        """The error that one of these rows deserves."""
        return FileFormatError(f"{self.source}: row {int(self.numbers[at])} (the first is 0) {what}. {rule}")

    def refuse(self, bad: BoolArray | np.bool, what: Callable[[int], str] | str, rule: str) -> None:
        """Raise it for the first of the rows that are bad (n,), if any are."""
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise self.wrong(at, what if isinstance(what, str) else what(at), rule)

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
        rows = np.bincount(column.indices.to_numpy(), minlength=len(names)).tolist()
        for name, count in zip(names, rows, strict=True):
            told = not known or name in known or name in counts or len(counts) < MOST_POLICIES
            if count:
                counts[name if told else ""] += count

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
        return np.asarray(numbers[column.indices.to_numpy()])

    def span(self) -> Span:
        """Where the ids, which must be numbers, lie."""
        self.check_present("id")
        ids = self.batch.column("id").to_numpy()
        return Span(int(ids.min()), int(ids.max()), bool((ids[1:] > ids[:-1]).all()))

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
            ids = column.to_numpy()
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

    def decided(self, dim: int | None, learner: Learner | None = None) -> Decided:
        """What was decided and earned, checked; also to be what the learner is for, where there is one."""
        self.check_present("key" if self.has("key") else "id", "policy", "propensity")
        features = np.zeros((len(self.numbers), 0))
        if dim is not None:
            self.check_present("features")
            features = self.features(dim)
        propensities, rewards = self.propensities(), self.rewards()
        self.check_numbers(features, rewards)
        if learner is not None:
            self.check_lengths(features, learner)
        return Decided(self.keys(), features, propensities, rewards)

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
            sizes = np.diff(bounds(column))
            self.refuse(sizes != dim, lambda at: f"has {sizes[at]} features", rule)
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim))

    def rewards(self) -> FloatArray:
        """(n,) NaN where they are null."""
        pa, _ = pyarrow()
        given = self.batch.column("reward")
        if pa.types.is_integer(given.type):
            whole, rule = given.fill_null(0).to_numpy(), "Beyond 2^53 whole numbers lose digits: use other units."
            self.refuse((whole > EXACT) | (whole < -EXACT), lambda at: f"has the reward {whole[at]}", rule)
        column = given.cast(pa.float64(), safe=False)
        values = column.to_numpy(zero_copy_only=False)
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
            seconds = np.asarray(column.to_numpy(zero_copy_only=False)) / (1e6 if timestamps else 1.0)
        if needed:
            rule = f"An attribution window needs the column '{name}' of every decision."
            self.refuse(~np.isfinite(seconds), f"has no {name}", rule)
        return read_only(seconds)

    def propensities(self) -> FloatArray:
        """(n,) above 0, and at most 1."""
        values = self.batch.column("propensity").to_numpy()
        bad = ~((values > 0.0) & (values <= 1.0))
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
        rows, ends = np.flatnonzero(column.is_valid()), bounds(column)
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
        sizes, wanted = np.diff(bounds(column)), width * offered.sum(axis=1)
        rule = "All columns of a row must be of the arms that were offered, in one order."
        self.refuse(sizes != wanted, lambda at: f"has {sizes[at]} numbers of {name}, not {wanted[at]}", rule)
        flat = np.ascontiguousarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
        flat = flat.reshape(-1, width)
        if not sound(flat):
            arms = Block(self.source, np.repeat(self.numbers, sizes // width), None)
            arms.check_numbers(flat, np.zeros(len(flat)), name)
        if offered.all():
            return sealed(flat.reshape(*offered.shape, width))
        found = np.zeros((*offered.shape, width))
        found[offered] = flat
        return sealed(found)

    def sets(self, rows: IntArray, learner: Learner) -> ContextSets:
        """The context sets of some rows, one at least, that have one."""
        taken = Block(self.source, self.numbers[rows], self.batch.select(["contexts"]).take(rows))
        sizes = np.diff(bounds(taken.batch.column("contexts"))) // learner.dim
        many, rule = sizes > (learner.arms or np.inf), f"The learner is for at most {learner.arms}."
        taken.refuse(many, lambda at: f"offers {sizes[at]} arms", rule)
        available = np.arange(sizes.max()) < sizes[:, None]
        contexts = taken.lists("contexts", available, learner.dim)
        arms = Block(self.source, np.repeat(taken.numbers, sizes), None)
        arms.check_lengths(contexts[available], learner)
        return ContextSets.checked(Sets(contexts, sealed(available), False))


def sound(numbers: FloatArray) -> bool:
    """Whether numbers are finite and can be summed, in one pass; False where that is not sure.

    >>> sound(np.array([1.0, -2.0])), sound(np.array([1.0, np.nan])), sound(np.array([1e101]))
    (True, False, False)
    """
    flat = numbers.reshape(-1)
    with np.errstate(all="ignore"):
        return bool(np.dot(flat, flat) <= LARGEST_SCALE**2)


def bounds(column: Any) -> IntArray:
    """(n + 1,) where each list begins among the values of a column."""
    if hasattr(column, "offsets"):
        return np.asarray(column.offsets.to_numpy(zero_copy_only=False))
    return np.asarray((column.offset + np.arange(len(column) + 1)) * column.type.list_size)
