"""What is proved: how regret grows with d, K, T and the number of policies, and what of it holds for a run.

Orders of regret, of upper and lower bounds alike, leave out constants and logarithms of T and 1/δ, and keep d, log d
and ln K. They compare bounds, and do not predict a regret. As in the paper, log is base 2 and ln is natural.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import msgspec

from rareswitch.core import Result
from rareswitch.learner import (
    AdaptiveGrid,
    BatchedLearner,
    BatchLinUCBDG,
    DeterminantGrowth,
    Foresight,
    GrowingLearner,
    Learner,
    State,
    StaticGrid,
    loglog_batches,
)

__all__ = ["CONTEXTS", "KnownRegret", "known_regret", "proved_rate"]

#: From easy to hard: one fixed set, sets drawn independently from one distribution, any sets at all. What is proved
#: for one holds for those before it.
ContextKind = Literal["fixed", "stochastic", "adversarial"]
CONTEXTS: tuple[ContextKind, ...] = get_args(ContextKind)


def arm_logarithm(dim: int, arms: int) -> float:
    """The logarithm of K in an upper bound: min(ln K, d), at least 1.

    A union bound over an ε-net of directions replaces K by min(K, exp(d log T)), whose logarithm is d up to that of T.

    >>> arm_logarithm(5, 20), arm_logarithm(5, 10**6)
    (2.99..., 5.0)
    """
    return max(1.0, min(math.log(arms), float(dim)))


def batch_exponent(policies: int) -> float:
    """1/(2(1 - 2^-M)): with M batches, regret grows as that power of T (contribution (C2)).

    >>> [round(batch_exponent(m), 3) for m in (1, 2, 3, 4, 5)]
    [1.0, 0.667, 0.571, 0.533, 0.516]
    """
    return 0.5 / (1.0 - 2.0**-policies)


def design_exponent(policies: int) -> float:
    """The same for Algorithm 5, whose second batch repeats the length of the first to learn a design.

    >>> [round(design_exponent(m), 3) for m in (1, 2, 3, 4, 5)]
    [1.0, 0.667, 0.667, 0.571, 0.533]
    """
    return batch_exponent(policies if policies <= 2 else policies - 1)


class Scale(NamedTuple):
    """How a bound depends on d and K."""

    #: {k} stands for the logarithm of K.
    text: str
    #: Of d, K and the logarithm of K.
    factor: Callable[[float, float, float], float]


#: Of uniform play, of G-optimal designs of many sets, and of that of a single set, whose V is 2d in place of O(d²).
UNIFORM = Scale("√(dK·{k})", lambda d, k, log_k: math.sqrt(d * k * log_k))
DESIGNS = Scale("d·√({k})", lambda d, k, log_k: d * math.sqrt(log_k))
ONE_DESIGN = Scale("√(d·{k})", lambda d, k, log_k: math.sqrt(d * log_k))


@dataclass(frozen=True, kw_only=True)
class Proved:
    """What a theorem says of a learner."""

    learner: str
    #: The hardest for which it is proved.
    contexts: ContextKind
    scale: Scale
    source: str
    #: For which d and T it is proved, in words and as far as it can be checked.
    condition: str = ""
    holds: Callable[[int, int], bool] = lambda dim, horizon: True

    def scaled(self, dim: int, arms: int, share: float = 1.0) -> tuple[str, float]:
        """The scale in words, and its value, where a share of the plays is of the kind that it is proved for."""
        name = ("ln K" if math.log(arms) < dim else "d") + ("" if share == 1.0 else f"/{share:g}")
        text = self.scale.text.replace("{k}", name).replace("√(d·d)", "d").replace("√(dK·d)", "d·√K")
        return text, self.scale.factor(dim, arms, arm_logarithm(dim, arms) / share)

    def stated(self, text: str, dim: int, horizon: int) -> str:
        """The regret of that text with the contexts it is proved for, as :func:`proved_rate` has it."""
        unmet = "" if self.holds(dim, horizon) else f", if {self.condition}, which does not hold here"
        return f"{text}, {self.contexts}{unmet}"


@dataclass(frozen=True, kw_only=True)
class Batched(Proved):
    """A regret of the order scale·T^exponent with M batches."""

    exponent: Callable[[int], float] = batch_exponent
    #: Of T, the batches with which it comes down to √T but for a constant.
    enough: Callable[[int], int] = loglog_batches
    #: β, the least share of G-optimal play in a learned design; the first is used in the second of three batches.
    share: float = 1.0

    def policies(self, dim: int, horizon: int) -> int:
        """Those with which the bound is best."""
        return min(horizon, self.enough(horizon))

    def scale_with(self, dim: int, arms: int, policies: int) -> tuple[str, float]:
        """The scale with this number of batches, in words and as a value: two batches use no learned design."""
        return self.scaled(dim, arms, self.share if policies > 2 else 1.0)

    def regret(self, dim: int, arms: int, horizon: int, policies: int) -> tuple[str, float]:
        """In words, and its order."""
        text, factor = self.scale_with(dim, arms, policies)
        best = policies >= self.policies(dim, horizon)
        power = 0.5 if best else self.exponent(policies)
        return f"{text}·{'√T' if best else f'T^{power:.3f}'}", factor * horizon**power


@dataclass(frozen=True, kw_only=True)
class Switching(Proved):
    """A regret of the order scale·√T·C^loss, where a determinant grows by C between policies."""

    #: Models whose determinants grow, for d.
    layers: Callable[[int], int]
    loss: float

    def policies(self, dim: int, horizon: int, growth: float = 2.0) -> int:
        """The most that a run deploys, with a ridge of 1."""
        return self.layers(dim) * DeterminantGrowth(horizon=horizon, factor=growth).most(dim, 1.0)

    def growth(self, dim: int, horizon: int, policies: int) -> float:
        """The C with which a run deploys at most this number of policies, at least 2; infinite if there is none."""
        if policies >= self.policies(dim, horizon):
            return 2.0
        left = policies // self.layers(dim) - 1
        logarithm = math.inf if left < 1 else dim * math.log1p(horizon / dim) / left
        return max(2.0, math.exp(logarithm)) if logarithm < 700.0 else math.inf

    def regret(self, dim: int, arms: int, horizon: int, policies: int) -> tuple[str, float]:
        """In words, and its order."""
        return self.regret_at(dim, arms, horizon, self.growth(dim, horizon, policies))

    def regret_at(self, dim: int, arms: int, horizon: int, growth: float) -> tuple[str, float]:
        """The same for a given C."""
        scale, factor = self.scaled(dim, arms)
        text = f"{'√C' if self.loss == 0.5 else 'C'}·{scale}·√T, C = {growth:.3g}"
        return text, growth**self.loss * factor * math.sqrt(horizon)


Guarantee = Batched | Switching


def designed(learner: str, share: float) -> Batched:
    """What is proved of Algorithm 5 at horizons that can be run, for designs with a share of G-optimal play.

    I(π) is at least that share of the information of G-optimal play, so that V ≤ 2d²/β whatever was learned, and the
    proof of Theorem 2 goes through. Theorem 6 has √(d log d) in place of d/√β, and holds for d^32 ≤ T ≤ exp(d): that is
    for d ≥ 164 and T above 10^70. A certificate is of the sets that the design was learned from, and does not replace
    the first of these conditions.
    """
    return Batched(
        learner=learner,
        contexts="stochastic",
        scale=DESIGNS,
        exponent=design_exponent,
        enough=lambda horizon: loglog_batches(horizon) + 1,
        share=share,
        source="Theorem 2",
    )


#: What is proved for the learners of the library that need few policies, with their usual settings.
GUARANTEES: tuple[Guarantee, ...] = (
    Batched(learner="batch-linucb", contexts="stochastic", scale=UNIFORM, source="Theorem 1"),
    Batched(learner="batch-linucb-kw", contexts="stochastic", scale=DESIGNS, source="Theorem 2"),
    Batched(learner="batch-linucb-kw", contexts="fixed", scale=ONE_DESIGN, source="Theorem 2"),
    designed("batch-linucb-dg", 0.5),
    designed("batch-linucb-dg-certified", 0.2),
    Batched(
        learner="fixed-set-elimination",
        contexts="fixed",
        scale=ONE_DESIGN,
        exponent=lambda policies: 0.5 + 0.5 / policies,
        enough=lambda horizon: math.ceil(math.log(horizon)),
        source="Esfandiari 2019",
    ),
    Switching(
        learner="oful",
        contexts="adversarial",
        scale=Scale("d", lambda d, k, log_k: d),
        layers=lambda dim: 1,
        loss=0.5,
        source="Abbasi-Yadkori 2011",
    ),
    Switching(
        learner="rarely-switch-suplinucb",
        contexts="adversarial",
        scale=Scale(
            "√d·log d·{k}", lambda d, k, log_k: math.sqrt(d) * max(1.0, math.log2(d)) * log_k
        ),  # of log(dKT/δ), not its root
        layers=lambda dim: math.ceil(math.log2(dim)) + 1,
        loss=1.0,
        source="Theorem 7",
        condition="T ≥ d³",  # below it, layer 0 may be wrong by more than the rewards are
        holds=lambda dim, horizon: horizon >= dim**3,
    ),
)


def guarantee_of(learner: str, contexts: ContextKind | None = None) -> Guarantee | None:
    """What is proved of the learner of that name for such contexts, by default for the hardest; None if nothing is."""
    proved = [guarantee for guarantee in GUARANTEES if guarantee.learner == learner]
    if contexts is None:
        return max(proved, key=_hardness, default=None)
    return min((g for g in proved if _hardness(g) >= CONTEXTS.index(contexts)), key=_hardness, default=None)


def proved_for(contexts: ContextKind) -> list[Guarantee]:
    """What holds for such contexts, the best of each learner, in the order of the list.

    Batches where they are safe; for adversarial contexts, switches.
    """
    kind = Switching if contexts == "adversarial" else Batched
    best = {g.learner: guarantee_of(g.learner, contexts) for g in GUARANTEES if isinstance(g, kind)}
    return [guarantee for guarantee in best.values() if guarantee is not None]


def _hardness(guarantee: Guarantee) -> int:
    return CONTEXTS.index(guarantee.contexts)


def proved_rate(learner: Learner, contexts: ContextKind | None = None) -> str:
    """The regret that is proved for the batches as planned, up to constants and logarithms, or "none".

    For contexts of that kind where batches end on a grid; by default for the hardest for which something is proved.

    >>> from rareswitch.learner import BatchLinUCBKW
    >>> proved_rate(BatchLinUCBKW(dim=20, arms=5, horizon=10_000, policies=2))
    'd·√(ln K)·T^0.667, stochastic'
    """
    if isinstance(learner, BatchedLearner):
        return _rate_on_grid(learner, contexts)
    proved = guarantee_of(learner.name)
    if isinstance(learner, GrowingLearner) and isinstance(proved, Switching):
        text, _ = proved.regret_at(learner.dim, learner.arms, learner.horizon, learner.growth)
        return proved.stated(text, learner.dim, learner.horizon)
    if isinstance(learner, Foresight):
        return _rate_of_foresight(learner)
    return learner.regret


def _rate_on_grid(learner: BatchedLearner, contexts: ContextKind | None) -> str:
    """The bound of the paper's grid with the same number of batches, times the extra cost of another grid."""
    proved = guarantee_of(learner.name, contexts)
    if proved is None:
        return learner.regret if contexts is None else "none"
    grid, dim, arms, horizon = learner.schedule(), learner.dim, learner.arms, learner.horizon
    assert isinstance(proved, Batched)
    if isinstance(learner, BatchLinUCBDG):
        proved = replace(proved, share=float(getattr(learner.designer, "g_optimal_share", 0.0)))
        if proved.share == 0.0:
            return "none"
    if isinstance(grid, AdaptiveGrid):
        return learner.regret
    text, order = proved.regret(dim, arms, horizon, len(grid.ends))
    # what each batch costs at most: its length, or T_i/√T_(i-1) where the one before was learned from
    costs = [grid.ends[0], *(end / math.sqrt(before) for before, end in pairwise(grid.ends))]
    more = max(costs) * proved.scale_with(dim, arms, len(grid.ends))[1] / order
    # the paper's own grids come out at 1 or 2, rounded to whole decisions
    times = "" if more < 3.0 else f", times {more:.2g} with these batches"
    return f"{proved.stated(text, dim, horizon)}{times}"


