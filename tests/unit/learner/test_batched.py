import dataclasses
from typing import Any

import numpy as np
import pytest

from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler, Uniform
from rareswitch.distributions import Gaussian, OneBig, VaryingArms
from rareswitch.env import GaussianNoise, LinearWorld, World
from rareswitch.errors import BatchError, ContextNormError, InputError, NonFiniteError, ParameterError, ShapeError
from rareswitch.learner import (
    AdaptiveGrid,
    BatchedLearner,
    BatchLinUCB,
    BatchLinUCBDG,
    BatchLinUCBKW,
    CertifiedMixture,
    CoreLearning,
    Feedback,
    Summary,
    custom_grid,
    make_learner,
    paper_design_grid,
    paper_grid,
    warm_start,
)
from rareswitch.policy.files import from_bytes, to_bytes
from reference.batched import Trace, slow_batched

WORLDS: dict[str, World] = {
    "gaussian": LinearWorld(source=Gaussian(dim=3, arms=5), noise=GaussianNoise(0.3)),
    "one-big": LinearWorld(source=OneBig(dim=3, arms=5), noise=GaussianNoise(0.3)),
    "varying": LinearWorld(source=VaryingArms(source=Gaussian(dim=3, arms=5), least=2), noise=GaussianNoise(0.3)),
}


def play(learner: BatchedLearner, world: World, seed: int, chunk: int) -> Trace:
    """The one loop, in chunks."""
    trace = Trace()
    while not learner.done:
        policy = learner.policy
        total: Summary | None = None
        for first in range(learner.start, learner.stop, chunk):
            count = min(chunk, learner.stop - first)
            rounds = world.draw(count, seed=seed, first=first)
            decisions = policy.decide(rounds.contexts, rounds.alive, seed=seed, first=first)
            trace.arms += decisions.arms.tolist()
            kept = policy.survivors(rounds.contexts, rounds.alive)
            trace.survivors += [np.flatnonzero(row).tolist() for row in kept]
            rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=first)
            part = learner.summarize(Feedback.of(rounds.contexts, decisions, rewards, rounds.alive))
            total = part if total is None else total + part
        assert total is not None
        learner.next(total)
    trace.estimates = [e.estimate for e in learner.policy.eliminations]
    return trace


def assert_same(trace: Trace, slow: Trace) -> None:
    assert trace.survivors == slow.survivors
    assert trace.arms == slow.arms
    for estimate, expected in zip(trace.estimates, slow.estimates, strict=False):
        np.testing.assert_allclose(estimate, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("confidence", ["paper", "tight", 0.4])
@pytest.mark.parametrize(
    ("kind", "sampler"), [(BatchLinUCB, Uniform()), (BatchLinUCBKW, GOptimal(tol=1.0))], ids=["plain", "kw"]
)
def test_decisions_are_those_of_the_printed_algorithm(
    kind: type[BatchedLearner], sampler: Sampler, confidence: Any, world: World
) -> None:
    learner = kind(dim=3, arms=5, horizon=600, confidence=confidence, noise=0.3)
    level, ends = learner.confidence, learner.grid.ends  # type: ignore[union-attr]
    slow = slow_batched(world, ends=ends, alpha=level.multiplier, ridge=level.ridge, seed=4, first_sampler=sampler)
    assert_same(play(learner, world, 4, chunk=97), slow)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("designer", ["core", "certified"])
@pytest.mark.parametrize("warm", [0, 1])
def test_dg_decisions_are_those_of_the_printed_algorithm(world: World, designer: str, warm: int) -> None:
    grid = paper_design_grid(700)
    learner = BatchLinUCBDG(
        dim=3,
        arms=5,
        horizon=700,
        confidence=0.4,
        grid=warm_start(grid, 3) if warm else grid,
        designer=CoreLearning() if designer == "core" else CertifiedMixture(),
        warm_batches=warm,
    )
    level, ends = learner.confidence, learner.grid.ends  # type: ignore[union-attr]
    slow = slow_batched(
        world,
        ends=ends,
        alpha=level.multiplier,
        ridge=level.ridge,
        seed=5,
        first_sampler=GOptimal(tol=1.0),
        designer=designer,
        warm_batches=warm,
    )
    assert_same(play(learner, world, 5, chunk=64), slow)


def test_constants_of_the_paper() -> None:
    plain = BatchLinUCB(dim=4, arms=6, horizon=1000, confidence="paper", delta=0.1)
    assert plain.confidence.multiplier == pytest.approx(10 * np.sqrt(np.log(2 * 4 * 6 * 1000 / 0.1)))
    assert plain.confidence.ridge == pytest.approx(16 * np.log(2 * 4 * 1000 / 0.1))
    assert BatchLinUCBDG(dim=4, arms=6, horizon=1000, confidence="paper", delta=0.1).confidence.ridge == pytest.approx(
        32 * np.log(2 * 4 * 1000 / 0.1)
    )


@pytest.mark.parametrize("name", ["batch-linucb", "batch-linucb-kw", "batch-linucb-dg", "batch-linucb-dg-certified"])
@pytest.mark.parametrize("horizon", [2, 3, 4, 5, 16, 17, 40])
def test_tiny_horizons_work(name: str, horizon: int) -> None:
    learner = make_learner(name, dim=3, arms=5, horizon=horizon)
    assert isinstance(learner, BatchedLearner)
    trace = play(learner, WORLDS["gaussian"], 1, chunk=7)
    assert len(trace.arms) == horizon
    assert learner.updates == learner.grid.batches


def test_chunks_do_not_change_decisions() -> None:
    traces = [
        play(BatchLinUCBDG(dim=3, arms=5, horizon=500, confidence=0.4), WORLDS["one-big"], 2, chunk=c)
        for c in (500, 61)
    ]
    assert traces[0].arms == traces[1].arms


def test_the_adaptive_grid_follows_the_widths() -> None:
    grids = {}
    for sigma in (0.1, 1.0):
        learner = BatchLinUCB(
            dim=3, arms=5, horizon=4000, noise=sigma, norm=0.1, grid=AdaptiveGrid(horizon=4000, batches=6)
        )
        ends = []
        world = LinearWorld(source=Gaussian(dim=3, arms=5), noise=GaussianNoise(sigma))
        while not learner.done:
            ends.append(learner.stop)
            count = learner.stop - learner.start
            rounds = world.draw(count, seed=1, first=learner.start)
            decisions = learner.policy.decide(rounds.contexts, seed=1, first=learner.start)
            learner.next(learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(count))))
        assert ends[0] == 63
        assert ends[-1] == 4000
        assert len(ends) <= 6
        assert learner.updates == len(ends)
        grids[sigma] = ends
    # narrower intervals allow a longer second batch
    assert grids[0.1][1] > grids[1.0][1]


