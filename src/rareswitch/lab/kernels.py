"""Compiled steps: learners that change at every step, or when a determinant has grown, many decisions at a call."""

import math

import numpy as np

from rareswitch.core import absorb, gather, highest, largest, pass_layers, workspace
from rareswitch.lanes import add_rows, compiled, lane_zeros, padded_length


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
