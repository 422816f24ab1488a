"""Learners whose policies change at every step, run in compiled steps with the same results as the loop."""

import math
from collections.abc import Callable
from functools import partial

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
from rareswitch.lanes import add_rows, compiled, lane_zeros, padded_length
from rareswitch.learner import Layers, Learner, LinUCB, Optimism, PosteriorSampling, State, SupLinUCB, ThompsonSampling
from rareswitch.policy import Layered


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


Walked = tuple[State, IntArray]
#: Goes on until the sets or the changes of policy are used up; where the run stands then, and what was chosen.
#:
#: It takes the state, the next context sets, n of them and none past the horizon, what each arm would pay (n, K), of
#: which only the entries of chosen arms are looked at, and how many more policies may be deployed.
Walker = Callable[[State, Sets, FloatArray, int], Walked]


def find_walker(learner: Learner) -> Walker | None:
    """Compiled steps for this learner, if there are any for its settings."""
    if type(learner) is SupLinUCB:
        return partial(_walk_layers, learner)
    if type(learner) is LinUCB or (type(learner) is ThompsonSampling and learner.draws == 1):
        return partial(_walk_steps, learner)
    return None


def _walk_steps(learner: Learner, state: State, sets: Sets, rewards: FloatArray, changes: int) -> Walked:
    """Steps of a learner with one model, updated at each of them."""
    rule, (total,) = learner.parts.rule, state.sums
    assert isinstance(rule, (Optimism, PosteriorSampling))
    steps, level, precision = min(len(sets.contexts), changes), rule.level, rule.statistics.precision(total.gram)
    arms = np.empty(steps, dtype=np.int64)
    gram, moment = total.gram.copy(), total.moment.copy()
    model = (inverse_root(precision), total.estimate(ridge=level.ridge), gram, moment)
    data = (sets.contexts[:steps], sets.available[:steps], rewards[:steps])
    if isinstance(rule, PosteriorSampling):
        draws = normals(rule.seed, "posterior", state.start, steps, total.dim)
        walk_sampler(*data, *model, draws, rule.scale * level.noise, arms)
    else:
        fixed, tail = -1.0 if level.fixed is None else level.fixed, 2.0 * np.log(1.0 / level.delta)
        grown, bias = log_growth(precision, level.ridge), np.sqrt(level.ridge) * level.norm
        walk_optimist(*data, *model, grown, fixed, tail, level.noise, bias, arms)
    sums = _with(total, gram, moment, rewards[np.arange(steps), arms])
    return learner.after_steps(state, sums=(sums,), decided=steps, changes=steps), arms


def _walk_layers(learner: Learner, state: State, sets: Sets, rewards: FloatArray, changes: int) -> Walked:
    rule, sampler = learner.parts.rule, state.policy.sampler
    assert isinstance(rule, Layers)
    assert isinstance(sampler, Layered)
    level = rule.level  # type: ignore[attr-defined]
    arms, layers = np.empty((2, len(sets.contexts)), dtype=np.int64)
    grams = np.array([stats.gram for stats in state.sums])
    moments = np.array([stats.moment for stats in state.sums])
    roots = np.array([inverse_root(rule.statistics.precision(gram)) for gram in grams])
    estimates = np.array([stats.estimate(ridge=level.ridge) for stats in state.sums])
    data = (sets.contexts, sets.available, rewards, roots, estimates, grams, moments)
    steps = walk_layers(*data, sampler.thresholds, level.multiplier, sampler.exploit, changes, arms, layers)
    arms, layers = arms[:steps], layers[:steps]
    paid = rewards[np.arange(steps), arms]
    sums = tuple(_with(old, grams[k], moments[k], paid[layers == k]) for k, old in enumerate(state.sums))
    # where the run ends no policy follows the last lesson
    over = state.start + steps == learner.horizon and layers[-1] >= 0
    taught = int((layers >= 0).sum()) + (not over and state.start + steps == learner.horizon)
    return learner.after_steps(state, sums=sums, decided=steps, changes=taught), arms


def _with(old: Stats, gram: FloatArray, moment: FloatArray, paid: FloatArray) -> Stats:
    """Sums in which these rewards are counted too."""
    return Stats(
        gram=gram,
        moment=moment,
        count=old.count + len(paid),
        square_sum=old.square_sum + float(paid @ paid),
        reward_sum=None if old.reward_sum is None else old.reward_sum + float(paid.sum()),
    )
