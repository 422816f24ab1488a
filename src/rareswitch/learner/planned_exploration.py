"""What foresight does at an update: a belief, what the batch says of it, a plan, and draws as far apart as planned."""

import math
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rareswitch.confidence import Intervals, SelfNormalized
from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler
from rareswitch.errors import BatchError
from rareswitch.learner.batched import batch_elimination
from rareswitch.learner.logistic import HELD_OUT, LINEAR, LOGISTIC, logistic_posterior, next_point, search_of, searching
from rareswitch.learner.planning import TRUTHS, plan, spread, unseen_directions
from rareswitch.learner.posterior import (
    NOTHING,
    ModelCheck,
    Posterior,
    informed,
    innovation,
    interpolated_draws,
    posterior,
    vague_where_unknown,
)
from rareswitch.learner.rule import BatchEnd, NewPolicy, Rule
from rareswitch.learner.state import Note, State, Summary, centred, faded
from rareswitch.linalg import inverse_root, log_growth
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws
from rareswitch.rng import normals
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

if TYPE_CHECKING:
    from rareswitch.learner.foresight import Foresight


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


#: Parameters that a policy holds, each with its own best arm.
DRAWS = 128
#: Context sets from which an update plans.
SAMPLE = 200
#: The most numbers that a plan may work with at a time.
SAMPLE_NUMBERS = 1 << 23
#: Of the floor, in the last batch, from which nothing will be learned.
LAST_SHARE = 0.1
#: The most by which a click's probability grows with its logit.
STEEPEST = 0.25


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

    def refine(self, state: State, summary: Summary) -> State | None:
        if not self.settings.may_be_logistic:
            return None
        sums = [batch.stats[0] for batch in (*state.before, *state.past)]
        *earlier, batch = faded([*sums, summary.stats[0]], self.settings.discount)
        step = next_point(earlier, batch, search_of(state.kept), intercept=self.settings.has_level)
        return None if step is None else searching(state, *step)

    def next(self, ended: BatchEnd) -> NewPolicy:
        settings = self.settings
        batches = faded(ended.by_batch, settings.discount) or [ended.batch.stats[0]]
        models = self.models(ended, batches)
        belief = models.chosen
        if belief.noise == 0.0 or ended.sums[0].all_alike:  # there is nothing to tell arms apart by
            return NewPolicy(replace(ended.state.policy, sampler=GOptimal(tol=1.0)))
        before = self.believed(ended, belief)
        evidence = NOTHING if before is None else self.evidence(ended, before, belief)
        note = {"update": ended.state.policies, "noise": belief.noise, "scale": 0.0, **models.note}
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
            chosen = plan(
                belief,
                sets,
                known=known,
                lengths=ended.batch_sizes,
                seed=settings.seed,
                update=ended.state.policies,
                least_scale=evidence.least_scale,
            )
            scale, share = chosen.scale, settings.design_share
            if evidence.wrong:
                note["concluded"] += " and exploration kept"
            note |= {"scale": chosen.scale, "cost": chosen.cost, "next_cost": chosen.next_cost}
        draws = belief.estimate[None]
        if scale > 0.0:
            z = normals(settings.seed, "posterior", ended.start, 1, DRAWS * settings.dim).reshape(DRAWS, settings.dim)
            unseen = unseen_directions(belief, sets, known=known)
            draws = draws + belief.noise * z @ inverse_root(belief.precision) @ spread(scale, unseen)
        if before is not None and evidence.wrong and settings.discount == 1.0:  # a θ that drifts does not come back
            draws = interpolated_draws(draws, before.estimate[: settings.dim] - belief.estimate, DRAWS)
            note["concluded"] += "; the policy lies between what was believed and what is"
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
        return NewPolicy(policy, kept=models.kept, note=note)

    def models(self, ended: BatchEnd, batches: list[Stats]) -> "Models":
        """What the batches so far say of θ, by a linear model and, where rewards are clicks, by a logistic one."""
        linear = self.line(reduce(add, batches))
        logistic = None
        if self.settings.may_be_logistic:
            logistic = logistic_posterior(batches, intercept=self.settings.has_level)
        if logistic is None:
            return Models(linear=linear)
        scores = np.array(ended.state.kept.get(HELD_OUT, np.zeros(2)))
        batch = ended.batch.stats[0].expansion
        if batch is not None and len(batch.held_out):
            scores = scores * self.settings.discount + batch.held_out
        return Models(
            linear=linear,
            logistic=logistic,
            held_out=scores,
            only_logistic=self.settings.rewards == "binary",
            level=self.level_of_line(reduce(add, batches), linear) if self.settings.has_level else None,
        )

    def level_of_line(self, stats: Stats, line: Posterior) -> float:
        """The constant of a linear model with these slopes."""
        stats = stats.shifted(0.0)
        return float(stats.moment[-1] - stats.gram[-1, :-1] @ line.estimate) / float(stats.gram[-1, -1])

    def believed(self, ended: BatchEnd, belief: Posterior) -> Posterior | None:
        """What was believed before the batch; None where too little was known, or the batch tells nothing of it."""
        (batch,), earlier = ended.batch.stats, self.earlier(ended)
        if batch.count < 2 or not informed(reduce(add, earlier, Stats.zero(batch.dim))):
            return None
        if belief.link is None:
            total = reduce(add, earlier)
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

    def earlier(self, ended: BatchEnd) -> list[Stats]:
        """The sums of the batches before this one, as they would have been with rewards that came late."""
        return faded(ended.by_batch[:-1], self.settings.discount)

    def line(self, stats: Stats) -> Posterior:
        """What a linear model believes of sums."""
        return posterior(centred(stats) if self.settings.has_level else stats)

    def outcome(self, ended: BatchEnd, belief: Posterior, evidence: ModelCheck) -> Note:
        """What the batch was expected to cost, what it did by what is known now, and what was concluded."""
        note: dict[str, float] = {}
        if ended.batch.sample is not None and len(ended.batch.sample) and not ended.state.policy.needs_baseline:
            played = replace(ended.state.policy, min_propensity=None)
            note["lost"] = ended.batch.decided * believed_cost(played, within_memory(ended.batch.sample.sets), belief)
        if ended.state.notes and "next_cost" in ended.state.notes[-1]:
            # planned for a batch of another length, where it ended early or late
            share = ended.batch.decided / ended.state.batch_sizes[0]
            note["expected"] = share * ended.state.notes[-1]["next_cost"]
        return note if not evidence.rank else note | {"surprise": evidence.surprise, "concluded": evidence.text}

    def elimination(self, belief: Posterior) -> Elimination:
        """The self-normalised intervals of the belief, with ‖θ‖ as large as it expects: σ·√(d/ridge)."""
        noise, ridge = belief.noise, belief.ridge
        norm = noise * math.sqrt(self.settings.dim / ridge)
        level = SelfNormalized(ridge=ridge, delta=self.settings.delta, noise=noise, norm=norm, fixed=None)
        alpha = level.multiplier(log_growth(belief.precision, ridge))
        return Elimination.of(belief.estimate, belief.precision, alpha)


