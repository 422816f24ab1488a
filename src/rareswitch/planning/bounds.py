"""The bounds of the paper and of others, filled in for a problem, and which learner has the best of them."""

import math
from typing import Literal

import msgspec

from rareswitch.core import Result
from rareswitch.errors import ParameterError
from rareswitch.planning.guarantees import (
    CONTEXTS,
    ContextKind,
    Guarantee,
    Switching,
    arm_logarithm,
    guarantee_of,
    proved_for,
)

__all__ = ["Bounds", "Problem", "bounds_of"]


class Bound(Result, frozen=True, kw_only=True):
    """A learner with a number of policies, and the regret that is proved for it."""

    learner: str
    policies: int
    #: With which it deploys no more than these policies; none where no growth of a determinant is large enough.
    settings: dict[str, float] | None
    #: Its :func:`~rareswitch.planning.proved_rate` with these settings.
    regret: str
    #: Of that regret; None where a condition does not hold or it is no less than T.
    order: float | None
    source: str
    #: Why there is no order.
    note: str = ""


class AdaptivityBound(Result, frozen=True):
    """A bound of the paper's Table 1 on the policies that the minimax-optimal regret takes, up to logarithms."""

    contexts: ContextKind
    #: Batches end at times fixed beforehand; switches may come at any time.
    model: Literal["batches", "switches"]
    #: Whether this number suffices; otherwise fewer cannot do.
    upper: bool
    text: str
    #: For these d and T.
    order: float
    source: str
    #: Which learner attains an upper bound, if the library has it.
    learner: str | None = None
    condition: str = ""


def table_1(dim: int, horizon: int) -> tuple[AdaptivityBound, ...]:
    """The bounds of Table 1 for these d and T."""
    log_dim, log_horizon = _log(dim), math.log2(horizon)
    growth, few = dim * log_horizon, _log(_log(horizon))
    paper_1, paper_2, best = "the paper, C1", "the paper, C2", "batch-linucb-dg"
    return (
        AdaptivityBound("adversarial", "batches", True, "O(√(dT))", math.sqrt(dim * horizon), "Han 2020"),
        AdaptivityBound("adversarial", "batches", False, "Ω(√T)", math.sqrt(horizon), "Han 2020"),
        AdaptivityBound(
            *("adversarial", "switches", True, "O(d log T)", growth, "Abbasi-Yadkori 2011"),
            learner="oful",
            condition="ln K ≥ Ω(d)",
        ),
        AdaptivityBound(
            *("adversarial", "switches", True, "O(d log d log T)", growth * log_dim, paper_1),
            learner="rarely-switch-suplinucb",
            condition="ln K ≤ o(d)",
        ),
        AdaptivityBound("adversarial", "switches", False, "Ω(d log T/log(d log T))", growth / _log(growth), paper_1),
        AdaptivityBound("stochastic", "batches", True, "O(log log T)", few, paper_2, best),
        AdaptivityBound("stochastic", "batches", False, "Ω(log log T)", few, "Gao 2019"),
        AdaptivityBound("stochastic", "switches", True, "O(log log T)", few, paper_2, best),
        AdaptivityBound("stochastic", "switches", False, "Ω(log log T)", few, "Simchi-Levi 2019"),
    )


def _log(number: float) -> float:
    """log₂, at least 1."""
    return max(1.0, math.log2(number))


def minimax(dim: int, arms: int, horizon: int, contexts: ContextKind = "stochastic") -> tuple[str, float]:
    """A regret below which no learner can promise to stay, with any number of policies: in words, and its order.

    With contexts that change it is √(dT·min(ln K, d)): let each set be a cube of log K dimensions, one of d/log K at
    random. A fixed set is one such cube only where K ≥ 2^d, and otherwise holds min(d, K - 1) unrelated arms beside
    one. Never more than T.

    >>> minimax(4, 10, 10_000)
    ('√(dT·ln K)', 303.48...)
    >>> minimax(4, 3, 10_000, "fixed")
    ('√((K - 1)·T)', 141.42...)
    """
    cube = contexts != "fixed" or math.log2(arms) >= dim
    if not cube:
        text, scale = ("√(dT)", float(dim)) if dim < arms else ("√((K - 1)·T)", arms - 1.0)
    elif math.log(arms) < dim:
        text, scale = "√(dT·ln K)", dim * math.log(arms)
    else:
        text, scale = "d·√T", dim**2
    order = math.sqrt(scale * horizon)
    return (text, order) if order < horizon else ("T", float(horizon))


class Bounds(Result, frozen=True, kw_only=True):
    """What is proved of learners for a problem, up to constants and logarithms of T."""

    problem: "Problem"
    #: All learners for which something is proved for such contexts.
    learners: tuple[Bound, ...]
    #: Of these the one with the best bound, the policies that it needs, and what speaks for it.
    proven: str
    proven_policies: int
    proven_reason: str
    #: The bounds of Table 1 for such contexts.
    adaptivity: tuple[AdaptivityBound, ...]
    #: The order of the least regret that can be promised with any number of policies, and its rate in words.
    minimax: float
    minimax_rate: str

    def order_with(self, policies: int) -> float | None:
        """Of the best bound with this number of policies; None where it is no less than T."""
        guarantee = guarantee_of(self.proven, self.problem.contexts)
        assert guarantee is not None
        problem = msgspec.structs.replace(self.problem, policies=policies)
        return problem.order(guarantee) if problem.proved(guarantee) else None

    @property
    def vacuous(self) -> bool:
        """Whether no learner has a bound below T."""
        return all(bound.order is None for bound in self.learners)


