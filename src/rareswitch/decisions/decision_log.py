"""The one table of decisions: what was offered, what was chosen with which probability, and what it earned."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareswitch.core import (
    LARGEST_SCALE,
    BoolArray,
    FloatArray,
    IntArray,
    KeyArray,
    Sets,
    SetsLike,
    arm_flags,
    context_sets,
    finite_array,
    id_keys,
    number,
    owned,
    sealed,
    summable,
    unmasked,
)
from rareswitch.decisions.attribution import deduplicate, in_seconds, known_rewards, outside, row_hashes
from rareswitch.errors import BatchError, EmptySetError, FileFormatError, ParameterError, ShapeError, several
from rareswitch.policy import Decisions, Policy

__all__ = ["CERTAIN", "ArmCodes", "Column", "DecisionLog", "chosen_arms", "key_order"]

N = TypeVar("N", bound=np.generic)
#: Numbers, one for each decision, None where one is not known.
Column: TypeAlias = ArrayLike | Sequence[float | None]
#: The largest propensity: sums of shares may exceed 1 by rounding.
CERTAIN = 1.0 + 1e-9
#: Lists of arms that are remembered.
MOST_LISTS = 1 << 16
#: Columns with an entry for each decision, and of these the ones with an entry for each of its arms.
COLUMNS = (
    *("arm_indices", "propensities", "rewards", "ids", "batches", "features", "baselines"),
    *("times", "reward_times", "waiting", "expired"),
)
BY_ARM = {"available": False, "contexts": 0.0, "behavior_probs": 0.0, "codes": -1}


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionLog:
    """Decisions of one or several frozen policies, a row each; read-only.

    A batch is what one frozen policy decided. Batches are numbered in the order in which they were made: what is
    learned from one may change the policy of the next. A log holds copies of what it is given, so that an array that is
    used again does not change it.

    Examples
    --------
    >>> shown = {"arm_indices": [0, 1, 1], "propensities": [0.5, 0.5, 0.9], "arms": ["red", "blue"]}
    >>> log = DecisionLog(rewards=[1.0, 0.0, None], **shown)
    >>> log
    <decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>
    >>> log.chosen_names
    ['red', 'blue', 'blue']
    """

    #: (n,) where the chosen arm stands among those that were offered; where only its features are known, there is one.
    arm_indices: IntArray = None  # type: ignore[assignment]
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
    #: (n,) when each was decided, in seconds since 1970 or given as datetime64; NaN where it is not known.
    times: FloatArray | None = None
    #: (n,) when each reward came.
    reward_times: FloatArray | None = None
    #: (n,) the decisions whose window is still open, so that no reward of theirs counts; see :meth:`attributed`.
    waiting: BoolArray | None = None
    #: (n,) those with a reward that came after its window, and so none that counts.
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

    if TYPE_CHECKING:  # columns may be given as lists, or as whatever becomes an array

        def __init__(
            self,
            *,
            propensities: ArrayLike,
            rewards: Column,
            arm_indices: ArrayLike | None = None,
            available: ArrayLike | None = None,
            contexts: ArrayLike | None = None,
            features: ArrayLike | None = None,
            arms: Sequence[str] | None = None,
            codes: ArrayLike | None = None,
            behavior_probs: ArrayLike | None = None,
            baselines: ArrayLike | None = None,
            ids: ArrayLike | Sequence[int | str] | None = None,
            times: Column | None = None,
            reward_times: Column | None = None,
            waiting: ArrayLike | None = None,
            expired: ArrayLike | None = None,
            batches: ArrayLike | None = None,
            batch_names: Sequence[str] = ("log",),
            policies: Mapping[str, Policy] | None = None,
            estimated: str = "",
            cautions: tuple[str, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        features = None if self.features is None else _finite("features", self.features, (None, None))
        if self.arm_indices is None and (features is None or self.contexts is not None):
            raise ShapeError("arm_indices must be there where all arms are, or where chosen arms have no features.")
        arm_indices = _whole(
            "arm_indices",
            np.zeros(len(features), int) if self.arm_indices is None and features is not None else self.arm_indices,
        )
        count = len(arm_indices)
        rows = np.arange(count)
        if count == 0:
            raise EmptySetError("a log needs one decision at least; got none.")
        propensities = _finite("propensities", self.propensities, (count,))
        _refuse(
            ~((propensities > 0.0) & (propensities <= CERTAIN)),
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
        if features is not None and len(features) != count:
            raise ShapeError(f"features must have the shape ({count}, dim); got {features.shape}.")
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
            times=_seconds("times", self.times, count),
            reward_times=_seconds("reward_times", self.reward_times, count),
            waiting=_flags("waiting", self.waiting, count),
            expired=_flags("expired", self.expired, count),
            batches=sealed(batches),
            batch_names=names,
            policies=dict(self.policies),
        )

    @classmethod
    def of(
        cls,
        contexts: SetsLike,
        decisions: Decisions,
        rewards: Column | float | None,
        available: ArrayLike | None = None,
        *,
        times: Column | None = None,
        reward_times: Column | None = None,
    ) -> Self:
        """Join contexts (n, K, d), the decisions made on them and their rewards (n,), unknown where NaN or None.

        >>> from rareswitch.design import Uniform
        >>> contexts = np.eye(2)[None].repeat(3, axis=0)
        >>> decisions = Policy(dim=2, sampler=Uniform()).decide(contexts, ids=["a", "b", "c"], seed=1)
        >>> DecisionLog.of(contexts, decisions, [1.0, None, 0.0])
        <decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>
        """
        sets = context_sets(contexts, available)
        values: Any = rewards if isinstance(rewards, (list, tuple)) or np.ndim(rewards) else [rewards]  # type: ignore[arg-type]
        return cls(
            arm_indices=chosen_arms(sets, decisions),
            propensities=np.atleast_1d(decisions.propensities),
            rewards=values,
            available=sets.available,
            contexts=sets.contexts,
            ids=np.atleast_2d(decisions.ids),
            times=times,
            reward_times=reward_times,
            batch_names=(decisions.policy_id,),
        )

    @classmethod
    def checked(cls, **columns: Any) -> Self:
        """Of columns that were checked already, which become read-only; by default with the chosen arms alone."""
        log, count = object.__new__(cls), len(columns["rewards"])
        names = dict.fromkeys(("contexts", "features", "arms", "codes", "behavior_probs", "baselines"))
        names |= dict.fromkeys(("times", "reward_times", "waiting", "expired"))
        alone = {"available": np.ones((count, 1), dtype=np.bool_), "arm_indices": np.zeros(count, dtype=np.int64)}
        alone |= {"batches": np.zeros(count, dtype=np.int64)}
        vars(log).update(names | alone | {"policies": {}, "estimated": "", "cautions": ()} | columns)
        for column in vars(log).values():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)
        return log

    def _offered(self, arm_indices: IntArray, contexts: FloatArray | None) -> BoolArray:
        count = len(arm_indices)
        if self.available is not None:
            wanted = (count, np.shape(self.available)[-1] if contexts is None else contexts.shape[1])
            return owned(arm_flags("available", self.available, wanted))
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
        probabilities = _finite("behavior_probs", self.behavior_probs, available.shape)
        own = probabilities[np.arange(len(probabilities)), arm_indices]
        _refuse(
            ~np.isclose(own, propensities, rtol=1e-6, atol=1e-12),
            "behavior_probs must give the chosen arm its propensity",
            lambda at: f"has {own[at]:g} beside {propensities[at]:g}",
        )
        inside = np.where(available, probabilities, 0.0)
        _refuse(
            (inside < 0.0).any(axis=1) | (np.abs(inside.sum(axis=1) - 1.0) > 1e-6),
            "behavior_probs must sum to 1 over the offered arms",
            lambda at: f"has {inside[at].tolist()!s:.100}",
        )
        return probabilities

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
    def policy_id(self) -> str:
        """The name of the one batch that has rows here: the id of the policy that decided, where that is known."""
        names = [self.batch_names[batch] for batch in self.present] if len(self) else self.batch_names
        if len(names) != 1:
            raise BatchError(
                f"these are decisions of {len(names)} policies, each learned from alone. Select those of one: "
                "log.select(log.batches == …)."
            )
        return names[0]

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

    def attributed(
        self, *, window: float | None = None, now: float | np.datetime64 | None = None, default: float | None = None
    ) -> Self:
        """The same decisions with the rewards that count, as :meth:`~rareswitch.learner.Learner.summarize` counts them.

        A decision younger than the window waits; a reward that came after it has expired, where no default stands for
        it.

        >>> log = DecisionLog(propensities=[1.0] * 2, features=[[1.0]] * 2, rewards=[1.0, 1.0], times=[0.0, 90.0])
        >>> log.attributed(window=60.0, now=100.0).rewards.tolist()
        [1.0, nan]
        """
        if window is None and now is None and default is None:
            return self
        if window is None and now is not None:
            raise ParameterError(
                "now says when an attribution window is looked at, and there is none: give window too."
            )
        rewards, known, none = self.rewards, ~np.isnan(self.rewards), np.zeros(len(self), dtype=np.bool_)
        waiting = expired = none
        if window is not None:
            waiting, late = outside(self.times, self.reward_times, number("window", window, low=0.0), now)
            expired = late & known & ~waiting
            known = known & ~waiting & ~expired
        if default is not None:
            absent = ~known & ~waiting
            rewards = np.where(absent, number("default", default, low=-LARGEST_SCALE, high=LARGEST_SCALE), rewards)
            known, expired = known | absent, none
        columns = {"rewards": np.where(known, rewards, np.nan), "waiting": waiting, "expired": expired}
        return self.checked(**vars(self) | columns)

    def without_offers(self) -> Self:
        """The same decisions with the chosen arms alone, as :meth:`chunks` of sources give them without contexts."""
        names = ("propensities", "rewards", "features", "ids", "times", "reward_times", "waiting", "expired", "batches")
        shared = ("batch_names", "policies", "estimated", "cautions")
        return self.checked(**{name: getattr(self, name) for name in (*names, *shared)})

    def of_batch(self, number: int = 0, names: Sequence[str] = (), **shared: Any) -> Self:
        """The same decisions as those of one batch, by its number among the names of all."""
        columns = {"batches": np.full(len(self), number), "batch_names": tuple(names), **shared}
        return self.checked(**vars(self) | columns)

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

        A row without a reward and the same row with one are one decision, and so are copies: of several rewards the one
        that came first counts. Rows of one id that say different things are an error.

        >>> first = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[None], arms=["red", "blue"], ids=["a"])
        >>> other = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[0.0], arms=["green"], ids=["b"])
        >>> later = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[9.0], arms=["red", "blue"], ids=["a"])
        >>> log = DecisionLog.concatenate([first, other, later])
        >>> log.chosen_names, log.rewards.tolist()
        (['red', 'green'], [9.0, 0.0])
        """
        return cls.joined(chunks)._merged()

    @classmethod
    def joined(cls, chunks: "Sequence[DecisionLog]") -> "DecisionLog":
        """Chunks without a decision in common, one after the other."""
        if not all(isinstance(chunk, DecisionLog) for chunk in chunks):
            raise ShapeError(f"logs are joined from a list of them; got {chunks!r:.60}.")
        if not chunks:
            raise EmptySetError("of no decision of this log it is known which arms were offered.")
        first, width = chunks[0], max(chunk.available.shape[1] for chunk in chunks)
        if len(chunks) == 1:
            return first
        if len({chunk.batch_names for chunk in chunks}) > 1:
            raise ShapeError("chunks of one source must have the same batch_names.")
        known, codes = ArmCodes(), []
        named = all(chunk.codes is not None for chunk in chunks)
        for chunk in chunks if named else ():
            names, own = chunk.arm_codes
            codes.append(np.where(own >= 0, known.codes(names)[own], -1))
        columns: dict[str, Any] = {"arms": known.names if named else None}
        for name in (*COLUMNS, *BY_ARM):
            parts = codes if name == "codes" and named else [getattr(chunk, name) for chunk in chunks]
            if all(part is not None for part in parts):
                wide = [_wide(part, width, BY_ARM[name]) for part in parts] if name in BY_ARM else parts
                columns[name] = np.concatenate(wide)
        shared = {name: getattr(first, name) for name in ("batch_names", "policies", "estimated", "cautions")}
        return cls.checked(**shared, **columns)

    def _merged(self) -> Self:
        """With a row a decision."""
        keys = np.column_stack([self.ids, self.batches.astype(np.uint64)])
        if _differ(keys):
            return self
        masked = None if self.contexts is None else np.where(self.available[:, :, None], self.contexts, 0.0)
        content = self.propensities.view(np.uint64)
        for column in (self.arm_indices, self.available, self.codes, self.features, masked):
            if column is not None:
                content = content * np.uint64(3) + row_hashes(column.reshape(len(self), -1).astype(np.float64))
        none = np.zeros(len(self), dtype=np.uint64)
        late = np.zeros(len(self)) if self.reward_times is None else self.reward_times
        copies = deduplicate(keys, content, none, self.rewards, late)
        if copies.wrong.any():
            rows = np.flatnonzero(copies.decisions == np.flatnonzero(copies.wrong)[0])
            raise BatchError(
                f"{several(int(copies.wrong.sum()), 'decision')} with rows that contradict each other; the first has "
                f"rows {', '.join(map(str, rows[:5]))}, with rewards {', '.join(map(str, self.rewards[rows[:5]]))}. "
                "Rows of one id must agree in their features, their sets and the rewards they know: keep the right one."
            )
        order = np.argsort(copies.rows)
        log, paid = self.select(copies.rows[order]), copies.paid[order]
        late_times = None if self.reward_times is None else self.reward_times[paid]
        return self.checked(**vars(log) | {"rewards": self.rewards[paid], "reward_times": late_times})

    def probabilities_of(self, policy: Policy) -> FloatArray:
        """(n, K) those of all arms under a frozen policy; for decisions with vectors."""
        assert self.contexts is not None
        baseline = {"baseline": self.baselines} if policy.needs_baseline else {}
        protected = None if policy.min_propensity is None else policy.min_propensity.of_codes(self.arms, self.codes)
        sets = Sets(self.contexts, self.available, False)  # which were checked already
        return policy.probabilities(sets, protected=protected, **baseline)

    def policy_probs(self) -> FloatArray | None:
        """(n, K) those of all arms under the policies that decided; None where one of these is not at hand."""
        deciding = {batch: self.policies.get(self.batch_names[batch]) for batch in self.present}
        probabilities = None if self.contexts is None else np.zeros(self.available.shape)
        for batch, policy in deciding.items():
            rows: slice | BoolArray = slice(None) if len(deciding) == 1 else self.batches == batch
            named = policy is None or not policy.needs_baseline or self.baselines is not None
            if probabilities is None or policy is None or not named:
                return None
            probabilities[rows] = (self if len(deciding) == 1 else self.select(rows)).probabilities_of(policy)
        return probabilities

    def with_behavior_probs(self) -> "DecisionLog":
        """The same log with the probabilities of all arms by its frozen policies, where it lacks them and has these."""
        probabilities = self.policy_probs() if self.behavior_probs is None else None
        if probabilities is None:
            return self
        own = probabilities[np.arange(len(self)), self.arm_indices]
        if not np.allclose(own, self.propensities, rtol=1e-6, atol=1e-12):
            return self  # another policy decided, or propensities were changed: an evaluation says so
        return replace(self, behavior_probs=probabilities)


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
    if not _differ(np.column_stack([ids, batches.astype(np.uint64)])):
        _, first, counts = np.unique(np.column_stack([ids, batches]), axis=0, return_index=True, return_counts=True)
        again = np.flatnonzero((ids == ids[first[counts > 1].min()]).all(axis=1))
        raise ParameterError(
            f"ids must differ within a batch; rows {again[:2].tolist()} (the first is 0) have the same, and so do "
            f"{int((counts - 1).sum())} pairs in all. Give each decision one row, or join logs with copies: "
            "DecisionLog.concatenate([…])."
        )


