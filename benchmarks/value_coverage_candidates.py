"""The candidates of value_coverage.py, none of which has seen the log."""

from functools import partial
from typing import Any

import numpy as np

from measure import FloatArray
from rareswitch import Always
from rareswitch.policy import Policy, PosteriorDraws
from rareswitch.rng import normals, uniforms
from value_coverage_worlds import Place, world_of

#: Where the rounds of the pilot begin, which plays uniformly, and how many there are; no log comes so far.
PILOT, PILOT_SIZE = 5_000_000, 400


def candidates_of(place: Place, seed: int) -> dict[str, Any]:
    """The five, none of which has seen the log."""
    world = world_of(place)
    drawn = world.draw(PILOT_SIZE, seed=seed, first=PILOT)
    rows = np.arange(PILOT_SIZE)
    arms = np.floor(uniforms(seed, "pilot", 0, PILOT_SIZE)[:, 0] * world.arms).astype(np.int64)
    rewards = world.rewards(drawn.means[rows, arms], seed=seed, first=PILOT)
    x = drawn.contexts[rows, arms]
    theta: FloatArray = np.asarray(np.linalg.solve(np.eye(world.dim) + x.T @ x, x.T @ rewards), dtype=np.float64)
    spread = float((drawn.contexts @ theta).std()) or 1.0
    thumb = normals(seed, "thumb", 0, 1, world.dim)[0]
    return {
        "uniform": "uniform",
        "greedy": Policy(dim=world.dim, sampler=PosteriorDraws(draws=theta[None])),
        "soft-max": partial(soft_max, theta=2.0 * theta / spread),
        "always the first": Always("0"),
        "rule of thumb": partial(rule_of_thumb, direction=thumb),
    }


def soft_max(contexts: FloatArray, alive: Any = None, *, theta: FloatArray) -> FloatArray:
    odds = contexts @ theta
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def rule_of_thumb(contexts: FloatArray, alive: Any = None, *, direction: FloatArray) -> FloatArray:
    """Mostly the arm that is farthest in a direction."""
    count, arms, _ = contexts.shape
    chances = np.full((count, arms), 0.2 / arms)
    chances[np.arange(count), (contexts @ direction).argmax(axis=1)] += 0.8
    return chances


def probabilities(candidate: Any, contexts: FloatArray) -> FloatArray:
    """Of each arm, (n, K)."""
    if isinstance(candidate, Policy):
        return candidate.probabilities(contexts)
    if isinstance(candidate, Always):
        return np.broadcast_to(np.arange(contexts.shape[1]) == int(candidate.arm), contexts.shape[:2]) * 1.0
    if candidate == "uniform":
        return np.full(contexts.shape[:2], 1.0 / contexts.shape[1])
    return np.asarray(candidate(contexts))
