"""The batched family against the printed algorithms, decision by decision."""

from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, sample_order
from rareswitch.decisions import DecisionLog
from rareswitch.design import GOptimal, Sampler, Uniform
from rareswitch.errors import ParameterError
from rareswitch.lab.distributions import Gaussian, OneBig, VaryingArms
from rareswitch.lab.reproduction.references.batched import SlowRun, slow_batched
from rareswitch.lab.worlds import GaussianNoise, LinearWorld, World
from rareswitch.learner import (
    AdaptiveGrid,
    BatchLinUCB,
    BatchLinUCBDG,
    BatchLinUCBKW,
    CertifiedMixture,
    CoreLearning,
    Learner,
    make_learner,
    paper_design_grid,
    warm_start,
)
from rareswitch.learner.rule import first_half
from rareswitch.learner.settings import plain_settings
from rareswitch.planning import known_regret, proved_rate
from reference.loop import after, rows_for, rows_of, steps

WORLDS: dict[str, World] = {
    "gaussian": LinearWorld(source=Gaussian(dim=3, arms=5), noise=GaussianNoise(0.3)),
    "one-big": LinearWorld(source=OneBig(dim=3, arms=5), noise=GaussianNoise(0.3)),
    "varying": LinearWorld(source=VaryingArms(source=Gaussian(dim=3, arms=5), least=2), noise=GaussianNoise(0.3)),
}
NAMES = ["batch-linucb", "batch-linucb-kw", "batch-linucb-dg", "batch-linucb-dg-certified"]


def play(learner: Learner, world: World, seed: int, chunk: int) -> SlowRun:
    """The one loop, in chunks."""
    trace = SlowRun()
    for before, done in steps(learner, world, seed, most=chunk):
        count = done.state.start - before.start
        rounds = world.draw(count, seed=seed, first=before.start)
        ids = range(before.start, done.state.start)
        trace.arms += before.policy.decide(rounds.contexts, rounds.available, ids=ids, seed=seed).arms.tolist()
        kept = before.policy.survivors(rounds.contexts, rounds.available)
        trace.survivors += [np.flatnonzero(row).tolist() for row in kept]
    trace.estimates = [e.estimate for e in done.state.policy.eliminations]
    return trace


def assert_same(trace: SlowRun, slow: SlowRun) -> None:
    assert trace.survivors == slow.survivors
    assert trace.arms == slow.arms
    assert trace.estimates
    for estimate, expected in zip(trace.estimates, slow.estimates, strict=False):
        np.testing.assert_allclose(estimate, expected, rtol=1e-8, atol=1e-10)


def printed(learner: Any, world: World, seed: int, sampler: Sampler, **settings: Any) -> SlowRun:
    """The same by the slow reference."""
    level = learner.parts.rule.intervals
    return slow_batched(
        world,
        ends=learner.clock.ends,
        alpha=level.multiplier,
        ridge=level.ridge,
        seed=seed,
        first_sampler=sampler,
        **settings,
    )


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("confidence", ["paper", "tight", 0.4])
@pytest.mark.parametrize(
    ("kind", "sampler"), [(BatchLinUCB, Uniform()), (BatchLinUCBKW, GOptimal(tol=1.0))], ids=["plain", "kw"]
)
def test_decisions_are_those_of_the_printed_algorithm(
    kind: Any, sampler: Sampler, confidence: Any, world: World
) -> None:
    learner = kind(dim=3, arms=5, horizon=400, confidence=confidence, noise=0.3)
    assert_same(play(learner, world, 4, chunk=97), printed(learner, world, 4, sampler))


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("designer", ["core", "certified"])
@pytest.mark.parametrize("warm", [0, 1])
def test_dg_decisions_are_those_of_the_printed_algorithm(world: World, designer: str, warm: int) -> None:
    grid = paper_design_grid(450)
    learner = BatchLinUCBDG(
        dim=3,
        arms=5,
        horizon=450,
        confidence=0.4,
        grid=warm_start(grid, 3) if warm else grid,
        designer=CoreLearning() if designer == "core" else CertifiedMixture(),
        warm_batches=warm,
    )
    slow = printed(learner, world, 5, GOptimal(tol=1.0), designer=designer, warm_batches=warm)
    assert_same(play(learner, world, 5, chunk=64), slow)


