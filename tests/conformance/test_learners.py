"""What every learner must do, run against each of them."""

import inspect
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.decisions import DecisionLog
from rareswitch.errors import BatchError, ContextNormError, ParameterError
from rareswitch.lab.worlds import Rounds, World, make_world
from rareswitch.learner import (
    LEARNERS,
    Learner,
    make_learner,
    plain_settings,
    required_settings,
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
    takes,
)
from reference.loop import after, rows_of, step, steps
from reference.refusals import raises

DIM, ARMS, HORIZON, NOISE = 4, 5, 400, 0.4
HOME = {"fixed-set-elimination": "fixed", "e4": "fixed", "base": "plain"}
"""The worlds of learners that are not for all."""
every_learner = pytest.mark.parametrize("name", LEARNERS)


def home(name: str, **sizes: Any) -> World:
    return make_world(HOME.get(name, "varying"), **{"dim": DIM, "arms": ARMS, "noise": NOISE} | sizes)


def fresh(name: str, world: World | None = None, horizon: int = HORIZON, **settings: Any) -> Learner:
    world = home(name) if world is None else world
    return made(name, dim=world.dim, arms=world.arms, horizon=horizon, noise=NOISE, **settings)


def made(name: str, **settings: Any) -> Learner:
    """With those of the settings that this learner takes."""
    return make_learner(name, **{key: value for key, value in settings.items() if key in takes(name)})


@every_learner
def test_runs_reach_their_horizon_and_are_reproducible(name: str) -> None:
    """Also with the very same learner: a run leaves nothing behind in it."""
    learner = fresh(name)
    run, again, other = (simulate(learner, home(name), seed=seed) for seed in (3, 3, 4))
    assert run.policies >= 2
    assert (run.times[0], run.times[-1]) == (1, HORIZON)
    assert (np.diff(run.times) > 0).all()
    assert 0.0 <= run.regret <= 2.0 * HORIZON
    assert len(run.batch_ends) in (0, run.policies)
    assert not len(run.batch_ends) or run.batch_ends[-1] == HORIZON
    assert run.regret == again.regret
    np.testing.assert_array_equal(run.batch_ends, again.batch_ends)
    assert other.regret != run.regret


@every_learner
def test_the_loop_by_hand_is_the_simulation(name: str) -> None:
    learner, world = fresh(name, horizon=60), home(name)
    run = simulate(learner, world, seed=2)
    regrets, survivors, ends = list[float](), list[float](), list[int]()
    for before, done in steps(learner, world, 2, most=7):
        count = done.state.start - before.start
        ends.append(done.state.start)
        rounds = world.draw(count, seed=2, first=before.start)
        best = np.where(True if rounds.available is None else rounds.available, rounds.means, -np.inf).max(axis=1)
        ids = range(before.start, done.state.start)
        decided = before.policy.decide(rounds.contexts, rounds.available, ids=ids, seed=2)
        regrets += (best - rounds.means[np.arange(count), decided.arms]).tolist()
        survivors.append(decided.survivors.mean())
    assert done.state.done
    assert done.state.policies == run.policies
    assert run.regret == run.regrets[-1]
    np.testing.assert_allclose(run.regrets, np.cumsum(regrets)[run.times - 1], atol=1e-9)
    if len(run.batch_ends):
        assert run.batch_ends.tolist() == ends
        np.testing.assert_allclose(run.survivors, survivors)


@every_learner
def test_rows_that_do_not_belong_here_are_refused(name: str) -> None:
    learner, world = fresh(name), home(name)
    rows, summary, state = step(learner, learner.begin(), world)
    assert state.policy.id != rows.policy_id
    with pytest.raises(BatchError, match="belongs to another run, or to a batch that was learned from already"):
        learner.next(state, summary)
    stranger = replace(rows.select(slice(1)), batch_names=("f" * 64,))
    raises(BatchError, "which this run never had", learner.summarize, state, stranger)
    other = fresh("oful" if name != "oful" else "linucb", world)
    with pytest.raises(BatchError, match=f"this state is of {other.name}, and the learner is {name}"):
        learner.next(other.begin(), summary)


@every_learner
def test_nothing_is_learned_after_the_end(name: str) -> None:
    world = home(name)
    learner = fresh(name, world, horizon=20)
    *_, (_, last) = steps(learner, world)
    assert last.state.done
    assert last.state.start == last.state.horizon == 20
    raises(BatchError, "this run is over: its last batch has been learned from", learner.next, last.state, last.summary)


