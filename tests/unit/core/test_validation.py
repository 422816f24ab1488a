import pickle
from collections.abc import Callable

import numpy as np
import pytest

from rareswitch import ContextSets
from rareswitch.core import (
    context_sets,
    count_of,
    finite_array,
    number,
    probability_vector,
    set_size,
    symmetric_matrices,
    unit_ball,
    vector,
    whole,
)
from rareswitch.errors import ContextNormError, EmptySetError, InputError, ParameterError, ShapeError


def test_only_living_arms_must_lie_in_the_unit_ball() -> None:
    contexts = np.array([[[0.5, 0.0], [3.0, 4.0]]])
    with pytest.raises(ContextNormError, match="arm 1 of set 0 has norm 5"):
        unit_ball(context_sets(contexts))
    unit_ball(context_sets(contexts, [[True, False]]))
    unit_ball(context_sets(contexts / 5))


def test_checked_sets_and_context_sets_are_taken_as_they_are() -> None:
    sets = ContextSets.from_ragged([np.ones((1, 2)), np.ones((3, 2))])
    checked = context_sets(sets)
    np.testing.assert_array_equal(checked.available, sets.available)
    assert context_sets(checked) is checked


def test_read_only_views_do_not_freeze_what_was_given() -> None:
    mine = np.ones((2, 2))
    checked = context_sets(mine)
    mine[0, 0] = 3.0
    with pytest.raises(ValueError, match="read-only"):
        checked.contexts[0, 0, 0] = 1.0


def test_numbers() -> None:
    assert number("x", np.float32(0.5), low=0) == 0.5
    for value, words in [
        (-1, "at least 0 and at most 1; got -1"),
        (np.inf, "finite"),
        (np.nan, "finite"),
        ("a", "must be a number; got 'a'"),
        (None, "must be a number"),
        ("0.5", "must be a number; got '0.5'"),
        (True, "must be a number; got True"),
    ]:
        with pytest.raises(ParameterError, match=words):
            number("x", value, low=0, high=1)
    with pytest.raises(ParameterError, match="above 0"):
        number("x", 0.0, low=0, open_low=True)
    for bad in (True, np.True_, 1.5, np.nan, np.inf, 1e300, "1", None):
        with pytest.raises(ParameterError, match="whole number"):
            whole("n", bad)
    for good in (np.int32(3), 3.0, np.float64(3.0)):
        assert whole("n", good) == 3
        assert type(whole("n", good)) is int
    assert whole("n", 1e4) == 10_000


def test_arrays() -> None:
    assert not vector("v", [1, 2]).flags.writeable
    with pytest.raises(ShapeError, match=r"v must have shape \(3,\); got \(2,\)"):
        vector("v", [1, 2], 3)
    with pytest.raises(ShapeError, match="rectangular"):
        finite_array("a", [[1], [1, 2]])
    with pytest.raises(ShapeError, match="symmetric"):
        symmetric_matrices("m", [[[0, 1], [0, 0]]])
    with pytest.raises(ParameterError, match="sum to 1"):
        probability_vector("p", [0.5, 0.6])
    with pytest.raises(EmptySetError, match="sets 0, 2, 3, 4, 5 and 2 more"):
        context_sets(np.ones((8, 1, 1)), np.arange(8)[:, None] == 1)
    with pytest.raises(EmptySetError, match="at least one part"):
        ContextSets.concatenate([])


def test_flags_in_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="available must have one flag for each arm; got rows of different lengths"):
        context_sets(np.ones((2, 2, 2)), [[True], [True, False]])


@pytest.mark.parametrize(
    ("call", "name", "given"),
    [
        (lambda: number("noise", -1.0, low=0.0), "noise", -1.0),
        (lambda: number("noise", [1], low=0.0), "noise", "[1]"),
        (lambda: whole("forecast, the decisions to come,", -1), "forecast", -1),
        (lambda: count_of("seeds", "many"), "seeds", "many"),
        (lambda: finite_array("rewards", [1.0, np.inf]), "rewards", np.inf),
        (lambda: vector("rewards", [[1.0]]), "rewards", "(1, 1)"),
        (lambda: set_size(10**9, 10**9), "dim", None),
    ],
)
def test_an_error_about_a_parameter_tells_which(call: Callable[[], object], name: str, given: object) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert (refusal.value.parameter, refusal.value.given) == (name, given)
    sent = pickle.loads(pickle.dumps(refusal.value))  # engines send errors between processes
    assert (str(sent), sent.parameter, sent.given) == (str(refusal.value), name, given)


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