def key_order(keys: KeyArray) -> slice | IntArray:
    """The order of ids by their keys (n, 2), in which rows are summed whatever order they came in."""
    if _rise(keys):
        return slice(None)
    high = keys[:, 1]
    order = np.argsort(high if high.any() else keys[:, 0])
    return order if _rise(keys[order]) else np.lexsort(keys.T)


def _rise(keys: KeyArray) -> bool:
    """Whether keys are strictly increasing, so that each decision occurs once."""
    low, high = keys[:, 0], keys[:, 1]
    return bool(((high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))).all())


def _differ(keys: KeyArray) -> bool:
    """Whether no two rows of keys (n, 3) are equal."""
    if (keys[:, 2] == keys[0, 2]).all() and _rise(keys[:, :2]):
        return True
    ordered = keys[np.lexsort(keys.T)]
    return bool((ordered[1:] != ordered[:-1]).any(axis=1).all())


def chosen_arms(sets: Sets, decisions: Decisions) -> IntArray:
    """(n,) which arms were chosen of these sets."""
    if not isinstance(decisions, Decisions):
        raise ShapeError(f"decisions must be what policy.decide returned; got {type(decisions).__name__}.")
    arms = np.atleast_1d(np.asarray(decisions.arms))
    if arms.shape != (len(sets.contexts),):
        raise ShapeError(f"{len(sets.contexts)} context sets were given for {len(arms)} decisions.")
    return arms


