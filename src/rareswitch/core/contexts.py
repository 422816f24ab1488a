"""Context sets: many sets of arms in one rectangular array, padded where their sizes differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rareswitch.core.codec import kind
from rareswitch.core.validation import BoolArray, FloatArray, IntArray, Sets, context_sets, finite_array, owned, sealed
from rareswitch.errors import EmptySetError, ShapeError


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
        contexts = finite_array("contexts", self.contexts)
        if contexts.ndim != 3:
            raise ShapeError(
                f"contexts must be (sets, arms, dim); got {contexts.shape}. For one set pass contexts[None]."
            )
        checked = context_sets(contexts, self.available)
        vars(self).update(contexts=checked.contexts, available=checked.available)

    @classmethod
    def checked(cls, sets: Sets) -> Self:
        """Sets that were checked already, as :func:`~rareswitch.core.validation.context_sets` returns them."""
        made = object.__new__(cls)
        vars(made).update(contexts=sets.contexts, available=sets.available)
        return made

    @classmethod
    def from_ragged(cls, sets: Sequence[Any]) -> Self:
        """Pad a sequence of sets (K_s, d), whose numbers of arms may differ, with zero arms that are not available."""
        arrays = [finite_array(f"set {s}", one) for s, one in enumerate(sets)]
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
