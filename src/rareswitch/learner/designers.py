"""How a sampling policy is learned from context sets."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from rareswitch.design import GOptimal, Sampler, core_learning, frank_wolfe_design
from rareswitch.errors import ParameterError


class Designer(Protocol):
    """Learns a sampling policy from a sample of sets.

    One that names its ``g_optimal_share``, the least share of G-optimal play in all that it learns, has a bound.
    """

    def learn(self, contexts: Any, alive: Any, *, regularization: float, arms: int) -> Sampler:
        """A policy for sets like these (γ, K, d) with living arms (γ, K), of at most ``arms`` before elimination."""
        ...


def as_designer(name: str, value: Any) -> Any:
    """Something that can learn a sampling policy."""
    if not callable(getattr(value, "learn", None)):
        raise ParameterError(
            f"{name} must be CoreLearning(), CertifiedMixture() or have their method learn; got {value!r:.60}."
        )
    return value


@dataclass(frozen=True, kw_only=True)
class CoreLearning:
    """The paper's: the mixed-softmax policy of the core (Algorithm 3), c = ``power``."""

    power: float = 6.0
    g_optimal: GOptimal = field(default_factory=GOptimal)
    g_optimal_share: ClassVar[float] = 0.5

    def learn(self, contexts: Any, alive: Any, *, regularization: float, arms: int) -> Sampler:
        told: dict[str, Any] = {"power": self.power, "arms": arms, "g_optimal": self.g_optimal}
        return core_learning(contexts, alive, regularization=regularization, **told).policy


@dataclass(frozen=True, kw_only=True)
class CertifiedMixture:
    """The certified Frank-Wolfe design with a floor of G-optimal play: fewer atoms, less variation on the sample.

    The certificate is of the sets that it was learned from; on fresh ones V can be larger.
    """

    floor: float = 0.2
    tol: float = 0.05
    g_optimal: GOptimal = field(default_factory=GOptimal)

    @property
    def g_optimal_share(self) -> float:
        """The floor."""
        return self.floor

    def learn(self, contexts: Any, alive: Any, *, regularization: float, arms: int) -> Sampler:
        return frank_wolfe_design(
            contexts, alive, regularization=regularization, floor=self.floor, tol=self.tol, g_optimal=self.g_optimal
        ).policy
