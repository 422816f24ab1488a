"""What is read of one part: the two functions that are mapped over the parts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareswitch.errors import FileFormatError, InputError
from rareswitch.ids import KeyArray
from rareswitch.learner import Learner, Rows, State, Summary, sample_order
from rareswitch.log.block import Block, Span
from rareswitch.log.held_out import HeldOut
from rareswitch.log.places import size_of
from rareswitch.log.schema import NEEDED, blocks, opened
from rareswitch.validation import BoolArray, FloatArray, IntArray

#: Times as many sets as are sampled are looked at, since rows that contradict each other are left out.
SPARE = 2
#: How many foreign policies are told apart.
MOST_POLICIES = 100
#: Leading bits of a hash by which repeated ids are remembered.
BITS = 24


class Counted(NamedTuple):
    """What a first look at a part finds."""

    rows: int
    #: Bytes of the file.
    size: int
    #: Rows by the id of their policy; those of all policies beyond the hundredth are under ''.
    policies: Counter[str]
    #: Where the ids lie, of policies that are known, if they are numbers.
    spans: dict[str, Span]
    #: The latest time of rows of known policies, if it was asked for.
    latest: float
    #: Those of ids that were asked for.
    hashes: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What is wanted of all parts."""

    learner: Learner
    state: State
    #: Policies by id, numbered from 0.
    known: Mapping[str, int]
    #: Those with so few rows that all come back as they are.
    gathered: frozenset[str] = frozenset()
    #: Those whose rows are summed where they are read, but for repeated ids, which must be found before.
    summed: frozenset[str] = frozenset()
    #: The ids that occur more than once, as bits: see :func:`mark`.
    repeated: NDArray[np.uint8] | None = None
    low: float = 0.0
    #: Rows of repeated ids come back if their hash is between these; the others only where ``low`` is 0.
    high: float = 1.0
    window: float | None = None
    now: Any = None
    #: What counts for decisions whose reward did not come, once their window has passed.
    default: float | None = None
    #: The least and the largest reward as they are summed.
    clip: tuple[float, float] | None = None
    #: Decisions of an experiment that are passed over.
    leave_out: HeldOut | None = None

    @property
    def counting(self) -> dict[str, Any]:
        """What :meth:`~rareswitch.learner.Learner.summarize` is told of rewards."""
        return {"window": self.window, "now": self.now, "default": self.default, "clip": self.clip}


class Gathered(NamedTuple):
    """Rows that came back as they are."""

    source: str
    #: (n,) where in it they are.
    numbers: IntArray
    rows: Rows


class Read(NamedTuple):
    """What came of a part, by policy."""

    rows: int
    size: int
    summaries: dict[str, Summary]
    gathered: dict[str, list[Gathered]]
    #: Whether it has rows of repeated ids.
    repeats: bool
    #: The rank up to which the context sets of all its rows were looked at.
    cut: float


def count_part(path: str, *, task: Task) -> Counted:
    """Count the rows of a part by policy, see where ids lie; find the latest time, or hashes of ids, if asked for."""
    counts, latest, rows, found = Counter[str](), -np.inf, 0, [np.zeros(0)]
    timed, known = task.window is not None and task.now is None, task.known
    spans: dict[str, Span] = {}
    with opened(path, task.learner.dim) as file:
        numbers = str(file.schema_arrow.field("id").type) == "int64"
        wanted = ["policy"] + ["id"] * (numbers or bool(task.summed)) + ["time"] * timed
        for first, batch in blocks(file, wanted):
            block = Block(path, np.arange(first, first + batch.num_rows), batch)
            rows += batch.num_rows
            for name, count in block.policies().items():
                told = name in known or name in counts or len(counts) < MOST_POLICIES
                counts[name if told else ""] += count
            for name, mine in block.by_policy(known):
                if timed:
                    latest = max(latest, float(np.fmax.reduce(mine.times("time"), initial=-np.inf)))
                if name in task.summed:
                    mine.check_present("id")
                    hashes = id_hashes(known[name], mine.keys())
                    found.append(hashes[(hashes >= task.low) & (hashes < task.high)])
                elif numbers and not task.summed:
                    spans[name] = spans[name].then(mine.span()) if name in spans else mine.span()
        return Counted(rows, size_of(path), counts, spans, latest, np.concatenate(found))


def read_part(path: str, *, task: Task) -> Read:
    """Sum and gather the rows of a part."""
    with opened(path, task.learner.dim) as file:
        reader = Reader(task)
        wanted = [*NEEDED] + ["contexts"] * bool(reader.size) + ["time", "reward_time"] * (task.window is not None)
        for first, batch in blocks(file, wanted):
            reader.take(Block(path, np.arange(first, first + batch.num_rows), batch))
        rows, size = file.metadata.num_rows, size_of(path)
        return Read(rows, size, reader.summaries, reader.gathered, reader.repeats, reader.cut)


