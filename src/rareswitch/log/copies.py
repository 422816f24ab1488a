"""Decisions that a log has more than once: they count once where all copies agree, and are left out where not."""

from dataclasses import dataclass

import numpy as np

from rareswitch.validation import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Copies:
    """Rows of decisions that a log has more than once, in the order of the rows."""

    decisions: IntArray
    """(n,)"""
    features: FloatArray
    """(n, d)"""
    propensities: FloatArray
    """(n,)"""
    rewards: FloatArray
    """(n,), NaN where there is none."""
    sets: tuple[FloatArray | None, ...]
    """(n,) the arms (K, d) that were offered, of sampled decisions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Resolved:
    """What is to be done with rows of decisions that occur more than once."""

    agreed: IntArray
    """One row of each decision whose copies agree in every field, in the order of the decisions."""
    surplus: int
    """Their other rows."""
    conflicting: int
    """Decisions whose copies differ."""
    conflicting_rows: int


def joined(copies: list[Copies]) -> Copies:
    """All rows, in order."""
    return Copies(
        decisions=np.concatenate([c.decisions for c in copies]),
        features=np.concatenate([c.features for c in copies]),
        propensities=np.concatenate([c.propensities for c in copies]),
        rewards=np.concatenate([c.rewards for c in copies]),
        sets=tuple(arms for c in copies for arms in c.sets),
    )


def resolve(rows: Copies) -> Resolved:
    """Compare the copies of each decision, all of which must be here.

    >>> rows = Copies(
    ...     decisions=np.array([7, 3, 7, 3]),
    ...     features=np.array([[1.0], [2.0], [1.0], [2.5]]),
    ...     propensities=np.ones(4),
    ...     rewards=np.zeros(4),
    ...     sets=(None,) * 4,
    ... )
    >>> resolve(rows)
    Resolved(agreed=array([0]), surplus=1, conflicting=1, conflicting_rows=2)
    """
    order = np.argsort(rows.decisions, kind="stable")
    begins = np.flatnonzero(np.diff(rows.decisions[order], prepend=-1))
    sizes = np.diff(np.append(begins, len(order)))
    firsts = np.repeat(order[begins], sizes)
    same = (rows.features[order] == rows.features[firsts]).all(axis=1)
    same &= rows.propensities[order] == rows.propensities[firsts]
    same &= _equal_rewards(rows, order, firsts)
    offered = np.array([arms is not None for arms in rows.sets], dtype=np.bool_)
    for at in np.flatnonzero(offered[order] | offered[firsts]).tolist():
        same[at] &= _equal_sets(rows, int(order[at]), int(firsts[at]))
    agrees = np.logical_and.reduceat(same, begins) if len(begins) else np.zeros(0, dtype=np.bool_)
    return Resolved(
        agreed=order[begins[agrees]],
        surplus=int((sizes[agrees] - 1).sum()),
        conflicting=int(np.count_nonzero(~agrees)),
        conflicting_rows=int(sizes[~agrees].sum()),
    )


def _equal_rewards(rows: Copies, left: IntArray, right: IntArray) -> BoolArray:
    one, other = rows.rewards[left], rows.rewards[right]
    return np.asarray((one == other) | (np.isnan(one) & np.isnan(other)))


def _equal_sets(rows: Copies, left: int, right: int) -> bool:
    one, other = rows.sets[left], rows.sets[right]
    return one is not None and other is not None and np.array_equal(one, other)
