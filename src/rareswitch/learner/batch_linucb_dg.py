"""BatchLinUCB-DG (Algorithm 5), and how its sampling policies are learned."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol

from rareswitch.core import ContextSets, kind
from rareswitch.design import GOptimal, Sampler, core_learning, frank_wolfe_design
from rareswitch.errors import ParameterError
from rareswitch.learner.batched import BatchedLearner, EliminateByBatch, surviving
from rareswitch.learner.grids import StaticGrid, paper_design_grid
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import HalfModel
from rareswitch.learner.settings import count, design_of_sets, setting
from rareswitch.learner.state import Sample
from rareswitch.policy import Policy

__all__ = ["BatchLinUCBDG", "BatchLinUCBDGCertified", "CertifiedMixture", "CoreLearning"]


class Designer(Protocol):
    """Learns a sampling policy from a sample of sets.

    One that names its ``g_optimal_share``, the least share of G-optimal play in all that it learns, has a bound.
    """

    def learn(self, sets: ContextSets, *, regularization: float, arms: int) -> Sampler:
        """A policy for sets like these, of at most ``arms`` arms before elimination."""
        ...


def as_designer(name: str, value: Designer) -> Designer:
    """Something that can learn a sampling policy."""
    if not callable(getattr(value, "learn", None)):
        raise ParameterError(
            f"{name} must be CoreLearning(), CertifiedMixture() or have their method learn; got {value!r:.60}."
        )
    return value


@kind("core-learning")
@dataclass(frozen=True, kw_only=True)
class CoreLearning:
    """The paper's: the mixed-softmax policy of the core (Algorithm 3), c = ``power``."""

    power: float = 6.0
    g_optimal: GOptimal = field(default_factory=GOptimal)
    g_optimal_share: ClassVar[float] = 0.5

    def learn(self, sets: ContextSets, *, regularization: float, arms: int) -> Sampler:
        return core_learning(
            sets, regularization=regularization, power=self.power, arms=arms, g_optimal=self.g_optimal
        ).policy


@kind("certified-mixture")
@dataclass(frozen=True, kw_only=True)
class CertifiedMixture:
    """The certified Frank-Wolfe design with a least share of G-optimal play: fewer atoms, less variation on the sample.

    The certificate is of the sets that it was learned from; on fresh ones V can be larger.
    """

    g_optimal_share: float = 0.2
    tol: float = 0.05
    g_optimal: GOptimal = field(default_factory=GOptimal)

    def learn(self, sets: ContextSets, *, regularization: float, arms: int) -> Sampler:
        return frank_wolfe_design(
            sets,
            regularization=regularization,
            g_optimal_share=self.g_optimal_share,
            tol=self.tol,
            g_optimal=self.g_optimal,
        ).policy


@dataclass(frozen=True, eq=False, kw_only=True)
class EliminateAndDesign(EliminateByBatch):
    """Learn at each batch's end how to explore the arms that will survive."""

    settings: "BatchLinUCBDG"

    def sample_size(self, number: int, batch_sizes: tuple[int, ...]) -> int:
        last = len(batch_sizes) == 1 and self.grid is None
        designs = not last and number > self.settings.warm_batches
        return self.settings.design_sample if designs else super().sample_size(number, batch_sizes)

    def learned(self, number: int, policy: Policy, sample: Sample | None) -> Sampler:
        if sample is None or number <= self.settings.warm_batches:
            return self.sampler
        settings, sets = self.settings, surviving(policy, sample.sets)
        return settings.designer.learn(sets, regularization=1.0 / settings.horizon, arms=settings.arms)


@dataclass(frozen=True, kw_only=True)
class BatchLinUCBDG(BatchedLearner):
    """Learns at each batch's end how to explore the arms that will survive.

    Of each batch, one half 𝒜 gives the estimate, the other ℬ the context sets from which the next sampling policy is
    learned, after elimination by the new estimate. Its regret is √(dT log d log(dKT/δ))·log log T (Theorem 6) for
    d^32 ≤ T ≤ exp(d), which begins at T = 10^70. At shorter horizons the share β of G-optimal play in the learned
    policies, one half, gives the regret of BatchLinUCB-KW times 1/√β. Which half a decision is in follows from its id.
    See :func:`~rareswitch.learner.warm_start` for ``warm_batches``, and :func:`~rareswitch.learner.paper_design_grid`
    for the rate with a given number of batches. K of the softmax is ``arms``, whatever sets have or are padded to.

    >>> BatchLinUCBDG(dim=5, arms=10, horizon=10_000).clock.ends
    (100, 200, 1000, 3162, 10000)
    """

    designer: Designer = setting(
        CoreLearning(),
        "how the sampling policy is learned: the paper's CoreLearning(), λ = 1/T, or CertifiedMixture()",
        as_designer,
    )
    g_optimal: GOptimal = setting(
        GOptimal(tol=1.0), "π_0, the design of the first batch, at the paper's factor 2 by default", design_of_sets
    )
    design_sample: int = setting(10_000, "the most sets of ℬ that the designer is given", count())
    warm_batches: int = setting(0, "first batches that are played and learned as BatchLinUCB-KW", count(low=0))

    name: ClassVar[str] = "batch-linucb-dg"
    text: ClassVar[str] = "a sampling policy learned by CoreLearning (Algorithm 5)"
    adaptivity: ClassVar[str] = "⌈log log T⌉ + 1"
    regret: ClassVar[str] = "√(dT) if d^32 ≤ T ≤ exp(d), otherwise d√T; stochastic"
    ridge_constant: ClassVar[float] = 32.0

    def compose(self) -> Parts:
        parts = self.eliminating(self.g_optimal, partial(EliminateAndDesign, settings=self))
        return parts._replace(statistics=HalfModel(dim=self.dim, warm_batches=self.warm_batches))

    def default_grid(self) -> StaticGrid:
        return paper_design_grid(self.horizon, self.policies)


@dataclass(frozen=True, kw_only=True)
class BatchLinUCBDGCertified(BatchLinUCBDG):
    """Algorithm 5 with a certified design, which explores better on the sets that it was learned from.

    The certificate bounds V on those sets, not on fresh ones, so that it does not stand for Theorem 6. What is proved
    is the regret of BatchLinUCB-KW times 1/√β, where β is the floor of G-optimal play.

    >>> BatchLinUCBDGCertified(dim=5, arms=10, horizon=10_000).designer.g_optimal_share
    0.2
    """

    designer: Designer = setting(
        CertifiedMixture(), "how the sampling policy is learned: with a certificate on its sample", as_designer
    )

    name: ClassVar[str] = "batch-linucb-dg-certified"
    text: ClassVar[str] = "Algorithm 5 with the certified Frank-Wolfe design"
    regret: ClassVar[str] = "d√T/√β, stochastic; β: the floor of G-optimal play"
