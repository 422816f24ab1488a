"""Propensities of logs that have none: how often each arm was chosen where it was offered."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rareswitch.errors import ParameterError, ShapeError
from rareswitch.log import DecisionLog
from rareswitch.validation import IntArray, number


def estimate_propensities(
    logged: DecisionLog, *, within: Any = None, named: str = "", smoothing: float = 1.0
) -> DecisionLog:
    """The same log with propensities from the frequencies of its arms; it is marked as such for good.

    Within each batch, and each stratum of it, an arm that was chosen c times and offered m times has the rate
    (c + s)/(m + sK), for K arms and the smoothing s; in a decision its probability is this over the sum of the rates of
    all arms that were offered. Where all arms are always offered that is their share of the choices, smoothed by
    Laplace's rule. It is right where the log's policy did not look at the context beyond the strata. Whatever else it
    looked at makes an evaluation biased, and no interval says by how much.

    Parameters
    ----------
    logged
        The propensities that it has are not used.
    within
        (n,) the stratum of each decision: anything that can be compared, such as a position or a country.
    named
        What the strata are called.
    smoothing
        s, above 0: no arm that was offered has the probability 0.

    Examples
    --------
    >>> log = DecisionLog(arm_indices=[0, 0, 1], propensities=[1.0] * 3, rewards=[1.0, 0.0, 0.0])
    >>> estimate_propensities(log).propensities.tolist()
    [0.6, 0.6, 0.4]
    >>> estimate_propensities(log).estimated
    'arm frequencies within each policy, smoothing 1'
    """
    smoothing = number("smoothing", smoothing, low=0.0, open_low=True)
    strata = logged.batches if within is None else _strata(logged, within)
    count, width = logged.available.shape
    codes = np.where(logged.available, np.arange(width), -1) if logged.codes is None else logged.codes
    kinds = width if logged.arms is None else len(logged.arms)
    cells = np.where(codes >= 0, strata[:, None] * kinds + codes, -1)
    chosen = cells[np.arange(count), logged.arm_indices]
    size = (int(strata.max()) + 1) * kinds
    offered = np.bincount(cells[cells >= 0], minlength=size)
    rates = (np.bincount(chosen, minlength=size) + smoothing) / (offered + smoothing * kinds)
    probabilities = np.where(cells >= 0, rates[cells], 0.0)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    strata_text = "each policy" + (f" and {named or 'stratum'}" if within is not None else "")
    return replace(
        logged,
        propensities=probabilities[np.arange(count), logged.arm_indices],
        behavior_probs=probabilities,
        policies={},
        estimated=f"arm frequencies within {strata_text}, smoothing {smoothing:g}",
    )


def estimating(propensities: str) -> bool:
    """Whether propensities shall be estimated, as a reader is told."""
    if propensities not in ("logged", "estimate"):
        raise ParameterError(f"propensities must be 'logged' or 'estimate'; got {propensities!r:.60}.")
    return propensities == "estimate"


def _strata(logged: DecisionLog, within: Sequence[Any]) -> IntArray:
    """A number for each batch and stratum."""
    try:
        _, found = np.unique(np.asarray(within), return_inverse=True)
    except TypeError:
        found = np.empty(0, dtype=np.int64)
    if found.shape != (len(logged),):
        raise ShapeError(f"within must be {len(logged)} values that can be compared, one for each decision.")
    return np.asarray(logged.batches * (int(found.max()) + 1) + found, dtype=np.int64)