@every_learner
def test_looking_changes_nothing_and_next_makes_a_new_state(name: str) -> None:
    """To the last bit: what was summarized, asked and learned leaves the old state as it was, and can be done again."""
    learner, world = fresh(name), home(name)
    state = after(learner, world, 2)
    before = state_to_bytes(state)
    one = step(learner, state, world)
    again = step(learner, state, world)
    assert state_to_bytes(state) == before
    assert state_to_bytes(one.state) == state_to_bytes(again.state) != before
    assert state_to_bytes(learner.next(state, one.summary)) == state_to_bytes(one.state)


@every_learner
def test_a_state_that_was_kept_goes_on_as_if_it_had_not_been(name: str) -> None:
    """After three updates, and in a learner that was made anew from plain settings."""
    learner, world = fresh(name), home(name)
    state = after(learner, world, 1 if name == "e4" else 3)  # which may have no more than three policies
    data = state_to_bytes(state)
    found = state_from_bytes(data)
    assert state_to_bytes(found) == data
    assert repr(found) == repr(state)
    other = make_learner(name, **json.loads(json.dumps(plain_settings(learner))))
    assert other == learner
    one, two = step(learner, state, world), step(other, found, world)
    assert two.state.policy.id == one.state.policy.id
    assert state_to_bytes(two.state) == state_to_bytes(one.state)


@every_learner
def test_summaries_do_not_depend_on_the_order_of_rows_nor_on_copies(name: str) -> None:
    learner, world = fresh(name, horizon=400), home(name)
    state = after(learner, world, 1)
    rows = step(learner, state, world).rows
    expected = summaries_to_bytes([learner.summarize(state, rows)])
    assert summaries_to_bytes([summaries_from_bytes(expected)[0]]) == expected
    mixed = rows.select(np.random.default_rng(1).permutation(len(rows)))
    copies = DecisionLog.concatenate([mixed, rows])
    assert summaries_to_bytes([learner.summarize(state, copies)]) == expected


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
        assert simulate(made(name, dim=3, arms=3, horizon=20), Long(), seed=1, cap=cap).policies == (cap or 8)
        return
    learner = made(name, dim=3, arms=3, horizon=20)
    raises(ContextNormError, "norm 3", simulate, learner, Long(), seed=1, cap=cap)
    state = learner.begin()
    raises(ContextNormError, "norm 3", learner.summarize, state, rows_of(state, Long(), 1, count=1))


@every_learner
def test_one_arm_and_the_shortest_run(name: str) -> None:
    world = make_world(HOME.get(name, "gaussian"), dim=1 if name == "base" else 3, arms=1, noise=NOISE)
    run = simulate(fresh(name, world, horizon=2), world, seed=1)
    assert run.regret == 0.0
    assert run.policies <= 2


@every_learner
def test_more_arms_than_a_lane_and_a_mask(name: str) -> None:
    world = home(name, dim=3, arms=19)
    assert simulate(fresh(name, world, horizon=150), world, seed=1).policies >= 2


@every_learner
def test_bad_settings_are_refused(name: str) -> None:
    for bad in ({"horizon": 1}, {"arms": 0, "dim": 0}, {"delta": 0.0}, {"noise": -1.0}, {"noise": math.nan}):
        if set(bad) <= set(takes(name)):
            raises(ParameterError, None, made, name, **{"dim": ARMS, "arms": ARMS, "horizon": 100, "noise": 0.5} | bad)
    raises(ParameterError, "does not take wings", make_learner, name, dim=ARMS, arms=ARMS, horizon=100, wings=2)
    with pytest.raises(
        ParameterError, match=f"{name} needs {', '.join(required_settings(LEARNERS[name]))}; got no settings"
    ):
        make_learner(name)
    if "confidence" not in takes(name):
        return
    with pytest.raises(ParameterError, match=r"confidence must be 'paper', 'tight' or a number; got 'loose'"):
        make_learner(name, dim=ARMS, arms=ARMS, horizon=100, confidence="loose")
    for mode in ("paper", "tight", 0.5):
        assert make_learner(name, dim=ARMS, arms=ARMS, horizon=100, confidence=mode).begin().policies == 1
    for wrong in (-1.0, math.nan, None, [1.0]):
        with pytest.raises(ParameterError, match="confidence must be"):
            make_learner(name, dim=ARMS, arms=ARMS, horizon=100, confidence=wrong)


@every_learner
def test_every_learner_is_described(name: str) -> None:
    """On the command line, and by ``help`` and ``inspect``: every setting is a parameter of the class, by name only."""
    kind = LEARNERS[name]
    assert kind.name == fresh(name).name == name
    assert all((kind.text, kind.adaptivity, kind.regret))
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")
    parameters = inspect.signature(kind).parameters
    assert tuple(parameters) == takes(name)
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    bare = tuple(key for key, parameter in parameters.items() if parameter.default is inspect.Parameter.empty)
    assert bare == required_settings(kind)
