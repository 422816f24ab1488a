"""An adaptive trial with few participants: the personalised linear setting of AExGym."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rareswitch.lab.worlds.world import GaussianNoise, Noise, NoisyRewards, Rounds, in_blocks
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, whole

#: Lengths of users are about 3; one above 10 comes once in 10^11 decisions.
UNIT = 10.0


@dataclass(frozen=True, kw_only=True)
class AdaptiveTrialWorld(NoisyRewards):
    """Ten treatments, each with parameters of its own over five features of the user (AExGym).

    Features are N(1, I_5), the parameters of each treatment N(0, I_5/1000), and rewards have the variance 0.2: 500
    decisions tell little. Learners see features divided by 10, in the block of their arm, so that they lie in the unit
    ball, and θ is 10 times as long: the prior is N(0, :attr:`prior_scale`²·I_50), and expected rewards are the same.

    AExGym (Wang, Che, Jiang and Namkoong, arXiv:2408.04570) has batches of 100 users, and reports the regret of a
    decision: its mean over all users of the trial (``cumul_regret`` of its results), or, of the greedy policy on the
    final posterior mean, over fresh users (``simple_regret``).

    >>> world = AdaptiveTrialWorld()
    >>> world.draw(2, seed=1).contexts.shape, round(world.noise_scale**2, 3)
    ((2, 10, 50), 0.2)
    """

    noise: Noise = field(default_factory=lambda: GaussianNoise(math.sqrt(0.2)))
    arms: ClassVar[int] = 10
    #: Of a user.
    features: ClassVar[int] = 5
    dim: ClassVar[int] = 50
    #: Standard deviation of each entry of θ.
    prior_scale: ClassVar[float] = UNIT / math.sqrt(1000.0)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (50,), five entries for each arm."""
        return np.asarray(self.prior_scale * normals(seed, "theta", 0, 1, self.dim)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        users = (1.0 + normals(seed, "trial", first, whole("count", count, low=0), self.features)) / UNIT
        means = users @ self.theta(seed).reshape(self.arms, self.features).T
        return Rounds(contexts=in_blocks(users, self.arms), means=means)
