"""Levels and units of rewards and features: they do not matter, or it is said."""

import warnings
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from rareswitch.core import FloatArray, Stats
from rareswitch.decisions import DecisionLog
from rareswitch.errors import LevelWarning, NonFiniteError, OutlierWarning, UnsuitableError
from rareswitch.lab.rivals import Falcon
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, Learner, State, make_learner, state_from_bytes, state_to_bytes
from rareswitch.learner.rule import OneModel
from rareswitch.learner.state import centred, offset_of, unexplained_level
from reference.refusals import raises

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.3)
#: Each pair of raised rewards and their plain ones: exact in double precision, so that nothing but the sums can differ.
GRAIN = 2.0**-16


def played(
    learner: Learner, *, level: float = 0.0, rewards: float = 1.0, features: float = 1.0, parts: int = 1
) -> tuple[list[int], State]:
    """The arms of a run in other units, each batch summarized in so many parts."""
    state, arms = learner.begin(), []
    while not state.done:
        count = state.batch_sizes[0]
        rounds, at = WORLD.draw(count, seed=3, first=state.start), np.arange(count)
        contexts = rounds.contexts * features
        decisions = state.policy.decide(contexts, ids=range(state.start, state.stop), seed=3)
        paid = WORLD.rewards(rounds.means[at, decisions.arms], seed=3, first=state.start)
        rows = DecisionLog.of(contexts, decisions, (np.round(paid / GRAIN) * GRAIN + level) * rewards)
        arms += decisions.arms.tolist()
        cuts = np.array_split(at, min(parts, count))
        summary = reduce(add, [learner.summarize(state, rows.select(cut)) for cut in cuts])
        state = state_from_bytes(state_to_bytes(learner.next(state, summary)))
    return arms, state


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize(
    "units",
    [
        *({"level": level} for level in (1e9, -1e9, 1e6)),
        *({name: unit} for name in ("rewards", "features") for unit in (1e12, 1e-12)),
        *({"rewards": unit, "features": unit} for unit in (1e90, 1e-90)),
        {"level": 1e9, "rewards": 1e12, "features": 1e-12},
    ],
    ids=str,
)
def test_neither_units_nor_with_an_intercept_the_level_matter(units: dict[str, float], parts: int) -> None:
    for intercept in (True, False)[: 1 if "level" in units else 2]:
        learner = Foresight(dim=3, horizon=400, policies=4, intercept=intercept)
        assert played(learner, **units, parts=parts)[0] == played(learner, parts=parts)[0]


@pytest.mark.parametrize("name", ["falcon", "batch-linucb", "thompson-grid", "pure-exploitation"])
@pytest.mark.parametrize("rewards", [1e12, 1e-12])
def test_learners_that_are_told_the_noise_are_told_it_in_units(name: str, rewards: float) -> None:
    def made(unit: float) -> Learner:
        return make_learner(name, dim=3, arms=5, horizon=400, noise=0.3 * unit, norm=unit)

    assert played(made(rewards), rewards=rewards)[0] == played(made(1.0))[0]


def test_no_noise_is_no_error_of_falcon() -> None:
    assert played(Falcon(dim=3, arms=5, horizon=100, noise=0.0))[1].done


