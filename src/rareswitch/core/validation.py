"""Validation of all input, and context sets that were checked.

Each function returns the value in its canonical form or raises an :class:`~rareswitch.errors.InputError` that says
what, the rule, what was given and the remedy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareswitch.core.codec import kind
from rareswitch.errors import ContextNormError, EmptySetError, NonFiniteError, ParameterError, ShapeError
from rareswitch.lanes import compiled

__all__ = ["EXACT", "LARGEST_PARAMETER", "LARGEST_SCALE", "BoolArray", "ContextSets", "FloatArray", "IntArray"]
__all__ += ["Sets", "SetsLike", "arm_flags", "context_sets", "finite_array", "flag", "frozen", "number", "of_type"]
__all__ += ["one_of", "owned", "parameters", "probability_vector", "read_only", "sealed", "set_size", "sets_of"]
__all__ += ["summable", "symmetric_matrices", "unit_ball", "unmasked", "vector", "whole"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
#: The largest whole number that is taken where no other bound is known.
LARGEST_WHOLE = (1 << 63) - 1
#: Whole numbers up to here are floats too.
EXACT = 2**53
#: Of the numbers of a policy.
LARGEST_PARAMETER = 1e150
#: The largest reward, feature, σ, norm or width: squares of it, summed over any run, stay finite.
LARGEST_SCALE = 1e100
#: The most numbers in a context set that is made up: some sets, and what is computed of them, are a few GiB.
_MOST_NUMBERS = 1 << 24
_FLOAT = np.dtype(np.float64)
#: What callers give, before it is checked.
Unchecked: TypeAlias = Any
Scalar = TypeVar("Scalar", bound=np.generic)
Instance = TypeVar("Instance")


class Sets(NamedTuple):
    """Context sets in canonical form."""

    #: (n, K, d), C-ordered, finite, read-only.
    contexts: FloatArray
    #: (n, K), at least one True in each row, read-only.
    available: BoolArray
    #: Whether one set (K, d) was given.
    single: bool
    #: (n,) the place of the arm that the caller would show; None where it was not said.
    baseline: IntArray | None = None

    def part(self, which: slice | IntArray | BoolArray) -> "Sets":
        """Some of the sets, by a slice or an array."""
        named = None if self.baseline is None else self.baseline[which]
        return Sets(self.contexts[which], self.available[which], False, named)


#: What :func:`context_sets` takes, which refuses all else.
SetsLike: TypeAlias = "ArrayLike | Sets | ContextSets"


def sets_of(dim: int, contexts: SetsLike, available: ArrayLike | None = None) -> Sets:
    """What :func:`context_sets` returns, after a check of the number of features."""
    sets = contexts if type(contexts) is Sets and available is None else context_sets(contexts, available)
    if sets.contexts.shape[2] != dim:
        raise ShapeError(f"this policy is for {dim} features; got contexts of {sets.contexts.shape[2]}.")
    return sets


def context_sets(contexts: "SetsLike", available: ArrayLike | None = None) -> Sets:
    """Check contexts (n, K, d) or (K, d) and their optional mask of available arms (n, K) or (K,).

    What this function returned, and context sets, can be given in place of contexts and mask; they are not checked
    again.

    >>> context_sets([[1.0, 0.0], [0.0, 1.0]]).contexts.shape
    (1, 2, 2)
    """
    if type(contexts) is Sets and available is None:  # checked already
        return contexts
    if isinstance(contexts, (Sets, ContextSets)):
        if available is not None:
            raise ShapeError(f"{type(contexts).__name__} holds a mask already; pass contexts.contexts to give another.")
        return Sets(contexts.contexts, contexts.available, False)
    array = finite_array("contexts", contexts)
    single = array.ndim == 2
    if single:
        array = array[None]
    elif array.ndim != 3:
        raise ShapeError(
            f"contexts must be one set (arms, dim) or many (sets, arms, dim); got shape {array.shape}. "
            "For sets of different sizes use rareswitch.ContextSets.from_ragged."
        )
    n, arms, dim = array.shape
    if n == 0:
        raise EmptySetError(f"contexts must hold at least one set; got shape {array.shape}.")
    if arms == 0 or dim == 0:
        raise EmptySetError(
            "a context set needs at least one arm and one dimension; "
            f"got {arms} arms in {dim} dimensions. Drop empty sets before the call."
        )
    array = read_only(array)
    if available is None:
        return Sets(array, _available(arms) if n == 1 else read_only(np.ones((n, arms), dtype=np.bool_)), single)
    mask = arm_flags("available", available, (arms,) if single else (n, arms)).reshape(n, arms)
    if not mask.any(axis=1).all():
        dead = np.flatnonzero(~mask.any(axis=1))
        raise EmptySetError(
            f"available must leave at least one arm in each set; it kills every arm of {_named('set', dead)}. "
            "Drop such sets."
        )
    return Sets(array, read_only(mask), single)


def arm_flags(name: str, value: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """A flag for each arm, in an array of this shape."""
    unmasked(name, value, f"Say it of every arm: {name}.filled(False).")
    try:
        flags = np.asarray(value)
    except ValueError:
        raise ShapeError(f"{name} must have one flag for each arm; got rows of different lengths.") from None
    if flags.dtype != np.bool_ or flags.shape != shape:
        raise ShapeError(
            f"{name} must be booleans of shape {shape}, one flag for each arm; got {flags.dtype} of shape "
            f"{flags.shape}. Convert other types with .astype(bool).",
            parameter=name,
        )
    return np.ascontiguousarray(flags)


@lru_cache(maxsize=64)
def _available(arms: int) -> BoolArray:
    """The mask of one set in which every arm is available."""
    return read_only(np.ones((1, arms), dtype=np.bool_))


def finite_array(name: str, value: Unchecked) -> FloatArray:
    """A C-ordered float64 array without NaN or infinity.

    >>> finite_array("rewards", [1, 2]).dtype
    dtype('float64')
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT and value.flags.c_contiguous:
        array = value  # canonical already, as most are
    else:
        unmasked(name, value, "Leave arms out with available=…, or fill the gaps with .filled(…).")
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ShapeError(
                f"{name} must be a rectangular array of numbers; got {type(value).__name__} with rows of different "
                "lengths. For sets of different sizes use rareswitch.ContextSets.from_ragged.",
                parameter=name,
            ) from error
        if array.dtype == object and all(isinstance(entry, (Decimal, float, int)) for entry in array.flat):
            array = array.astype(np.float64)  # of Decimals, as databases give them
        if array.dtype.kind not in "fiu":
            raise ShapeError(
                f"{name} must hold real numbers; got dtype {array.dtype}. Convert it with .astype(float).",
                parameter=name,
                given=str(array.dtype),
            )
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    flat = array.reshape(-1)
    flat.setflags(write=False)  # whatever the shape, one type of arrays and one compilation
    if not _all_finite(flat):
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        count = int((~np.isfinite(array)).sum())
        raise NonFiniteError(
            f"{name} must be finite; {count} of its entries are not, the first is {array[first]} at index {first}. "
            "Clean or impute the data first.",
            parameter=name,
            given=float(array[first]),
        )
    return array


