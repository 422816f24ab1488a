"""Record what a policy of every kind decides: ``python tests/golden/record_decisions.py > FILE``.

All numbers come from the keyed generator, by sums and products alone, so that they are the same on every machine.
"""

import json
from typing import Any

import numpy as np

from rareswitch.core import BoolArray, FloatArray, uniforms
from rareswitch.design import GOptimal, MixedArgmax, MixedSoftmax, Sampler, Uniform
from rareswitch.lab.rivals import InverseGap
from rareswitch.policy import Blend, Elimination, Layered, Optimistic, Policy, PosteriorDraws

DIM, ARMS, SETS, FIRST = 5, 13, 24, 1000


def numbers(stream: str, *shape: int) -> FloatArray:
    """Numbers in (-1, 1)."""
    return 2.0 * uniforms(3, stream, 0, int(np.prod(shape))).reshape(shape) - 1.0


def root(stream: str, *shape: int) -> FloatArray:
    return np.tril(numbers(stream, *shape, shape[-1]))


def elimination(dim: int, stream: str, scale: float) -> Elimination:
    return Elimination(estimate=numbers(stream, dim), root=scale * root(stream + "-root", dim))


def samplers() -> dict[str, Sampler]:
    """One of each kind, and more than one where there are cases."""
    halves = numbers("halves", 2, DIM, DIM)
    matrices = np.array([half.T * 0.5 + half * 0.5 + 3.0 * np.eye(DIM) for half in halves])
    weights = np.array([0.25, 0.75])
    layers: dict[str, Any] = {
        "estimates": numbers("layers", 3, DIM),
        "roots": np.array([root(f"layer-{k}", DIM) for k in range(3)]) * 0.3,
        "thresholds": [1.0, 0.5, 0.25],
    }
    optimistic = Optimistic(estimate=numbers("high", DIM), root=root("high-root", DIM))
    draws = PosteriorDraws(draws=numbers("draws", 37, DIM))
    return {
        "uniform": Uniform(),
        "g-optimal": GOptimal(),
        "g-optimal-2": GOptimal(tol=1.0),
        "argmax": MixedArgmax(weights=np.ones(1), matrices=matrices[:1], g_optimal_share=0.0),
        "softmax": MixedSoftmax(weights=np.ones(1), matrices=matrices[1:], g_optimal_share=0.0),
        "mixed-argmax": MixedArgmax(weights=weights, matrices=matrices),
        "mixed-softmax": MixedSoftmax(weights=weights, matrices=matrices, exponent=2.0),
        "optimistic": optimistic,
        "posterior-draws": draws,
        "greedy": PosteriorDraws(draws=numbers("draws", 1, DIM)),
        "layered": Layered(**layers),
        "layered-tails": Layered(**layers, tails=layers["roots"] * 0.5, optimistic=True, exploit=0.2),
        "inverse-gap": InverseGap(estimate=numbers("gap", DIM), gamma=20.0),
        "blend": Blend(main=draws, explorer=GOptimal(tol=1.0), share=0.05),
        "blend-blend": Blend(
            main=Blend(main=optimistic, explorer=Uniform(), share=0.2), explorer=GOptimal(), share=0.3
        ),
    }


def cases() -> dict[str, tuple[Policy, FloatArray, BoolArray]]:
    """Policies, with the sets and masks that they are asked about."""
    found = {}
    contexts = numbers("contexts", SETS, ARMS, DIM)
    available = numbers("alive", SETS, ARMS) < 0.6
    available[:, 0] = True
    parts = (elimination(DIM, "first", 1.0), elimination(DIM, "second", 0.4))
    for name, sampler in samplers().items():
        found[name] = Policy(dim=DIM, sampler=sampler), contexts, available
        found[f"{name}/eliminations"] = Policy(dim=DIM, sampler=sampler, eliminations=parts), contexts, available
    for arms, dim in ((20, 10), (50, 20)):
        sampler = Blend(main=PosteriorDraws(draws=numbers("many", 128, dim)), explorer=GOptimal(tol=1.0), share=0.0003)
        for scale in (0.1, 10.0):
            policy = Policy(dim=dim, sampler=sampler, eliminations=(elimination(dim, "wide", scale),))
            sets = numbers(f"{arms}", 12, arms, dim)
            found[f"foresight/{arms}/{scale}"] = policy, sets, np.ones(sets.shape[:2], dtype=np.bool_)
    return found


def decided(name: str) -> dict[str, Any]:
    """Arms and propensities of a case, to the last bit."""
    policy, contexts, available = cases()[name]
    made = policy.decide(contexts, available, ids=range(FIRST, FIRST + len(contexts)), seed=9)
    return {
        "policy": policy.id,
        "arms": made.arms.tolist(),
        "propensities": [value.hex() for value in made.propensities.tolist()],
        "survivors": made.survivors.tolist(),
    }


if __name__ == "__main__":
    print("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(decided(name))}" for name in cases()) + "\n}")
