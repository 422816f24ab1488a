"""Laws that hold for whatever numbers hypothesis finds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rareswitch import Stats
from rareswitch.core import FloatArray
from rareswitch.design import g_optimal
from rareswitch.lab.reproduction.references.certificate import exact_certificate

entries = st.floats(-1.0, 1.0, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-90 else v)
small_sets = st.tuples(st.integers(1, 6), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=entries)
)


@settings(max_examples=60)
@given(small_sets)
def test_every_certificate_is_right(arms: FloatArray) -> None:
    design = g_optimal(arms)
    leverage, rank, _ = exact_certificate(arms, design.weights)
    assert design.rank == rank
    np.testing.assert_allclose(design.max_leverage, leverage, rtol=1e-9)
    assert leverage <= 1.05 * rank + 1e-9


@settings(max_examples=60)
@given(small_sets, st.permutations(range(6)))
def test_the_order_of_arms_does_not_change_the_certificate(arms: FloatArray, order: list[int]) -> None:
    shuffled = arms[[i for i in order if i < len(arms)]]
    first, second = g_optimal(arms, tol=1e-6), g_optimal(shuffled, tol=1e-6)
    assert first.rank == second.rank
    np.testing.assert_allclose(first.max_leverage, second.max_leverage, rtol=3e-6)


@settings(max_examples=60)
@given(arrays(np.float64, (12, 3), elements=entries), arrays(np.float64, 12, elements=entries), st.integers(0, 12))
def test_statistics_add_up(features: FloatArray, rewards: FloatArray, cut: int) -> None:
    whole = Stats.of(features, rewards)
    parts = Stats.of(features[:cut], rewards[:cut]) + Stats.of(features[cut:], rewards[cut:])
    np.testing.assert_allclose(parts.gram, whole.gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parts.moment, whole.moment, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parts.square_sum, whole.square_sum, rtol=1e-12, atol=1e-12)
    assert parts.count == whole.count
