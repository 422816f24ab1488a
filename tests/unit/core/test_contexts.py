import numpy as np
import pytest

from rareswitch import ContextSets
from rareswitch.errors import EmptySetError, ShapeError


def test_ragged_sets_are_padded_with_dead_arms() -> None:
    sets = ContextSets.from_ragged([np.ones((2, 3)), np.full((4, 3), 2.0)])
    assert sets.contexts.shape == (2, 4, 3)
    assert sets.available.sum(axis=1).tolist() == [2, 4]
    assert not sets.contexts[0, 2:].any()
    assert len(sets[1:]) == 1
    assert sets.dim == 3


def test_bad_sets_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"set 1 has shape \(1, 3\)"):
        ContextSets.from_ragged([np.ones((2, 2)), np.ones((1, 3))])
    with pytest.raises(EmptySetError, match="got none"):
        ContextSets.from_ragged([])
    with pytest.raises(ShapeError, match="set 0 has shape"):
        ContextSets.from_ragged([np.ones((0, 2))])
    with pytest.raises(ShapeError, match=r"contexts\[None\]"):
        ContextSets(np.ones((2, 2)), np.ones(2, dtype=bool))
