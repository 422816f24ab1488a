"""Candidates are probabilities over the arms that were offered, or an error that says what is wrong."""

from typing import Any

import numpy as np
import pytest

from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.evaluation import Always
from rareswitch.evaluation.candidates import named_candidates, played
from rareswitch.features import Arms, Features, Number
from rareswitch.policy import Baseline, Blend, Policy, PosteriorDraws


def log(**more: object) -> DecisionLog:
    columns: dict[str, object] = {
        "arm_indices": [0, 1, 0],
        "propensities": [0.5, 0.25, 1.0],
        "rewards": [1.0, 0.0, 2.0],
        "available": np.array([[True, True, False], [True, True, True], [True, False, False]]),
        "contexts": np.eye(3)[None].repeat(3, axis=0),
        "arms": ["a", "b", "c", "d"],
        "codes": [[0, 1, -1], [3, 2, 0], [1, -1, -1]],
    }
    return DecisionLog(**columns | more)  # type: ignore[arg-type]


def test_uniform_plays_what_is_offered() -> None:
    found = played("u", "uniform", log())
    assert found.applies is None
    np.testing.assert_allclose(found.probabilities, np.array([[0.5, 0.5, 0], [1 / 3] * 3, [1, 0, 0]]))


def test_always_finds_its_arm_wherever_it_stands() -> None:
    found = played("a", Always("a"), log())
    np.testing.assert_array_equal(found.probabilities, [[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert found.applies.tolist() == [True, True, False]
    unknown = played("z", Always("z"), log())
    assert not unknown.applies.any()


def test_always_of_arms_without_ids_is_a_place() -> None:
    plain = log(arms=None, codes=None)
    assert played("1", Always("1"), plain).probabilities[1].tolist() == [0, 1, 0]
    with pytest.raises(ParameterError, match="0 to 2"):
        played("9", Always("9"), plain)


def test_baseline_is_for_decisions_that_name_one() -> None:
    found = played("baseline", "baseline", log(baselines=[1, -1, 0]))
    assert found.applies.tolist() == [True, False, True]
    np.testing.assert_array_equal(found.probabilities, [[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    none = played("baseline", "baseline", log())
    assert not none.applies.any()


def test_a_policy_decides_about_the_vectors() -> None:
    greedy = Policy(dim=3, sampler=PosteriorDraws(draws=np.array([[0.0, 1.0, 2.0]])))
    found = played("greedy", greedy, log())
    np.testing.assert_array_equal(found.probabilities, [[0, 1, 0], [0, 0, 1], [1, 0, 0]])


def test_a_policy_is_judged_by_what_came_after_it_was_learned() -> None:
    second = Policy(dim=3, sampler=PosteriorDraws(draws=np.array([[0.0, 1.0, 2.0]])))
    batches = {"batches": [0, 1, 2], "batch_names": ("first", second.id, "third")}
    found = played("second", second, log(**batches))
    assert found.applies.tolist() == [False, True, True]
    np.testing.assert_array_equal(found.probabilities, [[0, 0, 0], [0, 0, 1], [1, 0, 0]])


def test_a_policy_that_plays_the_baseline_is_for_decisions_that_name_one() -> None:
    policy = Policy(dim=3, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.3))
    found = played("first", policy, log(baselines=[1, -1, 0]))
    assert found.applies.tolist() == [True, False, True]
    np.testing.assert_allclose(found.probabilities, np.array([[0.15, 0.85, 0], [0, 0, 0], [1, 0, 0]]))


def test_functions_and_arrays_are_checked() -> None:
    right = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(played("f", lambda contexts, available: right, log()).probabilities, right)
    np.testing.assert_array_equal(played("p", right, log()).probabilities, right)
    for wrong, error, text in (
        (right[:, :2], ShapeError, r"\(3, 3\)"),
        (right * 0.9, ParameterError, "sum to 1"),
        (np.where(right == 0.5, np.nan, right), ParameterError, "row 0"),
        (right[:, ::-1], ParameterError, "offered"),
        ("no", None, ""),
    ):
        if error is not None:
            with pytest.raises(error, match=text):
                played("p", wrong, log())


def test_candidates_are_named_by_what_they_are() -> None:
    assert list(named_candidates(["uniform", Always("3"), "uniform"])) == ["uniform", "always 3", "uniform (2)"]
    assert list(named_candidates({"mine": lambda contexts, available: available})) == ["mine"]
    several: list[Any] = ["unifrom", 3.0, [], {}, {"x": None}]
    for wrong in several:
        with pytest.raises(ParameterError):
            named_candidates(wrong)


def test_a_policy_needs_vectors_of_its_size() -> None:
    with pytest.raises(ShapeError, match="2 features"):
        played("p", Policy(dim=2, sampler=Uniform()), log())
    with pytest.raises(ParameterError, match="vectors"):
        played("p", Policy(dim=3, sampler=Uniform()), log(contexts=None))


def test_vectors_of_other_features_are_refused() -> None:
    made, other = (
        Features(fields=[Number("age", mean=mean, scale=10, alone=False)], arms=Arms(ids=["a", "b"], own=["age"]))
        for mean in (40, 50)
    )
    mine, foreign = (Policy(dim=made.dim, sampler=Uniform(), features=one) for one in (made, other))
    given = log(contexts=np.zeros((3, 3, made.dim)), batch_names=[mine.id], policies={mine.id: mine})
    assert played("mine", mine, given).probabilities[2].tolist() == [1, 0, 0]
    assert played("plain", Policy(dim=made.dim, sampler=Uniform()), given).applies is None
    with pytest.raises(ParameterError, match="other features than the policies of the log"):
        played("foreign", foreign, given)
