"""Features as a table for people."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rareswitch.features.features import Features

_HEADER = ("field", "of", "kind", "columns", "treatment", "in the sample")
_WIDTH = 120


def described(features: "Features") -> str:
    """Each field and what becomes of it, then what the vectors are made of."""
    rows = [
        (
            part.name if part.key == part.name else f"{part.name} ({part.key})",
            part.of,
            part.kind,
            str(part.layout.columns),
            part.treatment,
            features.seen.get(part.name, ""),
        )
        for part in features.fields
    ]
    table: list[tuple[str, ...]] = [_HEADER, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, tuple("─" * width for width in widths))
    if not any(row[-1] for row in rows):
        table = [row[:-1] for row in table]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table] if rows else []
    return "\n".join([*lines, *_terms(features), *_left_out(features)])


def _terms(features: "Features") -> list[str]:
    """How the columns come together."""
    parts: list[tuple[str, int]] = []
    for term in features.terms:
        columns = 1
        for _, layout in term:
            columns *= layout.columns
        parts.append((" × ".join(name or "arm" for name, _ in term) or "constant", columns))
    summands = " + ".join(f"{name}\u00a0{columns}" for name, columns in parts).replace(" × ", "\u00a0×\u00a0")
    text = f"{features.dim} columns = {summands}; divided by √{len(parts)}, so that no vector is longer than 1"
    lines = [line.replace("\u00a0", " ") for line in _wrapped(text)]
    if features.arms is not None:
        arms = features.arms
        lines.append(
            f"{len(arms.ids)} arms with parameters of their own ({_some(arms.ids)}), "
            + (
                f"{arms.room} spare block{'s' * (arms.room > 1)} for arms that come later"
                if arms.room
                else "no room for others"
            )
        )
    absent = "are missing" if features.absent == "missing" else "are an error"
    extra = "are counted and not used" if features.extra == "ignore" else "are an error"
    return [*lines, f"fields that a record lacks {absent}; fields that are not described {extra}"]


def _left_out(features: "Features") -> list[str]:
    """What the sample had that is not used."""
    used = {part.name for part in features.fields}
    texts = [f"left out: {name}: {why}" for name, why in features.seen.items() if name not in used]
    return [line for text in texts for line in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, subsequent_indent="  ")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
