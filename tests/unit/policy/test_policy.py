import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.test_samplers import SAMPLERS
from golden import record_decisions
from rareswitch.core import FloatArray, id_keys
from rareswitch.design import GOptimal, MixedArgmax, Sampler, Uniform
from rareswitch.errors import EmptySetError, NonFiniteError, ParameterError, ShapeError
from rareswitch.lab.distributions import Gaussian, VaryingArms
from rareswitch.lab.reproduction.references.batched import eliminated, flags_of
from rareswitch.lab.rivals import InverseGap
from rareswitch.policy import Blend, Elimination, Layered, Optimistic, Policy, PosteriorDraws
from rareswitch.policy.samplers import widest
from reference.refusals import raises

DIM, ARMS = 4, 9


def precision(seed: int, count: int = 60) -> FloatArray:
    x = np.random.default_rng(seed).standard_normal((count, DIM)) / 2
    return np.asarray(x.T @ x + np.eye(DIM))


def eliminations(*seeds: int, multiplier: float = 1.0) -> tuple[Elimination, ...]:
    return tuple(
        Elimination.of(np.random.default_rng(s).standard_normal(DIM) / 2, precision(s, 40 * 3**k), multiplier)
        for k, s in enumerate(seeds)
    )


def test_survivors_are_those_of_the_printed_rule() -> None:
    parts = eliminations(1, 2, 3, multiplier=2.5)
    policy = Policy(dim=DIM, sampler=Uniform(), eliminations=parts)
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(300, seed=1)
    kept = policy.survivors(sets.contexts, sets.available)
    sizes = set()
    for x, available, found in zip(sets.contexts, sets.available, kept, strict=True):
        left = np.flatnonzero(available).tolist()
        for k, s in enumerate((1, 2, 3)):
            left = eliminated(x, left, parts[k].estimate, precision(s, 40 * 3**k), 2.5)
        np.testing.assert_array_equal(found, flags_of(ARMS, left))
        sizes.add(len(left))
    assert len(sizes) > 2  # the eliminations do something, and not always the same


def test_survivors_of_a_first_policy_are_not_the_mask_of_the_caller() -> None:
    available = np.array([True, True])
    surviving = Policy(dim=2, sampler=Uniform()).survivors(np.eye(2), available)
    available[0] = False
    assert surviving.tolist() == [True, True]
    assert not surviving.flags.writeable


def test_widths_are_norms_of_the_root() -> None:
    (one,) = eliminations(5, multiplier=1.7)
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(50, seed=2)
    found = np.empty(50)
    widest(sets.contexts, sets.available, one.root, found)
    inverse = np.linalg.inv(precision(5, 40))
    forms = np.sqrt(np.einsum("nki,ij,nkj->nk", sets.contexts, inverse, sets.contexts)) * 1.7
    np.testing.assert_allclose(found, np.where(sets.available, forms, 0).max(axis=1), rtol=1e-10)


@pytest.mark.parametrize("arms", [1, 2, 9, 40])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_decisions_depend_on_their_own_set_and_id_alone(sampler: Sampler, arms: int) -> None:
    policy = Policy(dim=DIM, sampler=sampler, eliminations=eliminations(1, 2))
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=arms), least=1).draw(60, seed=3)
    ids: list[int | str] = [*range(1000, 1030), *(f"request-{k}" for k in range(30))]
    whole = policy.decide(sets.contexts, sets.available, ids=ids, seed=9)
    np.testing.assert_array_equal(whole.ids, id_keys(ids))
    for part in (np.arange(13), np.arange(13, 60), np.random.default_rng(1).permutation(60), np.arange(60)[::-7]):
        again = policy.decide(sets.contexts[part], sets.available[part], ids=[ids[s] for s in part], seed=9)
        np.testing.assert_array_equal(again.arms, whole.arms[part])
        np.testing.assert_array_equal(again.propensities, whole.propensities[part])
        np.testing.assert_array_equal(again.ids, whole.ids[part])
    for s in range(60):
        one = policy.decide(sets.contexts[s], sets.available[s], ids=ids[s], seed=9)
        assert (one.arms, one.propensities, one.survivors) == (whole.arms[s], whole.propensities[s], whole.survivors[s])
        assert one.ids.tolist() == whole.ids[s].tolist()
        assert one.policy_id == whole.policy_id == policy.id
    probabilities = policy.probabilities(sets.contexts, sets.available)
    np.testing.assert_array_equal(probabilities[np.arange(60), whole.arms], whole.propensities)
    np.testing.assert_array_equal(policy.survivors(sets.contexts, sets.available).sum(axis=1), whole.survivors)
    cut = whole.upto(7)
    assert (len(cut.arms), len(cut.propensities), len(cut.survivors), len(cut.ids)) == (7, 7, 7, 7)


