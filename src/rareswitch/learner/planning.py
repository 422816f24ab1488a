"""Planned exploration: at an update, look ahead to what each amount of exploration costs now and saves later."""

from dataclasses import dataclass

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.learner.evidence import Posterior
from rareswitch.policy.elimination import inverse_root
from rareswitch.rng import normals
from rareswitch.validation import BoolArray, FloatArray, IntArray

SCALES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0, 1.4)
"""Multiples of the posterior's spread at which parameters may be drawn; 0 is greedy play."""
TRUTHS = 512
"""Parameters that the look-ahead tries out. With 64, a mistake of one chance in a hundred goes unseen, and may last."""
DRAWS = 64


PATIENCE = 0.3
"""Weight of what comes after the next batch. It is less than 1 because later updates will know more than greedy play
after this one does."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One amount of exploration and what it is expected to cost."""

    scale: float
    """Multiple of the belief's spread."""
    now: float
    """Expected regret of a decision in the next batch."""
    later: float
    """Expected regret of a greedy decision after it."""


def plan(belief: Posterior, sets: ContextSets, *, upcoming: int, rest: int, seed: int, update: int) -> Plan:
    """The scale with the least upcoming·now + PATIENCE·rest·later.

    Parameters
    ----------
    belief
        What is known.
    sets
        A sample of context sets, like those to come.
    upcoming, rest
        Decisions of the next batch, and of all batches after it.
    seed, update
        Key the draws.
    """
    found = prospects(belief, sets, count=upcoming, seed=seed, update=update)
    return min(found, key=lambda p: upcoming * p.now + PATIENCE * rest * p.later)


def prospects(belief: Posterior, sets: ContextSets, *, count: int, seed: int, update: int) -> list[Plan]:
    """What each scale is expected to cost if the next batch has ``count`` decisions on sets like these.

    Truths θ_j are drawn from the belief N(θ̂, σ²Λ⁻¹). A batch of n decisions by posterior draws at a scale gathers the
    information nI, and ends with the estimate (Λ + nI)⁻¹(Λθ̂ + nIθ_j + σ(nI)^½ξ_j): greedy play on that estimate, judged
    by θ_j, is what the batch leaves behind. All scales see the same truths and the same noise.
    """
    dim = len(belief.estimate)
    root = inverse_root(belief.precision)
    z = normals(seed, "plan", update, 1, (2 * TRUTHS + DRAWS) * dim).reshape(-1, dim)
    truths = belief.estimate + belief.noise * z[:TRUTHS] @ root
    values = np.where(sets.alive[:, :, None], sets.contexts @ truths.T, -np.inf)
    best = values.max(axis=1)
    found = []
    for scale in SCALES:
        draws = belief.estimate + scale * belief.noise * (z[-DRAWS:] if scale else z[-1:]) @ root
        shares = _shares(sets.contexts, sets.alive, draws)
        played = np.einsum("sk,skj->sj", shares, np.where(sets.alive[:, :, None], values, 0.0))
        weighted = (shares[:, :, None] * sets.contexts).reshape(-1, dim)
        information = count / len(sets) * weighted.T @ sets.contexts.reshape(-1, dim)
        after = learned(belief, information, truths, z[TRUTHS : 2 * TRUTHS])
        chosen = _best_arms(sets.contexts, sets.alive, after)
        greedy = np.take_along_axis(values, chosen[:, None, :], axis=1)[:, 0, :]
        found.append(Plan(scale=scale, now=float((best - played).mean()), later=float((best - greedy).mean())))
    return found


def learned(belief: Posterior, information: FloatArray, truths: FloatArray, noise: FloatArray) -> FloatArray:
    """(J, d) the estimate that a batch with this information leaves, for each truth."""
    values, vectors = np.linalg.eigh(information)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    moment = (belief.precision @ belief.estimate)[:, None] + information @ truths.T + belief.noise * half @ noise.T
    return np.asarray(np.linalg.solve(belief.precision + information, moment).T)


def _best_arms(contexts: FloatArray, alive: BoolArray, parameters: FloatArray) -> IntArray:
    """(n, m) the best living arm of each set for each of the parameters (m, d)."""
    return np.asarray(np.where(alive[:, :, None], contexts @ parameters.T, -np.inf).argmax(axis=1))


def _shares(contexts: FloatArray, alive: BoolArray, draws: FloatArray) -> FloatArray:
    """(n, K) the share of draws whose best arm each arm is."""
    chosen = _best_arms(contexts, alive, draws)
    return np.asarray((chosen[:, None, :] == np.arange(alive.shape[1])[:, None]).mean(axis=2))
