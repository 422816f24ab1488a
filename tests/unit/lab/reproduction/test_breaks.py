"""Each claim passes at small size, and turns red where what it is about is broken."""

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rareswitch.core import FloatArray, Stats
from rareswitch.design import GOptimal, Uniform, core_identification, distributional, g_optimal, sampling, staged_design
from rareswitch.lab import collaborate
from rareswitch.lab.reproduction import designs, regret, theory
from rareswitch.lab.reproduction.claims import Effort, Outcome, judge_claim
from rareswitch.lab.reproduction.reproduce import CLAIMS
from rareswitch.learner import DeterminantGrowth, StaticGrid, batched, confidence, grids
from rareswitch.policy import Policy

Patch = pytest.MonkeyPatch
#: Modules whose imports are replaced.
CONFIDENCE: Any = confidence
DISTRIBUTIONAL: Any = distributional
LABORATORY: Any = designs
BATCHED: Any = batched
REGRET: Any = regret
THEORY: Any = theory
COLLABORATION: Any = sys.modules[collaborate.__module__]


def measured(number: int) -> Outcome:
    (claim,) = (claim for claim in CLAIMS if claim.number == number)
    return judge_claim(claim, Effort(size="small"))


def ends_off_by_one(patch: Patch) -> None:
    plain = CONFIDENCE.paper_grid
    patch.setattr(confidence, "paper_grid", lambda *sizes: shifted(plain(*sizes)))


def shifted(grid: StaticGrid) -> StaticGrid:
    return StaticGrid(ends=(*(end + 1 for end in grid.ends[:-1]), grid.ends[-1]))


def one_batch_too_many(patch: Patch) -> None:
    plain = grids.loglog_batches
    patch.setattr(grids, "loglog_batches", lambda horizon: plain(horizon) + 1)


def no_elimination(patch: Patch) -> None:
    patch.setattr(Policy, "survivors", lambda self, sets, available=None: sets.available)


def estimates_of_the_wrong_sign(patch: Patch) -> None:
    plain = Stats.estimate
    patch.setattr(Stats, "estimate", lambda self, **settings: -plain(self, **settings))


def policies_too_often(patch: Patch) -> None:
    """A clock whose determinant needs to grow by half of what it should."""
    plain = DeterminantGrowth.__post_init__

    def halved(self: DeterminantGrowth) -> None:
        plain(self)
        vars(self).update(factor=1.0 + (self.factor - 1.0) / 2.0)

    patch.setattr(DeterminantGrowth, "__post_init__", halved)


def stages_a_block_too_long(patch: Patch) -> None:
    plain = DISTRIBUTIONAL._stage

    def longer(points: FloatArray, mass: FloatArray, start: FloatArray, limit: int) -> tuple[int, FloatArray]:
        length, growth = plain(points, mass, start, limit)
        return length + (len(points) if length + len(points) <= limit else 0), growth

    patch.setattr(distributional, "_stage", longer)


def designs_that_are_none(patch: Patch) -> None:
    """The uniform weights of all available arms."""

    def uniform(contexts: Any, available: Any = None, **settings: Any) -> Any:
        design = g_optimal(contexts, available, **settings)
        weights = Uniform().probabilities(contexts, available)
        return dataclasses.replace(design, weights=weights)

    patch.setattr(designs, "g_optimal", uniform)


def uniform_for_g_optimal(patch: Patch) -> None:
    patch.setattr(GOptimal, "of_sets", lambda self, sets: Uniform().of_sets(sets))


def one_arm_for_uniform(patch: Patch) -> None:
    def last(self: Uniform, sets: Any) -> FloatArray:
        return np.asarray(np.eye(sets.available.shape[1])[np.full(len(sets.available), -1)])

    patch.setattr(Uniform, "of_sets", last)


def softmax_of_the_smallest(patch: Patch) -> None:
    def inverted(values: FloatArray, sets: Any, exponent: Any) -> FloatArray:
        powers = np.where(sets.available, np.maximum(values, 1e-300) ** -1.0, 0.0)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    for module in (sampling, distributional):
        patch.setattr(module, "normalized_powers", inverted)


def stages_without_their_lengths(patch: Patch) -> None:
    """The last stage alone is played."""

    def last(*sets: Any, **settings: Any) -> Any:
        design = staged_design(*sets, **settings)
        weights = np.zeros(len(design.policy.weights))
        weights[-1] = 1.0
        return dataclasses.replace(design, policy=dataclasses.replace(design.policy, weights=weights))

    patch.setattr(designs, "staged_design", last)


def uniform_for_what_was_learned(patch: Patch) -> None:
    plain = LABORATORY.core_learning

    def uniform(*sets: Any, **settings: Any) -> Any:
        uniform_policy: Any = Uniform()
        return dataclasses.replace(plain(*sets, **settings), policy=uniform_policy)

    patch.setattr(designs, "core_learning", uniform)


def the_last_arm_for_the_best(patch: Patch) -> None:
    def last(values: FloatArray) -> FloatArray:
        return np.asarray(np.eye(values.shape[1])[np.isfinite(values).sum(axis=1) - 1])

    patch.setattr(sampling, "one_hot", last)


