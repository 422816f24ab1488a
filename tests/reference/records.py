"""Descriptions and records for the tests of features, and a slow encoder to compare with."""

import math
from typing import Any

import numpy as np

from rareswitch.features import (
    Arms,
    Category,
    Features,
    Flag,
    Hashed,
    Hour,
    Log,
    Month,
    Number,
    Quantile,
    Vector,
    Weekday,
)

MIXED = Features(
    fields=[
        Number("age", mean=40, scale=10),
        Category("device", levels=["ios", "web", "3"]),
        Hashed("city", columns=3, alone=False),
        Flag("member", alone=False),
        Number("price", of="arm", mean=2, scale=0.5, clip=2),
        Category("brand", of="arm", levels=["a", "b"], missing="unknown", alone=False),
        Vector("taste", of="arm", length=2, longest=2),
        Number("affinity", of="both", mean=0, scale=1, alone=True),
    ],
    constant=True,
    crossings=[("device", "brand"), ("city", "taste"), ("age", "affinity")],
    arms=Arms(ids=["x", "y", "7"], spare_arms=2, own=["member", "age"]),
)
AFFINITIES = Features(
    fields=[
        Number("age", mean=40, scale=10, alone=False),
        Number("likes", of="both", key="likes_{arm}_now", mean=1, scale=1),
        Number("price", of="arm", mean=1, scale=1),
    ],
    crossings=[("age", "likes")],
)
SHARED = Features(
    fields=[Number("age", mean=40, scale=10), Flag("new", of="arm"), Hashed("maker", of="arm", columns=4)],
    crossings=[("age", "maker")],
)
TRANSFORMED = Features(
    fields=[
        Log("price", of="arm", mean=2, scale=0.5),
        Quantile("age", quantiles=[18, 30, 30, 70]),
        Hour("at hour", key="at", alone=False),
        Weekday("at weekday", key="at", zone="Europe/Berlin"),
        Month("at month", key="at", missing="error"),
    ],
    arms=Arms(ids=["x"], own=["at hour"]),
)


def drawn(rng: np.random.Generator) -> tuple[dict[str, Any], dict[Any, dict[str, Any]]]:
    """A context and arms for the mixed features, with everything that can happen to a record."""

    def one(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    context = {
        "age": one(rng.normal(40, 30), 41, None, math.nan, 0, np.float64(3.5), True),
        "device": one("ios", "web", 3, 3.0, "3", "android", None, math.nan, np.str_("ios")),
        "city": one("Rom", "Ulm", 17, None, "Rom", True),
        "member": one(True, False, 1, 0, None, np.bool_(True), 1.0),
        "note": "not described",
    }
    ids = list(rng.permutation(np.array(["x", "y", 7, "later", "even later", "last"], dtype=object)))
    arms = {
        id: {
            "price": one(rng.normal(2, 1), 2, None),
            "brand": one("a", "b", "c", None),
            "taste": one([0.5, 1], np.array([3.0, 4.0]), (0.0, -1.0), None, [math.nan, 1.0]),
            "affinity": one(rng.normal(), 0, None),
        }
        for id in ids[: int(rng.integers(1, 7))]  # noqa: A001
    }
    if rng.random() < 0.3:
        del context["city"]
    if rng.random() < 0.3:
        del next(iter(arms.values()))["price"]
    return context, arms


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def part(field: Any, value: Any) -> list[float]:
    """The columns of one value, written down from what the documentation says of each kind."""
    own = [0.0] if field.missing == "own" else []
    if isinstance(field, Vector):
        if missing(value) or any(missing(v) for v in np.asarray(value, dtype=object)):
            return [0.0] * field.length + [1.0]
        length = math.sqrt(sum(float(v) ** 2 for v in value))
        return [float(v) / max(length, field.longest) for v in value] + own
    if isinstance(field, (Number, Flag)):
        if missing(value):
            return [0.0, 1.0]
        if isinstance(field, Flag):
            return [1.0 if value else -1.0, *own]
        return [min(max((value - field.mean) / field.scale / field.clip, -1.0), 1.0), *own]
    names = field.column_names
    if missing(value):
        wanted = f"{field.name} missing" if field.missing == "own" else f"{field.name} unknown"
    elif isinstance(field, Hashed):
        wanted = HASHES[field.name, field.columns][text(value)]
    else:
        wanted = f"{field.name}={text(value)}"
        wanted = wanted if wanted in names else f"{field.name} unknown"
    return [float(name == wanted) for name in names]


def text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


#: Which column a text has must never change: policies that were learned rest on it.
HASHES = {("city", 3): {"Rom": "city hash 0", "Ulm": "city hash 2", "17": "city hash 0", "true": "city hash 2"}}


def slow(features: Features, context: dict[str, Any], arms: dict[Any, dict[str, Any]]) -> np.ndarray[Any, Any]:
    """The vectors of one request by outer products."""
    rows = []
    for id, record in arms.items():  # noqa: A001
        parts = {
            field.name: part(field, (context if field.of == "context" else record).get(field.key))
            for field in features.fields
        }
        terms = [[1.0]] if features.constant else []
        terms += [parts[field.name] for field in features.fields if field.alone]
        terms += [[a * b for a in parts[one] for b in parts[other]] for one, other in features.crossings]
        if features.arms is not None:
            block = [float(name == BLOCKS[str(id)]) for name in features.arms.column_names]
            terms += [block] if features.arms.level else []
            terms += [[a * b for a in block for b in parts[name]] for name in features.arms.own]
        rows.append(np.concatenate(terms) / math.sqrt(len(terms)))
    return np.array(rows)


#: The blocks of the arms of the mixed features, which must never change either.
BLOCKS = {"x": "arm x", "y": "arm y", "7": "arm 7", "later": "spare 0", "even later": "spare 0", "last": "spare 1"}
