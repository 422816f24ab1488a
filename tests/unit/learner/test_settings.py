"""One description of settings: what is understood, what is kept, what is shown."""

import json
import math
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets
from rareswitch.design import GOptimal, Sampler
from rareswitch.errors import InputError, ParameterError
from rareswitch.learner import (
    LEARNERS,
    OFUL,
    BatchLinUCB,
    BatchLinUCBDG,
    CertifiedMixture,
    CoreLearning,
    Foresight,
    StaticGrid,
    make_learner,
    plain_settings,
    takes,
)
from reference.refusals import raises

SIZES: dict[str, Any] = {"dim": 4, "arms": 4, "horizon": 500}
OTHERS: dict[str, Any] = {
    **{"noise": 0.3, "norm": 2.0, "delta": 0.2, "confidence": 0.7, "policies": 3, "growth": 3.5, "seed": 9},
    **{"scale": 0.25, "draws": 17, "intercept": True, "design_share": 0.01, "warm_batches": 1, "design_sample": 77},
    **{"g_optimal": GOptimal(tol=0.2), "designer": CertifiedMixture(g_optimal_share=0.3)},
}


def test_whole_numbers_may_be_written_as_floats() -> None:
    learner = Foresight(dim=np.int64(3), horizon=1e4, policies=4.0, seed=np.uint8(2))  # type: ignore[arg-type]
    assert (learner.dim, learner.horizon, learner.policies, learner.seed) == (3, 10_000, 4, 2)
    assert all(type(value) is int for value in (learner.dim, learner.horizon, learner.policies, learner.seed))
    assert learner == Foresight(dim=3, horizon=10_000, policies=4, seed=2)


@pytest.mark.parametrize("grid", [[20, 50, 100], (20, 50, 100), np.array([20, 50, 100]), [20.0, 50.0, 1e2]])
def test_a_grid_may_be_a_list(grid: Any) -> None:
    assert Foresight(dim=3, grid=grid).clock == StaticGrid(ends=(20, 50, 100))
    assert BatchLinUCB(dim=3, arms=4, horizon=100, grid=grid).begin().batch_sizes == (20, 30, 50)


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("foresight", {"dim": None}, "dim must be given: it is features of an arm, d; got None"),
        ("foresight", {"dim": 0}, "dim must be"),
        ("foresight", {"horizon": 1}, "horizon must be"),
        ("foresight", {"horizon": 100.5}, "horizon must be a whole number; got 100.5"),
        ("foresight", {"horizon": "100"}, "horizon must be a whole number; got '100'"),
        ("foresight", {"horizon": True}, "horizon must be a whole number; got True"),
        ("foresight", {"horizon": 100, "policies": 0}, "policies must be at least 1"),
        ("foresight", {"horizon": 100, "policies": 101}, "policies must be at most the horizon, 100 decisions"),
        ("foresight", {"horizon": 100, "grid": [20, 100], "policies": 2}, "not both"),
        ("foresight", {"horizon": 100, "grid": [20, 90]}, "the grid ends at 90 where the horizon is 100"),
        ("foresight", {"grid": "20, 50"}, r"grid must be batch ends, as in \[100, 500, 1000\], or a grid"),
        ("foresight", {"grid": 100}, "grid must be batch ends"),
        ("foresight", {"grid": []}, "at least one and strictly increasing"),
        ("foresight", {"grid": [50, 20]}, "strictly increasing"),
        ("foresight", {"grid": [20, 50.5]}, "whole number"),
        ("foresight", {"grid": ["a"]}, "grid: a batch end must be a whole number; got 'a'"),
        ("foresight", {"grid": {"kind": "elsewhere", "ends": [1, 2]}}, "there is no kind 'elsewhere'"),
        ("foresight", {"grid": {"kind": ["static-grid"]}}, "there is no kind"),
        ("foresight", {"grid": {}}, "at least one and strictly increasing"),
        ("foresight", {"grid": {"kind": "static-grid"}}, "static-grid needs the setting 'ends'"),
        ("foresight", {"grid": {"kind": "static-grid", "ends": 5}}, "static-grid: Expected array, got int at ends"),
        ("foresight", {"grid": {"kind": "static-grid", "ends": [9], "more": 1}}, "has no setting 'more'; it has ends"),
        ("foresight", {"grid": {"kind": "g-optimal"}}, "grid must be batch ends"),
        ("foresight", {"intercept": "yes"}, "intercept must be True or False; got 'yes'"),
        ("foresight", {"intercept": 1}, "intercept must be True or False; got 1"),
        ("foresight", {"design_share": "some"}, "design_share must be a number; got 'some'"),
        ("foresight", {"design_share": math.nan}, "design_share must be a finite number"),
        ("foresight", {"design_share": 1.5}, "design_share must be"),
        ("foresight", {"delta": 0.0}, "delta must be"),
        ("foresight", {"seed": 1.5}, "seed must be a whole number"),
        ("foresight", {"seed": -1}, "seed must be"),
        *(("foresight", {"discount": wrong}, "discount") for wrong in (0.0, -0.5, 1.5, math.nan, "0.5", None)),
        ("foresight", {"arms": 3, "horizon": 100, "noise_bound": 1.0, "discount": 0.5}, "for a θ that stays"),
        ("foresight", {"reserve": 2}, "give the horizon, and no grid"),
        ("foresight", {"reserve": 2, "grid": [100, 1000]}, "give the horizon, and no grid"),
        ("foresight", {"reserve": 7, "horizon": 1000}, "reserve must leave at least two of the policies to the"),
        *(("foresight", {"reserve": wrong, "horizon": 1000}, "reserve") for wrong in (-1, 1.5, "2", math.nan)),
        ("batch-linucb", {"horizon": None}, "horizon must be given: it is decisions in all, T; got None"),
        ("batch-linucb", {"ridge": 0.0}, "ridge must be"),
        ("batch-linucb", {"policies": 501}, "policies must be between 1 and 500"),
        ("batch-linucb", {"grid": [10, 20]}, "grid ends at 20 where the horizon is 500"),
        ("batched-thompson", {"growth": 1.0}, "growth, the factor C by which determinants grow"),
        *(("rarely-switch-suplinucb", {"ridge": wrong}, "ridge") for wrong in (0.0, None, -1.0)),
        *(("rarely-switch-suplinucb", {"delta": wrong}, "delta") for wrong in (2.0, "a")),
    ],
)
def test_bad_settings_are_explained(name: str, bad: dict[str, Any], words: str) -> None:
    raises(ParameterError, words, make_learner, name, **({"dim": 3} if name == "foresight" else SIZES) | bad)


