"""RS-GLinCB (Sawarni, Das, Barman and Sinha 2024), which is made for clicks and few policies.

Written from arXiv:2404.06831 for logistic rewards, with the constants of the authors' own experiments
(nirjhar-das/GLBandit_Limited_Adaptivity): those of the proofs explore for longer than the horizon. It fits a logistic
regression to the decisions themselves, where learners of the library know sums, so it is a player of benchmarks:
``rs_glincb(world, horizon, seed)`` gives regret and policies, on the rounds and rewards that our learners see.
"""

import math

import numpy as np

from harness import FloatArray, IntArray
from rareswitch.lab.worlds import World

#: Failure probability, ridge, and how much det H grows before it is refitted.
DELTA, RIDGE, GROWTH = 0.01, 0.5, 1.5
#: How many rounds are decided together, at the least and at the most.
LEAST, MOST = 16, 1024


def slope(odds: FloatArray) -> FloatArray:
    """μ̇, the derivative of the logistic function."""
    return np.asarray(0.25 / np.cosh(odds / 2.0) ** 2)


def logistic_fit(x: FloatArray, rewards: FloatArray, ridge: float, start: FloatArray) -> FloatArray:
    """The least Σ log-loss + ridge/2·‖θ‖², by Newton's method with steps that are halved where the loss would rise."""

    def loss(theta: FloatArray) -> float:
        odds = x @ theta
        return float(np.logaddexp(0.0, odds).sum() - rewards @ odds + 0.5 * ridge * theta @ theta)

    theta, now = start.copy(), loss(start)
    for _ in range(100):
        odds = x @ theta
        gradient = x.T @ (1.0 / (1.0 + np.exp(-odds)) - rewards) + ridge * theta
        step = np.linalg.solve((x.T * slope(odds)) @ x + ridge * np.eye(len(theta)), gradient)
        if gradient @ step < 1e-12:
            break
        share = 1.0
        while share > 1e-9 and loss(theta - share * step) > now - 0.25 * share * float(gradient @ step):
            share /= 2.0
        theta = theta - share * step
        now = loss(theta)
    return theta


def rs_glincb(world: World, horizon: int, seed: int) -> tuple[float, int]:
    """RS-GLinCB (Algorithm 2): regret and policies; it is told ‖θ‖ and κ = 1/min μ̇ over all arms that are shown.

    A round in which some arm is unknown, ‖x‖² in V⁻¹ above 100/(κ·S²·d), plays the least known one (switching criterion
    I); others play the highest upper confidence bound of the arms that the warm-up leaves, on estimate and H as they
    were when det H had last grown by 1.5 (criterion II). Each round of the first kind changes V and with it who is
    played: it is a policy. As in the authors' experiments, the estimate that decides is of all decisions so far, and
    takes its mean with the warm-up's.
    """
    rounds = world.draw(horizon, seed=seed)
    rewards = np.column_stack([world.rewards(rounds.means[:, arm], seed=seed) for arm in range(world.arms)])
    dim, norm = world.dim, float(getattr(world, "norm", 1.0))
    kappa = float(1.0 / (rounds.means * (1.0 - rounds.means)).min())
    root = math.sqrt(dim * math.log(horizon / DELTA))
    gamma, beta, bar = norm * root, 4.0 * root, 100.0 / (kappa * norm**2 * dim)
    v_inverse, h, h_inverse = np.eye(dim) / RIDGE, RIDGE * np.eye(dim), np.eye(dim) / RIDGE
    log_det, frozen_log_det = dim * math.log(RIDGE), -np.inf
    warm, recent = np.zeros(dim), np.zeros(dim)
    arms, warmed = np.zeros(horizon, dtype=np.int64), np.zeros(horizon, dtype=np.bool_)
    stale, policies, t, window = False, 1, 0, LEAST

    def fitted(which: IntArray, start: FloatArray) -> FloatArray:
        return logistic_fit(rounds.contexts[which, arms[which]], rewards[which, arms[which]], RIDGE, start)

    while t < horizon:
        # a policy is frozen until one of the criteria holds: rounds ahead are decided together, and cut off there
        x = rounds.contexts[t : t + window]
        squares = ((x @ v_inverse) * x).sum(axis=2)
        unknown = squares.max(axis=1) > bar
        if unknown[0]:
            arms[t] = arm = int(squares[0].argmax())
            image = v_inverse @ x[0, arm]
            v_inverse -= np.outer(image, image) / (1.0 + squares[0, arm])
            warmed[t], stale, window = True, True, LEAST
            policies, t = policies + 1, t + 1
            continue
        if stale:
            warm, stale = fitted(np.flatnonzero(warmed[:t]), warm), False
        if log_det >= frozen_log_det + math.log(GROWTH):
            frozen_log_det, h_inverse = log_det, np.asarray(np.linalg.inv(h), dtype=np.float64)
            recent = fitted(np.arange(t), recent) if t else recent
            policies += 1
        known = int(unknown.argmax()) if unknown.any() else len(x)
        x, squares = x[:known], squares[:known]
        centres, widths = x @ warm, gamma * math.sqrt(kappa) * np.sqrt(squares)
        scores = x @ (0.5 * (warm + recent)) + beta * np.sqrt(((x @ h_inverse) * x).sum(axis=2))
        left = centres + widths >= (centres - widths).max(axis=1, keepdims=True)
        chosen = np.where(left, scores, -np.inf).argmax(axis=1)
        played = x[np.arange(known), chosen]
        after = h + np.cumsum((slope(played @ warm)[:, None] * played)[:, :, None] * played[:, None, :], axis=0)
        log_dets = np.linalg.slogdet(after)[1]
        grown = log_dets >= frozen_log_det + math.log(GROWTH)
        count = int(grown.argmax()) + 1 if grown.any() else known
        arms[t : t + count] = chosen[:count]
        h, log_det = after[count - 1], float(log_dets[count - 1])
        t, window = t + count, min(2 * window, MOST)
    regret = rounds.means.max(axis=1) - rounds.means[np.arange(horizon), arms]
    return float(regret.sum()), policies