class Reader:
    """Takes a part of a log, or a slice of a store, block by block."""

    def __init__(self, task: Task) -> None:
        self.task, self.learner, self.state = task, task.learner, task.state
        self.size = SPARE * self.learner.sample_size(self.state)
        #: The smallest ranks of rows with a context set.
        self.ranks: FloatArray = np.zeros(0)
        self.summaries: dict[str, Summary] = {}
        self.gathered: dict[str, list[Gathered]] = {}
        self.repeats = False

    @property
    def cut(self) -> float:
        """The rank up to which the sets of all rows so far are looked at."""
        return float(self.ranks[-1]) if self.size and len(self.ranks) == self.size else np.inf

    def take(self, block: Block) -> None:
        """The next rows."""
        block.check_present(*NEEDED[:4])
        for name, mine in block.by_policy(self.task.known):
            if name in self.task.summed or (name in self.task.gathered and self.task.low == 0.0):
                self.take_rows(name, mine)

    def take_rows(self, name: str, block: Block) -> None:
        """Rows of one policy; stores know that their propensities are some, and do not give them."""
        if "propensity" in block.batch.schema.names:
            block.check_propensities()
        keys, features, rewards = block.keys(), block.features(self.learner.dim), block.rewards()
        places = self._places(block, keys) if name == self.state.policy.id else np.zeros(0, dtype=np.int64)
        here, back = self._sorted_out(name, keys)
        times: dict[str, Any] = {}
        if self.task.window is not None:
            times = {"times": block.times("time"), "reward_times": block.times("reward_time")}
            rule = "An attribution window needs the column 'time' of every decision."
            block.refuse(~np.isfinite(times["times"]), "has no time", rule)
        try:
            rows = Rows(
                ids=keys,
                policy_id=name,
                features=features,
                rewards=rewards,
                sets=block.sets(places, self.learner) if len(places) else None,
                places=places if len(places) else None,
                **times,
            )
            block.check_lengths(features, self.learner)
            if here.any():
                part = rows if here.all() else rows[np.flatnonzero(here)]
                more = self.learner.summarize(self.state, part, **self.task.counting, part=True)
                self.summaries[name] = self.summaries[name] + more if name in self.summaries else more
            if back.any():
                block.check_numbers(features, rewards)
                at = np.flatnonzero(back)
                self.gathered.setdefault(name, []).append(Gathered(block.source, block.numbers[at], rows[at]))
        except FileFormatError:
            raise
        except InputError as error:
            block.check_numbers(features, rewards)
            raise FileFormatError(f"{block.source}: {error}") from error

    def _sorted_out(self, name: str, keys: KeyArray) -> tuple[BoolArray, BoolArray]:
        """(n,) which rows are summed here, and which come back."""
        task, everything = self.task, np.ones(len(keys), dtype=np.bool_)
        if name in task.gathered:
            return ~everything, everything
        if task.repeated is None:
            return everything, ~everything
        hashes = id_hashes(task.known[name], keys)
        repeated = marked(task.repeated, hashes)
        self.repeats |= bool(repeated.any())
        return ~repeated & (task.low == 0.0), repeated & (hashes >= task.low) & (hashes < task.high)

    def _places(self, block: Block, keys: KeyArray) -> IntArray:
        """(m,) those rows with a context set whose ranks are the smallest so far."""
        at = block.with_sets(self.learner.dim)
        _, shown = self.learner.parts.statistics.halves(keys[at], self.state.policies)
        at = at if shown is None else at[shown]
        ranks = sample_order(keys[at])
        self.ranks = np.unique(np.concatenate([self.ranks, ranks[ranks <= self.cut]]))[: self.size]
        return at[ranks <= self.cut]


def id_hashes(policy: int, keys: KeyArray) -> FloatArray:
    """(n,) a hash in [0, 1) of ids under a policy: the finalizer of SplitMix64, which keeps numbers apart."""
    mixed = keys[:, 0] ^ (keys[:, 1] + np.uint64((2 * policy + 1) * 0x9E3779B97F4A7C15 % 2**64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def mark(table: NDArray[np.uint8] | None, hashes: FloatArray) -> NDArray[np.uint8]:
    """A table of bits in which these hashes are marked too. It holds a few others, which cost time and nothing else.

    >>> marked(mark(None, np.array([0.5])), np.array([0.25, 0.5])).tolist()
    [False, True]
    """
    table = np.zeros(1 << BITS - 3, dtype=np.uint8) if table is None else table
    at = (hashes * (1 << BITS)).astype(np.int64)
    np.bitwise_or.at(table, at >> 3, (1 << (at & 7)).astype(np.uint8))
    return table


def marked(table: NDArray[np.uint8], hashes: FloatArray) -> BoolArray:
    """(n,) which of these are marked."""
    at = (hashes * (1 << BITS)).astype(np.int64)
    return np.asarray(table[at >> 3] >> (at & 7).astype(np.uint8) & 1, dtype=np.bool_)