def unmasked(name: str, value: Unchecked, remedy: str) -> None:
    """Refuse masked arrays, and lists of them, of which an entry is masked: as plain arrays they lose their mask."""
    parts = value if isinstance(value, (list, tuple)) else ()
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        raise ShapeError(f"{name} must not be masked: the mask would be lost. {remedy}", parameter=name)
    for part in parts:
        if isinstance(part, (list, tuple, np.ma.MaskedArray)):
            unmasked(name, part, remedy)


def summable(name: str, array: FloatArray) -> FloatArray:
    """Refuse numbers whose squares cannot be summed; NaN passes."""
    largest = float(np.fmax(array.max(initial=0.0), -array.min(initial=0.0)))
    if np.isnan(largest):
        largest = float(np.nanmax(np.abs(array), initial=0.0))
    if largest > LARGEST_SCALE:
        at = tuple(int(i) for i in np.argwhere(np.abs(array) > LARGEST_SCALE)[0])
        where = at[0] if len(at) == 1 else at
        raise NonFiniteError(
            f"{name} must be at most {LARGEST_SCALE:g} in size, so that their squares can be summed; the one at index "
            f"{where} is {array[at]:g}. Divide all {name} by a constant.",
            parameter=name,
            given=float(array[at]),
        )
    return array


