"""Rows: what came of decisions, from memory, from a file or from a store; and which of their rewards count."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rareswitch.core import (
    EXACT,
    LARGEST_SCALE,
    BoolArray,
    ContextSets,
    FloatArray,
    IntArray,
    KeyArray,
    Sets,
    context_sets,
    finite_array,
    id_keys,
    number,
    owned,
    sealed,
    summable,
    unmasked,
)
from rareswitch.errors import BatchError, NonFiniteError, ParameterError, ShapeError, several
from rareswitch.policy import Decisions

#: What rows have one of each.
ARRAYS = ("ids", "features", "rewards", "times", "reward_times")


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Decisions of one policy, in any order: chosen features, and the rewards that are known.

    A row without a reward and the same row with one are *one* decision, and so are copies. Two rows of one id that say
    different things contradict each other, and :meth:`folded` refuses them. Rows hold copies of what they are given,
    so that an array that is used again does not change what is learned.

    Examples
    --------
    >>> rows = Rows(ids=["b", "a", "b"], policy_id="…", features=[[1.0], [2.0], [1.0]], rewards=[None, True, 3.0])
    >>> len(rows), rows.folded().rewards.tolist()          # sorted by the hash of their ids
    (3, [3.0, 1.0])
    """

    #: (n, 2) keys; given as whole numbers, strings, or keys.
    ids: Any
    policy_id: str
    #: (n, d) the vectors of the arms that were chosen.
    features: Any
    #: (n,) NaN where it is not known; given as numbers, booleans, NaN or None.
    rewards: Any
    #: The context sets of some of the decisions, those of ``places``.
    sets: ContextSets | None = None
    #: (m,) the rows that the sets are of; all of them by default.
    places: IntArray | None = None
    #: (n,) seconds, or datetime64: when each was decided. Needed for an attribution window only.
    times: Any = None
    #: (n,) when each reward came, in seconds or datetime64 as the times are; NaN or NaT where it is not known.
    reward_times: Any = None

    def __post_init__(self) -> None:
        _check_form(self)
        features = summable("features", finite_array("features", self.features))
        if features.ndim != 2:
            raise ShapeError(f"features must have shape (n, dim); got {features.shape}. For one row pass row[None].")
        count = len(features)
        places = self.places
        if self.sets is not None:
            summable("contexts", self.sets.contexts)
            unmasked("places", places, "Give the places of the sets that are there.")
            places = np.arange(count) if places is None else np.array(places, dtype=np.int64)
            if len(places) != len(self.sets) or (len(places) and not 0 <= places.min() <= places.max() < count):
                raise ShapeError(
                    f"{len(self.sets)} context sets are for as many rows of 0 … {count - 1}; got {len(places)} places."
                )
        values: dict[str, Any] = {
            "ids": id_keys(self.ids, count),
            "features": owned(features),
            "rewards": known_rewards(self.rewards, count),
            "places": None if places is None else sealed(places),
            "sets": None if self.sets is None else self.sets.owned(),
        }
        for name in ("times", "reward_times"):
            given = getattr(self, name)
            values[name] = None if given is None else moments(name, given, count)
        times, late = values["times"], values["reward_times"]
        if times is not None and not np.isfinite(times).all():
            at = int(np.flatnonzero(~np.isfinite(times))[0])
            raise NonFiniteError(f"times must be known for every row; the one at index {at} is {times[at]}.")
        if times is not None and late is not None and times.dtype != late.dtype:
            if np.isfinite(late).any():
                raise ShapeError(
                    f"times are {times.dtype} and reward_times {late.dtype}: they cannot be compared. Give both as "
                    "datetime64, or both in seconds from the same moment."
                )
            none = "NaT" if times.dtype.kind == "M" else "nan"
            values["reward_times"] = sealed(np.full(count, none).astype(times.dtype))
        vars(self).update(values)

    @classmethod
    def of(cls, contexts: Any, decisions: Decisions, rewards: Any, available: Any = None, **times: Any) -> Self:
        """Join contexts (n, K, d), the decisions made on them and their rewards (n,), unknown where NaN or None."""
        sets = context_sets(contexts, available)
        arms = chosen_arms(sets, decisions)
        if arms.min() < 0 or arms.max() >= sets.available.shape[1]:
            raise ShapeError(
                f"a decision names an arm outside of 0 … {sets.available.shape[1] - 1}: these are other sets."
            )
        at = np.arange(len(arms))
        if not sets.available[at, arms].all():
            raise ShapeError("a decision names an arm that is not available: these are not the sets it was made on.")
        given: Any = rewards if isinstance(rewards, (list, tuple)) or np.ndim(rewards) else [rewards]
        return cls(
            ids=np.atleast_2d(decisions.ids),
            policy_id=decisions.policy_id,
            features=sealed(sets.contexts[at, arms]),
            rewards=given,
            sets=ContextSets.checked(sets),
            **times,
        )

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, which: slice | IntArray) -> Self:
        """Some of the rows: a slice or an array of indices."""
        at = np.arange(len(self))[which]
        return self._picked(at, self._set_of()[at])

    def _set_of(self) -> IntArray:
        """(n,) which of the sets is that of each row; -1 for none."""
        found = np.full(len(self), -1)
        if self.places is not None:
            found[self.places] = np.arange(len(self.places))
        return found

    def _picked(self, at: IntArray, set_of: IntArray) -> Self:
        """Rows (m,) with the sets of those indices, -1 for none."""
        has = set_of >= 0
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        return replace(
            self,
            sets=self.sets[set_of[has]] if self.sets is not None and has.any() else None,
            places=np.flatnonzero(has) if has.any() else None,
            **{name: sealed(array[at]) for name, array in arrays.items()},  # type: ignore[arg-type]
        )

    @classmethod
    def concatenate(cls, parts: "Iterable[Rows]") -> "Rows":
        """All rows of the parts, in order, such as those of single decisions."""
        parts = list(parts) if isinstance(parts, Iterable) else [parts]
        if not all(isinstance(part, Rows) for part in parts):
            raise ShapeError(f"rows are joined from a list of Rows; got {parts!r:.60}.")
        if len({part.policy_id for part in parts}) != 1:
            raise BatchError("rows are joined policy by policy; these are of several, or none.")
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *map(len, parts)])
        sets = [part.sets for part in parts if part.sets is not None]
        places = [part.places + start for part, start in zip(parts, starts, strict=False) if part.places is not None]

        def joined(name: str) -> Any:
            found = [getattr(part, name) for part in parts]
            if any(one is None for one in found):
                return None
            if len({one.dtype for one in found}) > 1:
                raise ShapeError(f"some rows have {name} in seconds and some as datetime64: give all in one of these.")
            return sealed(np.concatenate(found))

        return cls(
            policy_id=parts[0].policy_id,
            sets=ContextSets.concatenate(sets) if sets else None,
            places=np.concatenate(places) if sets else None,
            **{name: joined(name) for name in ARRAYS},
        )

    def folded(self) -> Self:
        """One row a decision, in the order of the keys, whatever order the rows came in."""
        if _rise(self.ids):
            return self
        high = self.ids[:, 1]
        order = np.argsort(high if high.any() else self.ids[:, 0])
        if _rise(self.ids[order]):  # each decision once
            return self[order]
        copies = self._copies()
        if copies.wrong.any():
            mine = np.flatnonzero(copies.decisions == np.flatnonzero(copies.wrong)[0])
            raise BatchError(
                f"{several(int(copies.wrong.sum()), 'decision')} with rows that contradict each other; the first has "
                f"rows {', '.join(map(str, mine[:5]))}, with rewards {', '.join(map(str, self.rewards[mine[:5]]))}. "
                "Rows of one id must agree in their features, their sets and the rewards they know: keep the right one."
            )
        kept = self._picked(copies.kept, self._set_of()[copies.kept])
        late = None if self.reward_times is None else sealed(self.reward_times[copies.paid])
        return replace(kept, rewards=self.rewards[copies.paid], reward_times=late)

    def _copies(self) -> "Copies":
        """Which rows are of one decision."""
        sets = np.zeros(len(self), dtype=np.uint64)
        if self.sets is not None and self.places is not None:
            arms = np.where(self.sets.available[:, :, None], self.sets.contexts, 0.0).reshape(len(self.sets), -1)
            sizes = self.sets.available.sum(axis=1).astype(np.uint64)
            sets[self.places] = (row_hashes(arms) + (sizes << np.uint64(32))) | np.uint64(1)
        late = np.zeros(len(self)) if self.reward_times is None else in_seconds(self.reward_times)
        return deduplicate(self.ids, row_hashes(self.features), sets, self.rewards, late)


