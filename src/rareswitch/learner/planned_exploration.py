"""What foresight does at an update: a belief, what the batch says of it, a plan, and draws as far apart as planned."""

import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar

from rareswitch.confidence import Intervals, SelfNormalized
from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler
from rareswitch.errors import BatchError
from rareswitch.learner.batched import batch_elimination
from rareswitch.learner.certificate import believed_cost, certified_cost
from rareswitch.learner.evidence import NOTHING, Evidence, informed, innovation, on_the_way
from rareswitch.learner.forgetting import faded
from rareswitch.learner.levels import centred
from rareswitch.learner.logistic import frozen_point, kept_point, logistic_posterior
from rareswitch.learner.planning import TRUTHS, plan, spread, unseen_directions
from rareswitch.learner.posterior import Posterior, posterior, vague_where_unknown
from rareswitch.learner.rule import Ended, Made, Rule
from rareswitch.linalg import inverse_root, log_growth
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws
from rareswitch.rng import normals
from rareswitch.stats import Stats

if TYPE_CHECKING:
    from rareswitch.learner.foresight import Foresight

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

    def first(self) -> Made:
        return Made(Policy(dim=self.settings.dim, sampler=GOptimal(tol=1.0)))

    def sample_size(self, number: int, ahead: tuple[int, ...]) -> int:
        return SAMPLE  # also where no plan is due: the forecast may change before the batch ends

    def next(self, ended: Ended) -> Made:
        told = self.settings
        batches = faded((*ended.state.before, *ended.past), told.forget) or [ended.batch.stats[0]]
        belief = self.belief(batches)
        if belief.noise == 0.0 or ended.sums[0].all_alike:  # there is nothing to tell arms apart by
            return Made(replace(ended.state.policy, sampler=GOptimal(tol=1.0)))
        before = self.believed(ended, belief)
        evidence = NOTHING if before is None else self.evidence(ended, before, belief)
        note: dict[str, Any] = {"update": ended.state.updates, "noise": belief.noise, "scale": 0.0}
        note |= {} if belief.link is None else {"link": "logistic"}
        note |= self.came(ended, belief, evidence)
        belief = replace(belief, noise=belief.noise * math.sqrt(evidence.widening))
        scale, share = 0.0, LAST_SHARE * told.floor
        known = sum(stats.count for stats in batches)
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
                known=known,
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
            unseen = unseen_directions(belief, sets, known=known)
            draws = draws + belief.noise * z @ inverse_root(belief.precision) @ spread(scale, unseen)
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
            elif known > told.dim + 1:  # with fewer decisions the noise is anyone's guess
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
        return vague_where_unknown(self.line(earlier), known=earlier.count)

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
        zero = Stats.zero(ended.batch.stats[0].dim)
        return reduce(add, faded((*ended.state.before, *ended.past[:-1]), self.settings.forget), zero)

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


def thinned(sets: ContextSets) -> ContextSets:
    """Fewer of the sets where they have so many arms that planning on all would take too much memory."""
    arms, dim = sets.contexts.shape[1:]
    step = -(-len(sets) // max(16, SAMPLE_NUMBERS // (arms * max(dim, TRUTHS))))
    return ContextSets(sets.contexts[::step], sets.alive[::step])
