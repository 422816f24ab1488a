"""Parameters from adaptive batches: least squares as textbooks have them, pooled so that intervals hold."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rareswitch.design import Uniform
from rareswitch.errors import EmptySetError, ParameterError, ShapeError
from rareswitch.evaluation import parameters
from rareswitch.evaluation.multiplicity import corrected
from rareswitch.features import Arms, Category, Features
from rareswitch.log import Logged
from rareswitch.policy import Policy
from rareswitch.validation import FloatArray

#: A test that should pass does so with this probability, less one.
RISK = 1e-6


def log_of(x: Any, rewards: Any, **more: Any) -> Logged:
    count = len(x)
    return Logged(places=np.zeros(count, int), propensities=np.ones(count), features=x, rewards=rewards, **more)


def sample(count: int = 200, dim: int = 3, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, dim)) * [1.0, 10.0, 0.1][:dim]
    return x, x @ np.array([0.5, 0.0, -2.0][:dim]) + rng.normal(size=count) * np.exp(x[:, 0])


def adaptive(seed: int, *, batches: int = 10, length: int = 60, floor: float = 0.1) -> Logged:
    """Two plain arms that are alike; each batch plays the one that did better so far, but for a floor."""
    rng = np.random.default_rng(seed)
    sums, plays, places = np.zeros(2), np.zeros(2), []
    rewards = rng.normal(size=(batches, length))
    for batch in range(batches):
        first = 0.5 if batch == 0 else 1.0 - floor if sums[0] / plays[0] > sums[1] / plays[1] else floor
        place = (rng.random(length) >= first).astype(int)
        place[:2] = (0, 1)
        places.append(place)
        sums += np.bincount(place, rewards[batch], minlength=2)
        plays += np.bincount(place, minlength=2)
    chosen = np.concatenate(places)
    names = tuple(f"policy {k}" for k in range(batches))
    return log_of(np.eye(2)[chosen], rewards.ravel(), batches=np.repeat(np.arange(batches), length), batch_names=names)


@pytest.mark.parametrize(("variance", "power"), [("hc2", 1.0), ("hc3", 2.0)])
def test_one_batch_is_least_squares_with_robust_errors(variance: Any, power: float) -> None:
    x, rewards = sample()
    inverse = np.linalg.inv(x.T @ x)
    theta = inverse @ x.T @ rewards
    leverage = np.einsum("nd,de,ne->n", x, inverse, x)
    squares = (rewards - x @ theta) ** 2 / (1.0 - leverage) ** power
    errors = np.sqrt(np.diag(inverse @ (x.T * squares) @ x @ inverse))
    found = parameters(log_of(x, rewards), variance=variance, correction="none")
    for k, one in enumerate(found):
        (part,) = one.batches
        assert part.value == pytest.approx(theta[k])
        assert part.error == pytest.approx(errors[k])
        assert one.interval is not None
        assert one.p_value is not None
        assert one.interval.value == pytest.approx(theta[k])
        half = one.interval.high - one.interval.value
        # rows of unequal weight have fewer degrees of freedom than 200 less the 3 parameters
        assert stats.t.ppf(0.975, 197) * errors[k] * (1 - 1e-9) <= half <= stats.t.ppf(0.975, 10) * errors[k]
        assert (one.p_value < 0.05) == (not one.interval.low <= 0.0 <= one.interval.high)


def test_intervals_hold_in_adaptive_logs() -> None:
    """Both coefficients and their difference, in 300 logs; a share this low has probability below 1e-6 each."""
    runs, held = 300, np.zeros(3)
    for seed in range(runs):
        asked = {"first": [1.0, 0.0], "second": [0.0, 1.0], "gap": [1.0, -1.0]}
        found = parameters(adaptive(seed), asked, correction="none")
        held += [one.interval is not None and one.interval.low <= 0.0 <= one.interval.high for one in found]
    assert (held >= stats.binom.ppf(RISK, runs, 0.95)).all()
    assert (held <= runs).all()
    assert (held < runs).any()  # they are no wider than needed: 300 of 300 each has probability 1e-20


def test_intervals_have_the_stated_width() -> None:
    """With equal batches of plain arms they are those of all rows at once, but for Student's t."""
    rng = np.random.default_rng(3)
    chosen, rewards = np.tile([0, 1], 400), rng.normal(size=800)
    log = log_of(np.eye(2)[chosen], rewards, batches=np.repeat(np.arange(8), 100), batch_names=tuple("abcdefgh"))
    one = parameters(log, correction="none")["feature 0"]
    assert one.interval is not None
    assert one.interval.value == pytest.approx(rewards[::2].mean())
    half = 1.96 * rewards[::2].std(ddof=1) / 20.0
    # 8 errors of 49 degrees of freedom each: their mean square differs by less than 5 standard errors, √(2/392)
    assert one.interval.high - one.interval.value == pytest.approx(half, rel=0.5 * 5.0 * math.sqrt(2.0 / 392.0))