class Copies(NamedTuple):
    """Rows of decisions that may occur several times; decisions are in the order of their keys."""

    #: (m,) the row of each decision that is kept: the first that has its context set.
    kept: IntArray
    #: (m,) the row that has its reward; of several the one that came first.
    paid: IntArray
    #: (n,) which decision each row is of.
    decisions: IntArray
    #: (m,) those whose rows contradict each other.
    wrong: BoolArray


def deduplicate(
    keys: KeyArray, content: KeyArray, sets: KeyArray, rewards: FloatArray, reward_times: FloatArray
) -> Copies:
    """Find rows of one decision: a row without a reward and the same row with one are one, and so are copies.

    Parameters
    ----------
    keys
        (n, 2) of ids, or more columns by which decisions are told apart.
    content, sets
        (n,) hashes of what was decided and of its context set, 0 where that is missing; see :func:`row_hashes`.
    rewards, reward_times
        (n,) NaN where they are not known.

    Examples
    --------
    >>> keys, same = np.array([[4, 0], [5, 0], [4, 0]], dtype=np.uint64), np.zeros(3, dtype=np.uint64)
    >>> copies = deduplicate(keys, same, same, np.array([np.nan, 0.5, 1.0]), np.zeros(3))
    >>> copies.kept.tolist(), copies.paid.tolist(), copies.wrong.tolist()
    ([0, 1], [2, 1], [False, False])
    """
    known = ~np.isnan(rewards)
    order = np.lexsort((sets == 0, *keys.T))
    paying = np.lexsort((reward_times, ~known, *keys.T))
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    begins, decisions = np.flatnonzero(first), np.empty(len(keys), dtype=np.int64)
    decisions[order] = np.cumsum(first) - 1
    kept, paid = order[begins], paying[begins]
    odd = (content != content[kept][decisions]) | (known & (rewards != rewards[paid][decisions]))
    odd |= (sets != 0) & (sets != sets[kept][decisions])
    wrong = np.zeros(len(begins), dtype=np.bool_)
    wrong[decisions[odd]] = True
    return Copies(kept, paid, decisions, wrong)


