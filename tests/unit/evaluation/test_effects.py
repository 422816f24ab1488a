"""Effects of arms from adaptive logs: what they are, that their intervals hold, for whom, and what is refused."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import EmptySetError, ParameterError, ShapeError
from rareswitch.evaluation import Effects, effects
from rareswitch.evaluation.scoring import ArmMeans
from rareswitch.features import Arms, Category, Features, Flag, Number, Vector
from rareswitch.policy import Blend, Policy, PosteriorDraws
from reference.logged import Chunked, decided_by
from reference.refusals import raises

#: A test that should pass does so with this probability, less one.
RISK = 1e-6
NAMES = ("red", "blue", "green")


def uniform(count: int, means: Any, *, seed: int = 1, **more: Any) -> DecisionLog:
    """Arms shown alike, with noise of σ = 1 around means, (K,) or (n, K)."""
    rng = np.random.default_rng(seed)
    means = np.broadcast_to(means, (count, np.shape(means)[-1]))
    places = rng.integers(means.shape[1], size=count)
    facts: dict[str, Any] = {
        "arm_indices": places,
        "propensities": np.full(count, 1.0 / means.shape[1]),
        "rewards": means[np.arange(count), places] + rng.normal(size=count),
        "arms": NAMES[: means.shape[1]],
    }
    return DecisionLog(**facts | more)


def margin(count: int) -> float:
    """An effect of two of K = 2 uniform arms with σ = 1 is off by more with probability below 1e-6: σ √(4/n) each."""
    return float(stats.norm.ppf(1.0 - RISK / 2.0)) * math.sqrt(4.0 / count)


def adaptive(seed: int, *, batches: int = 6, length: int = 300, gap: float = 0.0) -> DecisionLog:
    """Two arms; each batch is greedy by all before it, but for a share of 0.3 that is uniform; σ = 1."""
    rng = np.random.default_rng(seed)
    eye, sums, plays = np.broadcast_to(np.eye(2), (length, 2, 2)), np.zeros(2), np.zeros(2)
    policies, parts = [Policy(dim=2, sampler=Uniform())], []
    for batch in range(batches):
        decided = policies[-1].decide(eye, ids=range(batch * length, (batch + 1) * length), seed=seed)
        rewards = gap * decided.arms + rng.normal(size=length)
        parts.append(DecisionLog.of(eye, decided, rewards))
        sums += np.bincount(decided.arms, rewards, minlength=2)
        plays += np.bincount(decided.arms, minlength=2)
        greedy = Blend(main=PosteriorDraws(draws=(sums / plays)[None]), explorer=Uniform(), share=0.3)
        policies.append(Policy(dim=2, sampler=greedy, edition=batch + 1))
    names = tuple(policy.id for policy in policies[:-1])
    log = DecisionLog.joined(
        [replace(part, batches=np.full(length, k), batch_names=names, arms=NAMES[:2]) for k, part in enumerate(parts)]
    )
    return replace(log, policies=dict(zip(names, policies, strict=False)))


def test_an_effect_is_the_mean_of_augmented_weighted_scores() -> None:
    log = uniform(600, [0.0, 0.5])
    model = ArmMeans(1)
    model.add(log)
    predicted = model.predict(log)
    signs = np.where(log.arm_indices == 1, 1.0, -1.0)
    scores = (
        predicted[:, 1] - predicted[:, 0] + signs / 0.5 * (log.rewards - predicted[np.arange(600), log.arm_indices])
    )
    (one,) = effects(log, "blue", "red")
    assert one.interval.value == pytest.approx(scores.mean())
    assert one.batches[0].error == pytest.approx(scores.std(ddof=1) / math.sqrt(600.0))
    assert (one.decisions, one.shown + one.shown_against) == (600, 600)
    turned = effects(log, "red", "blue")["red"].interval
    assert [-turned.high, -turned.low] == pytest.approx([one.interval.low, one.interval.high])


def test_intervals_hold_in_adaptive_logs() -> None:
    """Of 200 logs; a share this low has probability below 1e-6."""
    held = 0
    for seed in range(200):
        interval = effects(adaptive(seed, gap=0.1), "blue", "red")["blue"].interval
        held += interval is not None and interval.low <= 0.1 <= interval.high
    assert held >= stats.binom.ppf(RISK, 200, 0.95)
    assert held < 200  # all of them has probability 0.95^200 < 1e-4


def test_the_baseline_is_another_arm_in_the_decisions_that_count() -> None:
    baselines = np.random.default_rng(2).integers(-1, 2, size=3000)
    log = uniform(3000, [0.0, 1.0], baselines=baselines)
    found = effects(log)
    assert {one.against for one in found} == {"baseline"}
    assert found["blue"].decisions == int((baselines == 0).sum())
    assert found["red"].decisions == int((baselines == 1).sum())
    interval = found["blue"].interval
    assert abs(interval.value - 1.0) < margin(int((baselines == 0).sum()))


def test_every_arm_comes_the_best_first_and_corrected() -> None:
    log = uniform(6000, [0.0, 1.0, 0.5])
    found = effects(log)
    assert [one.arm for one in found] == ["blue", "green", "red"]
    assert found.correction == "bonferroni"
    for one in found:
        alone = effects(log, one.arm, "rest")[one.arm]
        assert one.interval.value == pytest.approx(alone.interval.value)
        assert one.interval.level == pytest.approx(1.0 - 0.05 / 3.0)
        assert one.p_value == pytest.approx(min(1.0, 3.0 * alone.p_value))
    assert "hold together" in str(found)


def test_decisions_that_do_not_offer_both_do_not_count() -> None:
    rng = np.random.default_rng(1)
    available = np.ones((4000, 3), dtype=bool)
    available[:1000, 2] = False
    places = np.where(np.arange(4000) < 1000, rng.integers(2, size=4000), rng.integers(3, size=4000))
    propensities = np.where(np.arange(4000) < 1000, 0.5, 1.0 / 3.0)
    facts: dict[str, Any] = {"arm_indices": places, "propensities": propensities, "available": available, "arms": NAMES}
    log = DecisionLog(rewards=places + rng.normal(size=4000), **facts)
    assert effects(log, "green", "red")["green"].decisions == 3000
    assert effects(log, "blue", "red")["blue"].decisions == 4000


def test_groups_have_effects_of_their_own_and_a_difference_is_found() -> None:
    kind = np.where(np.arange(4000) % 2, "new", "old")
    means = np.where((kind == "new")[:, None], [0.0, 0.5], [0.5, 0.0])
    found = effects(uniform(4000, means), "blue", "red", by=kind)
    assert [one.group for one in found] == ["", "new", "old"]
    for group, truth in (("", 0.0), ("new", 0.5), ("old", -0.5)):
        interval = found[group].interval
        # scores also vary as effects do, by 0.25
        assert abs(interval.value - truth) < 1.1 * margin(4000 if group == "" else 2000)
    assert found.differ.freedom == 1
    assert found.differ.p_value < 1e-6
    assert found["new"].interval.level == pytest.approx(0.975)
    assert found[""].interval.level == 0.95
    assert "differs between groups" in str(found)


def test_a_difference_between_groups_is_rarely_seen_where_there_is_none() -> None:
    """At 5 %, in 100 logs; more than this many has probability below 1e-6."""
    alarms = 0
    for seed in range(100):
        labels = np.random.default_rng(seed + 500).choice(["a", "b", "c"], size=900)
        found = effects(uniform(900, [0.0, 0.3], seed=seed), "blue", "red", by=labels)
        alarms += found.differ.p_value < 0.05
    assert alarms <= stats.binom.isf(RISK, 100, 0.05)


FIELDS: dict[str, Any] = {
    "alone": {"fields": [Category("device", levels=["ios", "web"])], "arms": Arms(ids=NAMES[:2])},
    "own to arms": {
        "fields": [Category("device", levels=["ios", "web"], alone=False)],
        "arms": Arms(ids=NAMES[:2], own=["device"]),
    },
    "crossed first": {
        "fields": [Category("device", levels=["ios", "web"], alone=False), Category("day", levels=["mon"])],
        "crossings": [("device", "day")],
        "arms": Arms(ids=NAMES[:2]),
    },
    "crossed second": {
        "fields": [Category("device", levels=["ios", "web"], alone=False), Category("day", levels=["mon"])],
        "crossings": [("day", "device")],
        "arms": Arms(ids=NAMES[:2]),
    },
}


def encoded(features: Features, records: list[dict[str, Any]], *, seed: int = 1) -> DecisionLog:
    """Decisions about records, by a policy that shows both arms alike and carries the features."""
    rng = np.random.default_rng(seed)
    policy = Policy(dim=features.dim, sampler=Uniform(), features=features)
    contexts = features.encode_many(records, [*NAMES[:2]]).vectors
    return decided_by([policy], contexts, lambda arms: arms + rng.normal(size=len(arms)), seed=seed, arms=NAMES[:2])


def counts(found: Effects) -> dict[str, int]:
    return {one.group: one.decisions for one in found if one.group}


@pytest.mark.parametrize("how", FIELDS)
def test_levels_of_a_field_are_read_off_the_vectors(how: str) -> None:
    devices = ["ios"] * 300 + ["web"] * 200 + ["tv"] * 50 + [None] * 50
    records = [{"device": device, "day": "mon"} for device in devices]
    found = effects(encoded(Features(**FIELDS[how]), records), "blue", "red", by="device")
    groups = {"device=ios": 300, "device=web": 200, "device unknown": 50, "device missing": 50}
    assert list(counts(found).items()) == list(groups.items())


def test_flags_and_halves_of_numbers_are_read_off_the_vectors() -> None:
    fields = [Number("age", mean=40, scale=10, alone=False), Flag("member"), Vector("taste", length=2)]
    features = Features(fields=fields, arms=Arms(ids=NAMES[:2], own=["age"]))
    rng = np.random.default_rng(1)
    records = [
        {"age": None if k % 10 == 0 else 20.0 + k % 7, "member": k % 4 == 0, "taste": rng.normal(size=2)}
        for k in range(700)
    ]
    log = encoded(features, records)
    ages = np.array([float(record["age"]) for record in records if record["age"] is not None])
    found = counts(effects(log, "blue", "red", by="age"))
    assert [*found] == ["age ≤ 23", "age > 23", "age missing"]
    assert [*found.values()] == [int((ages <= 23.0).sum()), int((ages > 23.0).sum()), 70]
    assert counts(effects(log, "blue", "red", by="member")) == {"member: yes": 175, "member: no": 525}
    raises(ParameterError, "is a vector", effects, log, "blue", "red", by="taste")


def test_a_number_that_is_mostly_its_largest_value_is_split_below_it() -> None:
    features = Features(fields=[Number("visits", mean=1, scale=1)], arms=Arms(ids=NAMES[:2]))
    log = encoded(features, [{"visits": 0 if k % 3 == 0 else 1} for k in range(600)])
    assert counts(effects(log, "blue", "red", by="visits")) == {"visits < 1": 200, "visits ≥ 1": 400}


def test_what_cannot_be_read_off_is_refused() -> None:
    fields = [Number("age", alone=False), Number("price", of="arm"), Number("income", alone=False)]
    features = Features(fields=fields, crossings=[("age", "price"), ("income", "price")])
    policy = Policy(dim=features.dim, sampler=Uniform(), features=features)
    arms = {"red": {"price": 1.0}, "blue": {"price": 2.0}}
    contexts = features.encode_many([{"age": 0.5, "income": 1.0}] * 50, arms).vectors
    facts: dict[str, Any] = {
        "arm_indices": [0] * 50,
        "propensities": [0.5] * 50,
        "rewards": [1.0] * 50,
        "arms": NAMES[:2],
    }
    log = DecisionLog(contexts=contexts, batch_names=(policy.id,), policies={policy.id: policy}, **facts)
    raises(ParameterError, "cannot be read off", effects, log, "blue", "red", by="age")
    raises(ParameterError, "of the arm", effects, log, "blue", "red", by="price")
    raises(ParameterError, "age, income", effects, log, "blue", "red", by="height")


def test_positions_and_functions_make_groups() -> None:
    codes = np.where(np.arange(2000)[:, None] % 2, [0, 1], [1, 0])
    log = uniform(2000, [0.0, 0.0], codes=codes)
    assert counts(effects(log, "blue", "red", by="position")) == {"place 0": 1000, "place 1": 1000}
    found = effects(log, "blue", "red", by=lambda part: np.arange(len(part)) % 3)
    assert [one.group for one in found] == ["", "0", "1", "2"]
    assert found.by == "group"


def test_chunks_do_not_matter() -> None:
    log = adaptive(3)
    whole, parts = effects(log)["blue"].interval, effects(Chunked(log, 130))["blue"].interval
    assert [parts.low, parts.high] == pytest.approx([whole.low, whole.high], rel=1e-9)
    raises(ParameterError, "a log in memory", effects, Chunked(log, 130), "blue", by=["a"] * len(log))


def test_batches_that_hardly_show_an_arm_are_left_out_and_named() -> None:
    policies = [Policy(dim=2, sampler=Uniform()), Policy(dim=2, sampler=PosteriorDraws(draws=np.array([[1.0, 0.0]])))]
    contexts = np.broadcast_to(np.eye(2), (2000, 2, 2))
    rewards = np.random.default_rng(1).normal(size=2000)
    log = decided_by(policies, contexts, lambda arms: rewards, arms=NAMES[:2])
    (one,) = effects(log, "blue", "red")
    assert [bool(part.left_out) for part in one.batches] == [False, True]
    assert "its play is unsupported" in one.batches[1].left_out
    assert "batch 2 excluded: " in one.cautions[0]
    first = effects(log.select(slice(1000)), "blue", "red")["blue"]
    assert one.interval == first.interval is not None


def test_missing_rewards_and_estimated_propensities_are_said() -> None:
    rewards = np.where(np.arange(2000) % 4, 1.0, np.nan) * np.random.default_rng(1).normal(size=2000)
    found = effects(uniform(2000, [0.0, 0.0], rewards=rewards, estimated="frequencies"), "blue", "red")
    assert (found.decisions, found.rewarded, found["blue"].decisions) == (2000, 1500, 1500)
    assert any("500 of 2,000" in caution for caution in found.cautions)
    assert any("frequencies" in caution for caution in found.cautions)
    assert "≈" in str(found)


def test_effects_that_move_are_said() -> None:
    means = np.where((np.arange(4000) < 2000)[:, None], [0.0, 1.0], [1.0, 0.0])
    log = uniform(4000, means, batches=np.repeat([0, 1], 2000), batch_names=("one", "two"))
    (one,) = effects(log, "blue", "red")
    assert any("drifted between batches" in caution for caution in one.cautions)


def test_places_stand_for_arms_without_ids() -> None:
    log = uniform(2000, [0.0, 1.0], arms=None)
    found = effects(log, 1, 0)
    assert found["1"].interval.low > 0.0
    assert [one.arm for one in effects(log)] == ["1", "0"]


def test_they_are_plain_data() -> None:
    plain = json.loads(json.dumps(effects(adaptive(1), "blue", by="position").as_dict(), allow_nan=False))
    assert [one["group"] for one in plain["effects"]] == ["", "place 1"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"arm": "pink"}, "arm must be one of the arms that were offered, red, blue"),
        ({"arm": "blue", "against": "pink"}, "against must be one of the arms"),
        ({"arm": "blue", "against": "blue"}, "another arm"),
        ({"arm": "blue", "against": "baseline"}, "no decision of this log names"),
        ({"by": "position"}, "no arm was named"),
        ({"arm": "blue", "by": "device"}, "by must be"),
        ({"arm": "blue", "by": lambda log: np.arange(len(log))}, "at most 50 groups"),
        ({"arm": "blue", "level": 0.2}, "level"),
    ],
)
def test_what_is_asked_wrongly_is_refused(wrong: dict[str, Any], said: str) -> None:
    raises(ParameterError, said, effects, uniform(200, [0.0, 0.0]), **wrong)


def test_labels_must_fit() -> None:
    for labels in (["a"] * 3, 5, lambda log: None):
        raises(ShapeError, "by must give", effects, uniform(200, [0.0, 0.0]), "blue", by=labels)


def test_logs_that_say_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="none of the 20 decisions of this log has a reward"):
        effects(uniform(20, [0.0, 0.0], rewards=np.full(20, np.nan)), "blue")

    class Empty(Chunked):
        def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
            yield from ()

    raises(EmptySetError, "no decisions", effects, Empty(uniform(20, [0.0, 0.0]), 1), "blue", "red")

    class Narrow(Chunked):
        def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
            yield from () if contexts else super().chunks(contexts=contexts)

    raises(ParameterError, "which arms were offered", effects, Narrow(adaptive(1), 100), "blue", "red")


def test_an_effect_of_rare_clicks_has_its_long_side_above() -> None:
    """An arm that is rarely shown and rarely clicked most often looks worse than it is."""
    rng = np.random.default_rng(3)
    places = (rng.random(4000) < 0.9).astype(int)
    clicks = rng.random(4000) < 0.03
    log = DecisionLog(
        arm_indices=places, propensities=np.where(places, 0.9, 0.1), rewards=clicks, arms=["rare", "usual"]
    )
    interval = effects(log, "rare", "usual")["rare"].interval
    assert interval.high - interval.value > 1.1 * (interval.value - interval.low)
