"""Logged decisions as columns: what was offered, what was chosen with which probability, and what came of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rareswitch.errors import EmptySetError, ParameterError, ShapeError, several
from rareswitch.ids import KeyArray, id_keys
from rareswitch.log.columns import finite_column, number_column, refuse_repeated, reward_column, whole_column
from rareswitch.policy import Policy
from rareswitch.validation import BoolArray, FloatArray, IntArray, read_only, sealed

#: Times are at most this far from 1970, in seconds, where years have four digits.
LATEST = 6e10


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
    #: (n, K) which of these each one is, -1 where none was offered; place 0 is the first of them, by default.
    codes: IntArray | None = None
    #: (n, K) the probabilities of all offered arms, where they are known beside that of the chosen one.
    behavior_probs: FloatArray | None = None
    #: (n,) the place of the arm that the caller would have shown, -1 where none was named.
    baselines: IntArray | None = None
    #: (n, 2) keys of the ids, or ids; 0, 1, 2 … by default.
    ids: KeyArray = None  # type: ignore[assignment]
    #: (n,) seconds since 1970; NaN where it is not known.
    times: FloatArray | None = None
    #: (n,) the batch of each row; all are of batch 0 by default.
    batches: IntArray = None  # type: ignore[assignment]
    #: What the batches are called: the ids of their policies, where these are known.
    batch_names: tuple[str, ...] = ("log",)
    #: The frozen policies of batches, as far as they are at hand, by the names of these.
    policies: Mapping[str, Policy] = field(default_factory=dict)
    #: How propensities were estimated; empty where they are those with which decisions were made.
    estimated: str = ""

    if TYPE_CHECKING:  # columns may be given as lists, or as whatever becomes an array

        def __init__(
            self,
            *,
            arm_indices: Any,
            propensities: Any,
            rewards: Any,
            available: Any = None,
            contexts: Any = None,
            features: Any = None,
            arms: Any = None,
            codes: Any = None,
            behavior_probs: Any = None,
            baselines: Any = None,
            ids: Any = None,
            times: Any = None,
            batches: Any = None,
            batch_names: Sequence[str] = ("log",),
            policies: Mapping[str, Policy] | None = None,
            estimated: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        arm_indices = whole_column("arm_indices", self.arm_indices)
        count = len(arm_indices)
        if count == 0:
            raise EmptySetError("a log needs one decision at least; got none.")
        propensities = number_column("propensities", self.propensities, count)
        bad = ~((propensities > 0.0) & (propensities <= 1.0))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise ParameterError(
                f"propensities must be above 0 and at most 1; row {at} (the first is 0) has {propensities[at]:g}. What "
                "was never chosen cannot be in a log; where propensities are not known, estimate them."
            )
        rewards = reward_column(self.rewards, count)
        contexts = None if self.contexts is None else finite_column("contexts", self.contexts, (count, None, None))
        available = self._available(arm_indices, contexts)
        arms = available.shape[1]
        inside = (arm_indices >= 0) & (arm_indices < arms)
        there = inside & available[np.arange(count), np.where(inside, arm_indices, 0)]
        if not there.all():
            at = int(np.flatnonzero(~there)[0])
            raise ParameterError(
                f"arm_indices must be those of offered arms; row {at} (the first is 0) has {arm_indices[at]} among "
                f"{int(available[at].sum())} arms."
            )
        features = self.features
        if features is not None:
            features = finite_column("features", features, (count, None))
        elif contexts is not None:
            features = sealed(contexts[np.arange(count), arm_indices])
        batches = (
            np.zeros(count, dtype=np.int64) if self.batches is None else whole_column("batches", self.batches, count)
        )
        names = tuple(self.batch_names)
        if len(set(names)) < len(names) or batches.min() < 0 or batches.max() >= len(names):
            raise ParameterError(
                f"batches must be numbers from 0 to {len(names) - 1}, one name each; got {batches.min()} to "
                f"{batches.max()} and the names {', '.join(map(str, names)):.100}."
            )
        arm_names, codes = self._named(available)
        behavior_probs = self.behavior_probs
        if behavior_probs is not None:
            behavior_probs = finite_column("behavior_probs", behavior_probs, (count, arms))
            own = behavior_probs[np.arange(count), arm_indices]
            if not np.allclose(own, propensities, rtol=1e-6, atol=1e-12):
                at = int(np.abs(own - propensities).argmax())
                raise ParameterError(
                    f"behavior_probs must give the chosen arm its propensity; row {at} has {own[at]:g} beside "
                    f"{propensities[at]:g}."
                )
            inside = np.where(available, behavior_probs, 0.0)
            odd = (inside < 0.0).any(axis=1) | (np.abs(inside.sum(axis=1) - 1.0) > 1e-6)
            if odd.any():
                at = int(np.flatnonzero(odd)[0])
                raise ParameterError(
                    f"behavior_probs must sum to 1 over the offered arms; row {at} (the first is 0) "
                    f"has {inside[at].tolist()!s:.100}."
                )
        baselines = None if self.baselines is None else whole_column("baselines", self.baselines, count)
        if baselines is not None and ((baselines >= arms) | (baselines < -1)).any():
            raise ParameterError(f"baselines must be indices of arms, up to {arms - 1}, or -1 where none was named.")
        times = None if self.times is None else number_column("times", self.times, count, finite=False)
        if times is not None and (np.abs(times) > LATEST).any():
            at = int(np.flatnonzero(np.abs(times) > LATEST)[0])
            raise ParameterError(
                f"times must be seconds since 1970; row {at} (the first is 0) has {times[at]:g}. Divide milliseconds "
                "by 1000, and give NaN where a time is not known."
            )
        ids = id_keys(np.arange(count) if self.ids is None else self.ids, count)
        if self.ids is not None:
            refuse_repeated(ids, batches)
        vars(self).update(
            arm_indices=arm_indices,
            propensities=propensities,
            rewards=rewards,
            available=available,
            contexts=contexts,
            features=features,
            arms=arm_names,
            codes=codes,
            behavior_probs=behavior_probs,
            baselines=baselines,
            ids=ids,
            times=times,
            batches=sealed(batches),
            batch_names=names,
            policies=dict(self.policies),
        )

    @classmethod
    def checked(cls, **columns: Any) -> Self:
        """Of columns that were checked already, all of them given and in their final types."""
        made = object.__new__(cls)
        vars(made).update(columns)
        return made

    def _available(self, arm_indices: IntArray, contexts: FloatArray | None) -> BoolArray:
        count = len(arm_indices)
        if self.available is None:
            arms = contexts.shape[1] if contexts is not None else self._width(arm_indices)
            return sealed(np.ones((count, arms), dtype=np.bool_))
        available = np.asarray(self.available)
        wanted = (count, available.shape[-1] if contexts is None else contexts.shape[1])
        if available.dtype != np.bool_ or available.shape != wanted:
            raise ShapeError(
                f"available must be booleans of shape {wanted}; got {available.dtype} of shape {available.shape}."
            )
        return read_only(available)

    def _width(self, arm_indices: IntArray) -> int:
        for given in (self.behavior_probs, self.codes):
            if given is not None and np.ndim(given) == 2:
                return int(np.shape(given)[1])
        return max(1, len(self.arms) if self.arms is not None else int(arm_indices.max()) + 1)

    def _named(self, available: BoolArray) -> tuple[tuple[str, ...] | None, IntArray | None]:
        if self.arms is None:
            if self.codes is not None:
                raise ParameterError("codes say which of the arms stands where, and arms were not given.")
            return None, None
        arms = tuple(map(str, self.arms))
        if len(set(arms)) < len(arms):
            raise ParameterError("arms must have different ids.")
        if self.codes is None:
            if len(arms) != available.shape[1]:
                raise ShapeError(
                    f"arms must be one for each of the {available.shape[1]} places; got {len(arms)}. Give codes "
                    "where different arms are offered."
                )
            return arms, sealed(np.where(available, np.arange(len(arms)), -1))
        codes = np.asarray(self.codes)
        if codes.shape != available.shape or codes.dtype.kind not in "iu":
            raise ShapeError(
                f"codes must be whole numbers of shape {available.shape}; got {codes.dtype} {codes.shape}."
            )
        codes = np.where(available, codes, -1)
        if (codes[available] < 0).any() or codes.max() >= len(arms):
            raise ParameterError(f"codes must be from 0 to {len(arms) - 1} where an arm is offered.")
        ordered = np.sort(codes, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        if twice.any():
            at, arm_index = (int(one[0]) for one in np.nonzero(twice))
            raise ParameterError(
                f"a decision must offer different arms; row {at} (the first is 0) offers "
                f"{arms[ordered[at, arm_index]]!r:.60} twice."
            )
        return arms, sealed(codes)

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
        found: list[int] = np.flatnonzero(np.bincount(self.batches)).tolist()
        return found

    @cached_property
    def chosen_names(self) -> list[str]:
        """(n) the ids of the chosen arms; their arm_indices as texts where arms have none."""
        if self.arms is None or self.codes is None:
            return [*map(str, self.arm_indices.tolist())]
        return [self.arms[code] for code in self.codes[np.arange(len(self)), self.arm_indices].tolist()]

    def select(self, which: Any) -> Self:
        """Some of the rows: a mask, a slice, or an array of indices."""
        names = [
            "arm_indices",
            "propensities",
            "rewards",
            "available",
            "ids",
            "batches",
            "contexts",
            "features",
            "codes",
        ]
        names += ["behavior_probs", "baselines", "times"]
        found = {name: getattr(self, name) for name in names}
        taken = {name: None if column is None else sealed(column[which]) for name, column in found.items()}
        return self.checked(**{name: vars(self)[name] for name in self.__dataclass_fields__} | taken)

    def chunks(self, *, contexts: bool = True) -> Iterator[Self]:
        """Itself, as a :class:`Source`."""
        yield self
