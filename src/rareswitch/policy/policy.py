"""The frozen policy: past eliminations, then a sampler on the arms they leave."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from rareswitch.design import Sampler
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.policy.elimination import Elimination
from rareswitch.policy.encoding import content_id
from rareswitch.policy.kernels import draw_arms, eliminate
from rareswitch.rng import uniforms
from rareswitch.validation import BoolArray, FloatArray, IntArray, Sets, read_only, sets_of, whole


@dataclass(frozen=True, eq=False, kw_only=True)
class Decisions:
    """What a policy decided for sets number ``first`` and following; for one set the fields lack the axis n."""

    arms: IntArray
    """(n,) index of the chosen arm in its set."""
    propensities: FloatArray
    """(n,) the exact probability with which the policy chooses that arm."""
    survivors: IntArray
    """(n,) how many arms the eliminations left."""
    policy_id: str
    first: int

    def upto(self, count: int) -> Self:
        """The first ``count`` of these decisions."""
        return replace(
            self, arms=self.arms[:count], propensities=self.propensities[:count], survivors=self.survivors[:count]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Policy:
    """A frozen function from a context set to probabilities over its arms. It never learns.

    Examples
    --------
    >>> from rareswitch.design import Uniform
    >>> policy = Policy(dim=2, sampler=Uniform())
    >>> decisions = policy.decide([[[1.0, 0.0], [0.0, 1.0]]] * 4, seed=7)
    >>> decisions.arms.tolist(), decisions.propensities.tolist()
    ([1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> later = policy.decide([[[1.0, 0.0], [0.0, 1.0]]] * 2, seed=7, first=2)   # the same decisions, asked apart
    >>> later.arms.tolist()
    [1, 1]
    """

    dim: int
    sampler: Sampler
    eliminations: tuple[Elimination, ...] = ()

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        object.__setattr__(self, "eliminations", tuple(self.eliminations))
        if not callable(getattr(self.sampler, "probabilities", None)):
            raise ParameterError(f"a policy needs a sampler with a method probabilities; got {self.sampler!r}.")
        for part in ("matrix", "matrices", "estimate", "estimates", "draws"):
            held = getattr(self.sampler, part, None)
            if held is not None and len(held) and held.shape[-1] != self.dim:
                raise ShapeError(f"a sampler of {held.shape[-1]} dimensions in a policy of {self.dim}.")
        for elimination in self.eliminations:
            if elimination.dim != self.dim:
                raise ShapeError(f"an elimination of {elimination.dim} dimensions in a policy of {self.dim}.")

    @cached_property
    def id(self) -> str:
        """SHA-256 of the content: equal policies have equal ids, on every machine."""
        return content_id(self)

    @cached_property
    def _estimates(self) -> FloatArray:
        return np.array([e.estimate for e in self.eliminations]).reshape(-1, self.dim)

    @cached_property
    def _roots(self) -> FloatArray:
        return np.array([e.root for e in self.eliminations]).reshape(-1, self.dim, self.dim)

    def survivors(self, contexts: Any, alive: Any = None) -> BoolArray:
        """Which arms all eliminations keep, (n, K), or (K,) for one set."""
        sets = sets_of(self.dim, contexts, alive)
        kept, _ = self._kept(sets)
        return kept[0] if sets.single else kept

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        """Probability of each arm, (n, K), or (K,) for one set."""
        sets = sets_of(self.dim, contexts, alive)
        probabilities = self.sampler.probabilities(Sets(sets.contexts, self._kept(sets)[0], False))
        return probabilities[0] if sets.single else probabilities

    def decide(self, contexts: Any, alive: Any = None, *, seed: int, first: int = 0) -> Decisions:
        """Choose an arm of each set.

        Parameters
        ----------
        contexts
            (n, K, d), or (K, d) for one set.
        alive
            Which arms may be chosen, (n, K) or (K,); all by default.
        seed, first
            The key: set s is decision number ``first + s`` of the stream of ``seed``. The same number gets the same
            randomness however the sets are split or ordered.
        """
        sets = sets_of(self.dim, contexts, alive)
        kept, survivors = self._kept(sets)
        probabilities = self.sampler.probabilities(Sets(sets.contexts, kept, False))
        arms = np.empty(len(kept), dtype=np.int64)
        propensities = np.empty(len(kept))
        draw_arms(read_only(probabilities), uniforms(seed, "decide", first, len(kept))[:, 0], arms, propensities)
        one: Any = 0 if sets.single else slice(None)
        return Decisions(
            arms=arms[one],
            propensities=propensities[one],
            survivors=survivors[one],
            policy_id=self.id,
            first=first,
        )

    def _kept(self, sets: Sets) -> tuple[BoolArray, IntArray]:
        """The surviving arms (n, K), and how many there are (n,)."""
        kept = np.empty(sets.alive.shape, dtype=np.bool_)
        counts = np.empty(len(kept), dtype=np.int64)
        eliminate(sets.contexts, sets.alive, self._estimates, self._roots, kept, counts)
        return read_only(kept), counts
