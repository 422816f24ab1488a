from typing import Any

import numpy as np
import pytest

from rareswitch.errors import ParameterError, RareswitchError
from rareswitch.log import from_obp, to_obp
from reference.logged import log_of
from reference.refusals import raises


def feedback(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    spread = rng.dirichlet(np.ones(3), size=(6, 2)).transpose(0, 2, 1)
    action, position = rng.integers(3, size=6), np.array([0, 1, 0, 1, 1, 0])
    usual: dict[str, Any] = {
        "n_rounds": 6,
        "n_actions": 3,
        "context": rng.normal(size=(6, 2)),
        "action_context": rng.normal(size=(3, 4)),
        "action": action,
        "position": position,
        "reward": rng.integers(2, size=6),
        "pscore": spread[np.arange(6), action, position],
        "pi_b": spread,
    }
    return usual | changes


def test_probabilities_are_those_of_the_position() -> None:
    given = feedback()
    log = from_obp(given)
    assert log.behavior_probs.tolist() == [given["pi_b"][k, :, given["position"][k]].tolist() for k in range(6)]
    assert log.propensities.tolist() == given["pscore"].tolist()
    assert log.arms == ("0", "1", "2")
    one = from_obp(given, position=1)
    assert one.rewards.tolist() == given["reward"][given["position"] == 1].tolist()
    assert from_obp(feedback(pscore=None)).propensities.tolist() == given["pscore"].tolist()


def test_vectors_are_products_of_users_and_items() -> None:
    given = feedback()
    log = from_obp(given, vectors="cross")
    assert log.contexts is not None
    assert log.contexts.shape == (6, 3, 12)
    expected = np.array([[np.outer(a, [1, *c]).ravel() for a in given["action_context"]] for c in given["context"]])
    ratio = log.contexts / expected
    np.testing.assert_allclose(ratio, ratio[0, 0, 0], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(log.contexts, axis=2).max(), 1.0, rtol=1e-12)
    bare = from_obp(feedback(action_context=None), vectors="cross").contexts
    assert bare is not None
    assert bare.shape == (6, 3, 9)


def test_estimates_within_positions() -> None:
    given = feedback(pscore=None, pi_b=None)
    raises(ParameterError, "propensities='estimate'", from_obp, given)
    log = from_obp(given, propensities="estimate")
    assert log.estimated == "arm frequencies within each policy and position, smoothing 1"
    for k in range(6):
        same = given["position"] == given["position"][k]
        chosen = (given["action"] == given["action"][k]) & same
        assert log.propensities[k] == pytest.approx((chosen.sum() + 1) / (same.sum() + 3))
    assert to_obp(log)["estimated"] == log.estimated
    assert from_obp(to_obp(log)).estimated == log.estimated


def test_actions_are_arms_wherever_they_stood() -> None:
    log = log_of(1040)
    log = log.select(~np.isnan(log.rewards))
    made = to_obp(log)
    assert log.arms is not None
    assert [log.arms[action] for action in made["action"]] == log.chosen_names
    np.testing.assert_allclose(made["pi_b"][np.arange(len(log)), made["action"], 0], log.propensities, rtol=1e-12)
    np.testing.assert_allclose(made["pi_b"].sum(axis=1), 1.0, rtol=1e-12)
    bare = {name: value for name, value in made.items() if name != "rareswitch"}
    again = from_obp(bare)
    assert again.propensities.tolist() == log.propensities.tolist()
    assert len(again.arms or ()) == len(log.arms)


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "no rounds": ({"n_rounds": 0}, "n_rounds"),
    "a text for a number": ({"n_actions": "3"}, "n_actions"),
    "no actions": ({"action": None}, "'action'"),
    "an unknown action": ({"action": np.array([0, 1, 2, 3, 0, 0])}, "round 3"),
    "a negative action": ({"action": np.array([0, 1, 2, -1, 0, 0])}, "round 3"),
    "actions that are no whole numbers": ({"action": np.array([0.5] * 6)}, "whole numbers"),
    "too few rewards": ({"reward": np.ones(5)}, "rewards must have shape (6,)"),
    "a negative propensity": ({"pscore": np.full(6, -0.5), "pi_b": None}, "above 0 and at most 1"),
    "NaN as propensity": ({"pscore": np.full(6, np.nan), "pi_b": None}, "finite"),
    "other propensities": ({"pscore": np.full(6, 0.999)}, "behavior_probs"),
    "probabilities of another shape": ({"pi_b": np.ones((6, 3))}, "pi_b"),
    "too few positions": ({"pi_b": np.ones((6, 3, 1))}, "pi_b"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_wrong_is_told(kind: str) -> None:
    changes, expected = HOSTILE[kind]
    with pytest.raises(RareswitchError) as caught:
        from_obp(feedback(**changes))
    assert expected in str(caught.value)


def test_other_wrong_arguments() -> None:
    raises(ParameterError, "position must be one of the feedback's, 0, 1; got 2", from_obp, feedback(), position=2)
    raises(ParameterError, "vectors", from_obp, feedback(), vectors="concat")
    raises(ParameterError, "propensities", from_obp, feedback(), propensities="none")
    raises(ParameterError, "dictionary", from_obp, [1, 2])
    raises(ParameterError, "12 of 60", to_obp, log_of(1041, rewards=np.where(np.arange(60) < 12, np.nan, 1.0)))