def a_core_that_ignores_c(patch: Patch) -> None:
    plain = LABORATORY.core_learning
    patch.setattr(
        designs, "core_learning", lambda sets, *, regularization, **_: plain(sets, regularization=regularization)
    )


def a_core_of_everything(patch: Patch) -> None:
    def everything(sets: Any, **settings: Any) -> Any:
        core = core_identification(sets, **settings)
        return dataclasses.replace(core, indices=np.arange(len(sets)))

    patch.setattr(designs, "core_identification", everything)


def a_core_at_half_its_threshold(patch: Patch) -> None:
    def halved(sets: Any, *, power: float, **settings: Any) -> Any:
        return core_identification(sets, power=power - 0.4, **settings)

    patch.setattr(designs, "core_identification", halved)


def widths_halved(patch: Patch) -> None:
    plain = CONFIDENCE.independent_intervals

    def halved(*sizes: Any, **settings: Any) -> Any:
        intervals = plain(*sizes, **settings)
        return dataclasses.replace(intervals, multiplier=intervals.multiplier / 2.0)

    patch.setattr(confidence, "independent_intervals", halved)


def sums_that_are_not_added(patch: Patch) -> None:
    """The precision of a batch is its ridge alone."""
    plain = BATCHED.batch_elimination
    patch.setattr(
        batched,
        "batch_elimination",
        lambda stats, intervals: plain(dataclasses.replace(stats, gram=np.zeros_like(stats.gram)), intervals),
    )


def widths_that_eliminate_nothing(patch: Patch) -> None:
    plain = BATCHED.batch_elimination
    patch.setattr(
        batched,
        "batch_elimination",
        lambda stats, intervals: plain(stats, dataclasses.replace(intervals, multiplier=1e6)),
    )


def batches_in_the_wrong_order(patch: Patch) -> None:
    """The longest first."""
    plain = REGRET.paper_grid

    def reversed_grid(*sizes: int) -> StaticGrid:
        return StaticGrid(ends=tuple(np.cumsum(plain(*sizes).begin()[::-1]).tolist()))

    patch.setattr(regret, "paper_grid", reversed_grid)


def one_growth_for_every_c(patch: Patch) -> None:
    patch.setattr(DeterminantGrowth, "bar", property(lambda self: 2.0))


def a_clock_that_never_strikes(patch: Patch) -> None:
    patch.setattr(DeterminantGrowth, "due", lambda *_: None)


def sums_of_the_first_agent(patch: Patch) -> None:
    plain = COLLABORATION.summaries_from_bytes

    def of_the_first(data: bytes) -> Any:
        (summary, *_) = plain(data)
        return [dataclasses.replace(summary, stats=tuple(stats + stats for stats in summary.stats))]

    patch.setattr(COLLABORATION, "summaries_from_bytes", of_the_first)


def a_warm_start_too_long(patch: Patch) -> None:
    plain = THEORY.warm_start
    patch.setattr(theory, "warm_start", lambda grid, dim: plain(grid, dim / 2))


def every_arm_counts(patch: Patch) -> None:
    patch.setattr(sys.modules["rareswitch.planning.guarantees"], "arm_logarithm", lambda dim, arms: math.log(arms))


BREAKS: list[tuple[int, Callable[[Patch], None]]] = [
    (1, ends_off_by_one),
    (1, one_batch_too_many),
    (2, no_elimination),
    (2, estimates_of_the_wrong_sign),
    (2, policies_too_often),
    (2, stages_a_block_too_long),
    (3, designs_that_are_none),
    (4, uniform_for_g_optimal),
    (4, one_arm_for_uniform),
    (5, softmax_of_the_smallest),
    (5, stages_without_their_lengths),
    (6, uniform_for_what_was_learned),
    (7, the_last_arm_for_the_best),
    (7, a_core_that_ignores_c),
    (8, a_core_of_everything),
    (8, a_core_at_half_its_threshold),
    (9, widths_halved),
    (9, estimates_of_the_wrong_sign),
    (10, sums_that_are_not_added),
    (11, widths_that_eliminate_nothing),
    (11, estimates_of_the_wrong_sign),
    (12, batches_in_the_wrong_order),
    (12, widths_that_eliminate_nothing),
    (13, policies_too_often),
    (13, one_growth_for_every_c),
    (14, estimates_of_the_wrong_sign),
    (15, a_clock_that_never_strikes),
    (16, sums_of_the_first_agent),
    (16, policies_too_often),
    (17, a_warm_start_too_long),
    (17, every_arm_counts),
]


@pytest.mark.parametrize("number", range(1, 18))
def test_the_claim_passes(number: int) -> None:
    outcome = measured(number)
    assert outcome.verdict == "PASS", outcome.measured


@pytest.mark.parametrize(("number", "broken"), BREAKS, ids=[f"{n} {b.__name__}" for n, b in BREAKS])
def test_a_break_turns_its_claim_red(number: int, broken: Callable[[Patch], None], monkeypatch: Patch) -> None:
    broken(monkeypatch)
    outcome = measured(number)
    assert outcome.verdict == "FAIL", outcome.measured
