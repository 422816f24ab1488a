import math
from itertools import pairwise

import pytest

from rareswitch.lab.rivals.fixed_sets import growing_grid
from rareswitch.learner import LEARNERS, RarelySwitchSupLinUCB, make_learner, paper_design_grid, paper_grid
from rareswitch.planning.bounds import table_1
from rareswitch.planning.guarantees import (
    CONTEXTS,
    GUARANTEES,
    Batched,
    Switching,
    batch_exponent,
    design_exponent,
    proved_for,
)

TABLE = table_1(16, 2**64)

# the paper's Table 1, cell by cell: the upper bounds with their conditions, and the lower bound
PRINTED = {
    ("adversarial", "batches"): ([("O(√(dT))", "")], "Ω(√T)"),
    ("adversarial", "switches"): (
        [("O(d log T)", "ln K ≥ Ω(d)"), ("O(d log d log T)", "ln K ≤ o(d)")],
        "Ω(d log T/log(d log T))",
    ),
    ("stochastic", "batches"): ([("O(log log T)", "")], "Ω(log log T)"),
    ("stochastic", "switches"): ([("O(log log T)", "")], "Ω(log log T)"),
}
# the texts as functions, for d = 16 and T = 2^64: log T = 64, log log T = 6
VALUES = {
    "O(√(dT))": 4.0 * 2.0**32,
    "Ω(√T)": 2.0**32,
    "O(d log T)": 1024.0,
    "O(d log d log T)": 4096.0,
    "Ω(d log T/log(d log T))": 102.4,
    "O(log log T)": 6.0,
    "Ω(log log T)": 6.0,
}


def test_table_1_is_the_papers() -> None:
    for (contexts, model), (upper, lower) in PRINTED.items():
        here = [b for b in TABLE if (b.contexts, b.model) == (contexts, model)]
        assert [(b.text, b.condition) for b in here if b.upper] == upper
        assert [b.text for b in here if not b.upper] == [lower]
    assert len(TABLE) == sum(len(upper) + 1 for upper, _ in PRINTED.values())


def test_the_orders_are_what_the_texts_say() -> None:
    for bound in TABLE:
        assert bound.order == pytest.approx(VALUES[bound.text])


def test_every_learner_named_exists() -> None:
    named = {b.learner for b in TABLE if b.learner is not None} | {g.learner for g in GUARANTEES}
    assert named <= set(LEARNERS)
    assert {g.contexts for contexts in CONTEXTS for g in proved_for(contexts)} == set(CONTEXTS)


@pytest.mark.parametrize("guarantee", [g for g in GUARANTEES if isinstance(g, Batched)], ids=lambda g: g.learner)
def test_a_batched_learner_has_the_batches_that_its_bound_asks_for(guarantee: Batched) -> None:
    for horizon in (10, 256, 10**4, 10**6):
        learner = make_learner(guarantee.learner, dim=5, arms=7, horizon=horizon)
        assert getattr(learner.clock, "policies") == guarantee.policies(5, horizon)  # noqa: B009


def test_switches_are_counted_as_the_learners_count_them() -> None:
    (layered,) = (g for g in GUARANTEES if g.learner == "rarely-switch-suplinucb")
    assert isinstance(layered, Switching)
    for dim, growth in ((1, 2.0), (5, 2.0), (10, 7.0)):
        learner = RarelySwitchSupLinUCB(dim=dim, arms=5, horizon=10**5, growth=growth)
        assert layered.policies(dim, 10**5, growth) == learner.switch_bound


def rate(ends: tuple[int, ...]) -> float:
    """The power of T in max(T_1, T_i/√T_{i-1}), which is what batches cost up to the scale."""
    logs = [math.log(end) for end in ends]
    return max(logs[0], *(b - a / 2.0 for a, b in pairwise(logs))) / logs[-1] if len(logs) > 1 else 1.0


@pytest.mark.parametrize("policies", range(1, 8))
def test_the_exponents_are_those_of_the_grids(policies: int) -> None:
    """At T = 10^300, where a factor 2 is a power of 0.001."""
    horizon = 10**300
    assert rate(paper_grid(horizon, policies).ends) == pytest.approx(batch_exponent(policies), abs=1e-3)
    assert rate(paper_design_grid(horizon, policies).ends) == pytest.approx(design_exponent(policies), abs=3e-3)


def test_the_exponent_of_fixed_sets() -> None:
    (fixed,) = (g for g in GUARANTEES if g.learner == "fixed-set-elimination")
    for policies in (2, 3, 6):
        lengths = growing_grid(10**300, policies).ends
        assert rate(lengths) == pytest.approx(fixed.exponent(policies), abs=3e-3)


def test_fewer_switches_cost_what_the_growth_costs() -> None:
    (oful,) = (g for g in GUARANTEES if g.learner == "oful")
    assert isinstance(oful, Switching)
    text, order = oful.regret(10, 20, 10**5, oful.policies(10, 10**5))
    assert text == "√C·d·√T, C = 2"
    assert order == pytest.approx(math.sqrt(2.0) * 10 * math.sqrt(1e5))
    for policies in (2, 10, 40, 100):
        growth = oful.growth(10, 10**5, policies)
        assert growth == math.inf or oful.policies(10, 10**5, growth * 1.0001) <= policies
    assert oful.growth(10, 10**5, 1) == math.inf