@dataclass(frozen=True, eq=False, kw_only=True)
class Models:
    """What a linear and a logistic model say of θ, and which of the two is believed.

    Rewards of 0 and 1 are clicks. The logistic model is believed as soon as batches that neither had seen were likelier
    by it; of the first batch, in which clicks may be few, a line errs less.
    """

    linear: Posterior
    #: None where rewards are no clicks.
    logistic: Posterior | None = None
    #: (2,) log-likelihood of all batches but the first, each by the models of those before it: logistic, linear.
    held_out: FloatArray = field(default_factory=lambda: np.zeros(2))
    only_logistic: bool = False
    #: The constant of the linear model, if it has one.
    level: float | None = None

    @property
    def chosen(self) -> Posterior:
        """What is believed."""
        if self.logistic is None or (self.held_out[1] >= self.held_out[0] and not self.only_logistic):
            return self.linear
        return self.logistic

    @property
    def kept(self) -> dict[str, FloatArray]:
        """What a state keeps, so that the next batch can be expanded and held against both models."""
        if self.logistic is None or self.logistic.link is None:
            return {}
        line = self.linear.estimate if self.level is None else np.append(self.linear.estimate, self.level)
        return {LOGISTIC: self.logistic.link.point, LINEAR: line, HELD_OUT: self.held_out}

    @property
    def note(self) -> Note:
        """Which model is believed, and by how much it explained held-out batches better."""
        if self.logistic is None:
            return {}
        logistic = self.chosen is self.logistic
        return {"link": "logistic" if logistic else "linear", "held_out": float(self.held_out[0] - self.held_out[1])}


def within_memory(sets: ContextSets) -> ContextSets:
    """Fewer of the sets where they have so many arms that planning on all would take too much memory."""
    arms, dim = sets.contexts.shape[1:]
    step = -(-len(sets) // max(16, SAMPLE_NUMBERS // (arms * max(dim, TRUTHS))))
    return ContextSets(sets.contexts[::step], sets.available[::step])
