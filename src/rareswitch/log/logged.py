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
class Logged:
    """Decisions of one or several frozen policies, a row each; read-only.

    A batch is what one frozen policy decided. Batches are numbered in the order in which they were made: what is
    learned from one may change the policy of the next.

    Examples
    --------
    >>> log = Logged(places=[0, 1, 1], propensities=[0.5, 0.5, 0.9], rewards=[1.0, 0.0, None], arms=["red", "blue"])
    >>> log
    <logged: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>
    >>> log.chosen_names
    ['red', 'blue', 'blue']
    """

    #: (n,) where the chosen arm stands among those that were offered.
    places: IntArray
    #: (n,) the probability with which it was chosen, above 0.
    propensities: FloatArray
    #: (n,) what it earned; NaN, or None where it is given, where that is not known.
    rewards: FloatArray
    #: (n, K) which arms were offered; all K by default.
    alive: BoolArray = None  # type: ignore[assignment]
    #: (n, K, d) the vectors of the arms; None where there are none.
    contexts: FloatArray | None = None
    #: (n, d) the vectors of the chosen arms; taken from the contexts where these are there.
    features: FloatArray | None = None
    #: The ids of all arms that occur; None where arms have no ids.
    arms: tuple[str, ...] | None = None
    #: (n, K) which of these each one is, -1 where none was offered; place 0 is the first of them, by default.
    codes: IntArray | None = None
    #: (n, K) the probabilities of all offered arms, where they are known beside that of the chosen one.
    logging: FloatArray | None = None
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
            places: Any,
            propensities: Any,
            rewards: Any,
            alive: Any = None,
            contexts: Any = None,
            features: Any = None,
            arms: Any = None,
            codes: Any = None,
            logging: Any = None,
            baselines: Any = None,
            ids: Any = None,
            times: Any = None,
            batches: Any = None,
            batch_names: Sequence[str] = ("log",),
            policies: Mapping[str, Policy] | None = None,
            estimated: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        places = whole_column("places", self.places)
        count = len(places)
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
        alive = self._alive(places, contexts)
        arms = alive.shape[1]
        inside = (places >= 0) & (places < arms)
        there = inside & alive[np.arange(count), np.where(inside, places, 0)]
        if not there.all():
            at = int(np.flatnonzero(~there)[0])
            raise ParameterError(
                f"places must be those of offered arms; row {at} (the first is 0) has place {places[at]} among "
                f"{int(alive[at].sum())} arms."
            )
        features = self.features
        if features is not None:
            features = finite_column("features", features, (count, None))
        elif contexts is not None:
            features = sealed(contexts[np.arange(count), places])
        batches = (
            np.zeros(count, dtype=np.int64) if self.batches is None else whole_column("batches", self.batches, count)
        )
        names = tuple(self.batch_names)
        if len(set(names)) < len(names) or batches.min() < 0 or batches.max() >= len(names):
            raise ParameterError(
                f"batches must be numbers from 0 to {len(names) - 1}, one name each; got {batches.min()} to "
                f"{batches.max()} and the names {', '.join(map(str, names)):.100}."
            )
        arm_names, codes = self._named(alive)
        logging = self.logging
        if logging is not None:
            logging = finite_column("logging", logging, (count, arms))
            own = logging[np.arange(count), places]
            if not np.allclose(own, propensities, rtol=1e-6, atol=1e-12):
                at = int(np.abs(own - propensities).argmax())
                raise ParameterError(
                    f"logging must give the chosen arm its propensity; row {at} has {own[at]:g} beside "
                    f"{propensities[at]:g}."
                )
            inside = np.where(alive, logging, 0.0)
            odd = (inside < 0.0).any(axis=1) | (np.abs(inside.sum(axis=1) - 1.0) > 1e-6)
            if odd.any():
                at = int(np.flatnonzero(odd)[0])
                raise ParameterError(
                    f"logging must be probabilities of the offered arms, which sum to 1; row {at} (the first is 0) has "
                    f"{inside[at].tolist()!s:.100}."
                )
        baselines = None if self.baselines is None else whole_column("baselines", self.baselines, count)
        if baselines is not None and ((baselines >= arms) | (baselines < -1)).any():
            raise ParameterError(f"baselines must be places of arms, up to {arms - 1}, or -1 where none was named.")
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
            places=places,
            propensities=propensities,
            rewards=rewards,
            alive=alive,
            contexts=contexts,
            features=features,
            arms=arm_names,
            codes=codes,
            logging=logging,
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

    def _alive(self, places: IntArray, contexts: FloatArray | None) -> BoolArray:
        count = len(places)
        if self.alive is None:
            arms = contexts.shape[1] if contexts is not None else self._width(places)
            return sealed(np.ones((count, arms), dtype=np.bool_))
        alive = np.asarray(self.alive)
        wanted = (count, alive.shape[-1] if contexts is None else contexts.shape[1])
        if alive.dtype != np.bool_ or alive.shape != wanted:
            raise ShapeError(f"alive must be booleans of shape {wanted}; got {alive.dtype} of shape {alive.shape}.")
        return read_only(alive)

    def _width(self, places: IntArray) -> int:
        for given in (self.logging, self.codes):
            if given is not None and np.ndim(given) == 2:
                return int(np.shape(given)[1])
        return max(1, len(self.arms) if self.arms is not None else int(places.max()) + 1)

    def _named(self, alive: BoolArray) -> tuple[tuple[str, ...] | None, IntArray | None]:
        if self.arms is None:
            if self.codes is not None:
                raise ParameterError("codes say which of the arms stands where, and arms were not given.")
            return None, None
        arms = tuple(map(str, self.arms))
        if len(set(arms)) < len(arms):
            raise ParameterError("arms must have different ids.")
        if self.codes is None:
            if len(arms) != alive.shape[1]:
                raise ShapeError(
                    f"arms must be one for each of the {alive.shape[1]} places; got {len(arms)}. Give codes where "
                    "different arms are offered."
                )
            return arms, sealed(np.where(alive, np.arange(len(arms)), -1))
        codes = np.asarray(self.codes)
        if codes.shape != alive.shape or codes.dtype.kind not in "iu":
            raise ShapeError(f"codes must be whole numbers of shape {alive.shape}; got {codes.dtype} {codes.shape}.")
        codes = np.where(alive, codes, -1)
        if (codes[alive] < 0).any() or codes.max() >= len(arms):
            raise ParameterError(f"codes must be from 0 to {len(arms) - 1} where an arm is offered.")
        ordered = np.sort(codes, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        if twice.any():
            at, place = (int(one[0]) for one in np.nonzero(twice))
            raise ParameterError(
                f"a decision must offer different arms; row {at} (the first is 0) offers "
                f"{arms[ordered[at, place]]!r:.60} twice."
            )
        return arms, sealed(codes)

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        batches, known = len(self.batch_names), int((~np.isnan(self.rewards)).sum())
        return (
            f"<logged: {several(len(self), 'decision')}, {known:,} rewarded, {several(batches, 'batch')}, at most "
            f"{self.alive.shape[1]} arms{', propensities estimated' if self.estimated else ''}>"
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
        """(n) the ids of the chosen arms; their places as texts where arms have none."""
        if self.arms is None or self.codes is None:
            return [*map(str, self.places.tolist())]
        return [self.arms[code] for code in self.codes[np.arange(len(self)), self.places].tolist()]

    def select(self, which: Any) -> Self:
        """Some of the rows: a mask, a slice, or an array of places."""
        names = ["places", "propensities", "rewards", "alive", "ids", "batches", "contexts", "features", "codes"]
        names += ["logging", "baselines", "times"]
        found = {name: getattr(self, name) for name in names}
        taken = {name: None if column is None else sealed(column[which]) for name, column in found.items()}
        return self.checked(**{name: vars(self)[name] for name in self.__dataclass_fields__} | taken)

    def chunks(self, *, contexts: bool = True) -> Iterator[Self]:
        """Itself, as a :class:`Source`."""
        yield self
