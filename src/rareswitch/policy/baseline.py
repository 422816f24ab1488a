"""The arm that the caller would have shown anyway: a start that is not blind."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.errors import ParameterError, ShapeError
from rareswitch.validation import FloatArray, IntArray, Sets, context_sets, unmasked


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The arm that the request names, with probability 1; mostly the ``main`` part of a first policy's blend.

    >>> from rareswitch.design import Uniform
    >>> from rareswitch.policy import Blend, Policy
    >>> first = Policy(dim=2, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.1))
    >>> first.probabilities([[1.0, 0.0], [0.0, 1.0]], baseline=1).round(6).tolist()
    [0.05, 0.95]
    """

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        if sets.baseline is None:
            raise ParameterError(
                "baseline must be named for every decision of this policy, which plays it but for a share of "
                "exploration: pass baseline=…, the place of the arm that you would show. A later policy does not need "
                "it; begin without a baseline where none is known."
            )
        probabilities = np.zeros(sets.alive.shape)
        probabilities[np.arange(len(sets.baseline)), sets.baseline] = 1.0
        return probabilities[0] if sets.single else probabilities


def with_baseline(sets: Sets, baseline: Any) -> Sets:
    """The sets with the place (n,) of the arm that the caller would show in each, or one place for one set."""
    if baseline is None:
        return sets
    return sets._replace(baseline=_places(sets, baseline))


def _places(sets: Sets, baseline: Any) -> IntArray:
    unmasked("baseline", baseline, "Name an arm for every decision.")
    try:
        given = np.atleast_1d(np.asarray(baseline)) if sets.single else np.asarray(baseline)
    except ValueError:
        raise ShapeError("baseline must have one place for each set; got rows of different lengths.") from None
    count, arms = sets.alive.shape
    if given.dtype.kind not in "iu" or given.shape != (count,):
        raise ShapeError(
            f"baseline must be {'one whole number' if sets.single else f'{count} whole numbers'}, the place of the arm "
            f"that you would show in each set, from 0; got {baseline!r:.60}."
        )
    inside = (given >= 0) & (given < arms)
    there = inside & sets.alive[np.arange(count), np.where(inside, given, 0)]
    if not there.all():
        at = int(np.flatnonzero(~there)[0])
        living = np.flatnonzero(sets.alive[at])
        raise ParameterError(
            f"baseline must be an available arm; set {at} has {len(living)}, at places {living[0]} to {living[-1]}, "
            f"and {int(given[at])} was named. Name one of these."
        )
    return given.astype(np.int64)