def vector(name: str, value: Unchecked, length: int | None = None) -> FloatArray:
    """A finite one-dimensional array, read-only, of the given length where one is given."""
    array = finite_array(name, value)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "(n,)" if length is None else f"({length},)"
        raise ShapeError(f"{name} must have shape {wanted}; got {array.shape}.", parameter=name, given=array.shape)
    return frozen(array)


def parameters(name: str, value: Unchecked) -> FloatArray:
    """Numbers that a policy computes with: far from overflowing, also in products of two and with features."""
    array = finite_array(name, value)
    largest = max(array.max(initial=0.0), -array.min(initial=0.0))
    if largest > LARGEST_PARAMETER:
        raise ParameterError(
            f"{name} must lie between -{LARGEST_PARAMETER:g} and {LARGEST_PARAMETER:g}, so that a policy can compute "
            f"with them; got {largest:g}. Rescale the rewards, or the features.",
            parameter=name,
            given=largest,
        )
    return frozen(array)


def symmetric_matrices(name: str, value: Unchecked) -> FloatArray:
    """Finite symmetric matrices (m, d, d), read-only. A single (d, d) is not accepted: pass ``value[None]``."""
    array = parameters(name, value)
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        raise ShapeError(
            f"{name} must have shape (m, dim, dim); got {array.shape}. For one matrix pass matrix[None].",
            parameter=name,
            given=array.shape,
        )
    scale = np.abs(array).max(initial=0.0)
    if np.abs(array - array.transpose(0, 2, 1)).max(initial=0.0) > 1e-9 * scale:
        raise ShapeError(f"{name} must be symmetric. Pass (matrix + matrix.T) / 2.", parameter=name)
    return frozen((array + array.transpose(0, 2, 1)) / 2)


def probability_vector(name: str, value: Unchecked) -> FloatArray:
    """Non-negative weights that sum to one within 1e-9, renormalised where they do not within 1e-12, read-only."""
    array = vector(name, value)
    if (array < 0).any() or abs(array.sum() - 1.0) > 1e-9:
        raise ParameterError(
            f"{name} must be non-negative and sum to 1; got minimum {array.min()}, sum {array.sum()}.", parameter=name
        )
    # what sums to one already is left alone, so that reading a mixture back gives the very same numbers
    return frozen(array if abs(array.sum() - 1.0) <= 1e-12 else array / array.sum())


