"""Foresight: planned exploration with a handful of policies.

At an update it has a belief, holds the batch against what it believed before, plans, and draws as far apart as planned.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from rareswitch.belief import (
    NOTHING,
    ModelCheck,
    Posterior,
    Search,
    best_prospect,
    expanded,
    innovation,
    logistic,
    logistic_posterior,
    next_point,
    posterior,
    spread,
    summed_blindly,
    unseen_directions,
    vague_where_unknown,
    values_of,
    within_memory,
)
from rareswitch.core import (
    LARGEST_SCALE,
    ContextSets,
    FloatArray,
    Sets,
    Stats,
    flag,
    inverse_root,
    log_growth,
    normals,
    whole,
)
from rareswitch.design import GOptimal, Sampler
from rareswitch.errors import BatchError, ParameterError, UnsuitableError
from rareswitch.learner.batched import batch_elimination
from rareswitch.learner.clocks import Clock
from rareswitch.learner.confidence import LEAST_DELTA, Intervals, SelfNormalized, independent_intervals
from rareswitch.learner.grids import PER_FEATURE, POLICIES, GrowingGrid, StaticGrid, as_grid, geometric_grid
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.reserve import Reserve
from rareswitch.learner.rule import BatchEnd, NewPolicy, OneModel, Rule
from rareswitch.learner.settings import choice, count, real, setting
from rareswitch.learner.state import Note, State, Summary, centred, faded, unexplained_level
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws

__all__ = ["Foresight", "certified_cost"]

#: Decisions of the first batch where the horizon is not known, or 4d if that is more.
FIRST = 30
#: The default grid counts a policy that was learned from t decisions at this share of the model's cost.
GRID_COST = 0.75
#: Parameters that a policy holds, each with its own best arm.
DRAWS = 128
#: Context sets from which an update plans.
SAMPLE = 200
#: Of the floor, in the last batch, from which nothing will be learned.
LAST_SHARE = 0.1
#: The most by which a click's probability grows with its logit.
STEEPEST = 0.25
#: By what names a state keeps the models of all batches so far, θ and a level: the logistic one, and the linear one.
LOGISTIC, LINEAR = "logistic_point", "linear_point"
#: The log-likelihood of all batches but the first, each by the models of those before it: (logistic, linear).
HELD_OUT = "held_out"
#: Where the rows of the current batch are expanded, if there was a pass over them before.
POINT = "pass_point"
#: A linear model's probabilities are at least this share of one click among the decisions so far.
LEAST_CLICKS = 0.5


@dataclass(frozen=True, kw_only=True)
class Foresight(Learner):
    """Near the regret of full adaptivity with eight policies; it needs no tuning and no noise estimate.

    All decisions so far give one belief N(θ̂, σ²Λ⁻¹), whose σ and ridge are those that make the rewards most likely: the
    units of the rewards and a common unit of the features do not matter. A policy holds 128 parameters drawn around θ̂,
    at a multiple of the belief's spread, and plays the best arm of one of them. Which multiple is *planned* at each
    update, by playing the rest of the run through: what each costs in the next batch, and what the data it gathers save
    afterwards (:mod:`rareswitch.belief.planning`). The last batch is greedy.

    A share ``design_share`` of decisions comes from the G-optimal design of the arms that confidence intervals leave.
    It keeps propensities positive on that design, and bounds a worst case: see docs/reference/foresight.md.

    The plan is for the decisions to come as they are forecast then: ``next(…, forecast=…)``. Without a horizon,
    an update is advised whenever the decisions have grown 2.5-fold, and the plan looks two batches past the next one.

    >>> Foresight(dim=10, horizon=100_000).clock.ends
    (45, 135, 406, 1223, 3678, 11060, 33257, 100000)
    >>> Foresight(dim=10).begin().batch_sizes
    (40, 60, 150)
    """

    policies: int | None = setting(
        None, "policies, the first included; 8, or any number for an unknown horizon", count()
    )
    intercept: bool | None = setting(
        None,
        "whether rewards have a level besides xᵀθ, as ratings and clicks have; on without noise_bound. Off can cost "
        "2.4 times the regret where clicks are rare",
        flag,
    )
    rewards: str | None = setting(
        None, '"binary" or "linear" rewards; by default binary while all were 0 or 1', choice("binary", "linear")
    )
    design_share: float = setting(
        0.0003,
        "share of decisions that explore by design; a tenth of it in the last batch. 0.03 can cost 4 times the regret",
        real(0.0, 1.0),
    )
    delta: float = setting(0.05, "failure probability of the intervals behind the design share", real(LEAST_DELTA, 1.0))
    seed: int = setting(0, "keys the draws", count(low=0))
    grid: StaticGrid | Sequence[int] | None = setting(None, "where batches end; by default geometric to T", as_grid)
    noise_bound: float | None = setting(
        None,
        "σ, if the noise is known to be at most that: arms then fall by proved intervals",
        real(0.0, LARGEST_SCALE, open_low=True),
    )
    norm_bound: float = setting(1.0, "‖θ‖ at most, beside noise_bound", real(0.0, LARGEST_SCALE, open_low=True))
    reserve: int = setting(
        0,
        "policies held in reserve for contexts that change; needs a horizon. Where nothing changes, 2 of 8 can cost "
        "2.4 times the regret",
        count(low=0),
    )
    discount: float = setting(
        1.0, "weight of a batch against the next one, below 1 where θ drifts", real(0.0, 1.0, open_low=True)
    )

    name: ClassVar[str] = "foresight"
    text: ClassVar[str] = "posterior draws, exploration planned at each update; needs no tuning"
    adaptivity: ClassVar[str] = "updates (8)"
    regret: ClassVar[str] = "d·√(T/design_share), stochastic, with many updates and a noise_bound"
    in_unit_ball: ClassVar[bool] = False

    def compose(self) -> Parts:
        grid = self.schedule()
        rule = PlannedExploration(self, self.proved_intervals(grid))
        if not self.may_be_logistic:
            return Parts(rule, grid, OneModel(dim=self.dim, intercept=self.has_level))
        return Parts(rule, grid, ClicksModel(dim=self.dim, intercept=self.has_level, only=self.rewards == "binary"))

    @property
    def has_level(self) -> bool:
        """Whether rewards have a level besides xᵀθ: by default, but not where intervals are proved."""
        return self.noise_bound is None if self.intercept is None else self.intercept

    @property
    def may_be_logistic(self) -> bool:
        """Whether rewards that are all 0 or 1 may be taken for clicks.

        What is proved is of linear ones; and without a level a logistic model says that an arm x = 0 pays a half, so
        it must be asked for.
        """
        return self.noise_bound is None and (self.rewards == "binary" or (self.rewards is None and self.has_level))

    def proved_intervals(self, grid: Clock) -> Intervals | None:
        """Those of the theorem in docs/reference/foresight.md, where a bound on the noise is known."""
        if self.noise_bound is None:
            return None
        if self.discount < 1.0:
            raise ParameterError(
                "noise_bound asks for intervals that are proved for a θ that stays, and discount is for one that "
                "drifts: give one or the other."
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

    def schedule(self) -> Clock:
        """The grid that was given, a geometric one, or one that grows where the horizon is not known."""
        if self.policies is not None and self.grid is not None:
            raise ParameterError("give policies, for a geometric grid of that many batches, or a grid; not both.")
        if self.reserve and (self.grid is not None or self.horizon is None):
            raise ParameterError(
                f"reserve={self.reserve} policies are held in reserve of a geometric schedule up to a horizon: give "
                "the horizon, and no grid."
            )
        if self.grid is not None:
            return as_grid("grid", self.grid)
        if self.horizon is None:
            return GrowingGrid(first=max(FIRST, 4 * self.dim), policies=self.policies)
        policies = min(POLICIES, self.horizon) if self.policies is None else self.policies
        usual = default_grid(self.dim, self.horizon, policies)
        if not self.reserve:
            return usual
        return Reserve(horizon=self.horizon, policies=usual.policies, reserve=self.reserve, first=usual.ends[0])


def default_grid(dim: int, horizon: int, policies: int) -> StaticGrid:
    """Geometric from κ^(1-1/M)·T^(1/M) decisions to T, κ = 1.5·d.

    In units of what a blind decision costs: the first batch of n costs n, and M - 1 batches that each let all decisions
    grow by r = (T/n)^(1/(M-1)) cost κ·(M - 1)·(r - 1), where one by a policy learned from t decisions costs κ/t. This n
    makes the sum least.

    >>> default_grid(10, 10_000, 2).ends, default_grid(10, 10_000, 5).ends
    ((387, 10000), (55, 201, 741, 2723, 10000))
    """
    whole("horizon", horizon, low=2)
    if whole("policies", policies) > horizon:
        raise ParameterError(f"policies must be at most the horizon, {horizon} decisions; got {policies}.")
    first = math.floor((GRID_COST * PER_FEATURE * dim) ** (1.0 - 1.0 / policies) * horizon ** (1.0 / policies))
    return geometric_grid(horizon, policies, first=max(1, min(first, horizon // 2, horizon - policies + 1)))


@dataclass(frozen=True, eq=False)
class PlannedExploration(Rule):
    """Draws around the estimate, as far apart as the look-ahead finds best, with a floor of designed exploration."""

    any_first: ClassVar[bool] = True
    settings: "Foresight"
    #: Of each batch alone; None where intervals rest on estimates of scale.
    proved: Intervals | None

    @property
    def any_past(self) -> bool:
        return self.proved is None  # proved intervals are of batches whose arms were not chosen by their rewards

    def first(self) -> NewPolicy:
        return NewPolicy(Policy(dim=self.settings.dim, sampler=GOptimal(tol=1.0)))

    def sample_size(self, number: int, batch_sizes: tuple[int, ...]) -> int:
        return SAMPLE  # also where no plan is due: the forecast may change before the batch ends

    def fitted(self, state: State, summary: Summary, again: Callable[[State], Summary]) -> Summary:
        if not self.settings.may_be_logistic:
            return summary
        before, search = [batch.stats[0] for batch in (*state.before, *state.past)], Search()
        while True:
            *earlier, batch = faded([*before, summary.stats[0]], self.settings.discount)
            step = next_point(earlier, batch, search, intercept=self.settings.has_level)
            if step is None:
                return summary
            point, search = step
            summary = again(replace(state, rule_state={**state.rule_state, POINT: point}))

    def next(self, ended: BatchEnd) -> NewPolicy:
        settings = self.settings
        batches = faded(ended.by_batch, settings.discount) or [ended.batch.stats[0]]
        belief, rule_state, which = self.models(ended, batches)
        if belief.noise == 0.0 or ended.sums[0].all_alike:  # there is nothing to tell arms apart by
            return NewPolicy(replace(ended.state.policy, sampler=GOptimal(tol=1.0)))
        before = self.believed(ended, belief)
        evidence = NOTHING if before is None else self.evidence(ended, before, belief)
        note = {"update": ended.state.policies, "noise": belief.noise, "scale": 0.0, **which}
        note |= self.outcome(ended, belief, evidence)
        belief = replace(belief, noise=belief.noise * math.sqrt(evidence.widening))
        scale, share = 0.0, LAST_SHARE * settings.design_share
        known = sum(stats.count for stats in batches)
        if len(ended.batch_sizes) > 1:
            if ended.batch.sample is None:
                raise BatchError(
                    "foresight plans with a sample of the context sets of the batch, and there are none. Give the rows "
                    "the sets of the decisions that learner.sample_size(state) asks for."
                )
            sets = within_memory(ended.batch.sample.sets)
            chosen = best_prospect(
                belief,
                sets,
                known=known,
                lengths=ended.batch_sizes,
                seed=settings.seed,
                update=ended.state.policies,
                least_scale=evidence.least_scale,
            )
            scale, share = chosen.scale, settings.design_share
            note |= {"scale": chosen.scale, "cost": chosen.cost, "next_cost": chosen.next_cost}
        draws = belief.estimate[None]
        if scale > 0.0:
            z = normals(settings.seed, "posterior", ended.start, 1, DRAWS * settings.dim).reshape(DRAWS, settings.dim)
            unseen = unseen_directions(belief, sets, known=known)
            draws = draws + belief.noise * z @ inverse_root(belief.precision) @ spread(scale, unseen)
        if before is not None and evidence.wrong and settings.discount == 1.0:  # a θ that drifts does not come back
            draws = interpolated_draws(draws, before.estimate[: settings.dim] - belief.estimate, DRAWS)
            note["between"] = True
        sampler: Sampler = PosteriorDraws(draws=draws)
        eliminations = ended.state.policy.eliminations if settings.discount == 1.0 else ()  # of a θ that was
        if share > 0.0:
            sampler = Blend(main=sampler, explorer=GOptimal(tol=1.0), share=share)
            if self.proved is not None:
                eliminations = (*eliminations, batch_elimination(ended.batch.stats[0], self.proved))
            elif known > settings.dim + 1:  # with fewer decisions the noise is anyone's guess
                eliminations = (*eliminations, self.elimination(belief))
        policy = Policy(dim=settings.dim, sampler=sampler, eliminations=eliminations)
        if eliminations and ended.batch.sample is not None:
            most = certified_cost(policy, within_memory(ended.batch.sample.sets))
            note |= {} if most is None else {"certificate": most * (1.0 if belief.link is None else STEEPEST)}
        return NewPolicy(policy, rule_state=rule_state, note=note)

    def models(
        self, ended: BatchEnd, batches: list[Stats]
    ) -> tuple[Posterior, dict[str, FloatArray], dict[str, str | float]]:
        """What is believed of θ; what a state keeps, so that both models are held against the next batch; a note.

        Rewards of 0 and 1 are clicks. The logistic model is believed as soon as batches that neither had seen were
        likelier by it; of the first batch, in which clicks may be few, a line errs less.
        """
        settings, total = self.settings, reduce(add, batches)
        linear = self.line(total)
        clicks = logistic_posterior(batches, intercept=settings.has_level) if settings.may_be_logistic else None
        if clicks is None or clicks.link is None:
            return linear, {}, {}
        point, held_out = linear.estimate, np.array(ended.state.rule_state.get(HELD_OUT, np.zeros(2)))
        batch = ended.batch.stats[0].expansion
        if batch is not None and len(batch.held_out):
            held_out = held_out * settings.discount + batch.held_out
        if settings.has_level:
            plain = total.shifted(0.0)
            level = float(plain.moment[-1] - plain.gram[-1, :-1] @ point) / float(plain.gram[-1, -1])
            point = np.append(point, level)
        likelier = settings.rewards == "binary" or bool(held_out[0] > held_out[1])
        note = {"link": "logistic" if likelier else "linear", "held_out": float(held_out[0] - held_out[1])}
        rule_state = {LOGISTIC: clicks.link.point, LINEAR: point, HELD_OUT: held_out}
        return clicks if likelier else linear, rule_state, note

    def believed(self, ended: BatchEnd, belief: Posterior) -> Posterior | None:
        """What was believed before the batch; None where too little was known, or the batch tells nothing of it."""
        # the batches before this one, as they would have been with rewards that came late
        (batch,), earlier = ended.batch.stats, faded(ended.by_batch[:-1], self.settings.discount)
        total = reduce(add, earlier, Stats.zero(batch.dim))
        if batch.count < 2 or total.count <= total.dim + 1:  # with fewer rewards not even the noise is known
            return None
        if belief.link is None:
            return vague_where_unknown(self.line(total), known=total.count)
        before = logistic_posterior(earlier, intercept=self.settings.has_level)
        if before is None or before.link is None:
            return None
        return replace(before, estimate=before.link.point, precision=before.link.precision)

    def evidence(self, ended: BatchEnd, before: Posterior, belief: Posterior) -> ModelCheck:
        """How far the batch was from what was believed before it, with the noise as it is known now."""
        (batch,) = ended.batch.stats
        if belief.link is None:
            batch = centred(batch) if self.settings.has_level else batch
            return innovation(before, batch.gram, batch.moment, noise=belief.noise)
        assert batch.expansion is not None
        return innovation(before, batch.expansion.curvature, batch.expansion.moment, noise=1.0)

    def line(self, stats: Stats) -> Posterior:
        """What a linear model believes of sums."""
        return posterior(centred(stats) if self.settings.has_level else stats)

    def outcome(self, ended: BatchEnd, belief: Posterior, evidence: ModelCheck) -> Note:
        """What the batch was expected to cost, what it did by what is known now, and what was concluded."""
        note: dict[str, float] = {}
        played = replace(ended.state.policy, min_propensity=None, holdout=None)
        if ended.batch.sample is not None and len(ended.batch.sample) and not played.needs_baseline:
            note["lost"] = ended.batch.decided * believed_cost(played, within_memory(ended.batch.sample.sets), belief)
        if ended.state.notes and "next_cost" in ended.state.notes[-1]:
            # planned for a batch of another length, where it ended early or late
            share = ended.batch.decided / ended.state.batch_sizes[0]
            note["expected"] = share * ended.state.notes[-1]["next_cost"]
        return note if not evidence.rank else note | {"surprise": evidence.surprise, "widening": evidence.widening}

    def elimination(self, belief: Posterior) -> Elimination:
        """The self-normalised intervals of the belief, with ‖θ‖ as large as it expects: σ·√(d/ridge)."""
        noise, ridge = belief.noise, belief.ridge
        norm = noise * math.sqrt(self.settings.dim / ridge)
        level = SelfNormalized(ridge=ridge, delta=self.settings.delta, noise=noise, norm=norm, fixed=None)
        alpha = level.multiplier(log_growth(belief.precision, ridge))
        return Elimination.of(belief.estimate, belief.precision, alpha)


def certified_cost(policy: Policy, sets: ContextSets) -> float | None:
    """The most that a decision of the policy costs on average in these sets, if its intervals hold.

    Where they hold the best arm survives, and is worth at most the highest upper end u of a survivor; an arm that is
    played is worth at least its own lower end l. So a set costs at most Σ propensity·(u - l). An arm's ends are the
    tightest that any elimination gives. In units of the rewards; None where two eliminations contradict each other,
    so that not all intervals can hold.

    >>> from rareswitch.design import Uniform
    >>> from rareswitch.policy import Elimination
    >>> close = Elimination.of([1.0, 0.8], np.eye(2), 0.2)       # values 1 ± 0.2 and 0.8 ± 0.2
    >>> both = Policy(dim=2, sampler=Uniform(), eliminations=(close,))
    >>> round(certified_cost(both, ContextSets.from_ragged([np.eye(2)])), 6)
    0.5
    """
    survivors = policy.survivors(sets)
    upper, lower = np.full(survivors.shape, np.inf), np.full(survivors.shape, -np.inf)
    for elimination in policy.eliminations:
        values = sets.contexts @ elimination.estimate
        widths = np.linalg.norm(sets.contexts @ elimination.root.T, axis=2)
        upper, lower = np.minimum(upper, values + widths), np.maximum(lower, values - widths)
    if (survivors & (lower > upper)).any():
        return None
    highest = np.where(survivors, upper, -np.inf).max(axis=1)
    costs = np.where(survivors, highest[:, None] - lower, 0.0)
    return float((policy.probabilities(sets) * costs).sum(axis=1).mean())


def believed_cost(policy: Policy, sets: ContextSets, belief: Posterior) -> float:
    """What a decision of the policy costs on average in these sets, by what is believed now.

    >>> from rareswitch.design import Uniform
    >>> belief = Posterior(estimate=np.array([1.0, 0.8]), precision=np.eye(2), noise=1.0, ridge=1.0)
    >>> round(believed_cost(Policy(dim=2, sampler=Uniform()), ContextSets.from_ragged([np.eye(2)]), belief), 6)
    0.1
    """
    values = sets.contexts @ belief.estimate
    if belief.link is not None:
        values = belief.link.rates(sets.contexts, belief.estimate[None])[:, :, 0]
    best = np.where(sets.available, values, -np.inf).max(axis=1)
    return float((best - (policy.probabilities(sets) * np.where(sets.available, values, 0.0)).sum(axis=1)).mean())


def interpolated_draws(draws: FloatArray, back: FloatArray, count: int) -> FloatArray:
    """``count`` parameters spread evenly over the way from the draws (m, d), m = 1 or ``count``, back by ``back`` (d,).

    Where the model is wrong, a batch is learned from as if the arms that its policy chose told of all others, and the
    next policy may undo what the last one had right, over and over. A learner that changes at every step stops half-way
    there. With a few policies a batch must show what lies between two of them.

    >>> interpolated_draws(np.array([[1.0]]), np.array([-1.0]), 4).ravel().tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    return np.asarray(draws + (1.0 - (np.arange(count)[:, None] + 0.5) / count) * back)


