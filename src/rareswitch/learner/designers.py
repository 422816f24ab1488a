"""How a sampling policy is learned from context sets."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from rareswitch.design import GOptimal, Sampler, core_learning, frank_wolfe_design
from rareswitch.errors import ParameterError


class Designer(Protocol):
    """Learns a sampling policy from a sample of sets."""

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

    def learn(self, contexts: Any, alive: Any, *, regularization: float, arms: int) -> Sampler:
        told: dict[str, Any] = {"power": self.power, "arms": arms, "g_optimal": self.g_optimal}
        return core_learning(contexts, alive, regularization=regularization, **told).policy


@dataclass(frozen=True, kw_only=True)
class CertifiedMixture:
    """The certified Frank-Wolfe design with a floor of G-optimal play: fewer atoms, less variation, a proof with it."""

    floor: float = 0.2
    tol: float = 0.05
    g_optimal: GOptimal = field(default_factory=GOptimal)

    def learn(self, contexts: Any, alive: Any, *, regularization: float, arms: int) -> Sampler:
        return frank_wolfe_design(
            contexts, alive, regularization=regularization, floor=self.floor, tol=self.tol, g_optimal=self.g_optimal
        ).policy
