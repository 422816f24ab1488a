import math

import numpy as np
import pytest

from rareswitch.errors import InputError, ParameterError
from rareswitch.experiment import Experiment, create
from rareswitch.features import Arms, Category, Features
from rareswitch.lab import Traffic, play, simulate
from rareswitch.lab.worlds import RecordWorld, make_world
from rareswitch.learner import Foresight
from reference.refusals import raises

WORLD = make_world("gaussian", dim=3, arms=4, noise=0.5)
DEVICE = Category("device", levels=["ios", "web"])
FEATURES = Features(fields=[DEVICE], arms=Arms(ids=["a", "b", "c"], own=["device"]))
USERS = [{"device": "ios"}, {"device": "web"}]
RECORDS = RecordWorld(features=FEATURES, sample=USERS, offers=dict.fromkeys("abc"), since={"c": 10})


def made(**settings: object) -> Experiment:
    return create("memory:", "spring", seed=1, now=0, **{"dim": 3, "policies": 4, "horizon": 400, **settings})  # type: ignore[arg-type]


def test_prompt_rewards_give_the_policies_of_a_simulation_with_these_batches() -> None:
    trial = made()
    played = play(trial, WORLD, Traffic(rate=400), days=1, seed=1, step="1min")
    grid = [*(count for count, _ in played.updates), 400]
    run = simulate(Foresight(dim=3, grid=grid, horizon=400), WORLD, seed=1)
    assert len(played.updates) == 3
    assert played.decisions == 400
    assert 0.5 * run.regret < played.regrets.sum() < 2.0 * run.regret  # other random numbers, the same learning


def test_every_reward_comes_once_twice_later_or_never() -> None:
    trial = made(schedule="by hand")
    traffic = Traffic(rate=2000, delay="1h", missing=0.2, repeated=0.3)
    played = play(trial, WORLD, traffic, days=1, seed=1)
    totals = trial.store.totals()
    assert played.updates == []
    assert totals.rewards == played.rewards - played.repeated
    assert totals.repeated_rewards == played.repeated > 0
    bound = math.sqrt(math.log(2 / 1e-6) / (2 * 2000))  # Hoeffding, false alarm at most 1e-6
    assert abs(played.missing / 2000 - 0.2) <= bound
    assert 0 < played.pending < 2000 * 0.8 * 1.3
    assert totals.rewards + played.missing <= 2000


def test_a_second_stretch_goes_on_where_the_first_ended() -> None:
    trial = made()
    first = play(trial, WORLD, Traffic(rate=100), days=1, seed=1)
    second = play(trial, WORLD, Traffic(rate=100), days=1, seed=1)
    assert second.start > first.start
    assert trial.status().decisions == 200
    assert trial.audit("visit-150").matches


def test_users_with_records_and_an_arm_that_comes_later() -> None:
    trial = create("memory:", "spring", features=FEATURES, policies=3, horizon=100, seed=1, now=0)
    played = play(trial, RECORDS, Traffic(rate=100), days=1, seed=1)
    assert played.decisions == len(played.regrets) == 100
    assert played.regrets.min() >= 0.0
    rounds = RECORDS.draw(100, seed=1)
    assert rounds.available is not None
    assert rounds.available.sum(axis=1).tolist() == [2] * 10 + [3] * 90
    best = np.where(rounds.available, rounds.means, 0.0).max(axis=1)
    assert played.earned == pytest.approx(best.sum() - played.regrets.sum())
    arms = [trial.audit(f"visit-{k}").arm for k in range(100)]
    assert "c" not in arms[:10]
    assert "c" in arms[10:]


def test_worlds_that_do_not_fit_are_refused() -> None:
    raises(InputError, "records mean nothing to it", play, made(), RECORDS, Traffic(), days=1)
    with pytest.raises(InputError, match="for vectors of 3 features; the world has 2"):
        play(made(), make_world("gaussian", dim=2, arms=4, noise=0.5), Traffic(), days=1)
    trial = create("memory:", "spring", features=FEATURES, policies=3, seed=1)
    with pytest.raises(InputError, match="its users come from a sample of records"):
        play(trial, make_world("gaussian", dim=FEATURES.dim, arms=4, noise=0.5), Traffic(), days=1)
    with pytest.raises(InputError, match="needs a sample of users, and arms"):
        RecordWorld(features=FEATURES, sample=[], offers={"a": None})


@pytest.mark.parametrize("given", [{"rate": 0}, {"delay": -1}, {"missing": 1.5}, {"repeated": math.nan}])
def test_traffic_that_cannot_be_is_refused(given: dict[str, float]) -> None:
    raises(ParameterError, f"^{next(iter(given))} must be", Traffic, **given)
    raises(ParameterError, "step must be", play, made(), WORLD, Traffic(), days=1, step=0)
