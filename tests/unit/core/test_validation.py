import pickle
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from rareswitch import ContextSets
from rareswitch.core import (
    context_sets,
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
from reference.refusals import raises


def test_only_living_arms_must_lie_in_the_unit_ball() -> None:
    contexts = np.array([[[0.5, 0.0], [3.0, 4.0]]])
    raises(ContextNormError, "arm 1 of set 0 has norm 5", unit_ball, context_sets(contexts))
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


def test_numbers_are_taken_whatever_their_type() -> None:
    assert number("x", np.float32(0.5), low=0) == 0.5
    for good in (np.int32(3), 3.0, np.float64(3.0)):
        assert whole("n", good) == 3
        assert type(whole("n", good)) is int
    assert not vector("v", [1, 2]).flags.writeable


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: number("x", -1, low=0, high=1), ParameterError, "at least 0 and at most 1; got -1"),
        *((partial(number, "x", x, low=0), ParameterError, "finite") for x in (np.inf, np.nan)),
        *(
            (partial(number, "x", x, low=0), ParameterError, f"must be a number; got {x!r}")
            for x in ("a", None, "0.5", True)
        ),
        (lambda: number("x", 0.0, low=0, open_low=True), ParameterError, "above 0"),
        *((partial(whole, "n", x), ParameterError, "whole number") for x in (True, np.True_, 1.5, np.nan, np.inf)),
        *((partial(whole, "n", x), ParameterError, "whole number") for x in (1e300, "1", None)),
        (lambda: vector("v", [1, 2], 3), ShapeError, r"v must have shape \(3,\); got \(2,\)"),
        (lambda: finite_array("a", [[1], [1, 2]]), ShapeError, "rectangular"),
        (lambda: symmetric_matrices("m", [[[0, 1], [0, 0]]]), ShapeError, "symmetric"),
        (lambda: probability_vector("p", [0.5, 0.6]), ParameterError, "sum to 1"),
        (
            lambda: context_sets(np.ones((8, 1, 1)), np.arange(8)[:, None] == 1),
            EmptySetError,
            "0, 2, 3, 4, 5 and 2 more",
        ),
        (lambda: context_sets(np.ones((2, 2, 2)), [[True], [True, False]]), ShapeError, "got rows of different len"),
        (lambda: ContextSets.concatenate([]), EmptySetError, "at least one part"),
        (lambda: ContextSets.from_ragged([np.ones((2, 2)), np.ones((1, 3))]), ShapeError, r"set 1 has shape \(1, 3\)"),
        (lambda: ContextSets.from_ragged([]), EmptySetError, "got none"),
        (lambda: ContextSets.from_ragged([np.ones((0, 2))]), ShapeError, "set 0 has shape"),
        (lambda: ContextSets(np.ones((2, 2)), np.ones(2, dtype=bool)), ShapeError, r"contexts\[None\]"),
    ],
)
def test_what_is_no_number_array_or_set_is_refused(
    call: Callable[[], object], error: type[InputError], words: str
) -> None:
    raises(error, words, call)


@pytest.mark.parametrize(
    ("call", "name", "given"),
    [
        (lambda: number("noise", -1.0, low=0.0), "noise", -1.0),
        (lambda: number("noise", [1], low=0.0), "noise", "[1]"),
        (lambda: whole("forecast, the decisions to come,", -1), "forecast", -1),
        (lambda: whole("seeds", "many"), "seeds", "many"),
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
