"""A start that is not blind: how much to explore beside what the caller shows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rareswitch.choosing import first_highest
from rareswitch.errors import ParameterError
from rareswitch.experiment.regret_model import price_of
from rareswitch.validation import number, whole

#: What a decision of the baseline is assumed to cost and to teach, beside one that explores: it is better than blind,
#: and where it always shows the same it teaches little.
COST, LESSON = 0.5, 0.1
#: The share where the lengths of batches are not known.
USUAL = 0.1


def baseline_share(dim: int, lengths: Sequence[int] | None) -> float:
    """The share of exploration beside a baseline that costs least over the batches to come, of these lengths.

    Exploring costs as much as blind play, what the caller shows is taken to cost half of that and to teach a tenth. The
    share is between 0.01 and 0.5; 0.1 where the lengths are not known.

    >>> baseline_share(10, [1250] * 8), baseline_share(30, [1250] * 8), baseline_share(10, [44, 51, 111])
    (0.08, 0.23, 0.5)
    """
    whole("dim", dim)
    if lengths is None:
        return USUAL
    if np.ndim(lengths) != 1 or not len(lengths):
        raise ParameterError(f"lengths must be those of the batches to come, at least one; got {lengths!r:.60}.")
    batches = [number("lengths", length, low=1.0) for length in lengths]
    first, ends = batches[0], np.cumsum(batches)
    shares = np.arange(1, 51) / 100.0  # who names a baseline means it; and something is always learned
    taught = first * (shares + LESSON * (1.0 - shares))
    costs = first * (shares + COST * (1.0 - shares))
    for before, end in pairwise(ends):
        costs = costs + (end - before) * price_of(taught + before - first, dim)
    return float(shares[int(first_highest(-costs))])
