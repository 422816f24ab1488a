"""Context sets that are degenerate in every way that has broken a solver."""

import numpy as np

from rareswitch.core import BoolArray, FloatArray

FAMILIES = (
    *("fewer arms than dimensions", "duplicates", "zero vectors", "all zero", "near-collinear", "norms from 1e-8 to 1"),
    *("low rank", "one arm", "one dimension", "a zero coordinate", "extreme scale", "one-hot"),
    *("near-dependent coordinates", "features from 1e-9 to 1e9", "tiny, near-collinear and mixed"),
)


def degenerate_set(rng: np.random.Generator, family: str) -> tuple[FloatArray, BoolArray]:
    """Arms (K, d) of the family, and a mask that in a third of the cases kills some of them."""
    dim, arms = int(rng.integers(1, 7)), int(rng.integers(1, 11))
    x = rng.standard_normal((arms, dim))
    norms = 10.0 ** rng.uniform(-8, 0, (arms, 1))
    small = 10.0 ** -rng.uniform(3, 12.5)
    if family == "fewer arms than dimensions":
        x = rng.standard_normal((arms, arms + int(rng.integers(1, 4))))
    elif family == "duplicates":
        x = x[rng.integers(0, max(1, arms // 2), arms)]
    elif family == "zero vectors":
        x[rng.random(arms) < 0.5] = 0.0
    elif family == "all zero":
        x[:] = 0.0
    elif family == "near-collinear":
        x = x[0] + small * rng.standard_normal((arms, dim))
    elif family == "norms from 1e-8 to 1":
        x *= norms
    elif family == "low rank":
        rank = int(rng.integers(1, dim + 1))
        x = rng.standard_normal((arms, rank)) @ rng.standard_normal((rank, dim))
    elif family == "one arm":
        x = x[:1]
    elif family == "one dimension":
        x = x[:, :1]
    elif family == "a zero coordinate":
        x[:, rng.integers(0, dim)] = 0.0
    elif family == "extreme scale":
        x *= 10.0 ** rng.uniform(-150, 150)
    elif family == "one-hot":
        x = np.hstack([np.eye(dim)[rng.integers(0, dim, arms)], np.eye(2)[rng.integers(0, 2, arms)]])
    elif family == "near-dependent coordinates":
        x[:, -1] = 0.3 * x[:, 0] + small * rng.standard_normal(arms)
    elif family == "features from 1e-9 to 1e9":
        x *= 10.0 ** rng.uniform(-9, 9, dim)
    else:
        x *= norms
        x[rng.integers(0, arms)] = x[0] * (1 + 1e-9) + 1e-11 * rng.standard_normal(dim)
    available = np.ones(len(x), dtype=np.bool_)
    if rng.random() < 0.3:
        available = rng.random(len(x)) < 0.5
        available[rng.integers(0, len(x))] = True
    return x, available
