"""Foresight: planned exploration with a handful of policies."""

import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np

from rareswitch.confidence import LEAST_DELTA, Intervals, SelfNormalized, independent_intervals
from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler
from rareswitch.errors import BatchError, ParameterError
from rareswitch.learner.batched import batch_elimination
from rareswitch.learner.certificate import believed_cost, certified_cost
from rareswitch.learner.clicks import ClicksModel
from rareswitch.learner.clocks import Clock
from rareswitch.learner.evidence import NOTHING, Evidence, informed, innovation, on_the_way
from rareswitch.learner.forgetting import faded
from rareswitch.learner.grids import GrowingGrid, StaticGrid, as_grid, geometric_grid
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.logistic import frozen_point, kept_point, logistic_posterior
from rareswitch.learner.planning import TRUTHS, plan
from rareswitch.learner.posterior import Posterior, posterior
from rareswitch.learner.reserve import Reserve
from rareswitch.learner.rule import Ended, Made, Rule
from rareswitch.learner.settings import count, flag, one_of, real, setting
from rareswitch.learner.statistics import OneModel
from rareswitch.linalg import inverse_root, log_growth
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws
from rareswitch.rng import normals
from rareswitch.stats import Stats
from rareswitch.validation import LARGEST_SCALE, whole

#: Policies where the horizon is known.
UPDATES = 8
#: Parameters that a policy holds, each with its own best arm.
DRAWS = 128
#: Context sets from which an update plans.
SAMPLE = 200
#: The most numbers that a plan may work with at a time.
SAMPLE_NUMBERS = 1 << 23
#: Decisions of the first batch where the horizon is not known, or 4d if that is more.
FIRST = 30
#: κ/d, where a policy learned from t decisions costs κ/t of what a blind one does.
BLIND_WORTH = 1.5
#: Of the floor, in the last batch, from which nothing will be learned.
LAST_SHARE = 0.1
#: The most by which a click's probability grows with its logit.
STEEPEST = 0.25