def test_constants_of_the_paper() -> None:
    sizes: dict[str, Any] = {"dim": 4, "arms": 6, "horizon": 1000, "confidence": "paper", "delta": 0.1}
    plain: Any = BatchLinUCB(**sizes).parts.rule
    assert plain.intervals.multiplier == pytest.approx(10 * np.sqrt(np.log(2 * 4 * 6 * 1000 / 0.1)))
    assert plain.intervals.ridge == pytest.approx(16 * np.log(2 * 4 * 1000 / 0.1))
    designing: Any = BatchLinUCBDG(**sizes).parts.rule
    assert designing.intervals.ridge == pytest.approx(32 * np.log(2 * 4 * 1000 / 0.1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("horizon", [2, 3, 4, 5, 16, 17, 40])
def test_tiny_horizons_work(name: str, horizon: int) -> None:
    learner: Any = make_learner(name, dim=3, arms=5, horizon=horizon)
    *_, (_, last) = steps(learner, WORLDS["gaussian"], most=7)
    assert last.state.start == horizon
    assert last.state.policies == learner.clock.policies


def test_the_adaptive_grid_follows_the_widths() -> None:
    grids = {}
    for sigma in (0.1, 1.0):
        grid = AdaptiveGrid(horizon=4000, policies=6)
        learner = BatchLinUCB(dim=3, arms=5, horizon=4000, noise=sigma, norm=0.1, grid=grid)
        world = LinearWorld(source=Gaussian(dim=3, arms=5), noise=GaussianNoise(sigma))
        states = [done.state for _, done in steps(learner, world, most=4000)]
        ends = [state.start for state in states]
        assert ends[0] == 63
        assert ends[-1] == 4000
        assert len(ends) <= 6
        grids[sigma] = ends
        assert str(known_regret(learner, states[-1])) == "regret √(dKT), stochastic"
    # narrower intervals allow a longer second batch
    assert grids[0.1][1] > grids[1.0][1]


@pytest.mark.parametrize("policies", [None, 3])
def test_an_adaptive_grid_can_be_named(policies: int | None) -> None:
    """It goes to the horizon, with at most as many batches as were asked for or the algorithm's own."""
    learner = BatchLinUCBKW(dim=3, arms=5, horizon=4000, grid="adaptive", policies=policies)
    own = AdaptiveGrid(horizon=4000, policies=policies or 4)
    assert learner.clock == own
    assert make_learner("batch-linucb-kw", **plain_settings(learner)).clock == own
    with pytest.raises(ParameterError, match=r"grid must be batch ends.*got 'adaptive'"):
        make_learner("linucb-grid", dim=3, arms=5, horizon=4000, grid="adaptive")
    with pytest.raises(ParameterError, match=r"grid must be batch ends.*got 'adaptively'"):
        BatchLinUCBKW(dim=3, arms=5, horizon=4000, grid="adaptively")


def test_one_half_of_a_batch_is_summed_and_the_other_sampled() -> None:
    """Which is which follows from the ids, and of ℬ the sets with the smallest hashes are kept."""
    learner = BatchLinUCBDG(dim=3, arms=5, horizon=10_000, design_sample=10)
    state = learner.begin()
    rows = rows_of(state, WORLDS["gaussian"], 1)
    summary = learner.summarize(state, rows)
    first = first_half(rows.ids)
    assert 0 < first.sum() < len(rows) == 100
    assert summary.decided == summary.rewarded == 100
    assert summary.stats[0].count == first.sum()
    chosen = rows.features[first]
    np.testing.assert_allclose(summary.stats[0].gram, chosen.T @ chosen)
    other = np.flatnonzero(~first)
    expected = other[np.argsort(sample_order(rows.ids[other]))][:10]
    np.testing.assert_array_equal(summary.sample.keys, rows.ids[expected])
    np.testing.assert_array_equal(summary.sample.sets.contexts, rows.contexts[expected])


def test_the_designer_is_shown_what_the_policy_leaves() -> None:
    """The sets of ℬ after elimination, by the new estimate too."""
    seen: list[Any] = []

    class Spy:
        def learn(self, sets: ContextSets, *, regularization: float, arms: int) -> Sampler:
            seen.append((sets.contexts, sets.available, regularization))
            return Uniform()

    learner = BatchLinUCBDG(dim=3, arms=5, horizon=450, confidence=0.3, designer=Spy())
    state = after(learner, WORLDS["gaussian"], 1)
    rows = rows_of(state, WORLDS["gaussian"], 1)
    summary = learner.summarize(state, rows)
    found = learner.next(state, summary)
    contexts, available, regularization = seen[-1]
    assert regularization == 1 / 450
    np.testing.assert_array_equal(contexts, summary.sample.sets.contexts)
    np.testing.assert_array_equal(available, found.policy.survivors(summary.sample.sets))
    assert not available.all()
    assert isinstance(found.policy.sampler, Uniform)


def test_a_designer_without_sets_leaves_the_first_design() -> None:
    learner = BatchLinUCBDG(dim=3, arms=5, horizon=450)
    state = learner.begin()
    rows = rows_of(state, WORLDS["gaussian"], 1)
    bare = rows.without_offers()
    assert learner.next(state, learner.summarize(state, bare)).policy.sampler is learner.g_optimal


@pytest.mark.parametrize("kind", [CoreLearning, CertifiedMixture])
def test_designers_are_checked(kind: Any) -> None:
    assert BatchLinUCBDG(dim=3, arms=5, horizon=100, designer=kind()).designer == kind()
    with pytest.raises(ParameterError, match=r"designer must be CoreLearning\(\), CertifiedMixture\(\)"):
        BatchLinUCBDG(dim=3, arms=5, horizon=100, designer=kind.__name__)


def test_one_feature_and_arms_of_different_lengths() -> None:
    """Algorithm 5 has nothing to leave out of one dimension; it did not get through its second batch."""
    rng = np.random.default_rng(1)
    learner = BatchLinUCBDG(dim=1, arms=4, horizon=2000, noise=0.3)
    state = learner.begin()
    while not state.done:
        contexts = rng.uniform(-1.0, 1.0, (state.batch_sizes[0], 4, 1))
        rows = rows_for(state, contexts, [0.7], 0.3 * rng.standard_normal(len(contexts)), first=state.start)
        state = learner.next(state, learner.summarize(state, rows))
    assert state.policies == len(learner.clock.begin())


@pytest.mark.parametrize("name", ["batch-linucb-dg", "batch-linucb-dg-certified", "foresight"])
def test_how_sets_are_padded_does_not_change_what_is_learned(name: str) -> None:
    """As loops have them, with gaps, and as logs have them: the available arms one after the other."""
    learner = make_learner(name, dim=3, arms=8, horizon=900)
    rng = np.random.default_rng(2)
    states = [learner.begin()] * 2
    for _ in range(2):
        count = states[0].batch_sizes[0]
        contexts = rng.standard_normal((count, 8, 3)) / 4.0
        available = rng.permuted(np.arange(8) < np.full((count, 1), 5), axis=1)
        packed, full = contexts[available].reshape(count, 5, 3), np.ones((count, 5), dtype=np.bool_)
        ids = range(states[0].start, states[0].stop)
        for k, (x, mask) in enumerate([(contexts, available), (packed, full)]):
            decisions = states[k].policy.decide(x, mask, ids=ids, seed=1)
            means = x[np.arange(count), decisions.arms] @ [0.8, 0.0, -0.4]
            rows = DecisionLog.of(x, decisions, means + 0.1 * np.sin(np.arange(count)), mask)
            states[k] = learner.next(states[k], learner.summarize(states[k], rows))
        assert states[0].policy.id == states[1].policy.id


def test_the_rate_of_a_learned_design_rests_on_its_share_of_g_optimal_play() -> None:
    sizes: dict[str, Any] = {"dim": 20, "arms": 5, "horizon": 10**6}
    mixed = BatchLinUCBDG(**sizes, designer=CertifiedMixture(g_optimal_share=0.4))
    assert proved_rate(mixed) == "d·√(ln K/0.4)·√T, stochastic"
    assert proved_rate(BatchLinUCBDG(**sizes, designer=CertifiedMixture(g_optimal_share=0.0))) == "none"
    assert proved_rate(BatchLinUCBDG(**sizes, policies=2)) == "d·√(ln K)·T^0.667, stochastic"  # no design is learned
    assert proved_rate(BatchLinUCBDG(**sizes), "adversarial") == "none"
    assert proved_rate(BatchLinUCBKW(**sizes), "fixed") == "√(d·ln K)·√T, fixed"