@pytest.mark.parametrize("name", record_decisions.cases())
def test_decisions_are_those_that_were_recorded(name: str) -> None:
    """Decisions that were logged must replay in years to come: with numbers as ids, to the last bit."""
    recorded = json.loads(Path(record_decisions.__file__).with_name("decisions.json").read_text(encoding="utf-8"))
    assert record_decisions.decided(name) == recorded[name]


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("strings", [False, True])
def test_frequencies_are_the_propensities(sampler: Sampler, strings: bool) -> None:
    policy = Policy(dim=DIM, sampler=sampler, eliminations=eliminations(4, multiplier=1.5))
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS), least=3).draw(5, seed=4)
    n = 20_000
    ids = [f"request-{k}" for k in range(n)] if strings else range(n)
    for x, available in zip(sets.contexts, sets.available, strict=True):
        many = np.broadcast_to(x, (n, ARMS, DIM)), np.broadcast_to(available, (n, ARMS))
        decisions = policy.decide(*many, ids=ids, seed=11)
        frequency = np.bincount(decisions.arms, minlength=ARMS) / n
        # Hoeffding for each arm, Bonferroni over arms, sets, samplers and ids: false alarm at most 1e-6
        bound = math.sqrt(math.log(2 * ARMS * len(sets) * 2 * len(SAMPLERS) / 1e-6) / (2 * n))
        expected = policy.probabilities(x, available)
        assert np.abs(frequency - expected).max() <= bound
        assert not frequency[expected == 0].any()


def test_deciding_changes_nothing() -> None:
    policy = Policy(dim=DIM, sampler=GOptimal(), eliminations=eliminations(1))
    contexts = Gaussian(dim=DIM, arms=ARMS).draw(20, seed=5).contexts
    before = policy.id
    first = policy.decide(contexts, ids=range(20), seed=1).arms
    np.testing.assert_array_equal(policy.decide(contexts, ids=range(20), seed=1).arms, first)
    assert Policy(dim=DIM, sampler=GOptimal(), eliminations=eliminations(1)).id == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.dim = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        policy.eliminations[0].root[0, 0] = 2.0


def test_ids_tell_contents_apart() -> None:
    policies = [Policy(dim=DIM, sampler=s) for s in SAMPLERS.values()]
    policies += [Policy(dim=DIM, sampler=Uniform(), eliminations=eliminations(k)) for k in range(3)]
    policies += [Policy(dim=DIM + 1, sampler=Uniform())]
    assert len({policy.id for policy in policies}) == len(policies)


@pytest.mark.parametrize("shape", [(), (1,)], ids=["one set", "an array of one"])
@pytest.mark.parametrize(
    ("contexts", "more", "error", "words"),
    [
        (np.ones((2, 3)), {}, ShapeError, "for 4 features; got contexts of 3"),
        (np.full((2, 4), np.nan), {}, NonFiniteError, "contexts must be finite; 8 of its entries are not"),
        (np.full((2, 4), -np.inf), {}, NonFiniteError, "contexts"),
        (np.ones((2, 4)), {"available": np.zeros(2, dtype=bool)}, EmptySetError, "kills every arm"),
        (np.ones((2, 4)), {"available": np.ones(3, dtype=bool)}, ShapeError, "available must be booleans of shape"),
        (np.ones((2, 4)), {"available": np.ones(2)}, ShapeError, "available must be booleans"),
        (np.ones((0, 4)), {}, EmptySetError, "at least one arm"),
        (np.ones((2, 4)), {"seed": -1}, ParameterError, "seed"),
    ],
)
def test_bad_input_is_refused(
    shape: tuple[int, ...], contexts: FloatArray, more: dict[str, Any], error: type[Exception], words: str
) -> None:
    if "available" in more:
        more = {"available": np.broadcast_to(more["available"], shape + more["available"].shape)}
    sets, ids = np.broadcast_to(contexts, shape + contexts.shape), [0] if shape else 0
    raises(error, words, Policy(dim=DIM, sampler=Uniform()).decide, sets, ids=ids, **{"seed": 1} | more)


@pytest.mark.parametrize(
    ("sets", "ids", "error", "words"),
    [
        (2, [1, 2, 3], ShapeError, "2 sets take 2 ids; got 3"),
        (2, range(2**63 - 1), ShapeError, "2 sets take 2 ids"),
        *((1, one, ShapeError, r"Pass \[id\]") for one in (5, "a")),
        (None, [5], ParameterError, "an id must be a whole number or a string; got list"),
        (None, -1, ParameterError, "at least 0"),
        *((2, range(*ids), ShapeError, r"ids must be below 2\^63") for ids in ((10**30,), (2**63,), (10**30, 0, -1))),
        (2, range(-(10**30), 5), ShapeError, r"ids must be below 2\^63"),
    ],
)
def test_ids_must_fit_their_sets(sets: int | None, ids: Any, error: type[Exception], words: str) -> None:
    contexts = np.ones((2, 4) if sets is None else (sets, 2, 4))
    raises(error, words, Policy(dim=DIM, sampler=Uniform()).decide, contexts, ids=ids, seed=1)