def rows(count: int = 40, **given: Any) -> tuple[Learner, Any]:
    learner = given.pop("learner", None) or Foresight(dim=3, grid=[count, 2 * count], intercept=False)
    state = learner.begin()
    contexts = np.random.default_rng(1).standard_normal((count, 5, 3)) / 4.0 * given.get("features", 1.0)
    decisions = state.policy.decide(contexts, ids=given.get("ids", range(count)), seed=1)
    paid = np.sin(np.arange(count)) * given.get("rewards", 1.0) + given.get("level", 0.0)
    return learner, learner.summarize(state, DecisionLog.of(contexts, decisions, paid))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"level": 1e9}, UnsuitableError, r"rewards lie around 1e\+09, within 2 of each other.*Set intercept=True, or"),
        ({"features": 1e-155}, UnsuitableError, r"features must not all be below 1e-100 .*Multiply all features"),
        ({"features": 1e-160}, UnsuitableError, r"features must not all be below 1e-100 in size"),
        ({"rewards": 1e-160}, UnsuitableError, r"rewards must not all be below 1e-100 in size"),
        ({"features": 1e200}, NonFiniteError, r"contexts must be at most 1e\+100 in size.*Divide all contexts"),
        ({"rewards": 1e200}, NonFiniteError, r"rewards must be at most 1e\+100 .*index 1 is 8\.41\d*e\+199"),
        ({"rewards": 1e308}, NonFiniteError, r"rewards must be at most 1e\+100 in size.*Divide all rewards"),
    ],
)
def test_numbers_whose_sums_would_lose_them_are_refused(given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        learned(*rows(**given))


def learned(learner: Learner, summary: Any) -> None:
    learner.next(learner.begin(), summary)


def test_a_small_part_of_a_batch_may_be_alike() -> None:
    """What a batch must not be is looked for in the whole of it, however it was cut."""
    odd_ones: list[dict[str, Any]] = [{"features": 1e-120}, {"rewards": 1e-9, "level": 0.5}, {"rewards": 1e-120}]
    for given in odd_ones:
        learner, plain = rows()
        _, odd = rows(ids=range(100, 140), **given)
        learned(learner, plain + odd)
        raises(UnsuitableError, r"must not all be below|leaves no digits", learned, learner, odd)


def test_rewards_that_differ_by_rounding_are_all_the_same() -> None:
    learner = make_learner("linucb-grid", dim=3, arms=5, horizon=100, grid=[20, 100])
    state = learner.begin()
    contexts = np.random.default_rng(1).standard_normal((20, 5, 3)) / 4.0
    decisions = state.policy.decide(contexts, ids=range(20), seed=1)
    summary = learner.summarize(state, DecisionLog.of(contexts, decisions, [0.3, 0.1 + 0.2] * 10))
    with pytest.warns(LevelWarning):
        assert learner.next(state, summary).policies == 2


def test_learners_in_the_unit_ball_refuse_vectors_that_are_nothing_to_their_ridge() -> None:
    told = {"dim": 3, "arms": 5, "horizon": 100, "grid": [40, 100]}
    with pytest.raises(UnsuitableError, match=r"features must not all be below 0\.0001 .* as this learner is for"):
        learned(*rows(learner=make_learner("batch-linucb", **told, norm=1e12), features=1e-12))
    with pytest.raises(UnsuitableError, match=r"arms apart\. Subtract a constant from all rewards, the same"):
        learned(*rows(learner=make_learner("batch-linucb", **told), level=1e9))


def test_rewards_that_are_all_the_same_are_no_level_to_refuse() -> None:
    learner, summary = rows(rewards=0.0, level=1e9)
    assert summary.rewarded == 40
    with pytest.warns(LevelWarning, match="rewards lie around"):
        assert learner.next(learner.begin(), summary).policies == 2


def test_a_level_without_an_intercept_is_said_once_and_noted_at_every_update() -> None:
    """Regret was 15 times that with an intercept here, and nothing said so."""
    with pytest.warns(LevelWarning, match="which the features do not explain: foresight takes it") as said:
        _, state = played(Foresight(dim=3, horizon=400, policies=4, intercept=False), level=1000.0)
    assert len(said) == 1
    assert [note["update"] for note in state.notes if "level" in note] == [1, 2, 3]
    assert state.notes[-1]["level"] == pytest.approx(1000.0, abs=1.0)


@pytest.mark.parametrize("learner", [Foresight(dim=3, horizon=400, intercept=False), Foresight(dim=3, horizon=400)])
def test_no_level_is_said_where_there_is_none(learner: Learner) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, state = played(learner, level=1000.0 if learner.parts.statistics.intercept else 0.0)
    assert not any("level" in note for note in state.notes)


def test_a_level_is_noticed_by_more_than_chance_and_not_where_features_express_it() -> None:
    """χ² of one degree exceeds 50 with a probability below 2e-12: 2000 draws without a level give no alarm."""
    rng = np.random.default_rng(4)
    for seed in range(2000):
        x = rng.standard_normal((30, 2)) + (seed % 5)
        assert unexplained_level((Stats.of(x, x @ [0.1, -0.2] * (seed % 3) + rng.standard_normal(30)),)) is None
    x = rng.standard_normal((400, 2))
    noise = rng.standard_normal(400)
    assert unexplained_level((Stats.of(x, x[:, 0] + 2.0 + noise),)) == pytest.approx(2.0, abs=0.3)
    with_constant = np.column_stack([x, np.ones(400)])
    assert unexplained_level((Stats.of(with_constant, x[:, 0] + 1e5 + noise),)) is None
    parts = tuple(Stats.of(x[half], (x[:, 0] + 2.0 + noise)[half]) for half in (slice(200), slice(200, 400)))
    assert unexplained_level(parts) == pytest.approx(2.0, abs=0.3)
    assert unexplained_level((Stats(gram=np.eye(2), moment=np.zeros(2), count=9, square_sum=1e9),)) is None


def test_sums_with_different_shifts_add_up_in_any_order() -> None:
    """To what they are in exact arithmetic: all numbers here are multiples of 2⁻¹⁶."""
    rng = np.random.default_rng(5)
    x = np.column_stack([np.round(rng.standard_normal((60, 2)) * 256) / 256, np.ones(60)])
    r = np.round(rng.standard_normal(60) * 256) / 256
    state, model = Foresight(dim=2, intercept=False).begin(), OneModel(dim=2, intercept=True)
    parts = [model.of(state, x[k : k + 3, :2], r[k : k + 3] + 1e9, None)[0] for k in range(0, 60, 3)]
    assert len({part.shift for part in parts}) > 5
    plain = centred(Stats.of(x, r))
    for order in (range(20), reversed(range(20))):
        total = centred(reduce(add, [parts[k] for k in order]))
        np.testing.assert_allclose(total.moment, plain.moment, rtol=1e-9)
        np.testing.assert_allclose(total.square_sum, plain.square_sum, rtol=1e-9)


def test_the_level_is_taken_off_only_where_it_is_high() -> None:
    assert offset_of(np.array([1.0, 0.0, 1.0])) == 0.0
    assert offset_of(np.zeros(0)) == 0.0
    assert offset_of(np.full(4, 0.1)) == 0.1
    assert offset_of(-1e9 + np.arange(3.0)) == -1e9 + 1.0


def with_outliers(learner: Learner, rewards: FloatArray) -> State:
    state, count = learner.begin(), len(rewards)
    contexts = np.random.default_rng(1).standard_normal((count, 5, 3)) / 4.0
    decisions = state.policy.decide(contexts, ids=range(count), seed=1)
    parts = [DecisionLog.of(contexts, decisions, rewards).select(at) for at in (slice(0, 150), slice(150, count))]
    first, second = (learner.summarize(state, rows, part=True) for rows in parts)
    return learner.next(state, first + second)


def test_a_reward_far_from_all_others_is_said_and_noted() -> None:
    rewards = np.random.default_rng(2).standard_normal(400)
    rewards[7] = 90.0
    with pytest.warns(OutlierWarning, match=r"lies 19 standard deviations from the mean: a few rewards decide"):
        state = with_outliers(Foresight(dim=3, horizon=1000), rewards)
    assert state.notes[-1]["outlier"] == pytest.approx(abs(rewards - rewards.mean()).max() / rewards.std())


@pytest.mark.parametrize("shape", ["normal", "exponential", "rare clicks", "rare sales", "level"])
def test_no_outlier_is_said_where_there_is_none(shape: str) -> None:
    rng = np.random.default_rng(3)
    rare = (np.arange(400) % 200 == 1).astype(np.float64)  # 14 standard deviations from the mean
    rewards = {
        "normal": rng.standard_normal(400),
        "exponential": rng.exponential(size=400),
        "rare clicks": rare,
        "rare sales": 30.0 * rare,
        "level": 1e6 + rng.standard_normal(400),
    }[shape]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = with_outliers(Foresight(dim=3, horizon=1000, intercept=True), rewards)
    assert not any("outlier" in note for note in state.notes)
