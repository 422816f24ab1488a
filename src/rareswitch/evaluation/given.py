"""Numbers for each arm of logged decisions that the caller brings."""

from typing import Any

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.log import DecisionLog
from rareswitch.validation import FloatArray


def arm_numbers(who: str, given: Any, log: DecisionLog) -> FloatArray:
    """(n, K) one for each arm of each decision.

    >>> log = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[1.0], arms=["a", "b"])
    >>> arm_numbers("model", [[0.1, 0.2]], log)
    array([[0.1, 0.2]])
    """
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{who} must give numbers; got {given!r:.60}.") from None
    if found.shape != log.available.shape:
        raise ShapeError(
            f"{who} must give a number for each arm, shape {log.available.shape}; got shape {found.shape}."
        )
    return found