def test_the_design_sample_is_capped_and_spread_over_the_batch() -> None:
    learner = BatchLinUCBDG(dim=3, arms=5, horizon=10_000, design_sample=10)
    offsets = np.arange(100)
    chosen = np.flatnonzero(learner._sampled(offsets))
    assert chosen.tolist() == [1, 11, 21, 31, 41, 51, 61, 71, 81, 91]
    assert np.flatnonzero(learner._counted(offsets)).tolist() == list(range(0, 100, 2))


def one_batch(learner: BatchedLearner, first: int = 0, count: int | None = None, scale: float = 1.0) -> Feedback:
    count = learner.stop - learner.start if count is None else count
    rounds = WORLDS["gaussian"].draw(count, seed=1, first=first)
    decisions = learner.policy.decide(rounds.contexts, seed=1, first=first)
    return Feedback.of(rounds.contexts * scale, decisions, np.zeros(count))


def fresh(**settings: Any) -> BatchLinUCB:
    return BatchLinUCB(**{"dim": 3, "arms": 5, "horizon": 1000} | settings)


def test_a_batch_is_learned_from_once_whole_and_in_order() -> None:
    learner = fresh()
    summary = learner.summarize(one_batch(learner))
    with pytest.raises(BatchError, match="all of which are needed; got 0 to 9"):
        learner.next(learner.summarize(one_batch(learner, count=10)))
    with pytest.raises(BatchError, match="policy 1 makes the decisions 0 to 30; got 31 to 31"):
        learner.summarize(one_batch(learner, first=31, count=1))
    left, right = (
        learner.summarize(one_batch(learner, count=10)),
        learner.summarize(one_batch(learner, first=20, count=5)),
    )
    with pytest.raises(BatchError, match="must follow each other"):
        left + right
    with pytest.raises(BatchError, match="must follow each other"):
        left + left
    learner.next(summary)
    with pytest.raises(BatchError, match="another learner, or to a batch that was learned from already"):
        learner.next(summary)


def test_a_policy_of_another_learner_is_refused() -> None:
    learner, other = fresh(), BatchLinUCBKW(dim=3, arms=5, horizon=1000)
    with pytest.raises(BatchError, match="belong to another learner"):
        learner.summarize(one_batch(other))
    with pytest.raises(BatchError, match="two policies"):
        learner.summarize(one_batch(learner, count=5)) + other.summarize(one_batch(other, first=5, count=5))