def test_a_policy_that_leaves_no_arm_is_refused() -> None:
    """Finite numbers whose intervals overflow with contexts that are finite too."""
    mad = Elimination(estimate=np.full(DIM, 1e150), root=1e150 * np.eye(DIM))
    contexts = np.stack([np.zeros((3, DIM)), np.full((3, DIM), 1e160)])
    for sampler in SAMPLERS.values():
        policy = Policy(dim=DIM, sampler=sampler, eliminations=(mad,))
        raises(EmptySetError, "leaves no arm of set 1", policy.decide, contexts, ids=[1, 2], seed=1)
        raises(EmptySetError, "leaves no arm of set 0", policy.decide, contexts[1], ids=1, seed=1)


MAD = np.full((DIM, DIM), 1e160) * np.eye(DIM)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Elimination(estimate=MAD[0], root=np.eye(DIM)),
        lambda: Elimination(estimate=np.ones(DIM), root=MAD),
        lambda: Optimistic(estimate=np.ones(DIM), root=-MAD),
        lambda: PosteriorDraws(draws=MAD),
        lambda: InverseGap(estimate=MAD[0], gamma=1.0),
        lambda: InverseGap(estimate=np.ones(DIM), gamma=1e160),
        lambda: Layered(estimates=MAD[:1], roots=np.eye(DIM)[None], thresholds=np.full(1, 0.5)),
        lambda: Layered(estimates=np.ones((1, DIM)), roots=MAD[None], thresholds=np.full(1, 0.5)),
        lambda: Layered(estimates=np.ones((1, DIM)), roots=np.eye(DIM)[None], thresholds=np.full(1, 1e160)),
        lambda: Layered(estimates=np.ones((1, DIM)), roots=np.eye(DIM)[None], thresholds=np.full(1, -0.1)),
    ],
)
def test_numbers_that_a_policy_cannot_compute_with_are_refused(make: Callable[[], Any]) -> None:
    raises(ParameterError, "must", make)


THREE = PosteriorDraws(draws=np.ones((2, 3)))
INNER: Any = Blend(main=Uniform(), explorer=THREE, share=0.5)
WRONG: Any = Uniform()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Policy(dim=2, sampler=INNER), ShapeError, "a sampler of 3 dimensions in a policy of 2"),
        (lambda: Policy(dim=2, sampler=Blend(main=INNER, explorer=Uniform(), share=0.1)), ShapeError, "a sampler of 3"),
        (lambda: Policy(dim=2, sampler=InverseGap(estimate=np.empty(0), gamma=1.0)), ShapeError, "a sampler of 0 dim"),
        (lambda: Policy(dim=2, sampler=Uniform(), eliminations=eliminations(1)), ShapeError, "an elimination of 4 dim"),
        (lambda: Elimination(estimate=np.ones(2), root=np.ones((2, 2))), ShapeError, "lower triangular"),
        (lambda: Policy(dim=2, sampler=None), ParameterError, "method probabilities"),  # type: ignore[arg-type]
        (lambda: Policy(dim=1, sampler=Uniform(), min_propensity=WRONG), ParameterError, "of type MinPropensity"),
        (lambda: Policy(dim=3, sampler=Uniform(), eliminations=(WRONG,)), ParameterError, "of type Elimination"),
        (
            lambda: MixedArgmax(weights=np.ones(1), matrices=np.eye(2)[None], g_optimal=WRONG),
            ParameterError,
            "of type GOptimal",
        ),
    ],
)
def test_parts_of_a_policy_must_agree(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    """Also those within a blend, and those that have another kind than their place asks for."""
    raises(error, words, make)


def test_whole_numbers_of_any_type_give_the_same_policy() -> None:
    plain = Policy(dim=2, sampler=Uniform(), edition=1)
    for two, one in ((np.int64(2), np.uint8(1)), (2.0, 1.0)):
        same = Policy(dim=two, sampler=Uniform(), edition=one)  # type: ignore[arg-type]
        assert same.id == plain.id
        assert (type(same.dim), type(same.edition)) == (int, int)
    assert Policy(dim=2, sampler=GOptimal(tol=1)).id == Policy(dim=2, sampler=GOptimal(tol=1.0)).id
