"""The cheapest plays that tell the best of a fixed set of actions from all others."""

import math

import numpy as np

from rareswitch.core import FloatArray, finite_array, number, vector
from rareswitch.errors import ParameterError, ShapeError

#: The powers by which a maximum is smoothed, one after the other, and the steps that each may take.
_POWERS = (2, 8, 32, 128)
_STEPS = 500


def cheapest_allocation(actions: object, gaps: object, *, tol: float = 0.02) -> FloatArray:
    """How often to play each action, at the least cost Σ w_x·gap_x, such that xᵀH⁻¹x ≤ gap_x²/2 with H = Σ w_x·xxᵀ.

    These plays, times σ² ln T, are what the best possible learner makes of the worse actions as T grows (Lattimore and
    Szepesvári 2017). The best one costs nothing and is taken to be played for ever: its entry is inf.

    Parameters
    ----------
    actions
        (K, d)
    gaps
        (K,) how much worse each action is than the best; 0 for exactly one of them, and positive for the others.
    tol
        The relative excess of the cost over the least one at which the search ends, if it gets there within its steps.
        All bounds are kept in any case.

    Examples
    --------
    Of plain arms each must be played 2/gap² times; here the second action tells more about the third than the third:

    >>> cheapest_allocation([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.5]).round(3).tolist()
    [inf, 8.0]
    >>> cheapest_allocation([[1.0, 0.0], [0.0, 1.0], [0.8, 0.4]], [0.0, 1.0, 0.2], tol=1e-4).round(2).tolist()
    [inf, 8.0, 0.0]
    """
    x = finite_array("actions", actions)
    if x.ndim != 2 or not x.size:
        raise ShapeError(f"actions must be (arms, dim), at least one of each; got {x.shape}.")
    gap = vector("gaps", gaps, len(x))
    if (gap < 0.0).any() or np.count_nonzero(gap == 0.0) != 1:
        raise ParameterError(
            f"gaps must be 0 for exactly one action and positive for the others; got {gap[:8]!s:.80}. Where two are "
            "best, give one of them a small gap."
        )
    number("tol", tol, low=0.0, open_low=True)
    best = int(gap.argmin())
    plays = np.zeros(len(x))
    plays[best] = math.inf
    others, across = _across(x, best)
    if len(others):
        plays[others] = _balanced(across, gap[others], tol)
    return plays


def _across(x: FloatArray, best: int) -> tuple[FloatArray, FloatArray]:
    """The actions that are not along the best one, and their parts across it, in coordinates of their span."""
    along = x[best] / (np.linalg.norm(x[best]) or 1.0)
    parts = x - np.outer(x @ along, along)
    lengths = np.linalg.norm(parts, axis=1)
    others = np.flatnonzero(lengths > 1e-12 * max(1.0, float(np.abs(x).max())))
    others = others[others != best]
    if not len(others):
        return others, parts[:0]
    _, sizes, axes = np.linalg.svd(parts[others], full_matrices=False)
    return others, np.asarray(parts[others] @ axes[sizes > 1e-10 * sizes[0]].T)


def _balanced(across: FloatArray, gap: FloatArray, tol: float) -> FloatArray:
    """The plays of actions (n, r) of full rank.

    With u_x = w_x·gap_x/Σ w·gap and y_x = x/√gap_x the cost is the largest 2·y_xᵀM⁻¹y_x/gap_x, M = Σ u_x·y_x·y_xᵀ: a
    design that is found by multiplying u with powers of the gradient of a smoothed maximum. With weights λ of the
    actions, f = Σ λ_x·2·y_xᵀM⁻¹y_x/gap_x and its slopes g, no design has a cost below f²/max g.
    """
    y = across / np.sqrt(gap)[:, None]
    u = np.full(len(y), 1.0 / len(y))
    cost, found, least = math.inf, u, 0.0
    for power in _POWERS:
        for _ in range(_STEPS):
            information = (y.T * u) @ y
            # weights that vanish must not make it singular by rounding
            information += 1e-13 * np.trace(information) * np.eye(len(information))
            solved = np.linalg.solve(information, y.T)  # (r, n)
            forms = 2.0 * np.einsum("nr,rn->n", y, solved) / gap
            largest = float(forms.max())
            if largest < cost:
                cost, found = largest, u
            weights = (forms / largest) ** (power - 1)
            weights /= weights.sum()
            slopes = ((y @ solved) ** 2 * (2.0 / gap)[:, None] * weights[:, None]).sum(axis=0)
            level = float(u @ slopes)
            least = max(least, level**2 / float(slopes.max()))
            if cost <= (1.0 + tol) * least:
                return np.asarray(cost * found / gap)
            if slopes.max() <= (1.0 + 0.1 * tol) * level:
                break  # the best design for this power
            u = u * (slopes / level) ** (1.0 / (power + 1))
            u = u / u.sum()
    return np.asarray(cost * found / gap)