def test_learners_are_values() -> None:
    """Equal settings, equal learners; they cannot be changed, and their repr makes them again."""
    one = OFUL(**SIZES, growth=3)
    assert one == OFUL(**SIZES, growth=3.0)
    assert hash(one) == hash(OFUL(**SIZES, growth=3.0))
    assert one != OFUL(**SIZES, growth=2.0)
    with pytest.raises(AttributeError):
        one.growth = 4.0  # type: ignore[misc]
    raises(TypeError, None, OFUL, 4, 4, 500)
    designing = BatchLinUCBDG(**SIZES, designer=CoreLearning(power=4.0), grid=[10, 500])
    known = {
        "BatchLinUCBDG": BatchLinUCBDG,
        "CoreLearning": CoreLearning,
        "GOptimal": GOptimal,
        "StaticGrid": StaticGrid,
    }
    assert eval(repr(designing), known) == designing


@pytest.mark.parametrize("name", LEARNERS)
def test_settings_survive_json(name: str) -> None:
    """The usual ones, and others for everything that the learner takes."""
    taken = {key: value for key, value in OTHERS.items() if key in takes(name)}
    for settings in (SIZES, SIZES | taken):
        learner = make_learner(name, **settings)
        plain = json.loads(json.dumps(plain_settings(learner), allow_nan=False))
        assert tuple(plain) == takes(name)
        assert make_learner(name, **plain) == learner
    assert repr(make_learner(name, **SIZES)) != repr(make_learner(name, **SIZES | taken))


def test_what_json_cannot_keep_is_refused() -> None:
    class Own:
        """A designer of one's own."""

        def learn(self, sets: ContextSets, *, regularization: float, arms: int) -> Sampler:
            return GOptimal()

    with pytest.raises(
        InputError, match=r"only what is made of .* can be identified and kept in files; it holds a Own"
    ):
        plain_settings(BatchLinUCBDG(**SIZES, designer=Own()))


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        (
            "foresight",
            {"dim": 10**6},
            "dim must be at most 10000, as a learner sums up d × d numbers; got 1000000. Use",
        ),
        ("thompson", {"draws": 10**9}, "draws must be between 1 and 10000; got 1000000000"),
        ("thompson", {"scale": 1e308}, "scale must be a finite number at least 0 and at most"),
        ("batch-linucb", {"noise": 1e300}, r"noise must be .* at most 1e\+100; got 1e\+300"),
        ("linucb", {"norm": 1e-300}, "norm must be at least noise / 1e"),
        ("linucb", {"delta": 1e-320}, "delta must be a finite number at least 1e-300"),
        ("linucb", {"confidence": 1e308}, "confidence must be a finite number at least 0 and at most"),
        ("batch-linucb-kw", {"g_optimal": "x"}, "g_optimal must be of type GOptimal; got 'x'"),
        ("batch-linucb-dg", {"g_optimal": 1.0}, "g_optimal must be of type GOptimal"),
        ("fixed-set-elimination", {"g_optimal": 1.0}, "g_optimal must be of type GOptimal"),
    ],
)
def test_settings_beyond_what_can_be_computed_are_refused_at_once(name: str, bad: dict[str, Any], words: str) -> None:
    sizes = {"dim": 3} if name == "foresight" else SIZES
    with pytest.raises(ParameterError, match=words) as refusal:
        make_learner(name, **sizes | bad)
    assert refusal.value.parameter == next(iter(bad))