@dataclass(frozen=True, kw_only=True)
class Foresight(Learner):
    """Near the regret of full adaptivity with eight policies; it needs no tuning and no noise estimate.

    All decisions so far give one belief N(θ̂, σ²Λ⁻¹), whose σ and ridge are those that make the rewards most likely: the
    units of the rewards and a common unit of the features do not matter. A policy holds 128 parameters drawn around θ̂,
    at a multiple of the belief's spread, and plays the best arm of one of them. Which multiple is *planned* at each
    update, by playing the rest of the run through: what each costs in the next batch, and what the data it gathers save
    afterwards (:mod:`rareswitch.learner.planning`). The last batch is greedy.

    A share ``floor`` of the decisions is drawn from the G-optimal design of the arms that confidence intervals leave.
    It keeps propensities positive on that design, and bounds a worst case: docs/foresight.md has the argument.

    The plan is for the decisions to come as they are forecast at that moment: ``next(…, ahead=…)``. Without a horizon,
    an update is advised whenever the decisions have grown 2.5-fold, and the plan looks two batches past the next one.

    >>> Foresight(dim=10, horizon=100_000).clock.ends
    (45, 135, 406, 1223, 3678, 11060, 33257, 100000)
    >>> Foresight(dim=10).begin().ahead
    (40, 60, 150)
    """

    updates: int | None = setting(
        None, "policies, the first included; 8, or any number for an unknown horizon", count()
    )
    intercept: bool = setting(False, "whether rewards have a level besides xᵀθ, as ratings and clicks have", flag)
    rewards: str | None = setting(
        None, '"binary" or "linear" rewards; by default binary while all were 0 or 1', one_of("binary", "linear")
    )
    floor: float = setting(
        0.0003, "share of decisions that explore by design; a tenth of it in the last batch", real(0.0, 1.0)
    )
    delta: float = setting(0.05, "failure probability of the intervals behind the floor", real(LEAST_DELTA, 1.0))
    seed: int = setting(0, "keys the draws", count(low=0))
    grid: Any = setting(None, "where batches end; by default geometric to T", as_grid)
    noise_bound: float | None = setting(
        None,
        "σ, if the noise is known to be at most that: arms then fall by proved intervals",
        real(0.0, LARGEST_SCALE, open_low=True),
    )
    norm_bound: float = setting(1.0, "‖θ‖ at most, beside noise_bound", real(0.0, LARGEST_SCALE, open_low=True))
    reserve: int = setting(0, "policies kept back for contexts that change; needs a horizon", count(low=0))
    forget: float = setting(
        1.0, "weight of a batch against the next one, below 1 where θ drifts", real(0.0, 1.0, open_low=True)
    )

    name: ClassVar[str] = "foresight"
    text: ClassVar[str] = "posterior draws, exploration planned at each update; nothing to tune"
    adaptivity: ClassVar[str] = "updates (8)"
    regret: ClassVar[str] = "d·√(T/floor), stochastic, with many updates and a noise_bound"
    in_unit_ball: ClassVar[bool] = False

    def compose(self) -> Parts:
        grid = self.schedule()
        rule = PlannedExploration(self, self.proved_intervals(grid))
        if not self.may_be_logistic:
            return Parts(rule, grid, OneModel(dim=self.dim, intercept=self.intercept))
        return Parts(rule, grid, ClicksModel(dim=self.dim, intercept=self.intercept, only=self.rewards == "binary"))

    @property
    def may_be_logistic(self) -> bool:
        """Whether rewards that are all 0 or 1 are taken for clicks; what is proved is of linear ones."""
        return self.rewards != "linear" and self.noise_bound is None

    def proved_intervals(self, grid: Clock) -> Intervals | None:
        """Those of the theorem in docs/foresight.md, where a bound on the noise is known."""
        if self.noise_bound is None:
            return None
        if self.forget < 1.0:
            raise ParameterError(
                "noise_bound asks for intervals that are proved for a θ that stays, and forget is for one that drifts: "
                "give one or the other."
            )
        if self.arms is None or self.horizon is None or self.intercept:
            raise ParameterError(
                "noise_bound asks for intervals that are proved for all arms of a run whose rewards are xᵀθ and noise: "
                "give arms and horizon too, and a constant feature in place of intercept=True."
            )
        if self.rewards == "binary":
            raise ParameterError(
                'noise_bound asks for intervals that are proved for linear rewards, and rewards="binary" for a '
                "logistic model: give one or the other."
            )
        return independent_intervals(
            "tight",
            dim=self.dim,
            arms=self.arms,
            horizon=self.horizon,
            batches=len(grid.begin()),
            delta=self.delta,
            noise=self.noise_bound,
            norm=self.norm_bound,
        )

    def rate(self) -> str:
        """The theorem's, for the number of batches; none where intervals rest on estimates."""
        batches = len(self.clock.begin())
        if self.noise_bound is None or self.floor == 0.0 or batches < 2 or self.grid is not None:
            return "none"
        growth = (1.0 - 1.0 / batches) / (batches - 1 - self.reserve)  # T^growth is that of a batch
        return f"d·T^{0.5 + 0.5 * growth:.3f}/√floor, stochastic"

    @property
    def _ends_freely(self) -> bool:
        # what is proved needs batches that do not end by their own features, as those of a reserve may
        return not self.reserve and super()._ends_freely

    def schedule(self) -> Clock:
        """The grid that was given, a geometric one, or one that grows where the horizon is not known."""
        if self.updates is not None and self.grid is not None:
            raise ParameterError("give updates, for a geometric grid of that many batches, or a grid; not both.")
        if self.reserve and (self.grid is not None or self.horizon is None):
            raise ParameterError(
                f"reserve={self.reserve} policies are kept back of a geometric schedule up to a horizon: give the "
                "horizon, and no grid."
            )
        if self.grid is not None:
            if self.grid.needs_width:
                raise ParameterError("an adaptive grid follows the widths of eliminations; give this learner another.")
            return self.grid  # type: ignore[no-any-return]
        if self.horizon is None:
            return GrowingGrid(first=max(FIRST, 4 * self.dim), updates=self.updates)
        updates = min(UPDATES, self.horizon) if self.updates is None else self.updates
        usual = default_grid(self.dim, self.horizon, updates)
        if not self.reserve:
            return usual
        return Reserve(horizon=self.horizon, updates=usual.updates, reserve=self.reserve, first=usual.ends[0])


