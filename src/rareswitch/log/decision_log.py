"""The one table of decisions: what was offered, what was chosen with which probability, and what came of it."""

import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareswitch.core import (
    BoolArray,
    FloatArray,
    IntArray,
    KeyArray,
    finite_array,
    id_keys,
    read_only,
    sample_order,
    sealed,
)
from rareswitch.errors import EmptySetError, FileFormatError, NonFiniteError, ParameterError, ShapeError, several
from rareswitch.learner import deduplicate, known_rewards
from rareswitch.policy import Policy

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

    from rareswitch.core import TableCell
    from rareswitch.log.tables import ColumnNames, TableOptions

T = TypeVar("T")
N = TypeVar("N", bound=np.generic)
#: Numbers, one for each decision, None where one is not known.
Column: TypeAlias = ArrayLike | Sequence[float | None]
#: Lists of arms that are remembered.
MOST_LISTS = 1 << 16
#: Times are at most this far from 1970, in seconds, where years have four digits.
LATEST = 6e10
#: Columns with an entry for each decision, and of these the ones with an entry for each of its arms.
COLUMNS = ("arm_indices", "propensities", "rewards", "ids", "batches", "features", "baselines", "times", "expired")
BY_ARM = {"available": False, "contexts": 0.0, "behavior_probs": 0.0, "codes": -1}


