"""Learners whose policies change after a few decisions, run in compiled steps with the same results as the loop."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import (
    FloatArray,
    IntArray,
    Sets,
    Stats,
    absorb,
    gather,
    highest,
    inverse_root,
    largest,
    log_growth,
    normals,
    pass_layers,
    workspace,
)
from rareswitch.design import Sampler
from rareswitch.lanes import add_rows, compiled, lane_zeros, padded_length
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


@compiled
def advance_optimist(  # type: ignore[no-untyped-def]
    contexts, available, estimate, root, running, growths, bar, arms, layers
):
    """Decide as :class:`~rareswitch.policy.Optimistic` until the determinant has grown to ``bar``; how many decisions.

    ``running`` (1, d, d), L⁻¹ of all data, and ``growths`` (1,), since the policy was made, are carried along;
    ``layers`` stay zero.
    """
    n, arm_count, dim = contexts.shape
    columns, zero, center, width, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    image, sums = np.zeros(dim), np.zeros(dim)
    for s in range(n):
        left = gather(contexts, available, s, columns, place)
        arms[s] = place[highest(columns, zero, center, width, left, factors, root, 1.0)]
        growths[0] *= absorb(running[0], contexts[s, arms[s]], image, sums)
        if growths[0] >= bar:
            return s + 1
    return n


@compiled
def advance_layers(  # type: ignore[no-untyped-def]
    contexts, available, estimates, roots, thresholds, running, growths, bar, arms, layers
):
    """Decide by intervals of layer 0 and then as :class:`~rareswitch.policy.Layered`, until a determinant has grown.

    How many decisions that are. ``running`` (S, d, d) and ``growths`` (S,) are carried along, as above.
    """
    n, arm_count, dim = contexts.shape
    room = workspace(arm_count, dim)
    none = roots[:0]
    image, sums = np.zeros(dim), np.zeros(dim)
    for s in range(n):
        left = gather(contexts, available, s, room[0], room[4])
        arms[s] = pass_layers(room, left, estimates, roots, none, thresholds, 1.0, True, False, 0.0, layers, s)
        k = layers[s]
        growths[k] *= absorb(running[k], contexts[s, arms[s]], image, sums)
        if growths[k] >= bar:
            return s + 1
    return n


@compiled
def learn(root, estimate, gram, moment, x, reward, image, sums):  # type: ignore[no-untyped-def]
    """Add one observation to a linear model, kept as L⁻¹, Λ⁻¹ξ, Σ xxᵀ and ξ; the growth of det Λ."""
    dim = len(x)
    error = reward
    for i in range(dim):
        error -= x[i] * estimate[i]
        moment[i] += reward * x[i]
        for j in range(dim):
            gram[i, j] += x[i] * x[j]
    growth = absorb(root, x, image, sums)
    # L'⁻¹x = v/√… row by row; Λ'⁻¹x = L'⁻ᵀL'⁻¹x, with the new root
    for i in range(dim):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * x[j]
        image[i] = total
    for i in range(dim):
        for j in range(i + 1):
            estimate[j] += root[i, j] * image[i] * error
    return growth


@compiled
def walk_optimist(  # type: ignore[no-untyped-def]
    contexts, available, rewards, root, estimate, gram, moment, log_growth, fixed, base, noise, offset, arms
):
    """LinUCB, updated at each of the n steps.

    The multiplier of the widths is ``fixed`` if that is not negative, else noise·√(base + ln growth) + offset, where
    ``log_growth`` is ln(det Λ/λ^d) at the beginning.
    """
    n, arm_count, dim = contexts.shape
    columns, zero, center, width, place = workspace(arm_count, dim)
    theta = estimate.reshape((1, dim))
    image, sums = np.zeros(dim), np.zeros(dim)
    for s in range(n):
        left = gather(contexts, available, s, columns, place)
        multiplier = fixed if fixed >= 0.0 else noise * math.sqrt(base + log_growth) + offset
        arms[s] = place[highest(columns, zero, center, width, left, theta, root, multiplier)]
        x, reward = contexts[s, arms[s]], rewards[s, arms[s]]
        log_growth += math.log(learn(root, estimate, gram, moment, x, reward, image, sums))


@compiled
def walk_sampler(  # type: ignore[no-untyped-def]
    contexts, available, rewards, root, estimate, gram, moment, normals, scale, arms
):
    """Thompson sampling, updated at each of the n steps: the best arm for θ̂ + scale·L⁻ᵀz, z = ``normals[s]``."""
    n, arm_count, dim = contexts.shape
    columns, zero, center, _, place = workspace(arm_count, dim)
    theta = lane_zeros(np.int64(1), dim)
    image, sums = np.zeros(dim), np.zeros(dim)
    for s in range(n):
        left = gather(contexts, available, s, columns, place)
        for j in range(dim):
            theta[0, j] = estimate[j]
        for i in range(dim):
            for j in range(i + 1):
                theta[0, j] += scale * normals[s, i] * root[i, j]
        add_rows(center, zero, 0, theta, 0, columns, dim, padded_length(left))
        arms[s] = place[largest(center, left)]
        learn(root, estimate, gram, moment, contexts[s, arms[s]], rewards[s, arms[s]], image, sums)


@compiled
def walk_layers(  # type: ignore[no-untyped-def]
    contexts,
    available,
    rewards,
    roots,
    estimates,
    grams,
    moments,
    thresholds,
    multiplier,
    exploit,
    changes,
    arms,
    layers,
):
    """SupLinUCB, its layers updated at each step, until ``changes`` updates are made; how many steps were walked."""
    n, arm_count, dim = contexts.shape
    room = workspace(arm_count, dim)
    none = roots[:0]
    image, sums = np.zeros(dim), np.zeros(dim)
    for s in range(n):
        left = gather(contexts, available, s, room[0], room[4])
        arms[s] = pass_layers(
            room, left, estimates, roots, none, thresholds, multiplier, False, True, exploit, layers, s
        )
        if layers[s] >= 0:
            k = layers[s]
            x = contexts[s, arms[s]]
            learn(roots[k], estimates[k], grams[k], moments[k], x, rewards[s, arms[s]], image, sums)
            changes -= 1
            if changes == 0:
                return s + 1
    return n


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
