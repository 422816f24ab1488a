"""Foresight: planned exploration with a handful of policies."""

import math
from typing import ClassVar

import numpy as np

from rareswitch.confidence import SelfNormalized
from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler
from rareswitch.errors import ParameterError
from rareswitch.learner.evidence import Posterior, posterior
from rareswitch.learner.feedback import Summary
from rareswitch.learner.grids import StaticGrid, geometric_grid
from rareswitch.learner.learner import Learner
from rareswitch.learner.planning import TRUTHS, Plan, plan
from rareswitch.linalg import inverse_root, log_growth
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws
from rareswitch.rng import normals
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray, IntArray, number, whole

UPDATES = 8
DRAWS = 128
"""Parameters that a policy holds, each with its own best arm."""
SAMPLE = 200
SAMPLE_NUMBERS = 1 << 23
"""Context sets from which an update plans, and how many numbers it may work with at a time."""
ANY = 1 << 30
"""More arms than a set can have."""
LAST_SHARE = 0.1
"""Of the floor, in the last batch, from which nothing will be learned."""


class Foresight(Learner):
    """Near the regret of full adaptivity with eight policies, and nothing to tune.

    All decisions so far give one belief N(θ̂, σ²Λ⁻¹), whose σ and ridge are those that make the rewards most likely: the
    units of the rewards and a common unit of the features do not matter. A policy holds 128 parameters drawn around θ̂,
    at a multiple of the belief's spread, and plays the best arm of one of them. Which multiple is *planned* at each
    update, by playing the rest of the run through: what each costs in the next batch, and what the data it gathers save
    afterwards (:mod:`rareswitch.learner.planning`). The last batch is greedy.

    A share ``floor`` of the decisions is drawn from the G-optimal design of the arms that confidence intervals leave.
    It keeps propensities positive on that design, and bounds a worst case: docs/foresight.md has the argument.

    Parameters
    ----------
    dim, horizon, updates
        d, T, and how many policies may be deployed, the first included; 8 by default.
    arms
        The most arms in a set; any number by default.
    intercept
        Whether rewards have a level of their own, besides xᵀθ, as ratings from 1 to 5 or clicks have. Arms are compared
        without it. A level above a million times the spread of the rewards costs digits: subtract it beforehand.
    floor
        Share of decisions that explore by design; a tenth of it in the last batch.
    delta
        The confidence intervals behind the floor fail with this probability.
    seed
        Keys the draws.
    grid
        Where batches end; by default geometric from 4d decisions to T.

    Examples
    --------
    >>> learner = Foresight(dim=10, horizon=100_000)
    >>> learner.grid.ends
    (40, 122, 374, 1143, 3497, 10694, 32702, 100000)
    """

    name: ClassVar[str] = "foresight"
    in_unit_ball: ClassVar[bool] = False

    def __init__(
        self,
        *,
        dim: int,
        horizon: int,
        updates: int | None = None,
        arms: int | None = None,
        intercept: bool = False,
        floor: float = 0.0003,
        delta: float = 0.05,
        seed: int = 0,
        grid: StaticGrid | None = None,
    ) -> None:
        super().__init__(dim=dim, arms=ANY if arms is None else arms, horizon=horizon)
        if updates is not None and grid is not None:
            raise ParameterError("give updates, for a geometric grid of so many batches, or a grid; not both.")
        self.grid = (
            default_grid(self.dim, self.horizon, UPDATES if updates is None else updates) if grid is None else grid
        )
        if self.grid.horizon != self.horizon:
            raise ParameterError(f"the grid ends at {self.grid.horizon} where the horizon is {self.horizon}.")
        if self.grid.needs_width:
            raise ParameterError("an adaptive grid follows the widths of eliminations; give this learner another.")
        self.intercept = bool(intercept)
        self.floor = number("floor", floor, low=0.0, high=1.0)
        self.delta = number("delta", delta, low=0.0, high=1.0, open_low=True)
        self.seed = whole("seed", seed, low=0)
        self.total = Stats.zero(self.dim + self.intercept)
        """Of all decisions before ``start``; with an intercept the last feature is the constant 1."""
        self.plans: list[Plan] = []
        """What was planned at each update but the last."""
        self.policy = Policy(dim=self.dim, sampler=GOptimal(tol=1.0))
        self.stop = self.grid.end(1, 0, 1.0)

    @property
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""
        return (
            f"{type(self).__name__} d={self.dim} {self.grid} intercept={self.intercept} floor={self.floor!r} "
            f"delta={self.delta!r} seed={self.seed} truths={TRUTHS}"
        )

    def sampled(self, decisions: IntArray) -> BoolArray:
        if self.updates > len(self.grid.ends) - 2:  # nothing is planned for the last batch
            return np.zeros(len(decisions), dtype=np.bool_)
        return np.asarray((decisions - self.start) % -(-(self.stop - self.start) // SAMPLE) == 0)

    def _count(self, offsets: IntArray, features: FloatArray, rewards: FloatArray) -> tuple[Stats, ...]:
        if self.intercept:
            features = np.column_stack([features, np.ones(len(features))])
        return (Stats.of(features, rewards),)

    def _kept(self, offered: ContextSets, survivors: BoolArray) -> ContextSets:
        return offered

    def _learn(self, summary: Summary) -> Policy:
        self.total = self.total + summary.stats[0]
        belief = posterior(centred(self.total) if self.intercept else self.total)
        if belief.noise == 0.0:  # every reward was the same: there is nothing to tell arms apart by
            return Policy(dim=self.dim, sampler=GOptimal(tol=1.0), eliminations=self.policy.eliminations)
        scale, share = 0.0, LAST_SHARE * self.floor
        lengths = np.diff(self.grid.ends[self.updates - 1 :]).tolist()
        if len(lengths) > 1:
            assert summary.sample is not None  # the first decision of a batch is always kept
            chosen = plan(belief, thinned(summary.sample), lengths=lengths, seed=self.seed, update=self.updates)
            self.plans.append(chosen)
            scale, share = chosen.scale, self.floor
        draws = belief.estimate[None]
        if scale > 0.0:
            z = normals(self.seed, "posterior", summary.stop, 1, DRAWS * self.dim).reshape(DRAWS, self.dim)
            draws = draws + scale * belief.noise * z @ inverse_root(belief.precision)
        sampler: Sampler = PosteriorDraws(draws=draws)
        eliminations = self.policy.eliminations
        if share > 0.0:
            sampler = Blend(main=sampler, explorer=GOptimal(tol=1.0), share=share)
            if self.total.count > self.dim + 1:  # with fewer decisions the noise is anyone's guess
                eliminations = (*eliminations, self._elimination(belief))
        return Policy(dim=self.dim, sampler=sampler, eliminations=eliminations)

    def _elimination(self, belief: Posterior) -> Elimination:
        """The self-normalised intervals of the belief, with ‖θ‖ as large as it expects: σ·√(d/ridge)."""
        level = SelfNormalized(
            ridge=belief.ridge,
            delta=self.delta,
            noise=belief.noise,
            norm=belief.noise * math.sqrt(self.dim / belief.ridge),
            fixed=None,
        )
        grown = log_growth(belief.precision, belief.ridge)
        return Elimination.of(belief.estimate, belief.precision, level.multiplier(grown))

    def _next_stop(self, summary: Summary) -> int:
        return self.grid.end(self.updates, self.start, 1.0)


def default_grid(dim: int, horizon: int, updates: int) -> StaticGrid:
    """Geometric from 4d decisions to T; from √T where that is less, so that short runs do not begin with their half.

    >>> default_grid(10, 1000, 4).ends
    (31, 98, 314, 1000)
    """
    whole("horizon", horizon, low=2)
    updates = min(whole("updates", updates), horizon)
    return geometric_grid(horizon, updates, first=max(1, min(4 * dim, math.isqrt(horizon), horizon - updates + 1)))


def thinned(sets: ContextSets) -> ContextSets:
    """Fewer of the sets where they have so many arms that planning on all would take too much memory."""
    arms, dim = sets.contexts.shape[1:]
    step = -(-len(sets) // max(16, SAMPLE_NUMBERS // (arms * max(dim, TRUTHS))))
    return ContextSets(sets.contexts[::step], sets.alive[::step])


def centred(stats: Stats) -> Stats:
    """Statistics of features (x, 1) turned into those of x and the rewards less their means, which cost one count.

    >>> centred(Stats.of([[1.0, 1.0], [3.0, 1.0]], [10.0, 14.0])).gram.tolist()
    [[2.0]]
    """
    n = stats.count
    mean, level = stats.gram[:-1, -1] / n, stats.moment[-1] / n
    values, vectors = np.linalg.eigh(stats.gram[:-1, :-1] - n * np.outer(mean, mean))
    # what rounding leaves of a feature without spread is not information
    known = np.where(values > 1e-12 * np.trace(stats.gram[:-1, :-1]), values, 0.0)
    moment = vectors @ np.where(known > 0.0, vectors.T @ (stats.moment[:-1] - n * level * mean), 0.0)
    spread = stats.square_sum - n * level**2
    return Stats(
        gram=(vectors * known) @ vectors.T,
        moment=moment,
        count=n - 1,
        square_sum=spread if spread > 1e-12 * stats.square_sum else 0.0,
    )
