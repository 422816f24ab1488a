"""Moments of the weights π/μ, by the powers of two of their size.

Sums (3, 42) of π, π²/μ and π³/μ² over decisions and arms, those of size 2^(e − 1) ≤ π/μ < 2^e in column e, smaller ones
in column 1: the means over decisions are those of w under the candidate, and E w, E w², E w³ under the policy that
decided. Kept apart by size, the rarest part of a candidate's play can be told from the rest.
"""

import math

import numpy as np

from rareswitch.core import FloatArray, IntArray, sealed
from rareswitch.lanes import compiled

#: Ranges begin at 2 to these powers: weights below the first are one range, those from the last on another.
LEAST_POWER, MOST_POWER = -4, 10


def weight_counts(weights: FloatArray) -> IntArray:
    """How many weights lie in each range.

    Parameters
    ----------
    weights
        (n,) of decisions, at least 0.

    Returns
    -------
    (17,)
        How many are 0, above 0 but below 1/16, in [1/16, 1/8), [1/8, 1/4) … [512, 1024), and 1024 or more.

    Examples
    --------
    >>> weight_counts(np.array([0.0, 0.01, 1.0, 1.9, 2.0, 5000.0]))
    array([1, 1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    """
    powers = np.frexp(weights)[1] - 1  # ⌊log2⌋, exactly
    places = np.clip(powers, LEAST_POWER - 1, MOST_POWER) - (LEAST_POWER - 2)
    places[weights == 0.0] = 0
    return np.bincount(places, minlength=MOST_POWER - LEAST_POWER + 3)


OCTAVES = 42
#: Weights above 2^40 count as infinite: nobody logs that many decisions.
_INFINITE = 2.0**40


def ratio_moments(candidate: FloatArray, logging: FloatArray) -> tuple[float, FloatArray]:
    """Σ π where μ is 0, and the moments elsewhere, of probabilities π and μ (n, K).

    >>> missed, moments = ratio_moments(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))
    >>> missed, moments.sum(axis=1).tolist()
    (0.5, [0.5, 0.25, 0.125])
    """
    moments = np.zeros((3, OCTAVES))
    return float(_add_ratios(candidate, logging, moments)), sealed(moments)


def weight_moments(weights: FloatArray) -> FloatArray:
    """Those of the weights (n,) that occurred: estimates of the same sums."""
    moments = np.zeros((3, OCTAVES))
    _add_weights(weights, moments)
    return sealed(moments)


def without_rarest(moments: FloatArray, most: float) -> tuple[float, float, float]:
    """Σ π, Σ π²/μ and Σ π³/μ² without the largest weights, which have Σ π ≤ ``most`` together."""
    above = np.append(moments[0][::-1].cumsum()[::-1][1:], 0.0)
    mass, square, cube = moments[:, : int(np.argmax(above <= most)) + 1].sum(axis=1).tolist()
    return mass, square, cube


@compiled
def _add_ratios(candidate, logging, moments):  # type: ignore[no-untyped-def]
    missed = mass_small = square_small = cube_small = 0.0
    for s in range(candidate.shape[0]):
        for i in range(candidate.shape[1]):
            mass, seen = candidate[s, i], logging[s, i]
            if mass < 2.0 * seen:  # most are so: kept in registers
                square = mass * (mass / seen)
                mass_small += mass
                square_small += square
                cube_small += square * (mass / seen)
            elif seen * _INFINITE <= mass:
                missed += mass
            else:
                _add(mass, mass / seen, moments)
    moments[0, 1] += mass_small
    moments[1, 1] += square_small
    moments[2, 1] += cube_small
    return missed


@compiled
def _add_weights(weights, moments):  # type: ignore[no-untyped-def]
    for s in range(weights.shape[0]):
        _add(weights[s], weights[s], moments)


@compiled
def _add(mass, ratio, moments):  # type: ignore[no-untyped-def]
    octave = 1 if ratio < 2.0 else min(math.frexp(ratio)[1], OCTAVES - 1)
    moments[0, octave] += mass
    moments[1, octave] += mass * ratio
    moments[2, octave] += mass * ratio * ratio
