"""A start from a log: the first policy is learned from it, and everything after rests on it too."""

from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.core import Stats
from rareswitch.decisions import DecisionLog
from rareswitch.errors import BatchError, ParameterError, ShapeError
from rareswitch.experiment import WarmStart, copy_experiment, create, open_experiment
from rareswitch.experiment.audit import verify_versions
from rareswitch.features import Arms, Features, Number
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.worlds import LinearWorld
from rareswitch.learner import LEARNERS, Foresight, Learner, State, make_learner, state_from_bytes, state_to_bytes
from rareswitch.log import summarize_source, write
from rareswitch.planning import known_regret
from rareswitch.policy import MinPropensity, new_key
from reference.loop import BEGIN_WITH_LOGS, rows_of
from reference.refusals import raises
from reference.trials import play

pytestmark = pytest.mark.usefixtures("short_plans")
DIM, ARMS, ROWS = 3, 4, 600
WORLD = LinearWorld(source=Gaussian(dim=DIM, arms=ARMS))


def log_of(seed: int, count: int = ROWS, **told: Any) -> DecisionLog:
    """Somebody's uniform play, in the world of that seed, after decisions that nobody else makes."""
    drawn = WORLD.draw(count, seed=seed, first=10**6)
    arm_indices = np.random.default_rng(seed).integers(0, ARMS, count)
    rewards = WORLD.rewards(drawn.means[np.arange(count), arm_indices], seed=seed, first=10**6)
    columns: dict[str, Any] = {"arm_indices": arm_indices, "propensities": [1.0 / ARMS] * count, "rewards": rewards}
    return DecisionLog(**columns | {"contexts": drawn.contexts} | told)


def played(learner: Learner, state: State, seed: int, count: int) -> State:
    """The state after some decisions."""
    return learner.next(state, learner.summarize(state, rows_of(state, WORLD, seed, count=count)))


