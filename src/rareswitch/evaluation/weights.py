"""How weights are spread: counts in ranges that double, which add up over chunks and batches."""

import numpy as np

from rareswitch.validation import FloatArray, IntArray

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
