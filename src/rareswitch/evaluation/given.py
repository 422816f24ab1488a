"""Numbers for each arm of logged decisions that the caller brings."""

from typing import Any

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.log import Logged
from rareswitch.validation import FloatArray


def arm_numbers(who: str, given: Any, log: Logged) -> FloatArray:
    """(n, K) one for each arm of each decision.

    >>> arm_numbers("model", [[0.1, 0.2]], Logged(places=[0], propensities=[0.5], rewards=[1.0], arms=["a", "b"]))
    array([[0.1, 0.2]])
    """
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{who} must give numbers; got {given!r:.60}.") from None
    if found.shape != log.alive.shape:
        raise ShapeError(f"{who} must give a number for each arm, shape {log.alive.shape}; got shape {found.shape}.")
    return found
