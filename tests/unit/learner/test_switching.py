"""The switching and stepping learners against the printed algorithms, decision by decision."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.env import World, make_world
from rareswitch.errors import BatchError, ParameterError, ShapeError
from rareswitch.learner import (
    OFUL,
    DeterminantGrowth,
    Feedback,
    Learner,
    LinUCB,
    RarelySwitchSupLinUCB,
    SupLinRel,
    SupLinUCB,
    ThompsonSampling,
    geometric_grid,
    make_learner,
)
from rareswitch.linalg import inverse_root, lower_triangular
from rareswitch.policy import Layered, Optimistic
from rareswitch.sim.simulate import potential_rewards
from rareswitch.sim.tally import Tally
from rareswitch.validation import FloatArray
from reference.switching import (
    Played,
    Problem,
    algorithm_6,
    optimist,
    ridge_intervals,
    sup_linear,
    thompson,
    truncated_intervals,
)

NOISE, HORIZON = 0.4, 1500
PLACES = ("gaussian", "segments", "varying", "zipf", "plain")


def place(name: str, dim: int = 4, arms: int = 6) -> World:
    return make_world(name, dim=dim, arms=arms, noise=NOISE)


def problem(world: World, horizon: int, seed: int) -> Problem:
    rounds = world.draw(horizon, seed=seed)
    alive = np.ones(rounds.means.shape, dtype=np.bool_) if rounds.alive is None else rounds.alive
    rewards = potential_rewards(world, rounds, seed=seed, first=0)
    return Problem(contexts=rounds.contexts, alive=alive, rewards=rewards)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Played]:
    """Simulate, and say what was played and when the policy changed."""

    def play(learner: Learner, world: World, seed: int, **options: Any) -> Played:
        arms: list[int] = []
        add = Tally.add

        def spy(self: Tally, rounds: Any, start: int, chosen: Any, survivors: Any) -> None:
            arms.extend(chosen.tolist())
            add(self, rounds, start, chosen, survivors)

        with monkeypatch.context() as patch:
            patch.setattr(Tally, "add", spy)
            run = simulate(learner, world, seed=seed, **options)
        assert run.updates == learner.updates
        return Played(arms=arms, switches=run.batch_ends[:-1].tolist())

    return play


def sized(make: Any, world: World, horizon: int = HORIZON, **settings: Any) -> Any:
    return make(dim=world.dim, arms=world.arms, horizon=horizon, noise=NOISE, **settings)


def compare(found: Played, expected: Played, horizon: int = HORIZON) -> None:
    assert found.arms == expected.arms
    assert found.switches == [t for t in expected.switches if t < horizon]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("growth", [1.5, 2.0, 16.0])
def test_rarely_switch_is_algorithm_6(where: str, growth: float, watched: Callable[..., Played]) -> None:
    world = place(where)
    learner = sized(RarelySwitchSupLinUCB, world, growth=growth, confidence=0.8)
    expected = algorithm_6(problem(world, HORIZON, 3), growth=growth, first=lambda _: 0.8, multiplier=0.8)
    compare(watched(learner, world, 3), expected)
    assert all(stats.count > 10 for stats in learner.current)  # each layer has had its say


@pytest.mark.parametrize("mode", ["paper", "tight"])
def test_rarely_switch_has_the_widths_of_its_mode(mode: Any, watched: Callable[..., Played]) -> None:
    world = place("gaussian")
    learner = sized(RarelySwitchSupLinUCB, world, confidence=mode, delta=0.1)
    d, k, horizon = 4, 6, HORIZON
    if mode == "paper":
        first: Callable[[FloatArray], float] = lambda _: 2 * math.sqrt(d * math.log(2 * horizon / 0.1))  # noqa: E731
        multiplier = 10 * math.sqrt(math.log(2 * d * k * horizon / 0.1))
    else:

        def first(precision: FloatArray) -> float:
            return NOISE * math.sqrt(2 * math.log(2 / 0.1) + np.linalg.slogdet(precision)[1]) + 1.0

        # κ_0 = 2 layers judge an arm, with probability δ/2 of failing, and each is frozen so many times at most
        frozen = 1 + math.floor(d * math.log2(1 + horizon / d))
        over_arms = math.sqrt(2 * math.log(2 * k * horizon * 2 / 0.05))
        over_net = min(
            math.sqrt(2 * (math.log(2 * 2 * frozen / 0.05) + d * math.log(1 + 2 / e))) / (1 - e)
            for e in np.arange(0.05, 0.96, 0.05)
        )
        multiplier = NOISE * min(over_arms, over_net) + 1.0
        assert over_arms < over_net
        many = RarelySwitchSupLinUCB(dim=d, arms=10**6, horizon=horizon, noise=NOISE, delta=0.1)
        assert many.confidence.multiplier == pytest.approx(NOISE * over_net + 1.0)
    compare(
        watched(learner, world, 1),
        algorithm_6(problem(world, horizon, 1), growth=2.0, first=first, multiplier=multiplier),
    )


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("growth", [1.2, 2.0, 8.0])
def test_oful_changes_when_the_determinant_has_grown(where: str, growth: float, watched: Callable[..., Played]) -> None:
    world = place(where)
    learner = sized(OFUL, world, growth=growth, confidence=0.7, ridge=0.5)
    expected = optimist(problem(world, HORIZON, 5), ridge=0.5, growth=growth, multiplier=lambda _: 0.7)
    compare(watched(learner, world, 5), expected)


def tight(ridge: float, delta: float) -> Callable[[FloatArray], float]:
    def multiplier(precision: FloatArray) -> float:
        grown = np.linalg.slogdet(precision / ridge)[1]
        return float(NOISE * math.sqrt(2 * math.log(1 / delta) + grown) + math.sqrt(ridge))

    return multiplier


@pytest.mark.parametrize("where", PLACES)
def test_linucb_steps_as_printed(where: str, watched: Callable[..., Played]) -> None:
    world = place(where)
    learner = sized(LinUCB, world, delta=0.1, ridge=0.3)
    expected = optimist(problem(world, HORIZON, 2), ridge=0.3, growth=1.0, multiplier=tight(0.3, 0.1))
    found = watched(learner, world, 2)
    assert found.arms == expected.arms
    assert learner.updates == HORIZON


@pytest.mark.parametrize("where", PLACES)
def test_thompson_steps_as_printed(where: str, watched: Callable[..., Played]) -> None:
    world = place(where)
    learner = sized(ThompsonSampling, world, scale=0.8, ridge=0.3, seed=11)
    expected = thompson(problem(world, HORIZON, 2), ridge=0.3, scale=0.8 * NOISE, seed=11)
    assert watched(learner, world, 2).arms == expected.arms
    assert learner.updates == HORIZON


@pytest.mark.parametrize("where", PLACES)
def test_suplinucb_steps_as_printed(where: str, watched: Callable[..., Played]) -> None:
    world = place(where)
    learner = sized(SupLinUCB, world, confidence=0.25, ridge=0.7)
    expected = sup_linear(problem(world, HORIZON, 2), ridge_intervals(0.7, 0.25))
    assert watched(learner, world, 2).arms == expected.arms
    assert learner.updates == 1 + sum(t < HORIZON for t in expected.switches)
    assert sum(stats.count > 0 for stats in learner.current) >= 3


@pytest.mark.parametrize("where", ["gaussian", "varying"])
def test_suplinrel_steps_as_printed(where: str, watched: Callable[..., Played]) -> None:
    world = place(where)
    learner = sized(SupLinRel, world, 400, confidence=0.2, norm=0.3)
    expected = sup_linear(problem(world, 400, 2), truncated_intervals(0.2, 0.3))
    compare(watched(learner, world, 2), expected, 400)
    assert sum(stats.count > 0 for stats in learner.current) >= 2


@pytest.mark.parametrize("make", [LinUCB, ThompsonSampling, SupLinUCB, OFUL, RarelySwitchSupLinUCB])
def test_walking_is_the_loop(make: Any, watched: Callable[..., Played]) -> None:
    """The compiled steps decide as the frozen policies would, and change them when the clock says."""
    world = place("varying")
    walking, stepping = (sized(make, world, 300, confidence=0.3) for _ in range(2))
    assert walking.walks
    stepping.walks = False
    found, expected = watched(walking, world, 4), watched(stepping, world, 4)
    assert found.arms == expected.arms
    assert walking.updates == stepping.updates
    assert len(expected.switches) == stepping.updates - 1
    assert found.switches == (expected.switches if make in (OFUL, RarelySwitchSupLinUCB) else [])
    layered = make in (SupLinUCB, RarelySwitchSupLinUCB)
    parts = (walking.current, stepping.current) if layered else ((walking.total,), (stepping.total,))
    for a, b in zip(*parts, strict=True):
        # the last decision is walked through, and never learned from where the loop steps
        assert abs(a.count - b.count) <= 1
        assert np.abs(a.gram - b.gram).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("cap", [1, 2, 7, 60])
@pytest.mark.parametrize("name", ["linucb", "thompson", "suplinucb", "oful", "rarely-switch-suplinucb", "stale-linucb"])
def test_the_loop_holds_to_the_cap(name: str, cap: int, watched: Callable[..., Played]) -> None:
    world = place("gaussian")
    free, capped = (make_learner(name, dim=4, arms=6, horizon=400, noise=NOISE) for _ in range(2))
    all_of_it, cut = watched(free, world, 1), watched(capped, world, 1, cap=cap)
    assert capped.updates == min(cap, free.updates)
    # up to the last policy nothing differs, and its first decision comes after the same number of them
    same = capped.start
    assert cut.arms[:same] == all_of_it.arms[:same]
    assert (same == 0) == (cap == 1)
    assert len(cut.arms) == 400


def test_a_capped_stepper_stays_with_its_last_policy(watched: Callable[..., Played]) -> None:
    world = place("gaussian")
    learner = sized(LinUCB, world, 400)
    found = watched(learner, world, 1, cap=20)
    assert learner.total.count == 19
    rounds = world.draw(400, seed=1)
    decided = learner.policy.decide(rounds.contexts, seed=1)
    assert found.arms[19:] == decided.arms[19:].tolist()


def test_a_learner_that_ignores_the_cap_is_held_to_it() -> None:
    """The learner is not asked: its clock may strike as often as it likes."""

    class Restless(OFUL):
        def due(self, *args: Any, **settings: Any) -> int:
            return 1

        def _check_due(self, summary: Any) -> None:
            pass

    run = simulate(sized(Restless, place("gaussian"), 200), place("gaussian"), seed=1, cap=5)
    assert run.updates == 5
    assert run.batch_ends.tolist() == [1, 2, 3, 4, 200]


@pytest.mark.parametrize("cap", [0, -1, 2.5, True])
def test_caps_below_one_are_refused(cap: Any) -> None:
    with pytest.raises(ParameterError, match="cap must be"):
        simulate(sized(OFUL, place("gaussian")), place("gaussian"), seed=1, cap=cap)


@pytest.mark.parametrize("growth", [1.0, 0.5, -2.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["oful", "rarely-switch-suplinucb"])
def test_growth_factors_of_at_most_one_are_refused(name: str, growth: float) -> None:
    with pytest.raises(ParameterError, match="the growth factor C must be"):
        make_learner(name, dim=4, arms=6, horizon=100, growth=growth)


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("growth", [2.0, 4.0, 16.0])
def test_switches_stay_below_the_explicit_bound(dim: int, growth: float) -> None:
    horizon, arms = 20_000, 2 * dim
    for where in ("gaussian", "plain", "starving"):
        world = make_world(where, dim=dim, arms=dim if where == "plain" else arms, noise=NOISE, horizon=horizon)
        learner = RarelySwitchSupLinUCB(
            dim=world.dim, arms=world.arms, horizon=horizon, noise=NOISE, growth=growth, confidence=0.2
        )
        kappa = math.ceil(math.log2(world.dim))
        bound = (kappa + 1) * (1 + world.dim * math.log(1 + horizon / world.dim, growth))
        assert learner.switch_bound <= bound + 1e-6
        assert simulate(learner, world, seed=1).updates <= learner.switch_bound


def test_the_clock_never_looks_at_rewards() -> None:
    """Other rewards for the same decisions: due at the same time."""
    world = place("gaussian")
    learner = sized(OFUL, world, growth=1e6)
    rounds = world.draw(200, seed=1)
    decisions = learner.policy.decide(rounds.contexts, seed=1)
    due = learner.due(rounds.contexts, decisions)
    assert due is not None
    for reward in (0.0, 1.0):
        part = learner.summarize(Feedback.of(rounds.contexts[:3], decisions.upto(3), np.full(3, reward)))
        later = learner.policy.decide(rounds.contexts[3:], seed=1, first=3)
        assert learner.due(rounds.contexts[3:], later, part) == due - 3


@pytest.mark.parametrize("name", ["oful", "rarely-switch-suplinucb", "suplinucb"])
@pytest.mark.parametrize("count", [60, 400])
def test_a_policy_after_its_time_is_refused(name: str, count: int) -> None:
    """Also at the horizon: a loop that never asks the clock would never change its policy, and must hear of it."""
    world = place("gaussian")
    learner = make_learner(name, dim=4, arms=6, horizon=400, noise=NOISE)
    rounds = world.draw(count, seed=1)
    decisions = learner.policy.decide(rounds.contexts, seed=1)
    summary = learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(count)))
    with pytest.raises(BatchError, match=r"overdue: .* Ask due\(\) after how many"):
        learner.next(summary)


def test_due_wants_a_set_for_each_decision() -> None:
    world = place("gaussian")
    learner = sized(OFUL, world)
    rounds = world.draw(5, seed=1)
    with pytest.raises(ShapeError, match="3 context sets were given for 5 decisions"):
        learner.due(rounds.contexts[:3], learner.policy.decide(rounds.contexts, seed=1))


@pytest.mark.parametrize("name", ["oful", "rarely-switch-suplinucb", "suplinucb"])
def test_a_policy_before_its_time_is_refused(name: str) -> None:
    world = place("gaussian")
    settings = {} if name == "suplinucb" else {"growth": 1e6}
    learner = make_learner(name, dim=4, arms=6, horizon=5000, noise=NOISE, confidence=1e-3, **settings)
    rounds = world.draw(4, seed=1)
    decisions = learner.policy.decide(rounds.contexts, seed=1)
    summary = learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(4)))
    with pytest.raises(BatchError, match="no new policy is due"):
        learner.next(summary)


def test_exact_ties_of_the_determinant_count_as_grown() -> None:
    """Unit vectors double the determinant to the last bit, or would but for rounding."""
    world = make_world("plain", dim=1, arms=1, noise=NOISE)
    learner = OFUL(dim=1, arms=1, horizon=1100, noise=1.0)
    run = simulate(learner, world, seed=1)
    assert run.batch_ends[:-1].tolist() == [2**k - 1 for k in range(1, 11)]  # 1 + n doubles


def test_the_growth_clock_survives_any_split_of_the_feedback() -> None:
    world = place("gaussian")
    learner = sized(OFUL, world, growth=1e9)
    rounds = world.draw(300, seed=1)
    decisions = learner.policy.decide(rounds.contexts, seed=1)
    due = learner.due(rounds.contexts, decisions)
    assert due is not None
    assert due > 30
    summary = None
    made = 0
    while made < due:
        piece = learner.policy.decide(rounds.contexts[made : made + 7], seed=1, first=made)
        found = learner.due(rounds.contexts[made : made + 7], piece, summary)
        count = 7 if found is None else found
        part = learner.summarize(Feedback.of(rounds.contexts[made : made + count], piece.upto(count), np.zeros(count)))
        summary = part if summary is None else summary + part
        made += count
        if found is not None:
            break
    assert made == due


def test_inverse_roots_and_triangles() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 5))
    precision = x.T @ x
    root = inverse_root(precision)
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(precision), atol=1e-12)
    singular = rng.standard_normal((5, 5)) * np.array([1.0, 1.0, 0.0, 0.0, 0.0])[:, None]
    lower = lower_triangular(singular)
    assert not np.triu(lower, 1).any()
    np.testing.assert_allclose(lower.T @ lower, singular.T @ singular, atol=1e-12)


def test_stale_learners_change_on_their_grid() -> None:
    world = place("gaussian")
    run = simulate(sized(LinUCB, world, clock=geometric_grid(HORIZON, 5)), world, seed=1)
    assert run.batch_ends.tolist() == list(geometric_grid(HORIZON, 5).ends)
    stale = sized(ThompsonSampling, world, clock=geometric_grid(HORIZON, 5))
    assert simulate(stale, world, seed=1).updates == 5
    assert stale.policy.sampler.draws.shape == (128, 4)
    with pytest.raises(ParameterError, match="the clock ends at 10 where the horizon is 1500"):
        sized(LinUCB, world, clock=DeterminantGrowth(horizon=10))


def test_thompson_draws_follow_the_posterior() -> None:
    """Mean and covariance of many frozen draws; bounds: each entry within 6 standard errors (p < 1e-7 over all)."""
    world = place("gaussian")
    count = 20_000
    learner = sized(
        ThompsonSampling, world, scale=0.5, ridge=2.0, clock=geometric_grid(HORIZON, 2), draws=count, seed=4
    )
    rounds = world.draw(learner.stop, seed=1)
    decisions = learner.policy.decide(rounds.contexts, seed=1)
    rewards = world.rewards(rounds.means[np.arange(learner.stop), decisions.arms], seed=1)
    learner.next(learner.summarize(Feedback.of(rounds.contexts, decisions, rewards)))
    covariance = (0.5 * NOISE) ** 2 * np.linalg.inv(learner.precision())
    draws = learner.policy.sampler.draws
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - learner.total.estimate(ridge=2.0)) <= 6 * spread / math.sqrt(count)).all()
    errors = np.abs(np.cov(draws.T) - covariance) / np.outer(spread, spread)
    assert errors.max() <= 6 * math.sqrt(2 / count)


def test_the_layers_by_hand() -> None:
    """One layer, two arms: the sure play r + ω, the unsure the widest, the last of Algorithm 6 the largest r."""
    x = np.eye(2)
    for exploit, estimates, optimistic, expected, layer in (
        (0.5, [0.0, 0.1], True, 0, -1),  # widths 0.3 and 0.1: the first reaches higher, and looks worse
        (0.2, [0.0, 0.1], True, 0, 0),  # the widest
        (0.2, [0.0, 0.1], False, 1, 0),  # the last layer's best estimate
        (0.0, [0.0, 0.1], False, 1, 0),
    ):
        policy = Layered(
            estimates=np.array([estimates]),
            roots=np.diag([0.3, 0.1])[None],
            thresholds=np.array([0.25]),
            optimistic=optimistic,
            exploit=exploit,
        )
        assert policy.probabilities(x).argmax() == expected
        assert policy.layers(x) == layer
    sure = Layered(
        estimates=np.array([[0.0, 0.1]]), roots=np.diag([0.3, 0.1])[None], thresholds=np.ones(1), optimistic=True
    )
    assert sure.probabilities(x).tolist() == [1.0, 0.0]  # the last layer decides, however sure it is


def test_ties_are_ties_to_the_last_digits_only() -> None:
    for gap, expected in ((1e-8, 1), (1e-11, 0)):
        sampler = Optimistic(estimate=np.array([1.0, 1.0 + gap]), root=np.zeros((2, 2)))
        assert sampler.probabilities(np.eye(2) / 2).argmax() == expected


def test_a_learner_without_widths_learns_all_the_same() -> None:
    learner = sized(RarelySwitchSupLinUCB, place("gaussian"), confidence=0.0)
    simulate(learner, place("gaussian"), seed=1)
    assert learner.current[-1].count > 0
    assert learner.updates > 10


@pytest.mark.parametrize("bad", [{"delta": 2.0}, {"delta": "a"}, {"ridge": 0.0}, {"ridge": None}, {"ridge": -1.0}])
def test_bad_settings_of_rarely_switch_are_explained(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        RarelySwitchSupLinUCB(dim=3, arms=4, horizon=100, **bad)


def test_the_published_constants_of_the_suplin_family() -> None:
    sizes = {"dim": 3, "arms": 5, "horizon": 1000, "delta": 0.1}
    tests = 2 * 5 * 1000 / 0.1
    assert SupLinUCB(**sizes, confidence="paper").confidence.multiplier == pytest.approx(  # type: ignore[arg-type]
        1 + math.sqrt(0.5 * math.log(tests))
    )
    assert SupLinRel(**sizes, confidence="paper").confidence.multiplier == pytest.approx(math.sqrt(math.log(tests)))
    assert SupLinRel(**sizes, noise=0.3).confidence.multiplier == pytest.approx(
        0.3 * math.sqrt(2 * math.log(tests * 7))
    )
    with pytest.raises(ParameterError, match="suplinrel truncates in place of a ridge"):
        SupLinRel(**sizes, ridge=1.0)
    assert SupLinRel(**sizes, norm=1.0).settings != SupLinRel(**sizes, norm=2.0).settings


def test_layers_must_fit_together() -> None:
    with pytest.raises(ValueError, match="estimates must be"):
        Layered(estimates=np.zeros((2, 3)), roots=np.zeros((2, 3, 3)), thresholds=np.ones(1))
    with pytest.raises(ValueError, match="roots must be lower triangular"):
        Layered(estimates=np.zeros((1, 3)), roots=np.ones((1, 3, 3)), thresholds=np.ones(1))
