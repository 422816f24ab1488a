"""When the next policy is due. Clocks may look at features, never at rewards."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rareswitch.choosing import TIE
from rareswitch.errors import ParameterError
from rareswitch.learner.kernels import first_growth
from rareswitch.linalg import inverse_root
from rareswitch.validation import BoolArray, FloatArray, IntArray, whole

#: A determinant that has grown to C·(1 - TOLERANCE) has grown to C, so that exact ties do not hang on rounding.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Progress:
    """How far the S linear models behind a policy have come since it was made."""

    #: (S, d, d) Σ xxᵀ that each was frozen with, and the decisions behind them, (S,).
    frozen: FloatArray
    counts: IntArray
    #: (S, d, d) as they stand.
    grams: FloatArray
    #: (S,) decisions that each has learned from since.
    taught: IntArray
    #: λ
    ridge: float
    #: Decisions of the policies before it.
    start: int = 0
    #: Planned decisions of the current batch and of those after it.
    batch_sizes: tuple[int, ...] = ()

    @cached_property
    def roots(self) -> FloatArray:
        """(S, d, d) L⁻¹ of each precision Λ = LLᵀ as it stands."""
        return np.array([inverse_root(self._precision(gram)) for gram in self.grams])

    @cached_property
    def growths(self) -> FloatArray:
        """(S,) by what factor each det Λ has grown."""
        growths = np.ones(len(self.grams))
        for k in np.flatnonzero(self.taught > 0):
            now, then = (np.linalg.slogdet(self._precision(one[k]))[1] for one in (self.grams, self.frozen))
            growths[k] = np.exp(now - then)
        return growths

    def _precision(self, gram: FloatArray) -> FloatArray:
        return np.asarray(gram + self.ridge * np.eye(len(gram)))


class Clock(ABC):
    """Plans how long policies decide, and says when the features call for the next one earlier.

    ``horizon`` is T, the number of decisions in all; None where it is not known.
    """

    horizon: int | None
    #: Whether lengths follow the widths of confidence intervals.
    needs_width: ClassVar[bool] = False
    #: Whether the rule says at each update how long its policy shall decide.
    sets_length: ClassVar[bool] = False
    #: Whether it looks at features, so that :meth:`due` may say something.
    uses_features: ClassVar[bool] = False
    #: Whether a policy may make so few decisions that its own sums are not worth keeping.
    every_step: ClassVar[bool] = False

    def begin(self) -> tuple[int, ...]:
        """The planned lengths of all batches, as far as they are known beforehand."""
        return self.batch_sizes((), batch=1, start=0, width=1.0)

    @abstractmethod
    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int, width: float) -> tuple[int, ...]:
        """The lengths of the batches from number ``batch`` on, the first of which begins now; none: the run is over.

        Parameters
        ----------
        planned
            What the plan before had for them.
        start
            Decisions made so far.
        width
            The mean widest interval of surviving arms, where ``needs_width``.
        """

    def left(self, planned: tuple[int, ...], start: int, forecast: Any) -> int:
        """How many policies a forecast of so many decisions in all is for, where it does not say itself."""
        return max(1, len(planned))

    def due(self, progress: Progress, features: FloatArray, models: IntArray) -> int | None:
        """After how many of the decisions with these chosen features (n, d) the next policy is due; None: not yet.

        ``models`` (n,) says which model each of them teaches, -1 for none.
        """
        return None

    def overdue(self, progress: Progress) -> str | None:
        """Why the next policy should have come before; None if it need not have."""
        return None


@dataclass(frozen=True, kw_only=True)
class ToTheHorizon(Clock):
    """Lets a policy decide all that is left of T decisions, unless it strikes before."""

    horizon: int

    def __post_init__(self) -> None:
        vars(self).update(horizon=whole("horizon", self.horizon, low=2))

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int, width: float) -> tuple[int, ...]:
        return (self.horizon - start,) if start < self.horizon else ()


@dataclass(frozen=True, kw_only=True)
class ByRule(ToTheHorizon):
    """A first batch of so many decisions; how long those after it are, the rule says when it makes their policies.

    >>> ByRule(horizon=100, first=20).begin()
    (20, 80)
    """

    first: int
    sets_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(first=whole("first", self.first))

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int, width: float) -> tuple[int, ...]:
        if start == 0 and self.first < self.horizon:
            return self.first, self.horizon - self.first
        return super().batch_sizes(planned, batch=batch, start=start, width=width)


class EveryStep(ToTheHorizon):
    """A new policy after each decision: full adaptivity, to compare with."""

    every_step: ClassVar[bool] = True

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int, width: float) -> tuple[int, ...]:
        return (1,) if start < self.horizon else ()


@dataclass(frozen=True, kw_only=True)
class DeterminantGrowth(ToTheHorizon):
    """A new policy when some det Λ has grown by the factor C since it was frozen (Abbasi-Yadkori et al. 2011).

    It looks at the features of the chosen arms and never at rewards, and the determinant bounds how often it strikes:
    at most d·log_C(1 + T/(dλ)) times.
    """

    factor: float = 2.0
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(factor=growth_factor("factor", self.factor))

    def due(self, progress: Progress, features: FloatArray, models: IntArray) -> int | None:
        return first_growth(features, models, progress.roots.copy(), progress.growths.copy(), self.bar) or None

    @property
    def bar(self) -> float:
        """The growth at which it strikes."""
        return self.factor * (1.0 - TOLERANCE)

    def overdue(self, progress: Progress) -> str | None:
        # one decision, in the unit ball, lets a determinant grow by at most 1 + 1/λ
        most = math.log(self.factor) + math.log1p(1.0 / progress.ridge) + TOLERANCE
        growth = float(progress.growths.max())
        if math.log(growth) <= most:
            return None
        return f"a determinant has grown by {growth:.4g} where the clock waits for {self.factor:g}"

    def most(self, dim: int, ridge: float) -> int:
        """⌊1 + d·log_C(1 + T/(dλ))⌋, the most policies one model can call for in a run, the first included.

        det Λ starts at λ^d and ends at no more than (λ + T/d)^d, for vectors in the unit ball.

        >>> DeterminantGrowth(horizon=100_000).most(10, 1.0)
        133
        """
        growth = dim * math.log1p(self.horizon / (dim * ridge)) / math.log(self.factor)
        return 1 + math.floor(growth + TOLERANCE)


class EveryInformativeStep(ToTheHorizon):
    """A new policy after each decision that teaches a model."""

    uses_features: ClassVar[bool] = True
    every_step: ClassVar[bool] = True

    def due(self, progress: Progress, features: FloatArray, models: IntArray) -> int | None:
        taught = np.flatnonzero(models >= 0)
        return int(taught[0]) + 1 if len(taught) else None

    def overdue(self, progress: Progress) -> str | None:
        taught = int(progress.taught.sum())
        return f"{taught} decisions have taught a model where one calls for a new policy" if taught > 1 else None


def growth_factor(name: str, factor: float) -> float:
    """C, checked."""
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1.0 < factor < math.inf:
        raise ParameterError(
            f"{name}, the factor C by which determinants grow, must be a number above 1; got {factor!r:.60}. At C = 1 "
            "every decision would bring a new policy: use a learner that is updated every step (linucb, suplinucb)."
        )
    return float(factor)


#: Of the horizon, by when the first of the policies that were kept back is deployed anyway.
RELEASED = 0.5
#: Times as uncertain as decisions like those before: more is a change.
UNLIKE = 3.0
#: The same where only policies that were kept back are left: those are for features that were never seen.
FAR_UNLIKE = 6.0
#: A direction in which fewer decisions than this taught anything is hardly known.
KNOWN = 5.0
#: Decisions for each feature before which rare and new cannot be told apart.
LEAST_SEEN = 10
#: How much must have been gathered of what is new before it is worth an update; see :meth:`Reserve._worth`.
ENOUGH = 4.0


@dataclass(frozen=True, kw_only=True)
class Reserve(ToTheHorizon):
    """Geometric batches, of whose ends the last ``reserve`` come late, so that they can come early if features change.

    Where nothing changes, the schedule is that of least cost Σ (b - a)/a over batches from a to b in which the last
    ``reserve`` policies are not deployed before shares 2^(-1), …, 2^(-1/reserve) of the horizon, evenly spaced in the
    exponent. A batch that ends early, for whatever reason, takes the place of the next of the policies that are not
    kept back, and the rest is spread anew; where none of these is left it takes one that was.

    It strikes when the decisions of the current policy are much more uncertain, by the features of the chosen arms
    under the Gram matrix that the policy was learned from, than decisions like those before would be, and when enough
    of them have come that an update now costs less than waiting.

    >>> clock = Reserve(horizon=30_000, policies=8, reserve=2, first=48)
    >>> clock.begin()
    (48, 103, 326, 1030, 3247, 10246, 6213, 8787)
    >>> clock.batch_sizes((10_246, 6213, 8787), batch=6, start=3200, width=1.0)         # the fifth batch ended early
    (11800, 6213, 8787)
    """

    #: Decisions of the first batch.
    first: int
    #: Policies in all, the first included.
    policies: int
    #: Those of them that are kept back.
    reserve: int
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        policies = whole("policies", self.policies, high=self.horizon)
        if whole("reserve", self.reserve) > policies - 2:
            raise ParameterError(
                f"reserve must leave at least two of the policies to the schedule; got reserve={self.reserve} of "
                f"policies={policies}. Keep fewer back, or deploy more."
            )
        whole("first", self.first, high=self.horizon - policies + 1)

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int, width: float) -> tuple[int, ...]:
        if batch > self.policies or start >= self.horizon:
            return ()
        if planned and start + sum(planned) == self.horizon:
            return planned  # the batch ended where it was to end
        lengths, end, left = list[int](), float(start), min(self.policies - batch, self.horizon - start - 1)
        while left:
            end = float(self._next_end(np.array([end]), left)[0]) if end else float(self.first)
            least, most = start + sum(lengths) + 1, self.horizon - left
            lengths.append(min(max(least, math.floor(end + 1e-6)), most) - least + 1)
            left -= 1
        return (*lengths, self.horizon - start - sum(lengths))

    def _next_end(self, start: FloatArray, left: int) -> FloatArray:
        """Where a batch ends that begins at ``start`` (n,), if the policy of the next is the first of ``left`` more.

        All ends have a least place, those that are not kept back 0 and the run's T. The growth from here that some end
        needs, if all up to it grow alike, is needed at least; with no more than that the cost is least.
        """
        places = np.arange(1, left + 2)
        behind = left + 1 - places
        least = np.where(behind <= self.reserve, self.horizon * RELEASED ** (behind / self.reserve), 0.0)
        return np.asarray(start * ((least / start[:, None]) ** (1.0 / places)).max(axis=1))

    def due(self, progress: Progress, features: FloatArray, models: IntArray) -> int | None:
        found = np.flatnonzero(self._due(progress, features)[1:])
        return int(found[0]) + 1 if len(found) else None

    def overdue(self, progress: Progress) -> str | None:
        if not self._due(progress, np.empty((0, len(progress.frozen[0]))))[0]:
            return None
        return (
            f"features came that were rare before: the {int(progress.taught[0]):,} decisions of this policy are "
            f"{_Uncertain.of(progress).unlike:.1f} times as uncertain as those that it was learned from"
        )

    def _due(self, progress: Progress, features: FloatArray) -> BoolArray:
        """(n + 1,) whether the next policy is due now, and after each of the decisions with these features (n, d)."""
        left, known = len(progress.batch_sizes) - 1, int(progress.counts[0])
        if left < 1 or known < LEAST_SEEN * len(progress.frozen[0]):
            return np.zeros(len(features) + 1, dtype=np.bool_)
        made = int(progress.taught[0]) + np.arange(len(features) + 1)
        start = np.maximum(1.0, progress.start + made)
        next_batch = self._next_end(start, left - 1) - start
        new = _Uncertain.of(progress, only_unknown=True)
        came, usual = new.grown(features), new.rate * made
        due = self._worth(came, usual, made, next_batch, UNLIKE)
        if left > self.reserve // 2:
            every, bar = _Uncertain.of(progress), UNLIKE if left > self.reserve else FAR_UNLIKE
            also = self._worth(every.grown(features), every.rate * made, made, next_batch, bar)
            due |= also & (came <= UNLIKE * usual)  # where something is new, there must be enough of that
        return due

    def _worth(self, came: FloatArray, usual: Any, made: IntArray, next_batch: FloatArray, bar: float) -> BoolArray:
        """Whether an update now costs less than waiting; all (n,).

        Parameters
        ----------
        came, usual
            The uncertainty of the decisions, summed: one that nothing is known of counts 1. What it would be of
            decisions like those before.
        made
            How many they are.
        next_batch
            Decisions of the batch that would begin now.

        Of m decisions of a new kind each costs u, and after an update on them about c/m; with N more of them to come,
        waiting pays until m·u·m = c·N. What came beyond the usual is m·u; m lies between that, as u ≤ 1, and all
        decisions of the batch, of which those before the change are many: the geometric mean is taken.
        """
        more = np.maximum(0.0, came - usual)
        return np.asarray((came > bar * usual) & (more * np.sqrt(more * made) >= ENOUGH * next_batch))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Uncertain:
    """What decisions are unsure of: xᵀΛ⁻¹x, where Λ has the weight of a decision in each direction besides."""

    #: (p, d) such that ‖root·x‖² is the uncertainty of x.
    root: FloatArray
    #: That of all decisions of the policy so far.
    sum: float
    #: Of a decision like those that the policy was learned from.
    rate: float
    #: Times as much as such decisions would have.
    unlike: float

    @classmethod
    def of(cls, progress: Progress, *, only_unknown: bool = False) -> "_Uncertain":
        """In all directions, or in those that are hardly known, as if nothing were."""
        gram, since = progress.frozen[0], progress.grams[0] - progress.frozen[0]
        count, made = int(progress.counts[0]), int(progress.taught[0])
        weight = float(np.trace(gram)) / count or 1.0
        if only_unknown:
            values, vectors = np.linalg.eigh(gram)
            unknown = values < KNOWN * weight * (1.0 - TIE)  # of plain arms they are counts, up to rounding
            # each of them might as well have had a decision more: of few that came, the rate is not well known
            root, rate = vectors.T[unknown] / math.sqrt(weight), float((values[unknown] / weight + 1.0).sum()) / count
        else:
            root, rate = inverse_root(gram + weight * np.eye(len(gram))), len(gram) / count
        total = float(np.sum((root @ since) * root))
        return cls(root=root, sum=total, rate=rate, unlike=total / (rate * made) if rate * made > 0.0 else 1.0)

    def grown(self, features: FloatArray) -> FloatArray:
        """(n + 1,) the sum now, and after each of the decisions with these features (n, d)."""
        return np.concatenate([[self.sum], self.sum + np.cumsum(np.square(features @ self.root.T).sum(axis=1))])