@dataclass(frozen=True, eq=False)
class PlannedExploration(Rule):
    """Draws around the estimate, as far apart as the look-ahead finds best, with a floor of designed exploration."""

    any_first: ClassVar[bool] = True
    settings: Foresight
    #: Of each batch alone; None where intervals rest on estimates of scale.
    proved: Intervals | None

    @property
    def any_past(self) -> bool:
        return self.proved is None  # proved intervals are of batches whose arms were not chosen by their rewards

    def first(self) -> Made:
        return Made(Policy(dim=self.settings.dim, sampler=GOptimal(tol=1.0)))

    def sample_size(self, number: int, ahead: tuple[int, ...]) -> int:
        return SAMPLE  # also where no plan is due: the forecast may change before the batch ends

    def next(self, ended: Ended) -> Made:
        told = self.settings
        warm = () if ended.state.warm is None else (ended.state.warm,)
        batches = faded((*warm, *ended.past), told.forget) or [ended.batch.stats[0]]
        belief = self.belief(batches)
        if belief.noise == 0.0 or reduce(add, batches).all_alike:  # there is nothing to tell arms apart by
            return Made(replace(ended.state.policy, sampler=GOptimal(tol=1.0)))
        before = self.believed(ended, belief)
        evidence = NOTHING if before is None else self.evidence(ended, before, belief)
        note: dict[str, Any] = {"update": ended.state.updates, "noise": belief.noise, "scale": 0.0}
        note |= {} if belief.link is None else {"link": "logistic"}
        note |= self.came(ended, belief, evidence)
        belief = replace(belief, noise=belief.noise * math.sqrt(evidence.widening))
        scale, share = 0.0, LAST_SHARE * told.floor
        if len(ended.ahead) > 1:
            if ended.batch.sample is None:
                raise BatchError(
                    "foresight plans with a sample of the context sets of the batch, and there are none. Give the rows "
                    "the sets of the decisions that learner.sample_size(state) asks for."
                )
            sets = thinned(ended.batch.sample.sets)
            chosen = plan(
                belief,
                sets,
                known=sum(one.count for one in batches),
                lengths=ended.ahead,
                seed=told.seed,
                update=ended.state.updates,
                least_scale=evidence.least_scale,
            )
            scale, share = chosen.scale, told.floor
            if evidence.wrong:
                note["concluded"] += " and exploration kept"
            note |= {"scale": chosen.scale, "cost": chosen.cost, "next_cost": chosen.next_cost}
        draws = belief.estimate[None]
        if scale > 0.0:
            z = normals(told.seed, "posterior", ended.start, 1, DRAWS * told.dim).reshape(DRAWS, told.dim)
            draws = draws + scale * belief.noise * z @ inverse_root(belief.precision)
        if before is not None and evidence.wrong and told.forget == 1.0:  # a θ that drifts does not come back
            draws = on_the_way(draws, before.estimate[: told.dim] - belief.estimate, DRAWS)
            note["concluded"] += "; the policy lies between what was believed and what is"
            note["between"] = True
        sampler: Sampler = PosteriorDraws(draws=draws)
        eliminations = ended.state.policy.eliminations if told.forget == 1.0 else ()  # of a θ that was
        if share > 0.0:
            sampler = Blend(main=sampler, explorer=GOptimal(tol=1.0), share=share)
            if self.proved is not None:
                eliminations = (*eliminations, batch_elimination(ended.batch.stats[0], self.proved))
            elif sum(one.count for one in batches) > told.dim + 1:  # with fewer decisions the noise is anyone's guess
                eliminations = (*eliminations, self.elimination(belief))
        policy = Policy(dim=told.dim, sampler=sampler, eliminations=eliminations)
        if eliminations and ended.batch.sample is not None:
            most = certified_cost(policy, thinned(ended.batch.sample.sets))
            note |= {} if most is None else {"certificate": most * (1.0 if belief.link is None else STEEPEST)}
        return Made(policy, kept=kept_point(belief, widening=evidence.excess), note=note)

    def belief(self, batches: list[Stats]) -> Posterior:
        """What the sums of the batches so far say of θ."""
        intercept = self.settings.intercept
        found = logistic_posterior(batches, intercept=intercept) if self.settings.may_be_logistic else None
        if found is not None:
            return found
        return self.line(reduce(add, batches))

    def believed(self, ended: Ended, belief: Posterior) -> Posterior | None:
        """What was believed before the batch; None where too little was known, or the batch tells nothing of it."""
        (batch,), earlier = ended.batch.stats, self.earlier(ended)
        if not informed(earlier) or batch.count < 2:
            return None
        if belief.link is not None:
            return None if batch.linearised is None else frozen_point(ended.state.kept)
        return self.line(earlier)

    def evidence(self, ended: Ended, before: Posterior, belief: Posterior) -> Evidence:
        """How far the batch was from what was believed before it, with the noise as it is known now.

        Clicks that a line explains too are let pass: where they are few, their belief is soon a little too sure.
        """
        (batch,) = ended.batch.stats
        if belief.link is None:
            return self.off_the_line(batch, before, belief.noise)
        assert batch.linearised is not None
        found = innovation(before, batch.linearised.gram, batch.linearised.moment, noise=1.0)
        if not found.wrong:
            return found
        earlier = self.earlier(ended)
        return replace(
            found, excused=not self.off_the_line(batch, self.line(earlier), self.line(earlier + batch).noise).wrong
        )

    def earlier(self, ended: Ended) -> Stats:
        """The sums before the batch, as they would have been with rewards that came late, which are of others."""
        warm = () if ended.state.warm is None else (ended.state.warm,)
        zero = Stats.zero(ended.batch.stats[0].dim)
        return reduce(add, faded((*warm, *ended.past[:-1]), self.settings.forget), zero)

    def line(self, stats: Stats) -> Posterior:
        """What a linear model believes of sums."""
        return posterior(centred(stats) if self.settings.intercept else stats)

    def off_the_line(self, batch: Stats, before: Posterior, noise: float) -> Evidence:
        """How far a batch is from a linear belief."""
        batch = centred(batch) if self.settings.intercept else batch
        return innovation(before, batch.gram, batch.moment, noise=noise)

    def came(self, ended: Ended, belief: Posterior, evidence: Evidence) -> dict[str, Any]:
        """What the batch was expected to cost, what it did by what is known now, and what was concluded."""
        note: dict[str, Any] = {}
        if ended.batch.sample is not None and len(ended.batch.sample) and not ended.state.policy.needs_baseline:
            played = replace(ended.state.policy, floor=None)
            note["lost"] = ended.batch.decided * believed_cost(played, thinned(ended.batch.sample.sets), belief)
        if ended.state.notes and "next_cost" in ended.state.notes[-1]:
            # planned for a batch of another length, where it ended early or late
            share = ended.batch.decided / ended.state.ahead[0]
            note["expected"] = share * ended.state.notes[-1]["next_cost"]
        return note if not evidence.rank else note | {"surprise": evidence.surprise, "concluded": evidence.text}

    def elimination(self, belief: Posterior) -> Elimination:
        """The self-normalised intervals of the belief, with ‖θ‖ as large as it expects: σ·√(d/ridge)."""
        noise, ridge = belief.noise, belief.ridge
        norm = noise * math.sqrt(self.settings.dim / ridge)
        level = SelfNormalized(ridge=ridge, delta=self.settings.delta, noise=noise, norm=norm, fixed=None)
        alpha = level.multiplier(log_growth(belief.precision, ridge))
        return Elimination.of(belief.estimate, belief.precision, alpha)


