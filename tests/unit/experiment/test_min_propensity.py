"""Experiments in which arms are kept at a least probability, and what that costs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import ParameterError
from rareswitch.experiment import create, open_experiment
from rareswitch.features import Arms, Features, Number
from rareswitch.lab import simulate
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.worlds import LinearWorld
from rareswitch.learner import OFUL, Foresight, LinUCB
from rareswitch.planning import MinPropensityPrice, best_ends, cost, min_propensity_price
from rareswitch.policy import MinPropensity
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
NAMES = ["red", "green", "blue"]
NAMED = MinPropensity(least=0.1, arms=("red", "blue"))


def features() -> Features:
    return Features(fields=[Number("age", mean=40, scale=10, alone=False)], arms=Arms(ids=NAMES, own=["age"]))


def records(count: int) -> list[dict[str, float]]:
    return [{"age": float(age)} for age in np.random.default_rng(1).integers(20, 60, count)]


def played(trial: Any, first: int, count: int) -> None:
    ids = [f"r{k}" for k in range(first, first + count)]
    made = trial.decide_many(records(count), NAMES, ids=ids)
    trial.reward_many(ids, [one.arm == "green" for one in made])


@pytest.mark.parametrize("min_propensity", [0.1, NAMED])
def test_an_experiment_with_a_minimum_propensity(min_propensity: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    settings: dict[str, Any] = {"features": features(), "policies": 3, "horizon": 400, "seed": 1}
    trial = create(url, "spring", min_propensity=min_propensity, **settings)
    for k in range(3):
        played(trial, 100 * k, 100)
        if k < 2:
            assert trial.advance(force=True).made
    assert {policy.min_propensity for policy in trial.policies} == {
        min_propensity if isinstance(min_propensity, MinPropensity) else MinPropensity(least=min_propensity)
    }
    again = trial.decide({"age": 33.0}, ["green", "red"], id="last")
    assert again.propensity >= 0.1
    for id in ("last", "r7", "r150", "r299"):  # noqa: A001
        assert trial.audit(id).matches
    assert trial.verify().holds
    trial.close()
    trial = open_experiment(url, "spring")
    assert trial.audit("r150").matches
    status = trial.status()
    assert "Minimum propensity: 0.1 for " in str(status)
    assert status.as_dict()["min_propensity"]["least"] == 0.1
    trial.close()


def test_where_sets_are_not_kept_the_request_tells_the_arms_of_the_minimum_propensity() -> None:
    trial = create(
        "memory:", "spring", features=features(), min_propensity=NAMED, context_sample_rate=0.5, seed=1, policies=2
    )
    played(trial, 0, 40)
    verdicts = {trial.audit(f"r{k}").verdict for k in range(40)}
    assert verdicts == {"matches", "contexts needed"}
    for k, record in enumerate(records(40)):
        assert trial.audit(f"r{k}", record, NAMES).matches


def test_vectors_need_names_where_the_minimum_propensity_has_some() -> None:
    trial = create("memory:", "spring", dim=2, min_propensity=MinPropensity(least=0.1, arms=("red",)), seed=1)
    raises(ParameterError, "arms must be named with each request", trial.decide, np.eye(2), id=1)
    assert trial.decide(np.eye(2), ["red", "blue"], id=1).propensity > 0.0
    assert trial.audit(1).matches
    everyone = create("memory:", "spring", dim=2, min_propensity=0.1, seed=1)
    assert everyone.decide(np.eye(2), id=1).propensity == pytest.approx(0.5)


def test_the_price_is_the_share_of_blind_decisions() -> None:
    ends = best_ends(10_000, 8, dim=10)
    price = min_propensity_price(MinPropensity(least=0.02), arms=5, ends=ends, dim=10)
    assert (price.share, price.cost, price.decisions) == (0.1, 1000.0, 10_000)
    assert price.learning == pytest.approx(cost(ends, dim=10))
    later = min_propensity_price(MinPropensity(least=0.02), arms=5, ends=[400, 1000], dim=10, before=200, now=300)
    assert later.decisions == 700
    assert later.learning == pytest.approx(100 * 20 / 200 + 600 * 20 / 400)
    unknown = min_propensity_price(MinPropensity(least=0.02), arms=1, ends=None, dim=10)
    assert (unknown.cost, unknown.learning) == (None, None)
    assert str(unknown) == "Minimum propensity: 0.02 for every offered arm, 2 % of decisions (1 arm per set)."
    with pytest.raises(ParameterError, match="at most 50 arms"):
        min_propensity_price(MinPropensity(least=0.02), arms=51, ends=None, dim=10)


def test_status_says_the_price_of_what_is_to_come() -> None:
    trial = create("memory:", "spring", dim=2, min_propensity=0.05, schedule=[100, 1000], policies=2, seed=1)
    assert trial.status().min_propensity == MinPropensityPrice(least=0.05)
    assert str(trial.status().min_propensity) == "Minimum propensity: 0.05 for every offered arm."
    trial.decide_many(np.random.default_rng(1).standard_normal((60, 4, 2)), ids=range(60))
    assert str(trial.status().min_propensity) == (
        "Minimum propensity: 0.05 for every offered arm, 20 % of decisions (4 arms per set). Expected cost: 188 "
        "exploring decisions of the next 940, beside 76 for learning."
    )


def test_simulated_runs_pay_for_their_floor_what_blind_play_costs() -> None:
    """Regret of the floored share alone: that share of blind play, up to chance."""
    world, horizon, share = LinearWorld(source=Gaussian(dim=4, arms=5)), 4000, 0.3
    blind = simulate(Foresight(dim=4, grid=[horizon]), world, seed=1, min_propensity=MinPropensity(least=0.2)).regret
    bare = simulate(Foresight(dim=4, horizon=horizon), world, seed=1).regret
    protected = simulate(
        Foresight(dim=4, horizon=horizon), world, seed=1, min_propensity=MinPropensity(least=share / 5)
    ).regret
    # a decision loses at most b; the loss of floored decisions is a mean of independent draws: Hoeffding at 1e-6
    means = world.draw(horizon, seed=1).means
    most = (means.max(axis=1) - means.min(axis=1)).max()
    slack = most * horizon * np.sqrt(np.log(2 / 1e-6) / (2 * horizon))
    assert slack < 0.5 * share * blind
    assert share * blind - slack <= protected <= bare + share * blind + slack
    assert protected > bare


def test_compiled_steps_do_not_hide_a_minimum_propensity() -> None:
    world = LinearWorld(source=Gaussian(dim=2, arms=3))
    told: dict[str, Any] = {"dim": 2, "arms": 3, "horizon": 300, "noise": 0.5}
    least = simulate(OFUL(**told), world, seed=1, min_propensity=MinPropensity(least=1.0 / 3)).regret
    assert least > 2.0 * simulate(OFUL(**told), world, seed=1).regret
    with pytest.raises(ParameterError, match="min_propensity: linucb"):
        simulate(LinUCB(**told), world, seed=1, min_propensity=MinPropensity(least=0.1))
