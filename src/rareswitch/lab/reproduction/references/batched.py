"""Algorithms 1, KW and 5 as printed, one decision at a time: for the batched learners."""

import math
from dataclasses import dataclass, field

import numpy as np

from rareswitch.core import BoolArray, FloatArray, uniforms
from rareswitch.design import Sampler, core_learning, frank_wolfe_design
from rareswitch.lab.worlds import World


@dataclass
class SlowRun:
    """What the slow algorithm did."""

    arms: list[int] = field(default_factory=list)
    survivors: list[list[int]] = field(default_factory=list)
    estimates: list[FloatArray] = field(default_factory=list)
    precisions: list[FloatArray] = field(default_factory=list)


def slow_batched(
    world: World,
    *,
    ends: tuple[int, ...],
    alpha: float,
    ridge: float,
    seed: int,
    first_sampler: Sampler,
    designer: str | None = None,
    warm_batches: int = 0,
) -> SlowRun:
    """The elimination framework of Section 4 with a fixed sampler, or Algorithm 5 with a ``designer``.

    ``designer`` is "core" or "certified"; then a fair coin, tossed for each decision, puts it into the half 𝒜 or ℬ. The
    designer sees the sets of ℬ in an order that is drawn too, which matters to the last digits alone.
    """
    trace = SlowRun()
    dim, horizon = world.dim, ends[-1]
    sampler = first_sampler
    start = 0
    for k, end in enumerate(ends, 1):
        precision, moment = ridge * np.eye(dim), np.zeros(dim)
        design_sets: list[tuple[float, FloatArray, list[int]]] = []
        for t in range(start, end):
            rounds = world.draw(1, seed=seed, first=t)
            x = rounds.contexts[0]
            available = [i for i in range(len(x)) if rounds.available is None or rounds.available[0, i]]
            for theta, other in zip(trace.estimates, trace.precisions, strict=True):
                available = eliminated(x, available, theta, other, alpha)
            arm = drawn_arm(
                sampler.probabilities(x, flags_of(len(x), available)), float(uniforms(seed, "decide", t, 1)[0, 0])
            )
            reward = float(world.rewards(rounds.means[0, [arm]], seed=seed, first=t)[0])
            trace.arms.append(arm)
            trace.survivors.append(available)
            in_first_half = float(uniforms(0, "half", t, 1)[0, 0]) < 0.5
            if designer is None or k <= warm_batches or in_first_half:
                precision = precision + np.outer(x[arm], x[arm])
                moment = moment + reward * x[arm]
            if designer is not None and k > warm_batches and not in_first_half:
                design_sets.append((float(uniforms(0, "sample", t, 1)[0, 0]), x, available))
        theta = np.linalg.inv(precision) @ moment
        if designer is not None and design_sets and end < horizon:
            design_sets.sort(key=lambda drawn: drawn[0])
            remaining = [(x, eliminated(x, available, theta, precision, alpha)) for _, x, available in design_sets]
            contexts = np.array([x for x, _ in remaining])
            masks = np.array([flags_of(len(x), available) for x, available in remaining])
            lam = 1.0 / horizon
            if designer == "core":  # α = log K, whatever survives
                sampler = core_learning(contexts, masks, regularization=lam, arms=world.arms).policy
            else:
                sampler = frank_wolfe_design(contexts, masks, regularization=lam).policy
        trace.estimates.append(theta)
        trace.precisions.append(precision)
        start = end
    return trace


def eliminated(
    x: FloatArray, available: list[int], theta: FloatArray, precision: FloatArray, alpha: float
) -> list[int]:
    """{i : r_i + ω_i ≥ r_j - ω_j for all j alive}."""
    inverse = np.linalg.inv(precision)
    estimate = {i: float(x[i] @ theta) for i in available}
    width = {i: alpha * math.sqrt(float(x[i] @ inverse @ x[i])) for i in available}
    return [i for i in available if all(estimate[i] + width[i] >= estimate[j] - width[j] for j in available)]


def flags_of(count: int, available: list[int]) -> BoolArray:
    """(K,) true at the available arms."""
    flags = np.zeros(count, dtype=np.bool_)
    flags[available] = True
    return flags


def drawn_arm(probabilities: FloatArray, u: float) -> int:
    """The first arm at which the running sum of probabilities exceeds u."""
    total = 0.0
    for i, p in enumerate(probabilities):
        total += p
        if p > 0 and total > u:
            return i
    return int(np.flatnonzero(probabilities)[-1])