class Source(Protocol):
    """Where decisions are read from, as often as needed, some at a time; :class:`DecisionLog` is one itself."""

    @property
    def batch_names(self) -> tuple[str, ...]:
        """The names of all batches, in the order in which they were made."""

    @property
    def policies(self) -> Mapping[str, Policy]:
        """The frozen policies of batches, as far as they are at hand, by the names of these."""

    @property
    def estimated(self) -> str:
        """How propensities were estimated; empty where they are exact."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is to be borne in mind of its rewards, in sentences."""

    @property
    def open_from(self) -> float:
        """Decisions made after that, in seconds since 1970, still wait for rewards: their window is open."""

    @property
    def dim(self) -> int | None:
        """Features of an arm; None where there are no vectors."""

    def chunks(self, *, contexts: bool = True) -> Iterator["DecisionLog"]:
        """The decisions, some at a time; all chunks have the ``batch_names`` of the source.

        With ``contexts`` those of which all offered arms are known (all, or a sample that was taken by the hash of the
        id alone, so that it is like the rest). Without, all decisions, with the vectors of the chosen arms only:
        ``contexts`` and ``codes`` are None, ``available`` is (n, 1) and ``arm_indices`` 0.
        """


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionLog:
    """Decisions of one or several frozen policies, a row each; read-only.

    A batch is what one frozen policy decided. Batches are numbered in the order in which they were made: what is
    learned from one may change the policy of the next.

    Examples
    --------
    >>> shown = {"arm_indices": [0, 1, 1], "propensities": [0.5, 0.5, 0.9], "arms": ["red", "blue"]}
    >>> log = DecisionLog(rewards=[1.0, 0.0, None], **shown)
    >>> log
    <decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>
    >>> log.chosen_names
    ['red', 'blue', 'blue']
    """

    #: (n,) where the chosen arm stands among those that were offered.
    arm_indices: IntArray
    #: (n,) the probability with which it was chosen, above 0.
    propensities: FloatArray
    #: (n,) what it earned; NaN, or None where it is given, where that is not known.
    rewards: FloatArray
    #: (n, K) which arms were offered; all K by default.
    available: BoolArray = None  # type: ignore[assignment]
    #: (n, K, d) the vectors of the arms; None where there are none.
    contexts: FloatArray | None = None
    #: (n, d) the vectors of the chosen arms; taken from the contexts where these are there.
    features: FloatArray | None = None
    #: The ids of all arms that occur; None where arms have no ids.
    arms: tuple[str, ...] | None = None
    #: (n, K) which of these each one is, -1 where none was offered; by default arm 0 is the first of them.
    codes: IntArray | None = None
    #: (n, K) the probabilities of all offered arms, where they are known beside that of the chosen one.
    behavior_probs: FloatArray | None = None
    #: (n,) the index of the arm that the caller would have shown, -1 where none was named.
    baselines: IntArray | None = None
    #: (n, 2) keys of the ids, or ids; 0, 1, 2 … by default.
    ids: KeyArray = None  # type: ignore[assignment]
    #: (n,) seconds since 1970; NaN where it is not known.
    times: FloatArray | None = None
    #: (n,) which decisions have a reward that came after its window, and so none that counts; None where no one knows.
    expired: BoolArray | None = None
    #: (n,) the batch of each row; all are of batch 0 by default.
    batches: IntArray = None  # type: ignore[assignment]
    #: What the batches are called: the ids of their policies, where these are known.
    batch_names: tuple[str, ...] = ("log",)
    #: The frozen policies of batches, as far as they are at hand, by the names of these.
    policies: Mapping[str, Policy] = field(default_factory=dict)
    #: How propensities were estimated; empty where they are those with which decisions were made.
    estimated: str = ""
    #: What is to be borne in mind of the rewards, in sentences.
    cautions: tuple[str, ...] = ()
    #: Decisions made after that, in seconds since 1970, still wait for rewards.
    open_from: float = math.inf

    if TYPE_CHECKING:  # columns may be given as lists, or as whatever becomes an array

        def __init__(
            self,
            *,
            arm_indices: ArrayLike,
            propensities: ArrayLike,
            rewards: Column,
            available: ArrayLike | None = None,
            contexts: ArrayLike | None = None,
            features: ArrayLike | None = None,
            arms: Sequence[str] | None = None,
            codes: ArrayLike | None = None,
            behavior_probs: ArrayLike | None = None,
            baselines: ArrayLike | None = None,
            ids: ArrayLike | Sequence[int | str] | None = None,
            times: ArrayLike | None = None,
            expired: ArrayLike | None = None,
            batches: ArrayLike | None = None,
            batch_names: Sequence[str] = ("log",),
            policies: Mapping[str, Policy] | None = None,
            estimated: str = "",
            cautions: tuple[str, ...] = (),
            open_from: float = math.inf,
        ) -> None: ...

    def __post_init__(self) -> None:
        arm_indices = _whole("arm_indices", self.arm_indices)
        count = len(arm_indices)
        rows = np.arange(count)
        if count == 0:
            raise EmptySetError("a log needs one decision at least; got none.")
        propensities = _numbers("propensities", self.propensities, count)
        _refuse(
            ~((propensities > 0.0) & (propensities <= 1.0)),
            "propensities must be above 0 and at most 1",
            lambda at: (
                f"has {propensities[at]:g}. What was never chosen cannot be in a log; where propensities are "
                "not known, estimate them"
            ),
        )
        contexts = None if self.contexts is None else _finite("contexts", self.contexts, (count, None, None))
        available = self._offered(arm_indices, contexts)
        arms = available.shape[1]
        inside = (arm_indices >= 0) & (arm_indices < arms)
        _refuse(
            ~(inside & available[rows, np.where(inside, arm_indices, 0)]),
            "arm_indices must be those of offered arms",
            lambda at: f"has {arm_indices[at]} among {int(available[at].sum())} arms",
        )
        features = None if self.features is None else _finite("features", self.features, (count, None))
        if features is None and contexts is not None:
            features = sealed(contexts[rows, arm_indices])
        batches = np.zeros(count, dtype=np.int64) if self.batches is None else _whole("batches", self.batches, count)
        names = tuple(self.batch_names)
        if len(set(names)) < len(names) or batches.min() < 0 or batches.max() >= len(names):
            raise ParameterError(
                f"batches must be numbers from 0 to {len(names) - 1}, one name each; got {batches.min()} to "
                f"{batches.max()} and the names {', '.join(map(str, names)):.100}."
            )
        baselines = None if self.baselines is None else _whole("baselines", self.baselines, count)
        if baselines is not None and ((baselines >= arms) | (baselines < -1)).any():
            raise ParameterError(f"baselines must be indices of arms, up to {arms - 1}, or -1 where none was named.")
        expired = None if self.expired is None else np.array(self.expired, dtype=np.bool_)
        if expired is not None and expired.shape != (count,):
            raise ShapeError(f"expired must be (n,), a flag for each of {count} decisions; got {expired.shape}.")
        times = None if self.times is None else _numbers("times", self.times, count, finite=False)
        if times is not None:
            _refuse(
                np.abs(times) > LATEST,
                "times must be seconds since 1970",
                lambda at: f"has {times[at]:g}. Divide milliseconds by 1000, and give NaN where a time is not known",
            )
        ids = id_keys(rows if self.ids is None else self.ids, count)
        if self.ids is not None:
            _refuse_repeated(ids, batches)
        arm_names, codes = self._named(available)
        vars(self).update(
            arm_indices=arm_indices,
            propensities=propensities,
            rewards=known_rewards(self.rewards, count),
            available=available,
            contexts=contexts,
            features=features,
            arms=arm_names,
            codes=codes,
            behavior_probs=self._probabilities(available, arm_indices, propensities),
            baselines=baselines,
            ids=ids,
            times=times,
            expired=None if expired is None else sealed(expired),
            batches=sealed(batches),
            batch_names=names,
            policies=dict(self.policies),
        )

    @classmethod
    def from_frame(
        cls,
        frame: "IntoDataFrame | Sequence[Mapping[str, TableCell]]",
        *,
        columns: "ColumnNames | None" = None,
        **options: "Unpack[TableOptions]",
    ) -> "DecisionLog":
        """A log of a frame of pandas, polars or Arrow, or of a list of records: a row a decision.

        Parameters
        ----------
        columns
            The names of columns by their roles, where they are others: see :func:`~rareswitch.log.read_csv`.
        options
            ``where``, ``features``, ``arms``, ``propensities`` and ``within``, as :func:`~rareswitch.log.read_csv`
            takes them.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["shirt", "shoe", "shirt"], "click": [1, 0, None], "p": [0.25, 0.5, 0.25]})
        >>> log = DecisionLog.from_frame(frame, columns={"arm": "item", "reward": "click", "propensity": "p"})
        >>> log, log.chosen_names
        (<decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>, ['shirt', 'shoe', 'shirt'])
        """
        from rareswitch.core import Table
        from rareswitch.features import frame_columns
        from rareswitch.log.tables import log_of_table

        return log_of_table(Table.of("frame", frame_columns("frame", frame)), columns, **options).log

    @classmethod
    def checked(cls, **columns: Any) -> Self:
        """Of columns that were checked already, which become read-only; by default with the chosen arms alone."""
        log, count = object.__new__(cls), len(columns["rewards"])
        none = dict.fromkeys(
            ("contexts", "features", "arms", "codes", "behavior_probs", "baselines", "times", "expired")
        )
        alone = {"available": np.ones((count, 1), dtype=np.bool_), "arm_indices": np.zeros(count, dtype=np.int64)}
        vars(log).update(none | alone | {"estimated": "", "cautions": (), "open_from": math.inf} | columns)
        for column in vars(log).values():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)
        return log

    def _offered(self, arm_indices: IntArray, contexts: FloatArray | None) -> BoolArray:
        count = len(arm_indices)
        if self.available is not None:
            available = np.asarray(self.available)
            wanted = (count, available.shape[-1] if contexts is None else contexts.shape[1])
            if available.dtype != np.bool_ or available.shape != wanted:
                raise ShapeError(
                    f"available must be booleans of shape {wanted}; got {available.dtype} of shape {available.shape}."
                )
            return read_only(available)
        widths = [np.shape(column)[1] for column in (contexts, self.behavior_probs, self.codes) if np.ndim(column) > 1]
        width = max(1, len(self.arms) if self.arms is not None else int(arm_indices.max()) + 1)
        return sealed(np.ones((count, widths[0] if widths else width), dtype=np.bool_))

    def _named(self, available: BoolArray) -> tuple[tuple[str, ...] | None, IntArray | None]:
        if self.arms is None:
            if self.codes is not None:
                raise ParameterError("codes say which of the arms stands where, and arms were not given.")
            return None, None
        arms = tuple(map(str, self.arms))
        if len(set(arms)) < len(arms):
            raise ParameterError("arms must have different ids.")
        if self.codes is None and len(arms) != available.shape[1]:
            raise ShapeError(
                f"arms must be {available.shape[1]}, one for each index; got {len(arms)}. Give codes where different "
                "arms are offered."
            )
        codes = np.broadcast_to(np.arange(len(arms)), available.shape) if self.codes is None else np.asarray(self.codes)
        if codes.shape != available.shape or codes.dtype.kind not in "iu":
            raise ShapeError(
                f"codes must be whole numbers of shape {available.shape}; got {codes.dtype} {codes.shape}."
            )
        codes = np.where(available, codes, -1)
        if (codes[available] < 0).any() or codes.max() >= len(arms):
            raise ParameterError(f"codes must be from 0 to {len(arms) - 1} where an arm is offered.")
        ordered = np.sort(codes, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        _refuse(
            twice.any(axis=1),
            "a decision must offer different arms",
            lambda at: f"offers {arms[ordered[at, twice[at].argmax()]]!r:.60} twice",
        )
        return arms, sealed(codes)

    def _probabilities(
        self, available: BoolArray, arm_indices: IntArray, propensities: FloatArray
    ) -> FloatArray | None:
        if self.behavior_probs is None:
            return None
        given = _finite("behavior_probs", self.behavior_probs, available.shape)
        own = given[np.arange(len(given)), arm_indices]
        _refuse(
            ~np.isclose(own, propensities, rtol=1e-6, atol=1e-12),
            "behavior_probs must give the chosen arm its propensity",
            lambda at: f"has {own[at]:g} beside {propensities[at]:g}",
        )
        inside = np.where(available, given, 0.0)
        _refuse(
            (inside < 0.0).any(axis=1) | (np.abs(inside.sum(axis=1) - 1.0) > 1e-6),
            "behavior_probs must sum to 1 over the offered arms",
            lambda at: f"has {inside[at].tolist()!s:.100}",
        )
        return given

    def __len__(self) -> int:
        return len(self.arm_indices)

    def __repr__(self) -> str:
        batches, known = len(self.batch_names), int((~np.isnan(self.rewards)).sum())
        return (
            f"<decision log: {several(len(self), 'decision')}, {known:,} rewarded, {several(batches, 'batch')}, at "
            f"most {self.available.shape[1]} arms{', propensities estimated' if self.estimated else ''}>"
        )

    @property
    def dim(self) -> int | None:
        """Features of an arm; None where there are no vectors."""
        return None if self.features is None else int(self.features.shape[1])

    @property
    def present(self) -> list[int]:
        """The batches that have rows here."""
        numbers: list[int] = np.flatnonzero(np.bincount(self.batches)).tolist()
        return numbers

    @property
    def arm_codes(self) -> tuple[tuple[str, ...], IntArray]:
        """Names of all arms, and (n, K) which of these each offered one is; their indices where arms have no ids."""
        if self.arms is not None and self.codes is not None:
            return self.arms, self.codes
        width = self.available.shape[1]
        return tuple(map(str, range(width))), np.where(self.available, np.arange(width), -1)

    @cached_property
    def chosen_names(self) -> list[str]:
        """(n) the ids of the chosen arms; their indices as texts where arms have none."""
        names, codes = self.arm_codes
        return [names[code] for code in codes[np.arange(len(self)), self.arm_indices].tolist()]

    def select(self, which: slice | BoolArray | IntArray) -> Self:
        """Some of the rows: a mask, a slice, or an array of indices."""
        columns = {name: getattr(self, name) for name in (*COLUMNS, *BY_ARM)}
        taken = {name: None if column is None else column[which] for name, column in columns.items()}
        return self.checked(**{name: vars(self)[name] for name in self.__dataclass_fields__} | taken)

    def by_batch(self) -> Self:
        """The rows of each batch together, in the order of the batches, so that this order can be read off."""
        rises = bool((np.diff(self.batches) >= 0).all())
        return self if rises else self.select(np.argsort(self.batches, kind="stable"))

    def chunks(self, *, contexts: bool = True) -> Iterator[Self]:
        """Itself, as a :class:`Source`."""
        yield self

    @classmethod
    def concatenate(cls, chunks: "Sequence[DecisionLog]") -> "DecisionLog":
        """Chunks of one source, one after the other; arms that were not offered fill up the shorter ones.

        >>> one = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[1.0], arms=["red", "blue"])
        >>> other = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[0.0], arms=["green"], ids=[1])
        >>> DecisionLog.concatenate([one, other]).chosen_names
        ['red', 'green']
        """
        if not chunks:
            raise EmptySetError("of no decision of this log it is known which arms were offered.")
        first, width = chunks[0], max(chunk.available.shape[1] for chunk in chunks)
        if len(chunks) == 1:
            return first
        if len({chunk.batch_names for chunk in chunks}) > 1:
            raise ShapeError("chunks of one source must have the same batch_names.")
        order: dict[str, int] = {}
        codes = []
        for chunk in chunks:
            names, mine = chunk.arm_codes
            numbers = np.array([order.setdefault(arm, len(order)) for arm in names])
            codes.append(np.where(mine >= 0, numbers[mine], -1))
        named = all(chunk.codes is not None for chunk in chunks)
        columns: dict[str, Any] = {"arms": tuple(order) if named else None}
        for name in (*COLUMNS, *BY_ARM):
            parts = codes if name == "codes" and named else [getattr(chunk, name) for chunk in chunks]
            if all(part is not None for part in parts):
                wide = [_wide(part, width, BY_ARM[name]) for part in parts] if name in BY_ARM else parts
                columns[name] = np.concatenate(wide)
        return DecisionLog(batch_names=first.batch_names, policies=first.policies, estimated=first.estimated, **columns)

    def with_behavior_probs(self) -> "DecisionLog":
        """The same log with the probabilities of all arms by its frozen policies, where it lacks them and has these."""
        names = [self.batch_names[batch] for batch in self.present]
        known = self.contexts is not None and all(name in self.policies for name in names)
        if self.behavior_probs is not None or not known:
            return self
        assert self.contexts is not None
        found = np.zeros(self.available.shape)
        for batch, name in zip(self.present, names, strict=True):
            rows, policy = np.flatnonzero(self.batches == batch), self.policies[name]
            baseline = {}
            if policy.needs_baseline:
                if self.baselines is None or (self.baselines[rows] < 0).any():
                    return self
                baseline = {"baseline": self.baselines[rows]}
            found[rows] = policy.probabilities(self.contexts[rows], self.available[rows], **baseline)
        if not np.allclose(found[np.arange(len(self)), self.arm_indices], self.propensities, rtol=1e-6, atol=1e-12):
            return self  # another policy decided, or propensities were changed: an evaluation says so
        return replace(self, behavior_probs=found)


def read_all(source: Source) -> DecisionLog:
    """All decisions of a source in memory, of which all offered arms are known.

    >>> log = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[0.0])
    >>> read_all(log) is log
    True
    """
    return DecisionLog.concatenate([*source.chunks()])


def prefetched(items: Generator[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before it is looked at.

    >>> [*prefetched(number**2 for number in range(3))]
    [0, 1, 4]
    """
    with closing(items), ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


class KeyedSample:
    """Checks that the rows with context sets are those of each batch whose ids have the smallest hashes."""

    def __init__(self, batches: int) -> None:
        #: By batch, the largest hash of a row with a set, and the smallest of one without.
        self.last, self.missing = np.full(batches, -np.inf), np.full(batches, np.inf)

    def check(self, source: str, batches: IntArray, keys: KeyArray, rows: IntArray) -> None:
        """Take the next rows, of which ``rows`` (m,) have sets."""
        ranks, has = sample_order(keys), np.zeros(len(keys), dtype=np.bool_)
        has[rows] = True
        np.maximum.at(self.last, batches[has], ranks[has])
        np.minimum.at(self.missing, batches[~has], ranks[~has])
        if (self.last > self.missing).any():
            raise FileFormatError(
                f"{source}: context sets are missing for decisions that the hash sample would include, so those that "
                "are there are not a random sample (for example only clicks). Keep the contexts of all decisions, "
                "or of those that rareswitch.learner.sampled(ids, share) names."
            )


class ArmCodes:
    """Numbers the ids of arms as they come; each list of them, a JSON text, is read once."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._lists: dict[str, IntArray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All that came so far."""
        return tuple(self._codes)

    def codes(self, names: Iterable[str]) -> IntArray:
        """The numbers of arms."""
        return np.array([self._codes.setdefault(name, len(self._codes)) for name in names], dtype=np.int64)

    def listed(self, texts: Sequence[str]) -> list[IntArray]:
        """The numbers of the arms of lists; what is wrong with one is raised as the rule alone."""
        if len(self._lists) >= MOST_LISTS:
            self._lists.clear()
        for text in dict.fromkeys(texts):
            if text in self._lists:
                continue
            try:
                arms = json.loads(text)
            except (ValueError, RecursionError):
                arms = None
            if not isinstance(arms, list) or not arms or not all(type(arm) in (str, int) for arm in arms):
                raise FileFormatError("Write the ids of the offered arms as a JSON list.")
            if len({*map(str, arms)}) < len(arms):
                raise FileFormatError("Arms that are offered together must have different ids.")
            self._lists[text] = self.codes(map(str, arms))
        return [self._lists[text] for text in texts]


def _refuse(bad: BoolArray, rule: str, what: Callable[[int], str]) -> None:
    """Raise the rule for the first of the rows that are bad (n,), if any are."""
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ParameterError(f"{rule}; row {at} (the first is 0) {what(at)}.")


def _refuse_repeated(ids: KeyArray, batches: IntArray) -> None:
    """Refuse rows of one decision: it would count several times."""
    none, zeros = np.zeros(len(ids), dtype=np.uint64), np.zeros(len(ids))
    copies = deduplicate(np.column_stack([ids, batches.astype(np.uint64)]), none, none, zeros, zeros)
    if len(copies.kept) < len(ids):
        counts = np.bincount(copies.decisions)
        rows = np.flatnonzero(copies.decisions == copies.decisions[np.flatnonzero(counts[copies.decisions] > 1)[0]])
        raise ParameterError(
            f"ids must differ within a batch; rows {rows[:2].tolist()} (the first is 0) have the same, and so do "
            f"{len(ids) - len(copies.kept)} pairs in all. Give each decision one row."
        )


def _whole(name: str, given: ArrayLike, count: int | None = None) -> IntArray:
    """Whole numbers, one for each decision."""
    try:
        column = np.asarray(given)
        right = column.ndim == 1 and count in (None, len(column)) and (column.dtype.kind in "iu" or not len(column))
    except ValueError:
        right = False
    if not right:
        many = "" if count is None else f"{count} "
        raise ShapeError(f"{name} must be {many}whole numbers, one for each decision; got {given!r:.60}.")
    return sealed(column.astype(np.int64))


def _numbers(name: str, given: ArrayLike, count: int, *, finite: bool = True) -> FloatArray:
    """Numbers, one for each decision."""
    try:
        column = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be numbers, one for each decision; got {given!r:.60}.") from None
    if column.shape != (count,):
        raise ShapeError(f"{name} must be {count} numbers, one for each decision; got shape {column.shape}.")
    if finite and not np.isfinite(column).all():
        at = int(np.flatnonzero(~np.isfinite(column))[0])
        raise NonFiniteError(f"{name} must be finite; row {at} (the first is 0) has {column[at]}.")
    return read_only(column)


def _finite(name: str, given: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Finite numbers of a shape, in which None is any length."""
    array = finite_array(name, given)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ShapeError(f"{name} must have the shape ({wanted}); got {array.shape}.")
    return read_only(array)


def _wide(column: NDArray[N], width: int, gap: float) -> NDArray[N]:
    """A column (n, K, …) with so many arms."""
    more = width - column.shape[1]
    return np.concatenate([column, np.full((len(column), more, *column.shape[2:]), gap, dtype=column.dtype)], axis=1)
