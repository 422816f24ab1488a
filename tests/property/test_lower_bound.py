"""The paper's hard instances, against the formulas of Section 8 written out term by term."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rareswitch import simulate
from rareswitch.core import FloatArray, IntArray
from rareswitch.errors import ContextNormError, ParameterError, RareswitchError, ShapeError
from rareswitch.lab.worlds import LowerBoundWorld, every_instance, switch_lower_bound, theorem_range
from rareswitch.lab.worlds.lower_bound import every_sign, most_stages
from rareswitch.learner import BatchLinUCB
from reference.refusals import raises


@st.composite
def instances(draw: st.DrawFn, most: int = 12) -> LowerBoundWorld:
    """Any admissible horizon, dimension, number of stages and signs."""
    dim, stages = 2 * draw(st.integers(1, 4)), draw(st.integers(1, most))
    least = dim * 4 ** (stages + 1) // 2 + 1
    horizon = least + draw(st.one_of(st.integers(0, 30), st.integers(0, 1000 * least)))
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=dim // 2 * stages, max_size=dim // 2 * stages))
    return LowerBoundWorld(
        horizon=horizon,
        stages=stages,
        dim=dim,
        signs=np.array(signs).reshape(dim // 2, stages),
        scaled=draw(st.booleans()),
    )


def stage_starts(world: LowerBoundWorld) -> IntArray:
    return np.append(0, world.stage_ends[:-1])


def first_rounds(world: LowerBoundWorld) -> tuple[FloatArray, FloatArray]:
    """Contexts (d/2·L, 2, d) and means (d/2·L, 2) of the first round of each stage."""
    drawn = [world.draw(1, seed=0, first=int(t)) for t in stage_starts(world)]
    return np.concatenate([r.contexts for r in drawn]), np.concatenate([r.means for r in drawn])


@settings(max_examples=80)
@given(instances())
def test_instances_are_those_of_the_paper(world: LowerBoundWorld) -> None:
    big, small = world.context_scale, world.theta_scale
    length, stages = world.horizon / (world.dim / 2), world.stages
    upsilon = math.sqrt(length) ** (-1 / (stages + 1))
    assert world.upsilon == pytest.approx(upsilon, rel=1e-12)
    contexts, means = first_rounds(world)
    signs = world.signs_of(0)
    for pair in range(world.dim // 2):
        psi = [0.5 + sum(int(signs[pair, i - 1]) * upsilon**i for i in range(1, j + 1)) for j in range(stages + 1)]
        theta = np.array([psi[-1], 2 / 3])
        np.testing.assert_allclose(world.theta(0)[2 * pair : 2 * pair + 2], small * theta, rtol=1e-12)
        for j in range(1, stages + 1):
            z = upsilon ** -(j + 1) / math.sqrt(length)
            arms = np.zeros((2, world.dim))
            arms[0, 2 * pair] = z
            arms[1, 2 * pair + 1] = 1.5 * z * psi[j - 1]
            np.testing.assert_allclose(contexts[pair * stages + j - 1], big * arms, rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(
                means[pair * stages + j - 1], big * small * z * np.array([psi[-1], psi[j - 1]]), rtol=1e-9, atol=1e-15
            )


@settings(max_examples=80)
@given(instances())
def test_the_worse_arm_costs_what_is_stated(world: LowerBoundWorld) -> None:
    _, means = first_rounds(world)
    realised = np.abs(means[:, 0] - means[:, 1]).reshape(-1, world.stages)
    assert (world.gaps > 0).all()
    assert (realised >= world.gaps * (1 - 1e-9) - 1e-15).all()
    # the better arm is told by the sign of the stage
    np.testing.assert_array_equal(np.where(means[:, 0] > means[:, 1], 1, -1), world.signs_of(0).ravel())
    if world.upsilon <= 1 / 3:
        floor = 1 / (2 * world.upsilon * math.sqrt(2 * world.horizon / world.dim))
        assert (world.gaps >= floor * world.context_scale * world.theta_scale * (1 - 1e-9)).all()


SIZES = [(10**6, 2, 2), (10**4, 1, 2), (3000, 4, 2), (10**5, 6, 2), (1025, 4, 2), (3000, 2, 4), (3000, 2, 6)]


@pytest.mark.parametrize(("horizon", "stages", "dim"), SIZES)
def test_gaps_and_norms_are_tight_over_all_signs(horizon: int, stages: int, dim: int) -> None:
    worlds = list(every_instance(horizon=horizon, stages=stages, dim=dim))
    assert len(worlds) == 2 ** (stages * dim // 2)
    gaps, norms, thetas = [], [], []
    for world in worlds:
        contexts, means = first_rounds(world)
        gaps.append(np.abs(means[:, 0] - means[:, 1]))
        norms.append(np.linalg.norm(contexts, axis=2).max())
        thetas.append(np.linalg.norm(world.theta(0)))
    one = worlds[0]
    np.testing.assert_allclose(np.min(gaps, axis=0), np.tile(one.gaps, dim // 2), rtol=1e-9)
    assert max(norms) <= 1 + 1e-12
    assert max(thetas) <= 1 + 1e-12
    if one.context_scale < 1:
        assert max(norms) == pytest.approx(1.0)
    if one.theta_scale < 1:
        assert max(thetas) == pytest.approx(1.0)
    if one.regime == "proof":
        assert one.context_scale == one.theta_scale == 1.0


@settings(max_examples=80)
@given(instances(), st.data())
def test_contexts_agree_up_to_the_stage_after_the_common_signs(world: LowerBoundWorld, data: st.DataObject) -> None:
    pair = data.draw(st.integers(0, world.dim // 2 - 1))
    j = data.draw(st.integers(0, world.stages - 1))
    signs = world.signs_of(0).copy()
    signs[pair, j] *= -1
    other = LowerBoundWorld(horizon=world.horizon, stages=world.stages, dim=world.dim, signs=signs, scaled=world.scaled)
    ours, theirs = first_rounds(world)[0], first_rounds(other)[0]
    differs = (ours != theirs).any(axis=(1, 2)).reshape(-1, world.stages)
    expected = np.zeros_like(differs)
    expected[pair, j + 1 :] = True
    np.testing.assert_array_equal(differs, expected)


@settings(max_examples=80)
@given(instances())
def test_stages_are_of_equal_length(world: LowerBoundWorld) -> None:
    lengths = np.diff(world.stage_ends, prepend=0).reshape(world.dim // 2, world.stages)
    assert lengths.sum() == world.horizon == world.rounds
    assert np.ptp(lengths.sum(axis=1)) <= 1
    assert (np.ptp(lengths, axis=1) <= 1).all()
    assert lengths.min() >= 1
    starts, every = stage_starts(world), np.arange(len(world.stage_ends))
    np.testing.assert_array_equal(world.stage_of(starts), every)
    np.testing.assert_array_equal(world.stage_of(world.stage_ends - 1), every)


def test_stages_end_where_the_paper_says() -> None:
    world = LowerBoundWorld(horizon=1000, stages=3)
    assert world.stage_ends.tolist() == [math.ceil(j * 1000 / 3) for j in (1, 2, 3)]
    world = LowerBoundWorld(horizon=1000, stages=2, dim=6)
    assert world.stage_ends.tolist() == [167, 334, 501, 667, 834, 1000]
    contexts = world.draw(1000, seed=3).contexts
    active = (contexts != 0).any(axis=1)
    assert active.argmax(axis=0).tolist() == [0, 0, 334, 334, 667, 667]
    assert (active.sum(axis=1) == 2).all()
    changes = 1 + np.flatnonzero((np.diff(contexts, axis=0) != 0).any(axis=(1, 2)))
    assert changes.tolist() == [167, 334, 501, 667, 834]


def test_regimes_at_a_million_rounds() -> None:
    assert most_stages(horizon=10**6) == 8
    assert most_stages(horizon=10**6, inverse=10) == 2
    regimes = [LowerBoundWorld(horizon=10**6, stages=stages).regime for stages in range(1, 9)]
    assert regimes == ["proof"] * 2 + ["wide"] * 6
    assert [LowerBoundWorld(horizon=t, stages=1).regime for t in (9_999, 10_000)] == ["wide", "proof"]
    with pytest.raises(ParameterError, match=r"upsilon must be below 1/2.*9 stages.*give 0\.5012\. Use at most 8\."):
        LowerBoundWorld(horizon=10**6, stages=9)
    # the edges, in whole numbers: 2T > d·4^(L+1) and 2T ≥ d·100^(L+1)
    assert [most_stages(horizon=t, dim=6) for t in (48, 49, 192, 193)] == [0, 1, 1, 2]
    assert [most_stages(horizon=t, dim=6, inverse=10) for t in (29_999, 30_000, 2_999_999, 3_000_000)] == [0, 1, 1, 2]


def test_signs_of_the_seed() -> None:
    world = LowerBoundWorld(horizon=10**5, stages=3, dim=4)
    drawn = [world.signs_of(seed) for seed in range(200)]
    assert all(u.shape == (2, 3) and (np.abs(u) == 1).all() for u in drawn)
    # entries are fair coins: Hoeffding over 6 of them, false alarm at most 1e-6
    assert np.abs(np.mean(drawn, axis=0)).max() <= math.sqrt(2 * math.log(2 * 6 / 1e-6) / 200)
    given_signs = LowerBoundWorld(horizon=10**5, stages=3, dim=4, signs=drawn[7])
    ours, theirs = world.draw(10**5, seed=7), given_signs.draw(10**5, seed=1)
    np.testing.assert_array_equal(ours.contexts, theirs.contexts)
    np.testing.assert_array_equal(ours.means, theirs.means)


def test_every_sign_comes_once() -> None:
    signs = [u.tolist() for u in every_sign(2, 2)]
    assert len(signs) == len({str(u) for u in signs}) == 16
    assert sum(1 for _ in every_sign(3, 4)) == 2**12
    worlds = list(every_instance(horizon=1000, stages=2, dim=4, scaled=False))
    assert [w.signs_of(0).tolist() for w in worlds] == signs
    assert {(w.horizon, w.stages, w.dim, w.scaled, w.noise_scale) for w in worlds} == {(1000, 2, 4, False, 1.0)}


def test_the_printed_instance_is_refused_where_it_leaves_the_ball() -> None:
    signs = np.ones((1, 4), dtype=np.int64)
    learner = BatchLinUCB(dim=2, arms=2, horizon=3000, noise=1.0)
    with pytest.raises(ContextNormError, match="norm at most 1"):
        simulate(learner, LowerBoundWorld(horizon=3000, stages=4, signs=signs, scaled=False), seed=1)
    learner = BatchLinUCB(dim=2, arms=2, horizon=3000, noise=1.0)
    assert simulate(learner, LowerBoundWorld(horizon=3000, stages=4, signs=signs), seed=1).regret > 0


def test_descriptions() -> None:
    world = LowerBoundWorld(horizon=10**6, stages=2, signs=np.array([[1, -1]]))
    assert world.describe().splitlines() == [
        "T = 1000000, d = 2, L = 2 stages for each pair of dimensions (2 in all), υ = 0.1: "
        "the paper's constants hold (proof).",
        "Contexts are scaled by 1 and θ by 1; the worse arm costs at least 0.009 a round.",
    ]
    assert repr(world) == "LowerBoundWorld(T = 1000000, d = 2, L = 2, signs +-)"
    printed = LowerBoundWorld(horizon=10**6, stages=2, dim=4, scaled=False)
    assert "(4 in all)" in printed.describe()
    assert "Vectors are as printed; the worse arm" in printed.describe()
    assert repr(printed) == "LowerBoundWorld(T = 1000000, d = 4, L = 2, signs of the seed, as printed)"


def test_the_line_of_the_theorem() -> None:
    # d = 2 is the lemma: T^(1/2 + 1/(8M + 2))/32, up to the theorem's rounding of √(T/(d/2)) to √(T/d)
    for switches in (1, 40):
        lemma = 10.0 ** (6 * (0.5 + 1 / (8 * switches + 2))) / 32
        assert switch_lower_bound(horizon=10**6, dim=2, switches=switches) == pytest.approx(lemma / math.sqrt(2))
    wide = math.sqrt(6 * 10**4) / (32 * 6) * (2 * 10**4 / 6) ** (1 / (16 * 3.5 / 6 + 2))
    assert switch_lower_bound(horizon=10**4, dim=6, switches=3.5) == pytest.approx(wide)
    assert switch_lower_bound(horizon=10**2000, dim=2, switches=40) == math.inf
    # both ends meet at ln T = 960, which is T = 10^416.9
    assert theorem_range(horizon=10**416, dim=4) is None
    found = theorem_range(horizon=10**417, dim=4)
    assert found is not None
    assert found == pytest.approx((80.0, 4 * 417 * math.log(10) / 48))


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"dim": 3}, ParameterError, "dim must be even, made of pairs; got 3. Use 2 or 4"),
        ({"dim": 0}, ParameterError, "dim must be at least 2"),
        ({"stages": 0}, ParameterError, "stages must be at least 1"),
        ({"stages": 1.5}, ParameterError, "stages must be a whole number"),
        ({"stages": 5}, ParameterError, "5 stages with horizon 4096 and dim 2 give 0.5. Use at most 4."),
        ({"stages": 10**5}, ParameterError, "Use at most 4"),
        ({"horizon": 0}, ParameterError, "horizon must be"),
        ({"horizon": 16, "stages": 1}, ParameterError, "give 0.5. Even one needs a horizon of at least 17"),
        ({"horizon": 1, "stages": 2}, ParameterError, "horizon of at least 17"),
        ({"horizon": 10**400}, ParameterError, "horizon must be between"),
        ({"signs": [1, 1]}, ShapeError, r"signs must have shape \(dim/2, stages\) = \(1, 2\); got \(2,\)"),
        ({"signs": [[1, 1]], "dim": 4}, ShapeError, r"= \(2, 2\); got \(1, 2\)"),
        ({"signs": [[1, 0]]}, ParameterError, "signs must be 1 or -1; got 0"),
        ({"signs": [[1, 1.5]]}, ParameterError, "signs must be 1 or -1; got 1.5"),
        ({"signs": [["+", "-"]]}, ShapeError, "signs must hold real numbers"),
    ],
    ids=str,
)
def test_bad_instances_are_refused(options: dict[str, Any], kind: type[RareswitchError], words: str) -> None:
    raises(kind, words, LowerBoundWorld, **{"horizon": 4096, "stages": 2, **options})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: every_sign(1, 13), r"1 pairs of 13 stages have 2\^13 signs; at most 4096 .* random ones"),
        (lambda: every_instance(horizon=10**6, stages=7, dim=4), r"2\^14 signs"),
        (lambda: every_instance(horizon=10**6, stages=9), "Use at most 8"),
        (lambda: every_sign(0, 2), "pairs must be at least 1"),
        (lambda: most_stages(horizon=100, inverse=1), "inverse must be at least 2"),
        (lambda: switch_lower_bound(horizon=0, dim=2, switches=1), "horizon must be"),
        (lambda: switch_lower_bound(horizon=9, dim=2, switches=0), "switches must be"),
        (lambda: theorem_range(horizon=9, dim=0), "dim must be"),
    ],
)
def test_bad_calls_are_refused(call: Callable[[], object], words: str) -> None:
    raises(ParameterError, words, call)
