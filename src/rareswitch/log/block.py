"""Some rows as arrays, checked; what is wrong with them is raised with the name of their source and the row."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import FileFormatError, InputError
from rareswitch.files import pyarrow
from rareswitch.ids import LONGEST, KeyArray, id_keys, keys_of_bytes, text_keys
from rareswitch.learner import Learner
from rareswitch.validation import EXACT, LARGEST_SCALE, FloatArray, IntArray, Sets, read_only, sealed


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


class Block:
    """Rows of a part of a log, or of a slice of a store.

    Parameters
    ----------
    source
        What they are from, as errors say it: the path of the part.
    numbers
        (n,) which of its rows they are.
    batch
        Their columns, an Arrow record batch.
    """

    def __init__(self, source: str, numbers: IntArray, batch: Any) -> None:
        self.source, self.numbers, self.batch = source, numbers, batch

    def wrong(self, at: int, what: str, rule: str) -> FileFormatError:
        """The error that one of these rows deserves."""
        return FileFormatError(f"{self.source}: row {int(self.numbers[at])} (the first is 0) {what}. {rule}")

    def refuse(self, bad: Any, what: Callable[[int], str] | str, rule: str) -> None:
        """Raise it for the first of the rows that are bad (n,), if any are."""
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise self.wrong(at, what if isinstance(what, str) else what(at), rule)

    def check_present(self, *names: str) -> None:
        """Refuse nulls where a value is needed."""
        for name in names:
            if self.batch.column(name).null_count:
                absent = ~np.asarray(self.batch.column(name).is_valid())
                self.refuse(absent, f"has no {name}", "Only rewards and contexts may be missing.")

    def policies(self) -> dict[str, int]:
        """How many rows each policy has."""
        self.check_present("policy")
        column = self.batch.column("policy")
        names = column.dictionary.to_pylist()
        counts = np.bincount(column.indices.to_numpy()).tolist() if len(names) > 1 else [len(column)]
        return {name: count for name, count in zip(names, counts, strict=False) if count}

    def by_policy(self, known: Mapping[str, int]) -> Iterator[tuple[str, "Block"]]:
        """The rows of each of these policies, in their order."""
        column = self.batch.column("policy")
        names = column.dictionary.to_pylist()
        codes = np.array([known.get(name, -1) for name in names] or [-1])
        codes = codes[column.indices.to_numpy()] if len(names) > 1 else codes
        for name, code in known.items():
            at = np.flatnonzero(codes == code)
            if len(at) == len(codes):  # as most are
                yield name, self
            elif len(at):
                yield name, self.take(at)

    def span(self) -> Span:
        """Where the ids, which must be numbers, lie."""
        self.check_present("id")
        ids = self.batch.column("id").to_numpy()
        return Span(int(ids.min()), int(ids.max()), bool((ids[1:] > ids[:-1]).all()))

    def keys(self) -> KeyArray:
        """(n, 2) the keys of the ids; stores keep these themselves."""
        pa, _ = pyarrow()
        if "key" in self.batch.schema.names:
            column = self.batch.column("key")
            data = (column.buffers()[1] or b"")[16 * column.offset :]
            try:
                return id_keys(keys_of_bytes(data, len(column)))
            except InputError as error:
                raise FileFormatError(f"{self.source}: {error}") from error
        column = self.batch.column("id")
        if pa.types.is_int64(column.type):
            ids = column.to_numpy()
            self.refuse(ids < 0, "has a negative id", "A number as id is at least 0: write others as strings.")
            return id_keys(ids)
        texts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        texts.validate(full=True)  # it may be anything but Unicode
        names = texts.cast(pa.large_binary()).to_pylist()
        sizes, rule = np.fromiter(map(len, names), int), f"A string as id has 1 to {LONGEST} bytes: write a hash of it."
        self.refuse((sizes < 1) | (sizes > LONGEST), lambda at: f"has an id of {sizes[at]} bytes", rule)
        return text_keys(names)

    def features(self, dim: int) -> FloatArray:
        """(n, d) the chosen vectors, without a copy; NaN where there is a null."""
        pa, _ = pyarrow()
        column = self.batch.column("features")
        if pa.types.is_fixed_size_binary(column.type):  # as stores keep them
            width, every = column.type.byte_width, np.ones(len(column), dtype=np.bool_)
            self.refuse(every & (width != 8 * dim), f"has features of {width} bytes", f"The learner is for {dim}.")
            return np.asarray(_words(column, "<f8").astype(np.float64, copy=False))
        if hasattr(column, "offsets"):  # else they have a fixed size, which the schema says
            sizes = np.diff(bounds(column))
            self.refuse(sizes != dim, lambda at: f"has {sizes[at]} features", f"The learner is for {dim}.")
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim))

    def rewards(self) -> FloatArray:
        """(n,) NaN where they are null."""
        pa, _ = pyarrow()
        given = self.batch.column("reward")
        if pa.types.is_integer(given.type):
            whole, rule = given.fill_null(0).to_numpy(), "Beyond 2^53 whole numbers lose digits: use other units."
            odd = (whole > EXACT) | (whole < -EXACT)
            self.refuse(odd, lambda at: f"has the reward {whole[at]}", rule)
        column = given.cast(pa.float64(), safe=False)
        values = column.to_numpy(zero_copy_only=False)
        if not np.isfinite(values).all():
            odd = ~np.isfinite(values) & np.asarray(column.is_valid())
            self.refuse(odd, lambda at: f"has the reward {values[at]}", "Write null where a reward is not known.")
        return read_only(values)

    def times(self, name: str) -> FloatArray:
        """(n,) the column ``time`` or ``reward_time`` in seconds, NaN where it is null or missing."""
        pa, _ = pyarrow()
        if name not in self.batch.schema.names:
            return np.full(len(self.numbers), np.nan)
        column = self.batch.column(name)
        if pa.types.is_timestamp(column.type):
            whole = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()).cast(pa.float64())
            return np.asarray(whole.to_numpy(zero_copy_only=False) / 1e6)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def more(self, name: str) -> list[Any]:
        """(n,) a column that experiments add; None where it is null or missing."""
        if name not in self.batch.schema.names:
            return [None] * len(self.numbers)
        return list(self.batch.column(name).to_pylist())

    def check_propensities(self) -> None:
        """Refuse propensities that are none."""
        values = self.batch.column("propensity").to_numpy()
        bad = ~((values > 0.0) & (values <= 1.0))
        self.refuse(bad, lambda at: f"has the propensity {values[at]}", "It must be above 0 and at most 1.")

    def take(self, rows: IntArray) -> "Block":
        """Some of the rows."""
        return Block(self.source, self.numbers[rows], self.batch.take(rows))

    def check_numbers(self, features: FloatArray, rewards: FloatArray, name: str = "features") -> None:
        """Refuse numbers that cannot be summed."""
        large = np.abs(rewards) > LARGEST_SCALE
        if not sound(features):
            odd = ~np.isfinite(features).all(axis=1)
            self.refuse(odd, f"has {name} that are not finite", "Clean or impute the data first.")
            large |= (np.abs(features) > LARGEST_SCALE).any(axis=1)
        self.refuse(large, f"has a number above {LARGEST_SCALE:g}", "Its square cannot be summed: use other units.")

    def check_lengths(self, vectors: FloatArray, learner: Learner) -> None:
        """Refuse vectors (n, d) longer than 1, where the learner needs that."""
        if learner.in_unit_ball:
            lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
            rule = f"{learner.name} is for vectors of length at most 1: divide all contexts by the longest."
            self.refuse(lengths > 1.0 + 1e-9, lambda at: f"has a vector of length {lengths[at]:.6g}", rule)

    def with_sets(self, dim: int) -> IntArray:
        """(m,) the rows that have a context set, of a size that can be."""
        if "contexts" not in self.batch.schema.names:
            return np.zeros(0, dtype=np.int64)
        column = self.batch.column("contexts")
        arm_indices, ends = np.flatnonzero(column.is_valid()), bounds(column)
        sizes, here = ends[arm_indices + 1] - ends[arm_indices], Block(self.source, self.numbers[arm_indices], None)
        odd = (sizes == 0) | (sizes % dim != 0)
        rule = "Write the available arms one after the other, and null where they were not kept."
        here.refuse(odd, lambda at: f"has contexts of {sizes[at]} numbers, for arms of {dim} features", rule)
        return arm_indices

    def sets(self, arm_indices: IntArray, learner: Learner) -> ContextSets:
        """The context sets of some rows, one at least, that have one."""
        column = self.batch.column("contexts").take(arm_indices)
        arms = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, learner.dim)
        sizes = np.diff(bounds(column)) // learner.dim
        here = Block(self.source, np.repeat(self.numbers[arm_indices], sizes), None)
        odd = ~np.isfinite(arms).all(axis=1)
        here.refuse(odd, "has contexts that are not finite", "Clean or impute the data first.")
        many, rule = sizes > (learner.arms or np.inf), f"The learner is for at most {learner.arms}."
        Block(self.source, self.numbers[arm_indices], None).refuse(many, lambda at: f"offers {sizes[at]} arms", rule)
        here.check_lengths(arms, learner)
        available = np.arange(sizes.max()) < sizes[:, None]
        contexts = np.zeros((*available.shape, learner.dim))
        contexts[available] = arms
        return ContextSets.checked(Sets(sealed(contexts), sealed(available), False))


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


def _words(column: Any, kind: str) -> Any:
    """(n, …) the numbers of 8 bytes of which the values of a column of bytes consist, without a copy."""
    width = column.type.byte_width // 8
    words = np.frombuffer(column.buffers()[1] or b"", dtype=kind)
    return words[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)