def number(name: str, value: Unchecked, *, low: float, high: float = math.inf, open_low: bool = False) -> float:
    """A real number in [low, high], or in (low, high] with ``open_low``.

    >>> number("tol", 0.05, low=0.0)
    0.05
    """
    try:
        result = None if isinstance(value, (bool, np.bool_, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = None
    if result is None:
        raise ParameterError(f"{name} must be a number; got {value!r:.60}.", parameter=name, given=value)
    if not low <= result <= high or not math.isfinite(result) or (open_low and result == low):
        rule = f"{'above' if open_low else 'at least'} {low:g}" + ("" if high == math.inf else f" and at most {high:g}")
        raise ParameterError(f"{name} must be a finite number {rule}; got {value!r}.", parameter=name, given=value)
    return result


def whole(name: str, value: Unchecked, *, low: int = 1, high: int | None = LARGEST_WHOLE) -> int:
    """A whole number of at least ``low`` and at most ``high``; None: of any size. 1e4 is ten thousand.

    >>> whole("horizon", 1e4)
    10000
    """
    if isinstance(value, (float, np.floating)) and abs(float(value)) <= EXACT and value == math.floor(value):
        value = int(value)  # 1e4 is how people write ten thousand
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ParameterError(f"{name} must be a whole number; got {value!r:.60}.", parameter=name, given=value)
    integer = int(value)
    if integer < low or (high is not None and integer > high):
        open_end = high is None or (high == LARGEST_WHOLE and integer < low)
        rule = f"at least {low}" if open_end else f"between {low} and {high}"
        shown = integer if abs(integer) < 1 << 99 else "far less" if integer < 0 else "far more"
        raise ParameterError(f"{name} must be {rule}; got {shown}.", parameter=name, given=shown)
    return integer


def flag(name: str, value: Unchecked) -> bool:
    """True or False, and nothing that Python would take for one."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False; got {value!r:.60}.", parameter=name, given=value)
    return bool(value)


def one_of(name: str, value: Unchecked, words: Sequence[str]) -> str:
    """One of some words.

    >>> one_of("form", "argmax", ("argmax", "softmax"))
    'argmax'
    """
    if not isinstance(value, str) or value not in words:
        rule = f"{name} must be {' or '.join(map(repr, words))}"
        raise ParameterError(f"{rule}; got {value!r:.60}.", parameter=name, given=value)
    return value


def of_type(name: str, value: Unchecked, kind: type[Instance]) -> Instance:
    """A value of a type."""
    if not isinstance(value, kind):
        rule = f"{name} must be of type {kind.__name__}"
        raise ParameterError(f"{rule}; got {value!r:.60}.", parameter=name, given=value)
    return value


def set_size(dim: Unchecked, arms: Unchecked, *, low: int = 1) -> None:
    """Refuse context sets that would take all memory, before any is taken.

    >>> set_size(10, 20)
    """
    if whole("dim", dim, low=low) * whole("arms", arms, low=low) > _MOST_NUMBERS:
        raise ParameterError(
            f"dim and arms must be such that a set has at most {_MOST_NUMBERS} numbers; got {arms} arms of {dim} "
            "features. Use fewer of one or the other."
        )


def unit_ball(sets: Sets) -> None:
    """Refuse available arms longer than 1 (a rounding error of 1e-9 is let through)."""
    row, arm, square = _longest(sets.contexts, sets.available)
    longest = math.sqrt(square)
    if longest > 1.0 + 1e-9:
        raise ContextNormError(
            f"context vectors must have norm at most 1; arm {arm} of set {row} has norm {longest:.6g}. "
            f"Divide all contexts by {longest:.6g} (the hidden parameter grows by as much)."
        )


def frozen(array: FloatArray) -> FloatArray:
    """A read-only array that shares nothing with what the caller holds."""
    return sealed(array.copy())


def sealed(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """An array that was just made, and that nobody else holds, made read-only."""
    array.setflags(write=False)
    return array


def owned(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array itself where nobody can write to it, else a read-only copy.

    A view that is read-only does not help where the array behind it can be written to.
    """
    behind = array.base if isinstance(array.base, np.ndarray) else array
    return sealed(array.copy()) if array.flags.writeable or behind.flags.writeable else array


@kind("context-sets")
@dataclass(frozen=True, eq=False)
class ContextSets:
    """Sets of arms, contexts (n, K, d) with a mask of the arms that exist, available (n, K).

    It cannot be written through, and holds views of the arrays it was given: do not write to these afterwards, or take
    :meth:`owned` sets.

    Examples
    --------
    >>> sets = ContextSets.from_ragged([[[1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]])
    >>> sets.contexts.shape, sets.available.tolist()
    ((2, 2, 2), [[True, False], [True, True]])
    """

    contexts: FloatArray
    available: BoolArray

    def __post_init__(self) -> None:
        checked = context_sets(self.contexts, self.available)
        if checked.single:
            shape = checked.contexts.shape[1:]
            raise ShapeError(f"contexts must be (sets, arms, dim); got {shape}. For one set pass contexts[None].")
        vars(self).update(contexts=checked.contexts, available=checked.available)

    @classmethod
    def checked(cls, sets: Sets) -> Self:
        """Sets that were checked already, as :func:`context_sets` returns them."""
        instance = object.__new__(cls)
        vars(instance).update(contexts=sets.contexts, available=sets.available)
        return instance

    @classmethod
    def from_ragged(cls, sets: Sequence[Unchecked]) -> Self:
        """Pad a sequence of sets (K_s, d), whose numbers of arms may differ, with zero arms that are not available."""
        arrays = [
            entry if type(entry) is np.ndarray and entry.dtype is _FLOAT else finite_array(f"set {s}", entry)
            for s, entry in enumerate(sets)
        ]  # those that are ready are checked together, in the end
        if not arrays:
            raise EmptySetError("at least one context set is needed; got none.")
        dim = arrays[0].shape[-1] if arrays[0].ndim == 2 else 0
        for s, array in enumerate(arrays):
            if array.ndim != 2 or array.shape[1] != dim or array.size == 0:
                raise ShapeError(
                    f"each set must have shape (arms, dim), with at least one arm and the same dim; set {s} has "
                    f"shape {array.shape} and set 0 has {arrays[0].shape}."
                )
        contexts = np.zeros((len(arrays), max(map(len, arrays)), dim))
        available = np.zeros(contexts.shape[:2], dtype=np.bool_)
        for s, array in enumerate(arrays):
            contexts[s, : len(array)] = array
            available[s, : len(array)] = True
        return cls(contexts, available)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """All sets of the parts, in order, padded to the most arms among them."""
        if not parts:
            raise EmptySetError("at least one part is needed; got none.")
        arms = max(part.contexts.shape[1] for part in parts)
        wide = [part.contexts.shape[1] == arms for part in parts]
        widths = [((0, 0), (0, arms - part.contexts.shape[1])) for part in parts]
        pads = list(zip(parts, wide, widths, strict=True))
        return cls(
            np.concatenate([p.contexts if same else np.pad(p.contexts, (*w, (0, 0))) for p, same, w in pads]),
            np.concatenate([p.available if same else np.pad(p.available, w) for p, same, w in pads]),
        )

    def packed(self) -> Self:
        """The same sets with the available arms first, in their order, and no wider than the largest.

        >>> sets = ContextSets([[[1.0], [2.0], [3.0]]], [[False, True, False]])
        >>> sets.packed().contexts.tolist()
        [[[2.0]]]
        """
        if self.available.all():
            return self
        order = np.argsort(~self.available, axis=1, kind="stable")[:, : self.available.sum(axis=1).max()]
        available = np.take_along_axis(self.available, order, axis=1)
        contexts = np.where(available[:, :, None], np.take_along_axis(self.contexts, order[:, :, None], axis=1), 0.0)
        return self.checked(Sets(sealed(contexts), sealed(available), False))

    def owned(self) -> Self:
        """The same sets, in arrays that nobody can write to: copies where they are not that already."""
        return self.checked(Sets(owned(self.contexts), owned(self.available), False))

    def __len__(self) -> int:
        return len(self.contexts)

    def __getitem__(self, which: slice | IntArray) -> Self:
        """A selection of the sets: a slice or an array of indices."""
        return self.checked(Sets(sealed(self.contexts[which]), sealed(self.available[which]), False))

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        return int(self.contexts.shape[2])


@compiled
def _longest(contexts, available):  # type: ignore[no-untyped-def]
    """Set and arm of the longest living vector, and its squared norm."""
    row, arm, largest = 0, 0, -1.0
    for s in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            square = 0.0
            for j in range(contexts.shape[2]):
                square += contexts[s, i, j] * contexts[s, i, j]
            if square > largest and available[s, i]:
                row, arm, largest = s, i, square
    return row, arm, largest


@compiled
def _all_finite(numbers):  # type: ignore[no-untyped-def]
    """Whether no number is NaN or infinite, in one pass and without a temporary array."""
    bad = 0
    for i in range(numbers.shape[0]):
        bad |= not abs(numbers[i]) < np.inf
    return bad == 0


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A view that cannot be written through."""
    view = array.view()
    view.setflags(write=False)
    return view


def _named(noun: str, indices: IntArray) -> str:
    shown = ", ".join(str(int(i)) for i in indices[:5])
    more = "" if len(indices) <= 5 else f" and {len(indices) - 5} more"
    return f"{noun}{'s' if len(indices) > 1 else ''} {shown}{more}"