def test_nothing_is_learned_after_the_end() -> None:
    learner = fresh(horizon=2)
    summary = learner.summarize(one_batch(learner))
    assert learner.next(summary) is learner.policy
    assert learner.done
    with pytest.raises(BatchError, match="run is over"):
        learner.next(summary)
    with pytest.raises(BatchError, match="run is over"):
        learner.summarize(one_batch(learner, count=1))


def test_bad_feedback_is_refused() -> None:
    learner = fresh()
    with pytest.raises(ContextNormError, match="has norm"):
        learner.summarize(one_batch(learner, scale=1.5))
    contexts = WORLDS["gaussian"].draw(3, seed=1).contexts
    decisions = learner.policy.decide(contexts, seed=1)
    with pytest.raises(NonFiniteError, match="rewards"):
        Feedback.of(contexts, decisions, [0.0, np.inf, 0.0])
    with pytest.raises(ShapeError, match="rewards must have shape"):
        Feedback.of(contexts, decisions, [0.0])
    with pytest.raises(ShapeError, match="2 context sets were given for 3 decisions"):
        Feedback.of(contexts[:2], decisions, [0.0, 0.0])
    dead = np.ones((3, 5), dtype=bool)
    dead[0, decisions.arms[0]] = False
    with pytest.raises(ShapeError, match="not alive"):
        Feedback.of(contexts, decisions, np.zeros(3), dead)
    beyond = dataclasses.replace(decisions, arms=np.array([0, 9, 0]))
    with pytest.raises(ShapeError, match="outside"):
        Feedback.of(contexts, beyond, np.zeros(3))
    small = fresh(arms=4)
    with pytest.raises(BatchError, match="at most 4 arms; got 5"):
        small.summarize(one_batch(small, count=2))


def test_feedback_for_other_arms_is_refused() -> None:
    learner = BatchLinUCBDG(dim=3, arms=5, horizon=1000)
    rounds = WORLDS["varying"].draw(learner.stop, seed=1)
    decisions = learner.policy.decide(rounds.contexts, rounds.alive, seed=1)
    with pytest.raises(BatchError, match="was the mask of living arms"):
        learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(learner.stop)))
    assert learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(learner.stop), rounds.alive)).sample
    with pytest.raises(BatchError, match="for 3 features; got 2"):
        learner.summarize(Feedback.of(rounds.contexts[:, :, :2], decisions, np.zeros(learner.stop), rounds.alive))


def test_every_policy_of_a_run_can_be_shipped() -> None:
    for seed in range(3):
        for designer in (CoreLearning(), CertifiedMixture()):
            learner = BatchLinUCBDG(dim=3, arms=5, horizon=400, designer=designer, confidence=0.5)
            while not learner.done:
                assert from_bytes(to_bytes(learner.policy)).id == learner.policy.id
                count = learner.stop - learner.start
                rounds = WORLDS["one-big"].draw(count, seed=seed, first=learner.start)
                decisions = learner.policy.decide(rounds.contexts, seed=seed, first=learner.start)
                learner.next(learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(count))))


def test_batches_are_the_algorithms_own_grid() -> None:
    assert fresh(batches=3).grid == paper_grid(1000, 3)
    assert BatchLinUCBDG(dim=3, arms=5, horizon=1000, batches=4).grid == paper_design_grid(1000, 4)
    with pytest.raises(ParameterError, match="not both"):
        fresh(batches=3, grid=paper_grid(1000))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizon": 1}, "horizon must be at least 2"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"arms": 0}, "arms must be at least 1"),
        ({"delta": 0.0}, "delta must be"),
        ({"noise": -1.0}, "noise must be"),
        ({"norm": np.nan}, "norm must be"),
        ({"ridge": 0.0}, "ridge must be"),
        ({"confidence": "loose"}, "'paper', 'tight' or a number"),
        ({"confidence": -1.0}, "confidence must be"),
        ({"grid": custom_grid([10, 20])}, "grid ends at 20 where the horizon is 1000"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fresh(**settings)


def test_unknown_learners_are_named() -> None:
    with pytest.raises(InputError, match="no learner 'ucb'; the learners are foresight"):
        make_learner("ucb", dim=1, arms=1, horizon=10)


def test_samples_are_what_the_policy_left() -> None:
    learner = BatchLinUCBDG(dim=3, arms=5, horizon=700, confidence=0.3)
    learner.next(learner.summarize(one_batch(learner)))
    feedback = one_batch(learner, first=learner.start)
    sample = learner.summarize(feedback).sample
    assert isinstance(sample, ContextSets)
    kept = learner.policy.survivors(feedback.sets.contexts)
    np.testing.assert_array_equal(sample.alive, kept[1::2])