def row_hashes(rows: FloatArray, positions: IntArray | None = None) -> KeyArray:
    """(n,) hashes of rows (n, d) of numbers, of 64 bits; ``positions`` (n,) of rows within what they are summed to.

    >>> one, other, zero = row_hashes(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(one == zero), bool(one == other)
    (True, False)
    """
    words = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # 0 for -0
    words = words ^ (words >> np.uint64(32))  # the last digits of round numbers are all zero
    at = np.arange(words.shape[1]) if positions is None else positions[:, None]
    factors = (2 * at + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    return np.asarray((words * factors).sum(axis=1, dtype=np.uint64))


def _check_form(rows: Rows) -> None:
    """Refuse what is of another kind altogether."""
    if not isinstance(rows.policy_id, str):
        raise ShapeError(
            f"policy_id must be the id of the policy that decided, a text; got {rows.policy_id!r:.60}. Pass "
            "decisions.policy_id."
        )
    if rows.sets is not None and not isinstance(rows.sets, ContextSets):
        raise ShapeError(
            f"sets must be ContextSets; got {type(rows.sets).__name__}. Pass ContextSets(contexts, available), or make "
            "the rows with Rows.of."
        )
    for name, kinds, rule in (
        ("places", "iu", "whole numbers, one for each context set"),
        ("times", "fiuM", "seconds or datetime64, one for each decision"),
        ("reward_times", "fiuM", "seconds or datetime64, one for each decision"),
    ):
        given = getattr(rows, name)
        try:
            known = given is None or not np.size(given) or np.asarray(given).dtype.kind in kinds
        except ValueError:  # rows of different lengths
            known = False
        if not known:
            raise ShapeError(f"{name} must be {rule}; got {given!r:.60}.")


def chosen_arms(sets: Sets, decisions: Decisions) -> IntArray:
    """(n,) which arms were chosen of these sets."""
    if not isinstance(decisions, Decisions):
        raise ShapeError(f"decisions must be what policy.decide returned; got {type(decisions).__name__}.")
    arms = np.atleast_1d(np.asarray(decisions.arms))
    if arms.shape != (len(sets.contexts),):
        raise ShapeError(f"{len(sets.contexts)} context sets were given for {len(arms)} decisions.")
    return arms


def _rise(keys: KeyArray) -> bool:
    """Whether keys are strictly increasing, so that each decision occurs once."""
    low, high = keys[:, 0], keys[:, 1]
    return bool(((high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))).all())