def test_batches_that_do_not_determine_a_direction_are_left_out_and_named() -> None:
    x, rewards = sample(400, 2)
    x[200:, 1] = 0.0
    log = log_of(x, rewards, batches=np.repeat([0, 1], 200), batch_names=("early", "late"))
    found = parameters(log)
    whole = parameters(log.select(slice(200)))
    assert [bool(part.left_out) for part in found["feature 1"].batches] == [False, True]
    assert found["feature 1"].batches[1].left_out == "a column of it is 0 in all rows"
    assert found["feature 1"].batches[1].value is None
    assert "batch 2 cannot tell and is left out" in found["feature 1"].cautions[0]
    assert not found["feature 0"].cautions
    assert not any(part.left_out for part in found["feature 0"].batches)
    assert found["feature 1"].interval == whole["feature 1"].interval


def test_what_no_batch_determines_is_refused_without_a_number() -> None:
    rng = np.random.default_rng(1)
    arm, device = rng.integers(2, size=(2, 400))
    x = np.column_stack([np.eye(2)[arm], np.eye(2)[device]])
    log = log_of(x, arm + device + rng.normal(size=400))
    found = parameters(log)
    assert all(one.interval is None and one.p_value is None and one.refusals for one in found)
    assert "vary only together" in found["feature 0"].refusals[0]
    gap = parameters(log, {"gap": {"feature 1": 1.0, "feature 0": -1.0}})["gap"]
    assert gap.interval is not None
    assert abs(gap.interval.value - 1.0) < 5.0 * 2.0 / math.sqrt(400.0)


def test_too_few_rows_are_refused() -> None:
    x, rewards = sample(15, 1)
    (one,) = parameters(log_of(x, rewards))
    assert one.interval is None
    assert "20 are needed" in one.refusals[0]
    x[0, 0] = 1e4  # a single row that decides everything
    (one,) = parameters(log_of(*(np.concatenate([a, b]) for a, b in zip((x, rewards), sample(100, 1), strict=True))))
    assert one.interval is None


def test_rewards_that_never_vary_give_no_interval() -> None:
    (one,) = parameters(log_of(np.ones((100, 1)), np.zeros(100)))
    assert one.interval is None
    assert "do not vary" in one.refusals[0]


def test_levels_of_rewards_do_not_cost_digits() -> None:
    x, rewards = sample(200, 2)
    near, far = (parameters(log_of(x, rewards + level), intercept=True) for level in (0.0, 1e9))
    for one, other in zip(near, far, strict=True):
        assert one.interval is not None
        assert other.interval is not None
        level = 1e9 if one.name == "intercept" else 0.0
        assert other.interval.value == pytest.approx(one.interval.value + level, abs=1e-5)
        assert other.interval.high - other.interval.low == pytest.approx(one.interval.high - one.interval.low, rel=1e-4)


def test_rows_without_rewards_are_counted_and_left_out() -> None:
    x, rewards = sample(200, 2)
    some = np.where(np.arange(200) < 50, np.nan, rewards)
    found, known = parameters(log_of(x, some)), parameters(log_of(x[50:], rewards[50:]))
    assert (found.decisions, found.rewarded, known.decisions) == (200, 150, 150)
    assert found.parameters[0].interval == known.parameters[0].interval


class Chunked:
    """A log that is read some at a time."""

    def __init__(self, log: Logged, size: int) -> None:
        self._log, self._size = log, size
        self.batch_names, self.estimated, self.dim = log.batch_names, log.estimated, log.dim
        self.policies: Mapping[str, Policy] = log.policies

    def chunks(self, *, contexts: bool = True) -> Iterator[Logged]:
        for first in range(0, len(self._log), self._size):
            yield self._log.select(slice(first, first + self._size))


def test_chunks_do_not_matter() -> None:
    log = adaptive(5)
    for one, other in zip(parameters(log), parameters(Chunked(log, 77)), strict=True):
        assert one.interval is not None
        assert other.interval is not None
        assert [other.interval.low, other.interval.high] == pytest.approx([one.interval.low, one.interval.high])


