"""Learners whose policies change after a few decisions, run in compiled steps with the same results as the loop."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import FloatArray, IntArray, Sets, Stats, inverse_root, log_growth, normals
from rareswitch.design import Sampler
from rareswitch.lab.kernels import advance_layers, advance_optimist, walk_layers, walk_optimist, walk_sampler
from rareswitch.learner import (
    OFUL,
    Layers,
    Learner,
    LinUCB,
    Optimism,
    PosteriorSampling,
    RarelySwitchSupLinUCB,
    State,
    Summary,
    SupLinUCB,
    ThompsonSampling,
)
from rareswitch.policy import Layered, Optimistic


class Walk(NamedTuple):
    """The first of the sets that were walked through."""

    #: (m,) what was chosen.
    arms: IntArray
    #: The decision counts at which policies retired on the way; None if that is after every step.
    ends: IntArray | None
    #: Where the run stands after them.
    state: State


#: Goes on until the sets or the changes of policy are used up.
#:
#: It takes the state, the next context sets, n of them and none past the horizon, what each arm would pay (n, K), of
#: which only the entries of chosen arms are looked at, and how many more policies may be deployed.
Walker = Callable[[State, Sets, FloatArray, int], Walk]


def find_walker(learner: Learner) -> Walker | None:
    """Compiled steps for this learner, if there are any for its settings."""
    if type(learner) is OFUL:
        return GrowthWalker(learner, advance_optimist)
    if type(learner) is RarelySwitchSupLinUCB:
        return GrowthWalker(learner, advance_layers)
    if type(learner) is SupLinUCB:
        return partial(_walk_layers, learner)
    if type(learner) is LinUCB or (type(learner) is ThompsonSampling and learner.draws == 1):
        return partial(_walk_steps, learner)
    return None


def _walk_steps(learner: Learner, state: State, sets: Sets, rewards: FloatArray, changes: int) -> Walk:
    """Steps of a learner with one model, updated at each of them."""
    rule, (total,) = learner.parts.rule, state.sums
    assert isinstance(rule, (Optimism, PosteriorSampling))
    steps, level, precision = min(len(sets.contexts), changes), rule.level, rule.statistics.precision(total.gram)
    arms = np.empty(steps, dtype=np.int64)
    gram, moment = total.gram.copy(), total.moment.copy()
    model = (inverse_root(precision), total.estimate(ridge=level.ridge), gram, moment)
    given = (sets.contexts[:steps], sets.available[:steps], rewards[:steps])
    if isinstance(rule, PosteriorSampling):
        draws = normals(rule.seed, "posterior", state.start, steps, total.dim)
        walk_sampler(*given, *model, draws, rule.scale * level.noise, arms)
    else:
        fixed, tail = -1.0 if level.fixed is None else level.fixed, 2.0 * np.log(1.0 / level.delta)
        grown, bias = log_growth(precision, level.ridge), np.sqrt(level.ridge) * level.norm
        walk_optimist(*given, *model, grown, fixed, tail, level.noise, bias, arms)
    paid = rewards[np.arange(steps), arms]
    sums = Stats(
        gram=gram,
        moment=moment,
        count=total.count + steps,
        square_sum=total.square_sum + float(paid @ paid),
        reward_sum=_with(total, paid),
    )
    return Walk(arms, None, learner.after_steps(state, sums=(sums,), decided=steps, changes=steps))


def _walk_layers(learner: Learner, state: State, sets: Sets, rewards: FloatArray, changes: int) -> Walk:
    rule, sampler = learner.parts.rule, state.policy.sampler
    assert isinstance(rule, Layers)
    assert isinstance(sampler, Layered)
    level = rule.level  # type: ignore[attr-defined]
    arms, layers = np.empty((2, len(sets.contexts)), dtype=np.int64)
    grams = np.array([stats.gram for stats in state.sums])
    moments = np.array([stats.moment for stats in state.sums])
    roots = np.array([inverse_root(rule.statistics.precision(gram)) for gram in grams])
    estimates = np.array([stats.estimate(ridge=level.ridge) for stats in state.sums])
    given = (sets.contexts, sets.available, rewards, roots, estimates, grams, moments)
    steps = walk_layers(*given, sampler.thresholds, level.multiplier, sampler.exploit, changes, arms, layers)
    arms, layers = arms[:steps], layers[:steps]
    paid = rewards[np.arange(steps), arms]
    sums = tuple(
        Stats(
            gram=grams[k],
            moment=moments[k],
            count=old.count + int((layers == k).sum()),
            square_sum=old.square_sum + float((paid[layers == k] ** 2).sum()),
            reward_sum=_with(old, paid[layers == k]),
        )
        for k, old in enumerate(state.sums)
    )
    # where the run ends no policy follows the last lesson
    over = state.start + steps == learner.horizon and layers[-1] >= 0
    taught = int((layers >= 0).sum()) + (not over and state.start + steps == learner.horizon)
    return Walk(arms, None, learner.after_steps(state, sums=sums, decided=steps, changes=taught))


def _with(old: Stats, paid: FloatArray) -> float | None:
    """Σ r, with these rewards too."""
    return None if old.reward_sum is None else old.reward_sum + float(paid.sum())


class GrowthWalker:
    """Walks stretch by stretch: a policy is frozen until a determinant has grown."""

    def __init__(self, learner: OFUL | RarelySwitchSupLinUCB, advance: Callable[..., Any]) -> None:
        self.learner, self.bar, self.advance = learner, learner.pace().bar, advance
        #: What the current policy has done so far.
        self.pending: Summary | None = None

    def __call__(self, state: State, sets: Sets, rewards: FloatArray, changes: int) -> Walk:
        """Decide, learn and change the policy as the loop would."""
        count, done, ends = len(sets.contexts), 0, []
        arms = np.empty(count, dtype=np.int64)
        while done < count and changes > 0:
            since = None if self.pending is None else self.pending.stats
            progress = self.learner.parts.statistics.progress(state.sums, state.kept, since)
            roots, growths, bar = progress.roots.copy(), progress.growths.copy(), self.bar
            left, layers = slice(done, None), np.zeros(count - done, dtype=np.int64)
            given = (sets.contexts[left], sets.available[left], *_frozen(state.policy.sampler), roots, growths, bar)
            steps = self.advance(*given, arms[left], layers)
            at, layers = np.arange(done, done + steps), layers[:steps]
            done += steps
            features, paid = sets.contexts[at, arms[at]], rewards[at, arms[at]]
            stats = self.learner.parts.statistics.by_layer(features, paid, layers)
            counts = {"decided": steps, "rewarded": steps}
            part = Summary(learner=state.learner, policy_id=state.policy.id, stats=stats, **counts)
            self.pending = part if self.pending is None else self.pending + part
            if (growths >= bar).any() or state.start + self.pending.decided == self.learner.horizon:
                state = self.learner.next(state, self.pending)
                self.pending = None
                changes -= 1
                if not state.done:
                    ends.append(state.start)
        return Walk(arms[:done], np.array(ends, dtype=np.int64), state)


def _frozen(sampler: Sampler) -> tuple[FloatArray, ...]:
    """What a kernel needs of the policy that it lets decide."""
    if isinstance(sampler, Optimistic):
        return sampler.estimate, sampler.root
    assert isinstance(sampler, Layered)
    return sampler.estimates, sampler.roots, sampler.thresholds