@dataclass(frozen=True, kw_only=True)
class ClicksModel(OneModel):
    """One model of the chosen features, summed for a logistic belief as well while all rewards are 0 or 1."""

    #: Whether other rewards are refused.
    only: bool = False

    def of(self, state: State, features: FloatArray, rewards: FloatArray, sets: Sets | None) -> tuple[Stats, ...]:
        (plain,) = super().of(state, features, rewards, sets)
        other = rewards[(rewards != 0.0) & (rewards != 1.0)]
        if len(other):
            if self.only:
                raise UnsuitableError(
                    f'rewards="binary" is for rewards of 0 and 1; {len(other)} of {len(rewards)} are others, the first '
                    f'{other[0]:g}. Use rewards="linear", or leave the choice to the data.'
                )
            return (plain,)
        if self.intercept:
            features = np.column_stack([features, np.ones(len(features))])
        point = state.rule_state.get(POINT, state.rule_state.get(LOGISTIC, np.zeros(plain.dim)))
        rates = list[FloatArray]()
        if LOGISTIC in (known := state.rule_state):
            least = LEAST_CLICKS / (1.0 + sum(batch.rewarded for batch in (*state.before, *state.past)))
            rates = [logistic(values_of(features, known[LOGISTIC])), values_of(features, known[LINEAR])]
            rates = [np.clip(rate, least, 1.0 - least) for rate in rates]
        return (replace(plain, expansion=expanded(features, rewards, point, rates)),)

    def unexplained_level(self, sums: tuple[Stats, ...]) -> float | None:
        """Of clicks without a level against a half, which a logistic model has at x = 0; by the first batch alone."""
        (total,) = sums
        if self.intercept or not self.only:
            return super().unexplained_level(sums)
        if total.expansion is None or not summed_blindly(total):
            return None
        clicks, half = total.square_sum, 0.5 * total.count
        gradient = total.expansion.gradient  # Σ (r - ½)·x
        level = unexplained_level((replace(total, moment=gradient, square_sum=0.5 * half, reward_sum=clicks - half),))
        return None if level is None else level + 0.5