def known_rewards(rewards: Any, count: int) -> FloatArray:
    """Rewards (n,) as numbers, NaN where they are not known; booleans and None are understood."""
    if isinstance(rewards, np.ma.MaskedArray):
        rewards = np.where(np.ma.getmaskarray(rewards), np.array(None), rewards.data)
    elif isinstance(rewards, (list, tuple)):
        rewards = [None if reward is np.ma.masked else reward for reward in rewards]
    try:
        given = np.asarray(rewards)
    except ValueError:
        raise ShapeError(f"rewards must have shape ({count},), one for each decision; got rows of several.") from None
    if given.dtype == object:
        kinds = {type(reward) for reward in given.reshape(-1)}
        if not all(kind is type(None) or issubclass(kind, (bool, int, float, np.generic)) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ShapeError(f"rewards must be numbers, booleans, or None where they are not known; got {names}.")
        _check_digits([r for r in given.reshape(-1) if isinstance(r, (int, np.integer))])
        given = np.array([np.nan if reward is None else reward for reward in given.reshape(-1)]).reshape(given.shape)
    if given.dtype.kind in "iu" and given.size:
        _check_digits([given.min(), given.max()])
    if given.dtype.kind not in "fiub":
        raise ShapeError(f"rewards must be numbers or booleans, NaN or None where unknown; got dtype {given.dtype}.")
    if given.shape != (count,):
        raise ShapeError(f"rewards must have shape ({count},), one for each decision; got {given.shape}.")
    found = sealed(np.array(given, dtype=np.float64))
    if np.isinf(found).any():
        at = int(np.flatnonzero(np.isinf(found))[0])
        raise NonFiniteError(
            f"rewards must be finite, or NaN where they are not known; the one at index {at} is {found[at]}."
        )
    return summable("rewards", found)


def _check_digits(numbers: list[Any]) -> None:
    """Refuse whole numbers that are no floats."""
    for one in numbers:
        if abs(int(one)) > EXACT:
            raise NonFiniteError(
                f"rewards must keep their digits, and beyond 2^53 whole numbers lose some; got {one}. Subtract a "
                "constant from all rewards, or use other units."
            )


def moments(name: str, given: Any, count: int) -> NDArray[Any]:
    """Times (n,), as seconds or as datetime64 in microseconds, whichever they are."""
    unmasked(name, given, "Fill it: .filled(np.nan), or .filled('NaT') for datetime64.")
    times = np.asarray(given)
    if times.dtype.kind not in "fiuM" or times.shape != (count,):
        raise ShapeError(
            f"{name} must be seconds or datetime64 of shape ({count},); got {times.dtype} of shape {times.shape}."
        )
    return sealed(times.astype("datetime64[us]" if times.dtype.kind == "M" else np.float64))


def in_seconds(times: Any) -> FloatArray:
    """Times as seconds, NaN where they are not known."""
    found = np.asarray(times)
    if found.dtype.kind == "M":
        found = np.where(np.isnat(found), np.nan, found.astype("datetime64[us]").astype(np.int64) / 1e6)
    return np.asarray(found, dtype=np.float64)


class Attributed(NamedTuple):
    """What counts of some decisions."""

    #: (n,) what each earned; NaN where it does not count.
    rewards: FloatArray
    #: (n,) those that count.
    known: BoolArray
    #: (n,) those whose window is still open, even if their reward is there.
    waiting: BoolArray
    #: (n,) those whose reward came after the window, where no default stands for it.
    expired: BoolArray


def attributed(
    rewards: FloatArray,
    *,
    times: Any = None,
    reward_times: Any = None,
    window: float | None = None,
    now: float | np.datetime64 | None = None,
    default: float | None = None,
) -> Attributed:
    """What counts of rewards (n,), NaN where none came.

    Parameters
    ----------
    times, reward_times
        (n,) when decisions were made and rewards came, in seconds or as datetime64; for a window only.
    window, now, default
        As :meth:`~rareswitch.learner.Learner.summarize` takes them.

    Examples
    --------
    A decision that waits, one whose reward came in time, and one whose reward came late:

    >>> came = np.array([1.0, 1.0, 1.0])
    >>> times, late = np.array([90.0, 0.0, 0.0]), np.array([95.0, 5.0, 80.0])
    >>> attributed(came, times=times, reward_times=late, window=60.0, now=100.0, default=0.0).rewards.tolist()
    [nan, 1.0, 0.0]
    """
    known = ~np.isnan(rewards)
    waiting = expired = np.zeros(len(rewards), dtype=np.bool_)
    if window is None and now is not None:
        raise ParameterError("now says when an attribution window is looked at, and there is none: give window too.")
    if window is not None:
        waiting, expired = _outside(times, reward_times, number("window", window, low=0.0), now)
        expired &= known & ~waiting
        known &= ~waiting & ~expired
    if default is not None:
        absent = ~known & ~waiting
        rewards = np.where(absent, number("default", default, low=-LARGEST_SCALE, high=LARGEST_SCALE), rewards)
        known, expired = known | absent, expired & False
    return Attributed(rewards if known.all() else np.where(known, rewards, np.nan), known, waiting, expired)


def clipped(rewards: FloatArray, clip: tuple[float, float] | None) -> tuple[FloatArray, BoolArray]:
    """Rewards (n,), NaN where none counts, held between two bounds, and which of them lay outside (n,).

    >>> clipped(np.array([0.5, 90.0, np.nan]), (-5.0, 5.0))[0].tolist()
    [0.5, 5.0, nan]
    """
    if clip is None:
        return rewards, np.zeros(len(rewards), dtype=np.bool_)
    low, high = clip_bounds(clip)
    return np.clip(rewards, low, high), (rewards < low) | (rewards > high)


def clip_bounds(value: Any) -> tuple[float, float]:
    """Two bounds, the lower one first; a single number c stands for (-c, c).

    >>> clip_bounds(5), clip_bounds((0, 200))
    ((-5.0, 5.0), (0.0, 200.0))
    """
    pair = value if isinstance(value, (tuple, list)) else (None, value)
    if len(pair) != 2:
        raise ParameterError(f"clip must be a number, or two bounds such as (0, 200); got {value!r:.60}.")
    limits: Any = {"low": -LARGEST_SCALE, "high": LARGEST_SCALE}
    high = number("clip, the upper bound,", pair[1], **limits)
    low = -high if pair[0] is None else number("clip, the lower bound,", pair[0], **limits)
    if low >= high:
        raise ParameterError(
            f"clip must have a lower bound below the upper one; got {low:g} and {high:g}. A single number must be "
            "positive: 5 stands for (-5, 5)."
        )
    return low, high


def _outside(
    times: Any, reward_times: Any, window: float, now: float | np.datetime64 | None
) -> tuple[BoolArray, BoolArray]:
    """Which decisions are younger than the window, and which rewards came after it."""
    if times is None:
        raise ParameterError("an attribution window needs to know when decisions were made: give the rows their times.")
    dated = times.dtype.kind == "M"
    if now is not None and isinstance(now, np.datetime64) != dated:
        raise ParameterError(
            f"now is {now!r:.60} and the times of the rows are {'datetime64' if dated else 'seconds'}: they cannot be "
            "compared. Give both as datetime64, or both in seconds from the same moment."
        )
    made = in_seconds(times)
    given: Any = float(in_seconds(now)) if dated and now is not None else now
    moment = made.max(initial=-np.inf) if now is None else number("now", given, low=-np.inf)
    waiting = np.asarray(moment - made < window)
    if reward_times is None:
        return waiting, np.zeros(len(made), dtype=np.bool_)
    return waiting, np.asarray(in_seconds(reward_times) - made > window)
