"""What every learner must do, run against each of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch import load_policy, save_policy, simulate
from rareswitch.env import Rounds, World, make_world
from rareswitch.errors import BatchError, ContextNormError, InputError, ParameterError
from rareswitch.learner import LEARNERS, Feedback, Learner, make_learner
from rareswitch.policy import Policy

DIM, ARMS, HORIZON, NOISE = 4, 5, 600, 0.4
HOME = {"fixed-set-elimination": "fixed", "base": "plain"}
"""The worlds of learners that are not for all."""
every_learner = pytest.mark.parametrize("name", LEARNERS)


def home(name: str, **sizes: Any) -> World:
    return make_world(HOME.get(name, "varying"), **{"dim": DIM, "arms": ARMS, "noise": NOISE} | sizes)


def fresh(name: str, world: World | None = None, horizon: int = HORIZON, **settings: Any) -> Learner:
    world = home(name) if world is None else world
    return made(name, dim=world.dim, arms=world.arms, horizon=horizon, noise=NOISE, **settings)


def made(name: str, **settings: Any) -> Learner:
    """With those of the settings that this learner takes."""
    return make_learner(name, **{key: value for key, value in settings.items() if key in LEARNERS[name].takes})


def step(learner: Learner, world: World, seed: int, most: int = 50) -> tuple[Policy, Feedback, Any]:
    """Decide the next stretch with the current policy, up to when the next is due, and learn from it."""
    policy, first = learner.policy, learner.start
    summary = None
    while True:
        count = min(most, learner.stop - first)
        rounds = world.draw(count, seed=seed, first=first)
        decisions = policy.decide(rounds.contexts, rounds.alive, seed=seed, first=first)
        due = learner.due(rounds.contexts, decisions, summary, alive=rounds.alive)
        count = count if due is None else due
        decisions = decisions.upto(count)
        rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=first)
        alive = None if rounds.alive is None else rounds.alive[:count]
        feedback = Feedback.of(rounds.contexts[:count], decisions, rewards, alive)
        part = learner.summarize(feedback)
        summary = part if summary is None else summary + part
        first += count
        if due is not None or first == learner.stop:
            learner.next(summary)
            return policy, feedback, summary


@every_learner
def test_runs_reach_their_horizon_and_count_their_policies(name: str) -> None:
    learner = fresh(name)
    run = simulate(learner, home(name), seed=1)
    assert learner.done
    assert run.updates == learner.updates >= 2
    assert run.times[-1] == HORIZON
    assert 0.0 <= run.regret <= 2.0 * HORIZON
    assert len(run.batch_ends) in (0, run.updates)
    assert not len(run.batch_ends) or run.batch_ends[-1] == HORIZON


@every_learner
def test_runs_are_reproducible(name: str) -> None:
    one, two = (simulate(fresh(name), home(name), seed=3) for _ in range(2))
    assert one.regret == two.regret
    np.testing.assert_array_equal(one.batch_ends, two.batch_ends)
    assert simulate(fresh(name), home(name), seed=4).regret != one.regret


@every_learner
def test_policies_are_frozen_and_can_be_shipped(name: str, tmp_path: Path) -> None:
    """Learning makes a new policy and leaves the old one as it was; both survive their file."""
    learner, world = fresh(name), home(name)
    probe = world.draw(40, seed=9)
    for _ in range(4):
        before = learner.policy.probabilities(probe.contexts, probe.alive)
        old, _, _ = step(learner, world, seed=1)
        np.testing.assert_array_equal(old.probabilities(probe.contexts, probe.alive), before)
        save_policy(old, tmp_path / "policy")
        loaded = load_policy(tmp_path / "policy")
        assert loaded.id == old.id
        np.testing.assert_array_equal(loaded.probabilities(probe.contexts, probe.alive), before)
        if learner.done:
            break
        assert learner.policy is not old


@every_learner
def test_propensities_are_frequencies(name: str) -> None:
    """Hoeffding: |frequency - propensity| ≤ √(ln(2·arms·sets/1e-9)/(2n)) for all arms at once, but for 1e-9."""
    learner, world = fresh(name), home(name)
    for _ in range(3):
        if not learner.done:
            step(learner, world, seed=1)
    draws, sets = 4000, world.draw(3, seed=8)
    bound = math.sqrt(math.log(2 * world.arms * 3 / 1e-9) / (2 * draws))
    for s in range(3):
        alive = None if sets.alive is None else np.repeat(sets.alive[s][None], draws, axis=0)
        decisions = learner.policy.decide(np.repeat(sets.contexts[s][None], draws, axis=0), alive, seed=5)
        probabilities = learner.policy.probabilities(sets.contexts[s], None if alive is None else alive[0])
        frequencies = np.bincount(decisions.arms, minlength=world.arms) / draws
        assert np.abs(frequencies - probabilities).max() <= bound
        np.testing.assert_array_equal(decisions.propensities, probabilities[decisions.arms])


@every_learner
def test_the_loop_by_hand_is_the_simulation(name: str) -> None:
    learner, world = fresh(name, horizon=60), home(name)
    run = simulate(fresh(name, horizon=60), world, seed=2)
    regret, ends = 0.0, []
    while not learner.done:
        policy, _, summary = step(learner, world, seed=2, most=7)
        ends.append(summary.stop)
        rounds = world.draw(summary.stop - summary.start, seed=2, first=summary.start)
        best = np.where(True if rounds.alive is None else rounds.alive, rounds.means, -np.inf).max(axis=1)
        regret += float(best.sum())
        decided = policy.decide(rounds.contexts, rounds.alive, seed=2, first=summary.start)
        regret -= float(rounds.means[np.arange(len(best)), decided.arms].sum())
    assert learner.updates == run.updates
    assert run.regret == pytest.approx(regret)
    assert not len(run.batch_ends) or run.batch_ends.tolist() == ends


@every_learner
def test_foreign_feedback_is_refused(name: str) -> None:
    learner, world = fresh(name), home(name)
    _, feedback, summary = step(learner, world, seed=1)
    if learner.policy.id != feedback.policy_id:
        with pytest.raises(BatchError, match="belong"):
            learner.summarize(feedback)
        with pytest.raises(BatchError, match="belongs to another learner"):
            learner.next(summary)
    over = fresh(name)
    simulate(over, world, seed=1)
    with pytest.raises(BatchError, match="over"):
        over.summarize(feedback)
    with pytest.raises(BatchError, match="over"):
        over.next(summary)
    with pytest.raises(InputError, match="fresh learner"):
        simulate(over, world, seed=1)


@every_learner
def test_summarizing_changes_nothing(name: str) -> None:
    """A stretch that is looked at twice, or looked at and thrown away, leaves no trace."""
    learner, world = fresh(name), home(name)
    rounds = world.draw(1, seed=1)
    decisions = learner.policy.decide(rounds.contexts, rounds.alive, seed=1)
    other = make_world("plain" if name == "base" else "fixed", dim=DIM, arms=ARMS, noise=NOISE).draw(1, seed=77)
    for contexts in (0.5 * other.contexts if name != "base" else other.contexts, rounds.contexts):
        try:
            learner.summarize(Feedback.of(contexts, decisions, np.ones(1), rounds.alive))
        except BatchError:
            continue
    kept = {key: value for key, value in vars(learner).items() if key not in ("policy",)}
    assert {k: repr(v) for k, v in kept.items()} == {
        k: repr(v) for k, v in vars(fresh(name)).items() if k not in ("policy",)
    }
    assert simulate(learner, world, seed=1).regret == simulate(fresh(name), world, seed=1).regret


@every_learner
@pytest.mark.parametrize("cap", [None, 1])
def test_contexts_out_of_the_unit_ball_are_refused_walking_frozen_or_not(name: str, cap: int | None) -> None:
    class Long:
        dim = arms = 3

        def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
            return Rounds(contexts=np.repeat(3.0 * np.eye(3)[None], count, axis=0), means=np.zeros((count, 3)))

        def rewards(self, means: Any, *, seed: int, first: int = 0) -> Any:
            return means

    if name == "foresight":  # scales do not matter to it
        assert simulate(made(name, dim=3, arms=3, horizon=20), Long(), seed=1, cap=cap).updates == (cap or 8)
        return
    with pytest.raises(ContextNormError, match="norm 3"):
        simulate(made(name, dim=3, arms=3, horizon=20), Long(), seed=1, cap=cap)


@every_learner
def test_settings_tell_learners_apart(name: str) -> None:
    lines = {
        fresh(name, horizon=t, confidence=c, delta=d).settings
        for t in (100, 200)
        for c, d in ((0.5, 0.1), ("tight", 0.2))
    }
    assert len(lines) == 4


@every_learner
def test_one_arm_and_the_shortest_run(name: str) -> None:
    world = make_world(HOME.get(name, "gaussian"), dim=1 if name == "base" else 3, arms=1, noise=NOISE)
    run = simulate(fresh(name, world, horizon=2), world, seed=1)
    assert run.regret == 0.0
    assert run.updates <= 2


@every_learner
def test_more_arms_than_a_lane_and_a_mask(name: str) -> None:
    world = home(name, dim=3, arms=19)
    assert simulate(fresh(name, world, horizon=150), world, seed=1).updates >= 2


@every_learner
def test_bad_settings_are_refused(name: str) -> None:
    for bad in ({"horizon": 1}, {"arms": 0, "dim": 0}, {"delta": 0.0}, {"noise": -1.0}, {"noise": math.nan}):
        if set(bad) <= LEARNERS[name].takes:
            with pytest.raises(ParameterError):
                made(name, **{"dim": ARMS, "arms": ARMS, "horizon": 100, "noise": 0.5} | bad)
    with pytest.raises(ParameterError, match="does not take wings"):
        make_learner(name, dim=ARMS, arms=ARMS, horizon=100, wings=2)
    if "confidence" not in LEARNERS[name].takes:
        return
    with pytest.raises(ParameterError, match=r"confidence must be 'paper', 'tight' or a number; got 'loose'"):
        make_learner(name, dim=ARMS, arms=ARMS, horizon=100, confidence="loose")
    for mode in ("paper", "tight", 0.5):
        assert make_learner(name, dim=ARMS, arms=ARMS, horizon=100, confidence=mode).updates == 1


@every_learner
def test_every_learner_is_described(name: str) -> None:
    entry = LEARNERS[name]
    assert all((entry.text, entry.adaptivity, entry.regret))
    assert fresh(name).name == name or name in ("batch-linucb-dg-certified", "stale-linucb", "stale-thompson")
