from collections.abc import Callable

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.design import GOptimal, MixedArgmax, MixedSoftmax
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lab.distributions import Gaussian
from reference.refusals import raises

CONTEXTS = Gaussian(dim=3, arms=6).draw(40, seed=1).contexts
MATRIX = np.diag([1.0, 2.0, 5.0])


def argmax(matrix: FloatArray) -> MixedArgmax:
    return MixedArgmax(weights=np.ones(1), matrices=matrix[None], g_optimal_share=0.0)


def softmax(matrix: FloatArray, exponent: float | None = None) -> MixedSoftmax:
    return MixedSoftmax(weights=np.ones(1), matrices=matrix[None], g_optimal_share=0.0, exponent=exponent)


def test_argmax_plays_the_largest_form_and_the_first_on_ties() -> None:
    forms = np.einsum("nki,ij,nkj->nk", CONTEXTS, MATRIX, CONTEXTS)
    np.testing.assert_array_equal(argmax(MATRIX).probabilities(CONTEXTS).argmax(axis=1), forms.argmax(axis=1))
    twice = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.0]])
    assert argmax(MATRIX).probabilities(twice).tolist() == [1.0, 0.0, 0.0]
    assert argmax(MATRIX).probabilities(twice, np.array([False, True, True])).tolist() == [0.0, 1.0, 0.0]
    assert argmax(MATRIX).probabilities(np.zeros((2, 3)), np.array([False, True])).tolist() == [0.0, 1.0]


def test_softmax_is_the_power_of_the_forms() -> None:
    forms = np.einsum("nki,ij,nkj->nk", CONTEXTS, MATRIX, CONTEXTS)
    raised = forms ** np.log2(6)
    np.testing.assert_allclose(
        softmax(MATRIX).probabilities(CONTEXTS), raised / raised.sum(axis=1, keepdims=True), rtol=1e-12
    )


def test_softmax_is_free_of_scale_and_uniform_on_zero_sets() -> None:
    plain = softmax(MATRIX).probabilities(CONTEXTS)
    np.testing.assert_allclose(softmax(MATRIX).probabilities(CONTEXTS * 1e-120), plain, rtol=1e-9)
    zero = softmax(MATRIX).probabilities(np.zeros((3, 3)), np.array([True, False, True]))
    assert zero.tolist() == [0.5, 0.0, 0.5]


def test_mixtures_are_the_weighted_sum_of_their_parts() -> None:
    other = np.diag([3.0, 1.0, 1.0])
    parts = np.array([0.75, 0.25])
    mixed = MixedArgmax(weights=parts, matrices=np.array([MATRIX, other]), g_optimal_share=0.4).probabilities(CONTEXTS)
    expected = 0.4 * GOptimal().probabilities(CONTEXTS) + 0.6 * (
        0.75 * argmax(MATRIX).probabilities(CONTEXTS) + 0.25 * argmax(other).probabilities(CONTEXTS)
    )
    np.testing.assert_allclose(mixed, expected, rtol=1e-14, atol=1e-15)
    soft = MixedSoftmax(weights=parts, matrices=np.array([MATRIX, other]), exponent=2.0).probabilities(CONTEXTS)
    expected = 0.5 * GOptimal().probabilities(CONTEXTS) + 0.5 * (
        0.75 * softmax(MATRIX, 2.0).probabilities(CONTEXTS) + 0.25 * softmax(other, 2.0).probabilities(CONTEXTS)
    )
    np.testing.assert_allclose(soft, expected, rtol=1e-14, atol=1e-15)


HALF, ALL = np.array([0.5, 0.5]), np.array([1.0])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: MixedArgmax(weights=HALF, matrices=np.array([MATRIX])), ShapeError, "one weight for each matrix"),
        (lambda: MixedArgmax(weights=ALL[:0], matrices=np.empty((0, 3, 3))), ShapeError, "at least one"),
        (lambda: MixedSoftmax(weights=HALF[:1], matrices=np.array([MATRIX])), ParameterError, "sum to 1"),
        (lambda: MixedArgmax(weights=ALL, matrices=MATRIX[None], g_optimal_share=1.5), ParameterError, "g_optimal_sh"),
        (lambda: argmax(np.array([[0.0, 1.0], [0.0, 0.0]])), ShapeError, "symmetric"),
        (lambda: MixedArgmax(weights=ALL, matrices=MATRIX), ShapeError, r"\(m, dim, dim\)"),
        (lambda: argmax(MATRIX).probabilities(np.ones((4, 2))), ShapeError, "for 3 features; got contexts of 2"),
        (lambda: softmax(MATRIX, -1.0), ParameterError, "exponent"),
        (lambda: GOptimal(tol=0.0), ParameterError, "tol"),
    ],
)
def test_bad_mixtures_are_refused(make: Callable[[], object], error: type[Exception], words: str) -> None:
    raises(error, words, make)