def _whole(name: str, values: ArrayLike, count: int | None = None) -> IntArray:
    """Whole numbers, one for each decision."""
    unmasked(name, values, "Leave these decisions out.")
    try:
        column = np.asarray(values)
        right = column.ndim == 1 and count in (None, len(column)) and (column.dtype.kind in "iu" or not len(column))
    except ValueError:
        right = False
    if not right:
        many = "" if count is None else f"{count} "
        raise ShapeError(f"{name} must be {many}whole numbers, one for each decision; got {values!r:.60}.")
    return sealed(column.astype(np.int64))


def _seconds(name: str, values: Column | None, count: int) -> FloatArray | None:
    return None if values is None else in_seconds(name, values, count)


def _flags(name: str, values: ArrayLike | None, count: int) -> BoolArray | None:
    """A flag for each decision."""
    flags = None if values is None else np.array(values, dtype=np.bool_)
    if flags is not None and flags.shape != (count,):
        raise ShapeError(f"{name} must be (n,), a flag for each of {count} decisions; got {flags.shape}.")
    return flags if flags is None else sealed(flags)


def _finite(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Finite numbers of a shape, in which None is any length, whose squares can be summed."""
    array = summable(name, finite_array(name, values))
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ShapeError(f"{name} must have the shape ({wanted}); got {array.shape}.")
    return owned(array)


def _wide(column: NDArray[N], width: int, gap: float) -> NDArray[N]:
    """A column (n, K, …) widened to this number of arms."""
    more = width - column.shape[1]
    return np.concatenate([column, np.full((len(column), more, *column.shape[2:]), gap, dtype=column.dtype)], axis=1)
