"""What is proved: how many policies are needed (Table 1 of the paper), and how regret grows with d, K and T.

Orders leave out constants and logarithms of T, K and 1/δ. They compare bounds, and do not predict a regret. As in the
paper, log is base 2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from rareswitch.learner.clocks import DeterminantGrowth
from rareswitch.learner.grids import loglog_batches

#: From easy to hard: one set for ever, sets drawn independently from one distribution, any sets at all. What is proved
#: for one holds for those before it.
Contexts = Literal["fixed", "stochastic", "adversarial"]
CONTEXTS: tuple[Contexts, ...] = get_args(Contexts)
Model = Literal["batches", "switches"]
MODELS: tuple[Model, ...] = get_args(Model)


@dataclass(frozen=True, kw_only=True)
class Adaptivity:
    """A bound of Table 1 on the policies needed for the minimax-optimal regret, up to logarithms."""

    contexts: Contexts
    #: Batches end at times fixed beforehand; switches may come at any time.
    model: Model
    text: str
    #: Of d and T.
    order: Callable[[int, int], float]
    source: str
    #: Which learner attains an upper bound, if it is here.
    learner: str | None = None
    condition: str = ""

    @property
    def upper(self) -> bool:
        """Whether so many suffice, O(…); otherwise fewer cannot do, Ω(…)."""
        return self.text.startswith("O")


def _loglog(dim: int, horizon: int) -> float:
    return max(1.0, math.log2(max(2.0, math.log2(horizon))))


def _few_switches(dim: int, horizon: int) -> float:
    growth = dim * math.log2(horizon)
    return growth / max(1.0, math.log2(growth))


#: Table 1.
TABLE: tuple[Adaptivity, ...] = (
    Adaptivity(
        contexts="adversarial", model="batches", text="O(√(dT))", order=lambda d, t: math.sqrt(d * t), source="Han 2020"
    ),
    Adaptivity(
        contexts="adversarial", model="batches", text="Ω(√T)", order=lambda d, t: math.sqrt(t), source="Han 2020"
    ),
    Adaptivity(
        contexts="adversarial",
        model="switches",
        text="O(d log T)",
        order=lambda d, t: d * math.log2(t),
        source="Abbasi-Yadkori 2011",
        learner="oful",
        condition="ln K ≥ Ω(d)",
    ),
    Adaptivity(
        contexts="adversarial",
        model="switches",
        text="O(d log d log T)",
        order=lambda d, t: d * max(1.0, math.log2(d)) * math.log2(t),
        source="the paper, C1",
        learner="rarely-switch-suplinucb",
        condition="ln K ≤ o(d)",
    ),
    Adaptivity(
        contexts="adversarial",
        model="switches",
        text="Ω(d log T/log(d log T))",
        order=_few_switches,
        source="the paper, C1",
    ),
    Adaptivity(
        contexts="stochastic",
        model="batches",
        text="O(log log T)",
        order=_loglog,
        source="the paper, C2",
        learner="batch-linucb-dg",
    ),
    Adaptivity(contexts="stochastic", model="batches", text="Ω(log log T)", order=_loglog, source="Gao 2019"),
    Adaptivity(
        contexts="stochastic",
        model="switches",
        text="O(log log T)",
        order=_loglog,
        source="the paper, C2",
        learner="batch-linucb-dg",
    ),
    Adaptivity(contexts="stochastic", model="switches", text="Ω(log log T)", order=_loglog, source="Simchi-Levi 2019"),
)


def minimax(dim: int, arms: int, horizon: int) -> tuple[str, float]:
    """The least regret that can be promised with any number of policies, √(dT·min(ln K, d)), and its order.

    >>> minimax(4, 10, 10_000)
    ('√(dT)', 200.0)
    """
    if math.log(arms) < dim:
        return "√(dT)", math.sqrt(dim * horizon)
    return "d·√T", dim * math.sqrt(horizon)


def batch_exponent(updates: int) -> float:
    """1/(2(1 - 2^-M)): with M batches, regret grows as that power of T (contribution (C2)).

    >>> [round(batch_exponent(m), 3) for m in (1, 2, 3, 4, 5)]
    [1.0, 0.667, 0.571, 0.533, 0.516]
    """
    return 0.5 / (1.0 - 2.0**-updates)


def design_exponent(updates: int) -> float:
    """The same for Algorithm 5, whose second batch repeats the length of the first to learn a design.

    >>> [round(design_exponent(m), 3) for m in (1, 2, 3, 4, 5)]
    [1.0, 0.667, 0.667, 0.571, 0.533]
    """
    return batch_exponent(updates if updates <= 2 else updates - 1)


@dataclass(frozen=True, kw_only=True)
class Proved:
    """What a theorem says of a learner."""

    learner: str
    #: The hardest for which it is proved.
    contexts: Contexts
    scale: str
    #: Of d and K, what the scale says.
    factor: Callable[[int, int], float]
    source: str
    #: For which d and T it is proved, in words and as far as it can be checked.
    condition: str = ""
    holds: Callable[[int, int], bool] = lambda dim, horizon: True


@dataclass(frozen=True, kw_only=True)
class Batched(Proved):
    """A regret of the order scale·T^exponent with M batches."""

    exponent: Callable[[int], float] = batch_exponent
    #: Of T, the batches with which it comes down to √T but for a constant.
    enough: Callable[[int], int] = loglog_batches

    def policies(self, dim: int, horizon: int) -> int:
        """Those with which the bound is best."""
        return min(horizon, self.enough(horizon))

    def regret(self, dim: int, arms: int, horizon: int, policies: int) -> tuple[str, float]:
        """In words, and its order."""
        best = policies >= self.policies(dim, horizon)
        power = 0.5 if best else self.exponent(policies)
        return f"{self.scale}·{'√T' if best else f'T^{power:.3f}'}", self.factor(dim, arms) * horizon**power


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
        """The C with which a run deploys at most so many, at least 2; infinite if there is none."""
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
        text = f"{'√C' if self.loss == 0.5 else 'C'}·{self.scale}·√T, C = {growth:.3g}"
        return text, growth**self.loss * self.factor(dim, arms) * math.sqrt(horizon)


Guarantee = Batched | Switching


def _d(dim: int, arms: int) -> float:
    return float(dim)


def _root_d(dim: int, arms: int) -> float:
    return math.sqrt(dim)


def _root_d_log_d(dim: int, arms: int) -> float:
    return math.sqrt(dim * max(1.0, math.log2(dim)))


def _below_exp(dim: int, horizon: int) -> bool:
    return math.log(horizon) <= dim


#: What is proved for the learners of the library that need few policies.
GUARANTEES: tuple[Guarantee, ...] = (
    Batched(
        learner="batch-linucb",
        contexts="stochastic",
        scale="√(dK)",
        factor=lambda d, k: math.sqrt(d * k),
        source="Theorem 1",
    ),
    Batched(learner="batch-linucb-kw", contexts="stochastic", scale="d", factor=_d, source="Theorem 2"),
    Batched(  # of a single set the G-optimal design is that of the distribution, with V ≤ 2d in place of O(d²)
        learner="batch-linucb-kw",
        contexts="fixed",
        scale="√d",
        factor=_root_d,
        source="Theorem 2",
    ),
    Batched(
        learner="batch-linucb-dg",
        contexts="stochastic",
        scale="√(d log d)",
        factor=_root_d_log_d,
        exponent=design_exponent,
        enough=lambda horizon: loglog_batches(horizon) + 1,
        source="Theorem 6",
        condition="d^32 ≤ T ≤ exp(d)",
        holds=lambda dim, horizon: _below_exp(dim, horizon) and math.log(horizon) >= 32.0 * math.log(dim),
    ),
    Batched(
        learner="batch-linucb-dg-certified",
        contexts="stochastic",
        scale="√(d log d)",
        factor=_root_d_log_d,
        exponent=design_exponent,
        enough=lambda horizon: loglog_batches(horizon) + 1,
        source="Theorem 6",
        condition="T ≤ exp(d)",  # the certificate of each design stands for the other condition
        holds=_below_exp,
    ),
    Batched(
        learner="fixed-set-elimination",
        contexts="fixed",
        scale="√d",
        factor=_root_d,
        exponent=lambda updates: 0.5 + 0.5 / updates,
        enough=lambda horizon: math.ceil(math.log(horizon)),
        source="Esfandiari 2019",
    ),
    Switching(
        learner="oful",
        contexts="adversarial",
        scale="d",
        factor=_d,
        layers=lambda dim: 1,
        loss=0.5,
        source="Abbasi-Yadkori 2011",
    ),
    Switching(
        learner="rarely-switch-suplinucb",
        contexts="adversarial",
        scale="√d",
        factor=_root_d,
        layers=lambda dim: math.ceil(math.log2(dim)) + 1,
        loss=1.0,
        source="Theorem 7",
        condition="T ≥ d³",  # below it, layer 0 may be wrong by more than the rewards are
        holds=lambda dim, horizon: horizon >= dim**3,
    ),
)


def proved_for(contexts: Contexts) -> list[Guarantee]:
    """What holds for such contexts, the best of each learner, in the order of the list.

    Batches where they are safe; for adversarial contexts, switches.
    """
    kind = Switching if contexts == "adversarial" else Batched
    known = [g for g in GUARANTEES if isinstance(g, kind) and CONTEXTS.index(g.contexts) >= CONTEXTS.index(contexts)]
    easiest = {g.learner: min(CONTEXTS.index(o.contexts) for o in known if o.learner == g.learner) for g in known}
    return [g for g in known if CONTEXTS.index(g.contexts) == easiest[g.learner]]
