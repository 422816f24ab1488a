"""The columns of logged decisions, checked."""

from typing import Any

import numpy as np

from rareswitch.errors import ParameterError, ShapeError
from rareswitch.ids import KeyArray
from rareswitch.validation import LARGEST_SCALE, FloatArray, IntArray, finite_array, read_only, sealed


def whole_column(name: str, given: Any, count: int | None = None) -> IntArray:
    """Whole numbers, one for each decision."""
    try:
        found = np.asarray(given)
    except ValueError:
        raise ShapeError(f"{name} must be whole numbers, one for each decision; got {given!r:.60}.") from None
    if found.ndim != 1 or (count is not None and len(found) != count) or (len(found) and found.dtype.kind not in "iu"):
        raise ShapeError(
            f"{name} must be {'' if count is None else f'{count} '}whole numbers, one for each decision; got "
            f"{given!r:.60}."
        )
    return sealed(found.astype(np.int64))


def refuse_repeated(ids: KeyArray, batches: IntArray) -> None:
    """Refuse rows of one decision: it would count several times."""
    order = np.lexsort((batches, ids[:, 1], ids[:, 0]))
    one, other = order[:-1], order[1:]
    again = (ids[one] == ids[other]).all(axis=1) & (batches[one] == batches[other])
    if again.any():
        at = int(np.flatnonzero(again)[0])
        raise ParameterError(
            f"ids must differ within a batch; rows {sorted((int(one[at]), int(other[at])))} (the first is 0) have the "
            f"same, and so do {int(again.sum())} pairs in all. Give each decision one row."
        )


def number_column(name: str, given: Any, count: int, *, finite: bool = True) -> FloatArray:
    """Numbers, one for each decision."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be numbers, one for each decision; got {given!r:.60}.") from None
    if found.shape != (count,):
        raise ShapeError(f"{name} must be {count} numbers, one for each decision; got shape {found.shape}.")
    if finite and not np.isfinite(found).all():
        at = int(np.flatnonzero(~np.isfinite(found))[0])
        raise ParameterError(f"{name} must be finite; row {at} (the first is 0) has {found[at]}.")
    return read_only(found)


def reward_column(given: Any, count: int) -> FloatArray:
    """Rewards, NaN where they are not known."""
    if not isinstance(given, np.ndarray):
        given = [np.nan if one is None else one for one in given]
    found = number_column("rewards", given, count, finite=False)
    odd = np.abs(found) > LARGEST_SCALE
    if odd.any():
        at = int(np.flatnonzero(odd)[0])
        raise ParameterError(
            f"rewards must be numbers up to {LARGEST_SCALE:g}, or NaN where they are not known; row {at} has "
            f"{found[at]:g}."
        )
    return found


def finite_column(name: str, given: Any, shape: tuple[int | None, ...]) -> FloatArray:
    """Finite numbers of a shape, in which None is any length."""
    found = finite_array(name, given)
    if found.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, found.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ShapeError(f"{name} must have the shape ({wanted}); got {found.shape}.")
    return read_only(found)
