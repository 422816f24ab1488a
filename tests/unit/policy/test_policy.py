import dataclasses
import math

import numpy as np
import pytest

from rareswitch.design import Argmax, GOptimal, MixedArgmax, MixedSoftmax, Sampler, Softmax, Uniform
from rareswitch.distributions import Gaussian, VaryingArms
from rareswitch.errors import EmptySetError, NonFiniteError, ShapeError
from rareswitch.policy import Elimination, Policy
from rareswitch.policy.kernels import widest
from rareswitch.validation import FloatArray
from reference.batched import eliminated, mask

DIM, ARMS = 4, 9


def precision(seed: int, count: int = 60) -> FloatArray:
    x = np.random.default_rng(seed).standard_normal((count, DIM)) / 2
    return np.asarray(x.T @ x + np.eye(DIM))


def eliminations(*seeds: int, multiplier: float = 1.0) -> tuple[Elimination, ...]:
    return tuple(
        Elimination.of(np.random.default_rng(s).standard_normal(DIM) / 2, precision(s, 40 * 3**k), multiplier)
        for k, s in enumerate(seeds)
    )


_MATRICES = np.stack([np.diag([1.0, 2.0, 3.0, 4.0]), np.eye(DIM) + 0.1])
SAMPLERS: dict[str, Sampler] = {
    "uniform": Uniform(),
    "g-optimal": GOptimal(),
    "argmax": Argmax(_MATRICES[0]),
    "softmax": Softmax(_MATRICES[1]),
    "mixed-argmax": MixedArgmax(weights=np.array([0.3, 0.7]), matrices=_MATRICES),
    "mixed-softmax": MixedSoftmax(weights=np.array([0.3, 0.7]), matrices=_MATRICES),
}


def test_survivors_are_those_of_the_printed_rule() -> None:
    parts = eliminations(1, 2, 3, multiplier=2.5)
    policy = Policy(dim=DIM, sampler=Uniform(), eliminations=parts)
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(300, seed=1)
    kept = policy.survivors(sets.contexts, sets.alive)
    sizes = set()
    for x, alive, found in zip(sets.contexts, sets.alive, kept, strict=True):
        left = np.flatnonzero(alive).tolist()
        for k, s in enumerate((1, 2, 3)):
            left = eliminated(x, left, parts[k].estimate, precision(s, 40 * 3**k), 2.5)
        np.testing.assert_array_equal(found, mask(ARMS, left))
        sizes.add(len(left))
    assert len(sizes) > 2  # the eliminations do something, and not always the same


def test_widths_are_norms_of_the_root() -> None:
    (one,) = eliminations(5, multiplier=1.7)
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(50, seed=2)
    found = np.empty(50)
    widest(sets.contexts, sets.alive, one.root, found)
    inverse = np.linalg.inv(precision(5, 40))
    forms = np.sqrt(np.einsum("nki,ij,nkj->nk", sets.contexts, inverse, sets.contexts)) * 1.7
    np.testing.assert_allclose(found, np.where(sets.alive, forms, 0).max(axis=1), rtol=1e-10)


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_decisions_depend_on_their_own_set_and_number_alone(sampler: Sampler) -> None:
    policy = Policy(dim=DIM, sampler=sampler, eliminations=eliminations(1, 2))
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS)).draw(60, seed=3)
    whole = policy.decide(sets.contexts, sets.alive, seed=9, first=1000)
    for part in (slice(0, 13), slice(13, 60)):
        again = policy.decide(sets.contexts[part], sets.alive[part], seed=9, first=1000 + part.start)
        np.testing.assert_array_equal(again.arms, whole.arms[part])
        np.testing.assert_array_equal(again.propensities, whole.propensities[part])
    for s in (0, 31, 59):
        one = policy.decide(sets.contexts[s], sets.alive[s], seed=9, first=1000 + s)
        assert (one.arms, one.propensities, one.survivors) == (
            whole.arms[s],
            whole.propensities[s],
            whole.survivors[s],
        )
    probabilities = policy.probabilities(sets.contexts, sets.alive)
    np.testing.assert_array_equal(probabilities[np.arange(60), whole.arms], whole.propensities)
    np.testing.assert_array_equal(policy.survivors(sets.contexts, sets.alive).sum(axis=1), whole.survivors)


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_frequencies_are_the_propensities(sampler: Sampler) -> None:
    policy = Policy(dim=DIM, sampler=sampler, eliminations=eliminations(4, multiplier=1.5))
    sets = VaryingArms(source=Gaussian(dim=DIM, arms=ARMS), least=3).draw(5, seed=4)
    n = 20_000
    for x, alive in zip(sets.contexts, sets.alive, strict=True):
        decisions = policy.decide(np.broadcast_to(x, (n, ARMS, DIM)), np.broadcast_to(alive, (n, ARMS)), seed=11)
        frequency = np.bincount(decisions.arms, minlength=ARMS) / n
        # Hoeffding for each arm, Bonferroni over arms, sets and samplers: false alarm at most 1e-6
        bound = math.sqrt(math.log(2 * ARMS * len(sets) * len(SAMPLERS) / 1e-6) / (2 * n))
        expected = policy.probabilities(x, alive)
        assert np.abs(frequency - expected).max() <= bound
        assert not frequency[expected == 0].any()


def test_deciding_changes_nothing() -> None:
    policy = Policy(dim=DIM, sampler=GOptimal(), eliminations=eliminations(1))
    contexts = Gaussian(dim=DIM, arms=ARMS).draw(20, seed=5).contexts
    before = policy.id
    first = policy.decide(contexts, seed=1).arms
    np.testing.assert_array_equal(policy.decide(contexts, seed=1).arms, first)
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


def test_bad_input_is_refused() -> None:
    policy = Policy(dim=DIM, sampler=Uniform())
    with pytest.raises(ShapeError, match="for 4 features; got contexts of 3"):
        policy.decide(np.ones((2, 2, 3)), seed=1)
    with pytest.raises(NonFiniteError, match="contexts"):
        policy.decide(np.full((2, 2, 4), np.nan), seed=1)
    with pytest.raises(EmptySetError, match="kills every arm"):
        policy.decide(np.ones((1, 2, 4)), np.zeros((1, 2), dtype=bool), seed=1)
    with pytest.raises(ShapeError, match="an elimination of 4 dimensions in a policy of 2"):
        Policy(dim=2, sampler=Uniform(), eliminations=eliminations(1))
    with pytest.raises(ShapeError, match="lower triangular"):
        Elimination(estimate=np.ones(2), root=np.ones((2, 2)))