def close(one: Stats, other: Stats) -> bool:
    return one.count == other.count and bool(
        np.allclose(one.gram, other.gram) and np.allclose(one.moment, other.moment)
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_that_pool_all_decisions_begin_with_a_log(name: str) -> None:
    learner = make_learner(name, dim=DIM, arms=DIM if name == "base" else ARMS, horizon=1000)
    assert learner.begins_with_logs == (name in BEGIN_WITH_LOGS)
    if name not in BEGIN_WITH_LOGS:
        with pytest.raises(ParameterError, match=f"warm: {name} concludes from batches of its own"):
            learner.begin(warm=summarize_source(make_learner("foresight", dim=DIM), log_of(1)))
        return
    log = log_of(1)
    state, blind = learner.begin(warm=summarize_source(learner, log)), learner.begin()
    assert state.policy.id != blind.policy.id
    assert (state.policies, state.start, state.batch_sizes, state.past) == (1, 0, blind.batch_sizes, ())
    assert log.features is not None
    level = [np.ones((ROWS, 1))] * (name == "foresight")
    assert close(state.sums[0], Stats.of(np.hstack([log.features, *level]), log.rewards))
    assert (state.warm.decided, state.warm.rewarded) == (ROWS, ROWS)
    after = played(learner, state, 1, 50)
    assert (after.policies, after.start, after.sums[0].count) == (2, 50, ROWS + 50)
    assert f"{ROWS} decisions of a log" in str(known_regret(learner, after))


def test_a_log_lowers_the_regret_of_the_beginning() -> None:
    """In each of 20 worlds: were it no better than chance, that had a probability of 2⁻²⁰, below 1e-6."""
    for seed in range(20):
        learner = Foresight(dim=DIM, grid=[100, 200])
        drawn, lost = WORLD.draw(100, seed=seed), []
        for warm in (None, summarize_source(learner, log_of(seed))):
            made = learner.begin(warm=warm).policy.decide(drawn.contexts, ids=range(100), seed=seed)
            lost.append(float((drawn.means.max(axis=1) - drawn.means[np.arange(100), made.arms]).sum()))
        assert lost[1] < lost[0]


def test_late_rewards_do_not_lose_the_log() -> None:
    learner = Foresight(dim=DIM, horizon=2000)
    state = learner.begin(warm=summarize_source(learner, log_of(1)))
    rows = rows_of(state, WORLD, 1, count=60)
    half = replace(rows, rewards=np.where(np.arange(60) < 30, rows.rewards, np.nan))
    second = learner.next(state, learner.summarize(state, half))
    batch = learner.summarize(second, rows_of(second, WORLD, 1, count=60))
    third = learner.next(second, batch, late=[learner.summarize(second, rows)])
    assert third.sums[0].count == ROWS + 120
    assert state.warm is not None
    assert close(third.sums[0], reduce(lambda a, b: a + b, (one.stats[0] for one in (state.warm, *third.past))))


def test_states_keep_the_log() -> None:
    learner = Foresight(dim=DIM, horizon=2000)
    state = learner.begin(warm=summarize_source(learner, log_of(1)), min_propensity=MinPropensity(least=0.05))
    for one in (state, played(learner, state, 1, 50)):
        again = state_from_bytes(state_to_bytes(one))
        assert again.warm is not None
        assert again.policy.id == one.policy.id
        assert state_to_bytes(again) == state_to_bytes(one)


def test_what_a_log_must_have() -> None:
    learner, log = Foresight(dim=DIM), log_of(1)
    bare = DecisionLog(arm_indices=log.arm_indices, propensities=log.propensities, rewards=log.rewards)
    raises(ParameterError, "the log has no vectors of arms", summarize_source, learner, bare)
    raises(ShapeError, r"vectors of the log have 3 features.*those of 5", summarize_source, Foresight(dim=5), log)
    unknown = log_of(1, rewards=[None] * ROWS)
    raises(BatchError, f"none of the {ROWS} decisions of the log has a reward", summarize_source, learner, unknown)
    assert summarize_source(learner, unknown, default=0.5).rewarded == ROWS
    chosen = DecisionLog(
        arm_indices=np.zeros(ROWS, dtype=np.int64),
        propensities=log.propensities,
        rewards=log.rewards,
        features=log.features,
    )
    assert summarize_source(learner, chosen).sample is None
    with pytest.raises(ParameterError, match="warm_start: foresight plans with the vectors of all arms"):
        create("memory:", "spring", dim=DIM, warm_start=chosen)
    assert create("memory:", "spring", learner="linucb-grid", dim=DIM, arms=ARMS, horizon=1000, warm_start=chosen)
    with pytest.raises(BatchError, match="as those of the learner's own first policy"):
        learner.begin(warm=replace(summarize_source(learner, log), policy_id="another"))
    raises(BatchError, "other features", Foresight(dim=DIM, intercept=False).begin, warm=summarize_source(learner, log))
    raises(BatchError, "summaries", learner.begin, warm=log)
    with pytest.raises(ParameterError, match="baseline: the first policy is learned from a log"):
        learner.begin(warm=summarize_source(learner, log), baseline=0.1)
    with pytest.raises(ParameterError, match="warm_start: batch-linucb-kw cannot warm-start"):
        create("memory:", "spring", learner="batch-linucb-kw", dim=DIM, arms=ARMS, horizon=1000, warm_start=log)
    proved: dict[str, Any] = {"noise_bound": 1.0, "arms": ARMS, "horizon": 1000}
    with pytest.raises(ParameterError, match="warm_start: foresight cannot warm-start"):
        create("memory:", "spring", dim=DIM, warm_start=log, **proved)


def test_an_experiment_begins_with_a_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    log = log_of(7, estimated="arm frequencies")
    trial = create(url, "spring", dim=DIM, policies=3, horizon=300, seed=1, warm_start=log)
    for k in range(2):
        assert len(trial.versions) == k + 1
        play(trial, WORLD, 60 * k, 60)
        assert trial.advance(force=True).made
    found = trial.verify()
    assert found.holds
    assert [one.verdict for one in found.policies] == ["same"] * 3
    assert trial.audit(7).matches
    trial.close()
    trial = open_experiment(url, "spring")
    held = WarmStart(decisions=ROWS, rewarded=ROWS, estimated="arm frequencies")
    assert trial.status().warm_start == held
    told = f"Warm start: {ROWS} decisions, {ROWS} rewarded; estimated propensities: arm frequencies."
    assert told in str(trial.status())
    assert trial.status().decisions == 120
    state = trial.versions[-1].state
    assert (state.start, state.policies, state.sums[0].count) == (120, 3, ROWS + 120)
    key = new_key("hmac")
    signed = copy_experiment(trial, "memory:", key=key)
    assert signed.verify().holds
    trial.close()


def test_an_experiment_that_lost_its_log_is_not_learned_again() -> None:
    trial = create("memory:", "spring", dim=DIM, seed=1, warm_start=log_of(7))
    play(trial, WORLD, 0, 60)
    trial.advance(force=True)
    one, *rest = trial.versions
    lost = type(one)(one.row._replace(summaries=b""), one.experiment, None)
    vars(lost)["policy"] = one.policy
    found = verify_versions(trial.description, [lost, *rest], trial.store)
    assert not found.holds
    assert found.policies[0].verdict == "otherwise"


def test_files_and_other_experiments_of_the_same_features(tmp_path: Path) -> None:
    write(tmp_path / "log.parquet", log_of(7))
    trial = create("memory:", "spring", dim=DIM, warm_start=tmp_path / "log.parquet", seed=1)
    assert trial.policy.id == create("memory:", "spring", dim=DIM, warm_start=log_of(7), seed=2).policy.id
    assert trial.status().warm_start == WarmStart(decisions=ROWS, rewarded=ROWS)
    features = Features(fields=[Number("age", mean=40, scale=10, alone=False)], arms=Arms(ids=["a", "b"], own=["age"]))
    other = Foresight(dim=features.dim).begin(features=features).policy
    vectors = np.random.default_rng(1).random((50, 2, features.dim)) / 4.0
    columns: dict[str, Any] = {"arm_indices": [0] * 50, "propensities": [0.5] * 50, "rewards": np.arange(50.0)}
    log = DecisionLog(**columns, contexts=vectors, policies={"log": other})
    with pytest.raises(ParameterError, match="warm_start: the policies of the log have other features"):
        create("memory:", "spring", dim=features.dim, warm_start=log)
    assert create("memory:", "spring", features=features, warm_start=log)


def test_another_experiment_is_a_log(tmp_path: Path) -> None:
    first = create(f"sqlite:///{tmp_path}/a.db", "first", dim=DIM, policies=3, horizon=500, seed=1)
    play(first, WORLD, 0, 100)
    first.advance(force=True)
    play(first, WORLD, 100, 100)
    trial = create("memory:", "spring", dim=DIM, seed=1, warm_start=first)
    assert trial.status().warm_start == WarmStart(decisions=200, rewarded=200)
    (sums,) = trial.versions[0].state.sums
    first.advance(force=True)
    assert close(sums, first.versions[-1].state.sums[0])
    first.close()


def test_a_baseline_is_kept_and_not_played() -> None:
    trial = create("memory:", "spring", dim=DIM, baseline=True, warm_start=log_of(7), seed=1)
    assert not trial.policy.needs_baseline
    play(trial, WORLD, 0, 30, baseline=[3] * 30)
    trial.decide(WORLD.draw(1, seed=7, first=50).contexts[0], id="without")
    rows = [row for some in trial.store.rows(0, trial.store.marks()) for row, _ in some]
    assert [row.baseline for row in rows] == [3] * 30 + [None]
    assert trial.audit(3).matches
    assert trial.verify().holds
