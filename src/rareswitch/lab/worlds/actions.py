"""One fixed set of actions with a known parameter: instances of the literature on fixed sets."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds
from rareswitch.validation import FloatArray, finite_array, frozen, number, set_size, vector, whole

#: The seed of the published random instances (Ren, Jin and Xu 2024).
PUBLISHED_SEED = 1


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ActionsWorld(NoisyRewards):
    """The same actions in every round, with expected rewards xᵀθ; seeds differ in the noise alone.

    Actions longer than 1 are all divided by the longest length and θ is multiplied by it, so that they lie in the unit
    ball and pay what they paid.

    Parameters
    ----------
    actions
        (K, d)
    hidden
        θ (d,), of any length.

    Examples
    --------
    >>> world = ActionsWorld(actions=[[2.0, 0.0], [0.0, 1.0]], hidden=[0.5, 0.2])
    >>> rounds = world.draw(1, seed=1)
    >>> rounds.contexts.tolist(), rounds.means.tolist()
    ([[[1.0, 0.0], [0.0, 0.5]]], [[1.0, 0.2]])
    """

    actions: FloatArray
    hidden: FloatArray
    noise: Noise = field(default_factory=lambda: GaussianNoise(1.0))

    def __post_init__(self) -> None:
        actions: Any = finite_array("actions", self.actions)
        if actions.ndim != 2 or not actions.size:
            raise ShapeError(f"actions must be (arms, dim), at least one of each; got {actions.shape}.")
        hidden = vector("hidden", self.hidden, actions.shape[1])
        longest = max(1.0, float(np.linalg.norm(actions, axis=1).max()))
        vars(self).update(actions=frozen(actions / longest), hidden=frozen(hidden * longest))

    def __repr__(self) -> str:
        return f"ActionsWorld({self.arms} actions, d = {self.dim}, {self.noise})"

    @classmethod
    def end_of_optimism(cls, dim: int, *, gap: float = 0.2, noise: Noise | None = None) -> Self:
        """e_1 … e_d and (1 - gap)·e_1 + 2·gap·e_j for each j > 1, θ = e_1 (Lattimore and Szepesvári 2017, in d).

        With d = 2, 3 and 5 and a gap of 0.2 these are instances on which E4 was published.

        >>> ActionsWorld.end_of_optimism(3).draw(1, seed=1).means.tolist()
        [[1.0, 0.0, 0.0, 0.8, 0.8]]
        """
        gap = number("gap", gap, low=0.0, high=0.4, open_low=True)
        set_size(whole("dim", dim, low=2), 2 * dim - 1)
        axes = np.eye(dim)
        return cls._of(np.concatenate([axes, (1.0 - gap) * axes[0] + 2.0 * gap * axes[1:]]), noise)

    @classmethod
    def random(cls, arms: int, dim: int, *, noise: Noise | None = None) -> Self:
        """Actions uniform in [0, 1]^d, of which e_1 takes the place of the first, θ = e_1: the best by little or much.

        One instance for each size: the one on which E4 was published.

        >>> ActionsWorld.random(9, 5).draw(1, seed=1).means[0, :3].round(4).tolist()
        [1.0, 0.7203, 0.0001]
        """
        set_size(whole("dim", dim), whole("arms", arms, low=2))
        # numpy promises to keep this old stream as it is, and the published instances are made by it
        actions = np.random.RandomState(PUBLISHED_SEED).uniform(0.0, 1.0, (dim, arms)).T
        actions[0] = np.eye(dim)[0]
        return cls._of(actions, noise)

    @classmethod
    def _of(cls, actions: FloatArray, noise: Noise | None) -> Self:
        hidden = np.eye(actions.shape[1])[0]
        return cls(actions=actions, hidden=hidden, noise=GaussianNoise(1.0) if noise is None else noise)

    @property
    def arms(self) -> int:
        """Number of actions, K."""
        return len(self.actions)

    @property
    def dim(self) -> int:
        """Number of features of an action, d."""
        return int(self.actions.shape[1])

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), the same for every seed."""
        return self.hidden

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        contexts = np.repeat(self.actions[None], whole("count", count, low=0), axis=0)
        return Rounds(contexts=contexts, means=np.repeat((self.actions @ self.hidden)[None], count, axis=0))
