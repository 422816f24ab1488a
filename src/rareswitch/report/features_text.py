"""Features as text: each field and what becomes of it, then what the vectors are made of."""

import textwrap
from collections.abc import Iterator

from rareswitch.core import table
from rareswitch.features import (
    Category,
    Features,
    Field,
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
from rareswitch.report.text import as_text

__all__ = ["features_text"]

_HEADER = ("field", "of", "kind", "columns", "treatment", "in the sample")
_WIDTH = 120
_MISSING = {"own": "own column", "unknown": "as unknown", "error": "error"}


@as_text.register
def features_text(features: Features, *, cli: bool = False) -> str:
    """A table of the fields, and how columns come together."""
    rows = [
        (
            field.name if field.key == field.name else f"{field.name} ({field.key})",
            field.of,
            field.kind,
            str(field.layout.columns),
            treatment_text(field),
            features.seen.get(field.name, ""),
        )
        for field in features.fields
    ]
    shown = len(_HEADER) if any(row[-1] for row in rows) else len(_HEADER) - 1
    lines = [table(_HEADER[:shown], [row[:shown] for row in rows], left=shown)] if rows else []
    return "\n".join([*lines, *_composition(features), *_left_out(features)])


def treatment_text(field: Field) -> str:
    """How the values of a field become numbers, and what becomes of missing ones.

    >>> treatment_text(Number("age", mean=40, scale=12))
    '(x − 40) / 12, within ±4; missing: own column'
    """
    return f"{_rule(field)}; missing: {_MISSING[field.missing]}"


def _rule(field: Field) -> str:
    match field:
        case Number():  # or its logarithm
            x = "x" if not isinstance(field, Log) else f"log(x + {field.shift:.4g})" if field.shift else "log x"
            return f"({x} − {field.mean:.4g}) / {field.scale:.4g}, within ±{field.clip:.4g}"
        case Quantile():
            return f"its rank among {len(field.quantiles)} quantiles, −1 to 1"
        case Hour():
            return f"time of day on a circle, {field.zone}"
        case Month():
            return f"month on a circle, {field.zone}"
        case Weekday():
            return f"a column for each day, {field.zone}"
        case Flag():
            return "1 if true, −1 if not"
        case Vector():
            return f"divided by {field.longest:.4g}, its longest length"
        case Category():
            unknown = "own column" if field.unknown == "own" else "error"
            return f"a column for each of {len(field.levels)} levels; unknown: {unknown}"
        case Hashed():
            return f"one of {field.columns} columns by hash"
    return ""


def _composition(features: Features) -> Iterator[str]:
    """How the columns come together."""
    parts = [(" × ".join(name or "arm" for name, _ in term) or "constant", columns) for term, columns in features.sizes]
    summands = " + ".join(f"{name}\u00a0{columns}" for name, columns in parts).replace(" × ", "\u00a0×\u00a0")
    text = f"{features.dim} columns = {summands}; divided by √{len(parts)}, so that no vector is longer than 1"
    yield from (line.replace("\u00a0", " ") for line in _wrapped(text))
    if features.arms is not None:
        ids, spare = [*map(str, features.arms.ids)], features.arms.spare_arms
        names = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        blocks = (
            f"{spare} spare block{'s' * (spare > 1)} for arms that are added later"
            if spare
            else "no spare block for others"
        )
        yield f"{len(ids)} arms with parameters of their own ({names}), {blocks}"
    absent = "are missing" if features.absent == "missing" else "are an error"
    extra = "are counted and not used" if features.extra == "ignore" else "are an error"
    yield f"fields that a record lacks {absent}; fields that are not described {extra}"


def _left_out(features: Features) -> Iterator[str]:
    """What the sample had that is not used."""
    used = {field.name for field in features.fields}
    for name, why in features.seen.items():
        if name not in used:
            yield from _wrapped(f"left out: {name}: {why}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, subsequent_indent="  ")