def bounds_of(
    *, dim: int, arms: int, horizon: int, policies: int | None = None, contexts: ContextKind = "stochastic"
) -> Bounds:
    """What is proved for d, K and T.

    Parameters
    ----------
    policies
        The policies that can be deployed, the first included; without it, each learner gets what its bound asks for.
    contexts
        ``fixed`` (one set), ``stochastic`` (sets drawn independently from one distribution) or ``adversarial``
        (anything, a drift or a season included).

    Examples
    --------
    >>> bounds = bounds_of(dim=5, arms=20, horizon=100_000)
    >>> print(bounds.proven_reason)
    T = 100000 is at least exp(d) = 148: BatchLinUCB-KW is already optimal up to logarithms and has no design to learn.
    >>> bounds_of(dim=20, arms=50, horizon=10_000, policies=2).vacuous
    True
    """
    if contexts not in CONTEXTS:
        raise ParameterError(f"contexts must be {', '.join(CONTEXTS[:-1])} or {CONTEXTS[-1]}; got {contexts!r:.60}.")
    problem = Problem(dim=dim, arms=arms, horizon=horizon, policies=policies, contexts=contexts)
    best = problem.best()
    kind = "adversarial" if contexts == "adversarial" else "stochastic"
    least_rate, least = minimax(dim, arms, horizon, contexts)
    return Bounds(
        problem=problem,
        learners=tuple(map(problem.bound, proved_for(contexts))),
        proven=best.learner,
        proven_policies=problem.deployed(best),
        proven_reason=problem.why(best),
        adaptivity=tuple(bound for bound in table_1(dim, horizon) if bound.contexts == kind),
        minimax=least,
        minimax_rate=least_rate,
    )


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds are asked for."""

    dim: int
    arms: int
    horizon: int
    policies: int | None = None
    contexts: ContextKind = "stochastic"

    def deployed(self, guarantee: Guarantee) -> int:
        """What the learner gets: those its bound asks for, or those that can be deployed if they are fewer."""
        wanted = guarantee.policies(self.dim, self.horizon)
        return wanted if self.policies is None else min(self.policies, wanted)

    def order(self, guarantee: Guarantee) -> float:
        """Of its bound."""
        return guarantee.regret(self.dim, self.arms, self.horizon, self.deployed(guarantee))[1]

    def proved(self, guarantee: Guarantee) -> bool:
        """Whether its conditions hold, and its bound is below T."""
        return guarantee.holds(self.dim, self.horizon) and self.order(guarantee) < self.horizon

    def bound(self, guarantee: Guarantee) -> Bound:
        """The learner with its bound here."""
        policies = self.deployed(guarantee)
        text, order = guarantee.regret(self.dim, self.arms, self.horizon, policies)
        settings: dict[str, float] | None = {"policies": policies}
        if isinstance(guarantee, Switching):
            growth = guarantee.growth(self.dim, self.horizon, policies)
            settings = {"growth": growth} if math.isfinite(growth) else None
        elif policies == guarantee.policies(self.dim, self.horizon):
            settings = {}  # the learner's own grid
        note = "" if order < self.horizon else "a bound beyond T"
        return Bound(
            learner=guarantee.learner,
            policies=policies,
            settings=settings,
            regret=guarantee.stated(text, self.dim, self.horizon),
            order=order if self.proved(guarantee) else None,
            source=guarantee.source,
            note=note if guarantee.holds(self.dim, self.horizon) else f"if {guarantee.condition}",
        )

    def best(self) -> Guarantee:
        """The learner of the least bound, of those whose conditions hold."""
        return min(
            (guarantee for guarantee in proved_for(self.contexts) if guarantee.holds(self.dim, self.horizon)),
            key=self.order,
        )

    def why(self, best: Guarantee) -> str:
        """What speaks for it."""
        if isinstance(best, Switching):
            return self._why_switching(best)
        if self.contexts == "fixed":
            return "the G-optimal design of the one set is the best way to explore it, and its bound has the factor √d."
        if math.log(self.horizon) >= self.dim and best.learner == "batch-linucb-kw":
            return (
                f"T = {self.horizon} is at least exp(d) = {math.exp(self.dim):.0f}: BatchLinUCB-KW is already optimal "
                "up to logarithms and has no design to learn."
            )
        logarithm = arm_logarithm(self.dim, self.arms)
        uniform, optimal = math.sqrt(self.dim * self.arms * logarithm), self.dim * math.sqrt(logarithm)
        return (
            "up to constants and logarithms of T the regret bounds are √T times "
            f"√(dK·min(ln K, d)) = {uniform:.1f} for uniform play and d·√(min(ln K, d)) = {optimal:.1f} for the "
            "G-optimal design of each set. For a learned design (dg) √(d log d) in place of d is proved only for "
            "d^32 ≤ T ≤ exp(d), which begins at T = 10^70."
        )

    def _why_switching(self, best: Switching) -> str:
        reason = (
            f"it changes when a determinant of the chosen features has grown by C: at most "
            f"{best.policies(self.dim, self.horizon)} policies for C = 2, whatever the contexts are."
        )
        if best.learner != "oful":
            return reason
        if math.log(self.arms) >= self.dim:
            return f"{reason} ln K is at least d, where it is the learner of the paper's Table 1."
        return f"{reason} Theorem 7 has the smaller bound only where √d is large against log d·ln K, and T ≥ d³."
