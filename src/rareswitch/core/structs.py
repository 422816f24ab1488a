"""The base of all reports: typed structs that print as text and as JSON; and the columns and shares of these texts."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from rareswitch.errors import MissingExtraError

__all__ = ["SCHEMA_VERSION", "Result", "data_frame", "draw_result", "percent_text", "plain_number", "result_html"]
__all__ += ["result_text", "short_repr", "table"]

#: Of what ``--json`` prints.
SCHEMA_VERSION = 1
#: Characters of the longest :func:`short_repr`, and of a value in it.
LONGEST, LONGEST_VALUE = 400, 60


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for people and programs: numbers and short codes; :mod:`rareswitch.report` has the sentences."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, as JSON has it."""
        return dict(msgspec.to_builtins(self, str_keys=True, enc_hook=plain_number))

    def __repr__(self) -> str:
        return short_repr(self)

    def __str__(self) -> str:
        return result_text(self)


def short_repr(value: Any) -> str:
    """What a prompt shows of a struct or dataclass: its fields, where they are short; arrays by their shapes.

    Fields that are None are left out, and the last ones where there is no room for all.

    >>> class Answer(Result, frozen=True):
    ...     value: float
    ...     parts: tuple[float, ...]
    >>> Answer(value=0.5, parts=(0.1,) * 100)
    Answer(value=0.5, parts=<100>)
    """
    names = [part.name for part in fields(value) if part.repr] if is_dataclass(value) else value.__struct_fields__
    text = ""
    for name in names:
        held = getattr(value, name)
        part = "" if held is None else f"{', ' if text else ''}{name}={_brief(held)}"
        if len(text) + len(part) > LONGEST:
            text += ", …"
            break
        text += part
    return f"{type(value).__name__}({text})"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{' × '.join(map(str, value.shape))}>"
    if isinstance(value, (str, int, float, np.generic)) or (isinstance(value, (tuple, list)) and len(value) < 4):
        text = repr(value)
        return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return f"<{len(value)}>" if isinstance(value, Sized) else f"{type(value).__name__}(…)"


def result_text(result: object) -> str:
    """The text of a result."""
    return str(import_module("rareswitch.report").as_text(result))  # which is above, as it knows all of them


def result_html(result: object) -> str:
    """A page of a result that needs no other file."""
    return str(import_module("rareswitch.report").as_html(result))


def draw_result(result: object, path: str | None = None) -> Any:
    """The figure of a result; with a path, it is written there too."""
    report = import_module("rareswitch.report")
    figure = report.draw(result)
    if path is not None:
        report.save(figure, path)
    return figure


def data_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A data frame of pandas, which is no dependency."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("data frames need pandas. Install it with: pip install pandas") from error
    return pd.DataFrame([*rows])


def plain_number(value: Any) -> float | int | bool:
    """A number of NumPy, or of a type of its own, as Python's."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no plain data")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Columns aligned under their names; the first ``left`` of them to the left, the others to the right.

    >>> print(table(["arm", "weight"], [["a", "0.5"], ["b", "0.25"]]))
    arm  weight
    ───  ──────
    a       0.5
    b      0.25
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        placed = [c.ljust(w) if k < left else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return "  ".join(placed).rstrip()

    return "\n".join([line(header), line(["─" * width for width in widths]), *map(line, rows)])


def percent_text(share: float) -> str:
    """A share, or a level, in percent.

    >>> percent_text(0.95), percent_text(0.0004), percent_text(1e-9), percent_text(0.0)
    ('95 %', '0.04 %', '< 0.01 %', '0 %')
    """
    if 0.0 < share < 1e-4:
        return "< 0.01 %"
    return f"{100.0 * share:.{2 if 0.0 < share < 0.001 else 1}f}".rstrip("0").rstrip(".") + " %"
