"""Several questions asked of the same data: what each answer is worth then."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

Correction = Literal["none", "bonferroni", "holm"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
_WORDS = {
    "none": "each interval holds by itself; of {count} some may miss",
    "bonferroni": "these {count} intervals hold together; p-values are corrected (Bonferroni)",
    "holm": "these {count} intervals hold together (Bonferroni); p-values are corrected (Holm)",
}


def each_level(level: float, count: int, correction: Correction) -> float:
    """The level of each of so many intervals, so that together they hold at this one.

    >>> round(each_level(0.95, 5, "bonferroni"), 9), each_level(0.95, 5, "none")
    (0.99, 0.95)
    """
    return level if correction == "none" else 1.0 - (1.0 - level) / max(1, count)


def corrected(p_values: Sequence[float], count: int, correction: Correction) -> list[float]:
    """P-values for any of ``count`` questions, of which these were answered.

    >>> corrected([0.01, 0.04, 0.03], 3, "holm")
    [0.03, 0.06, 0.06]
    >>> corrected([0.01, 0.5], 3, "bonferroni")
    [0.03, 1.0]
    """
    if correction == "none":
        return [*p_values]
    if correction == "bonferroni":
        return [min(1.0, count * p) for p in p_values]
    order = np.argsort(p_values, kind="stable")
    stepped = [min(1.0, (count - rank) * p_values[place]) for rank, place in enumerate(order.tolist())]
    found = np.empty(len(p_values))
    found[order] = np.maximum.accumulate(stepped) if stepped else []
    return found.tolist()


def in_words(count: int, correction: Correction) -> str:
    """How several answers are to be read; empty where there is one."""
    return "" if count < 2 else _WORDS[correction].format(count=count)