def default_grid(dim: int, horizon: int, updates: int) -> StaticGrid:
    """Geometric from κ^(1-1/M)·T^(1/M) decisions to T, κ = 1.5·d.

    In units of what a blind decision costs: the first batch of n costs n, and M - 1 batches that each let all decisions
    grow by r = (T/n)^(1/(M-1)) cost κ·(M - 1)·(r - 1), where one by a policy learned from t decisions costs κ/t. This n
    makes the sum least.

    >>> default_grid(10, 10_000, 2).ends, default_grid(10, 10_000, 5).ends
    ((387, 10000), (55, 201, 741, 2723, 10000))
    """
    whole("horizon", horizon, low=2)
    whole("updates", updates, high=horizon)
    first = math.floor((BLIND_WORTH * dim) ** (1.0 - 1.0 / updates) * horizon ** (1.0 / updates))
    return geometric_grid(horizon, updates, first=max(1, min(first, horizon // 2, horizon - updates + 1)))


def thinned(sets: ContextSets) -> ContextSets:
    """Fewer of the sets where they have so many arms that planning on all would take too much memory."""
    arms, dim = sets.contexts.shape[1:]
    step = -(-len(sets) // max(16, SAMPLE_NUMBERS // (arms * max(dim, TRUTHS))))
    return ContextSets(sets.contexts[::step], sets.alive[::step])


def centred(stats: Stats) -> Stats:
    """Statistics of features (x, 1) turned into those of x and the rewards less their means, which cost one count.

    Whatever shift the rewards have gone through, it goes with the means.

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
    if spread <= 1e-12 * stats.square_sum:  # nor is what it leaves of rewards that are all equal
        spread, moment = 0.0, np.zeros_like(moment)
    return Stats(gram=(vectors * known) @ vectors.T, moment=moment, count=n - 1, square_sum=spread)