def _rate_of_foresight(learner: Foresight) -> str:
    """The theorem's, for the number of batches; none where intervals rest on estimates."""
    batches = len(learner.clock.begin())
    if learner.noise_bound is None or learner.design_share == 0.0 or batches < 2 or learner.grid is not None:
        return "none"
    growth = (1.0 - 1.0 / batches) / (batches - 1 - learner.reserve)  # T^growth is that of a batch
    return f"d·T^{0.5 + 0.5 * growth:.3f}/√design_share, stochastic"


class KnownRegret(Result, frozen=True, kw_only=True):
    """What is known of the regret of a run, given the batches it had. Prints as text."""

    #: What is proved for the planned batches, with the contexts it is proved for; "none".
    rate: str
    #: Decisions of the batches so far where they were not those planned, and of those; else none.
    batches: tuple[int, ...] = ()
    planned: tuple[int, ...] = ()
    #: Where batches were not those planned, and each is judged by itself: the failure probability of all intervals
    #: together; for how many decisions in how many batches they were made, and how many there are if that is more.
    delta: float | None = None
    made_for: tuple[int, int] | None = None
    needed: tuple[int, int] | None = None
    #: A minimum propensity, as people write it: what is known is then of the decisions that it leaves to the learner.
    min_propensity: str = ""
    #: Decisions of a log that the run began with.
    warm: int | None = None


def known_regret(learner: Learner, state: State) -> KnownRegret:
    """What is known of the regret of this run, given the batches it had."""
    sizes, rate = tuple(batch.decided for batch in state.past), proved_rate(learner)
    # what is proved of foresight needs batches that do not end by their own features, as those of a reserve may
    proves_lengths = isinstance(learner, Foresight) and learner.reserve and learner.noise_bound is not None
    freely = not (isinstance(learner.clock, StaticGrid) or proves_lengths)
    planned = sizes if freely else learner.clock.begin()[: len(sizes)]
    known = KnownRegret(
        rate=rate,
        min_propensity="" if state.policy.min_propensity is None else str(state.policy.min_propensity),
        warm=None if state.warm is None else state.warm.decided,
    )
    if sizes == planned:
        return known
    known = msgspec.structs.replace(known, batches=sizes, planned=planned)
    if not isinstance(learner, BatchedLearner):
        return known
    made_for, needed = (learner.horizon, len(learner.clock.begin())), (state.horizon, state.policies)
    beyond = any(more > most for more, most in zip(needed, made_for, strict=True))
    return msgspec.structs.replace(known, delta=learner.delta, made_for=made_for, needed=needed if beyond else None)