def test_columns_go_by_the_names_and_units_of_the_features() -> None:
    """A level adds what its column says before vectors are divided by the square root of the number of terms."""
    features = Features(fields=[Category("device", levels=["ios", "web"])], arms=Arms(ids=["a", "b"]))
    rng = np.random.default_rng(2)
    devices, arms = rng.choice(["ios", "web"], size=600), rng.choice(["a", "b"], size=600)
    x = np.stack([features.encode({"device": d}, [a]).vectors[0] for d, a in zip(devices, arms, strict=True)])
    rewards = 1.0 * (devices == "ios") + 2.0 * (arms == "b") + rng.normal(size=600)
    policy = Policy(dim=features.dim, sampler=Uniform(), features=features)
    log = log_of(x, rewards, batch_names=(policy.id,), policies={policy.id: policy})
    asked = {"ios": {"device=ios": 1.0, "device=web": -1.0}, "b": {"arm b": 1.0, "arm a": -1.0}}
    found = parameters(log, asked)
    for name, truth in (("ios", 1.0), ("b", 2.0)):
        interval = found[name].interval
        assert interval is not None
        assert abs(interval.value - truth) < 5.0 * 2.0 / math.sqrt(600.0)  # 5 standard errors of a difference
    assert [one.name for one in parameters(log)] == [*features.columns]


@pytest.mark.parametrize("correction", ["none", "bonferroni", "holm"])
def test_several_are_corrected_for_together(correction: Any) -> None:
    log = log_of(*sample(400))
    alone, found = parameters(log, correction="none"), parameters(log, correction=correction)
    raw = [one.p_value for one in alone if one.p_value is not None]
    assert [one.p_value for one in found] == pytest.approx(corrected(raw, 3, correction))
    for one in found:
        assert one.interval is not None
        assert one.interval.level == pytest.approx(0.95 if correction == "none" else 1.0 - 0.05 / 3.0)
    assert ("hold together" in str(found)) == (correction != "none")


def test_holm_is_between_bonferroni_and_nothing() -> None:
    raw = [0.04, 0.001, 0.02, 0.3]
    assert corrected(raw, 4, "holm") == pytest.approx([0.08, 0.004, 0.06, 0.3])
    assert corrected(raw, 4, "bonferroni") == pytest.approx([0.16, 0.004, 0.08, 1.0])
    assert corrected([], 4, "holm") == []


def test_they_print_and_are_plain_data() -> None:
    found = parameters(adaptive(1))
    text = str(found)
    assert "feature 0" in text
    assert "95 % interval" in text
    assert "10 of 10" in text
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert [one["name"] for one in plain["parameters"]] == ["feature 0", "feature 1"]
    with pytest.raises(KeyError):
        found["nothing"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"level": 1.0}, "level"),
        ({"variance": "hc9"}, "hc2, hc3"),
        ({"correction": "some"}, "none, bonferroni, holm"),
        ({"contrasts": {}}, "contrasts must be a dict"),
        ({"contrasts": {"gap": {"age": 1.0}}}, "there are feature 0, feature 1"),
        ({"contrasts": {"gap": {"feature 0": 0.0}}}, "not 0"),
        ({"contrasts": {"gap": {"feature 0": math.nan}}}, "contrasts"),
    ],
)
def test_what_is_asked_wrongly_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        parameters(log_of(*sample(50, 2)), **wrong)


def test_logs_that_cannot_be_fitted_are_refused() -> None:
    with pytest.raises(ParameterError, match="no vectors"):
        parameters(Logged(places=np.zeros(1, int), propensities=np.ones(1), rewards=np.ones(1)))
    with pytest.raises(EmptySetError, match="has a reward"):
        parameters(log_of(np.ones((3, 1)), np.full(3, np.nan)))
    with pytest.raises(ShapeError):
        parameters(log_of(*sample(50, 2)), {"gap": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("scale", [1e90, 1e-90])
def test_features_whose_squares_overflow_are_refused(scale: float) -> None:
    rng = np.random.default_rng(2)
    columns: dict[str, Any] = {"places": np.zeros(300, dtype=int), "propensities": np.ones(300)}
    rewards, features = rng.normal(size=300), scale * rng.normal(size=(300, 2))
    found = parameters(Logged(features=features, rewards=rewards, **columns))
    assert all(one.interval is None and "other units" in one.refusals[0] for one in found.parameters)
