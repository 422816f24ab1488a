"""Linear Thompson sampling (Agrawal and Goyal 2013), updated at every step or stale on any grid."""

from typing import Any, ClassVar

import numpy as np

from rareswitch.learner.clocks import EveryStep
from rareswitch.learner.kernels import walk_sampler
from rareswitch.learner.pooled import PooledLearner
from rareswitch.learner.walking import Walk, Walker
from rareswitch.linalg import inverse_root
from rareswitch.policy import Policy, PosteriorDraws
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, Sets, number, whole

STALE_DRAWS = 128


class ThompsonSampling(PooledLearner, Walker):
    """Plays the best arm for a parameter drawn from N(θ̂, (scale·noise)²·Λ⁻¹).

    Updated at every step its regret is d√T·log T on average over the prior; for every parameter it is d^1.5·√T·log T,
    with a scale of the order √(d log T) that nobody uses (Agrawal and Goyal 2013).

    The draws are frozen in the policy, so that its propensities are exact: one draw where the policy lives for one
    decision, and ``draws`` of them where it lives for a batch.

    Parameters
    ----------
    scale
        1 is the Bayesian posterior for Gaussian noise and the prior N(0, norm²·I).
    draws
        How many a policy holds; 1 at every step, else 128.
    seed
        Keys the draws.

    Examples
    --------
    >>> ThompsonSampling(dim=3, arms=4, horizon=1000).policy.sampler.draws.shape
    (1, 3)
    """

    name: ClassVar[str] = "thompson"

    def __init__(self, *, scale: float = 1.0, draws: int | None = None, seed: int = 0, **settings: Any) -> None:
        self.scale = number("scale", scale, low=0.0)
        self.seed = whole("seed", seed, low=0)
        clock = settings.get("clock")
        default = 1 if clock is None or isinstance(clock, EveryStep) else STALE_DRAWS
        self.draws = default if draws is None else whole("draws", draws)
        super().__init__(**settings)
        self.walks = isinstance(self.clock, EveryStep) and self.draws == 1

    def _own_settings(self) -> str:
        return f" scale={self.scale!r} draws={self.draws} seed={self.seed}"

    def _make_policy(self) -> Policy:
        level = self.confidence
        z = normals(self.seed, "posterior", self.start, 1, self.draws * self.dim).reshape(self.draws, self.dim)
        spread = self.scale * level.noise * z @ inverse_root(self.precision())
        return Policy(dim=self.dim, sampler=PosteriorDraws(draws=self.total.estimate(ridge=level.ridge) + spread))

    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        steps = min(len(sets.contexts), changes)
        arms = np.empty(steps, dtype=np.int64)
        gram, moment = self.total.gram.copy(), self.total.moment.copy()
        walk_sampler(
            sets.contexts[:steps],
            sets.alive[:steps],
            rewards[:steps],
            inverse_root(self.precision()),
            self.total.estimate(ridge=self.confidence.ridge),
            gram,
            moment,
            normals(self.seed, "posterior", self.start, steps, self.dim),
            self.scale * self.confidence.noise,
            arms,
        )
        self._walked(steps, gram, moment, rewards[np.arange(steps), arms])
        return Walk(arms, None)
