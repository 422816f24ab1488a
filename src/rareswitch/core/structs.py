"""The base of all reports: typed structs that print as text and as JSON; and the columns and shares of these texts."""

import sys
from collections.abc import Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from rareswitch.errors import MissingExtraError

__all__ = [
    "SCHEMA_VERSION",
    "Displayed",
    "ExtendedFloat",
    "Result",
    "percent_text",
    "plain_number",
    "result_html",
    "short_repr",
    "table",
]

#: Of what ``--json`` prints.
SCHEMA_VERSION = 1
#: A number that may be infinite or not known; JSON, which has no such numbers, says null.
ExtendedFloat: TypeAlias = Annotated[float, msgspec.Meta(extra_json_schema={"nullable": True})]
#: Characters of the longest :func:`short_repr`, and of a value in it.
LONGEST, LONGEST_VALUE = 400, 60


class Displayed:
    """What prompts, notebooks and programs show of a result; all of it comes from :mod:`rareswitch.report`.

    A frame has a row for each policy, arm, candidate, field or run, whichever the result is about.
    """

    __slots__ = ()
    #: The module that knows its rows, texts and pictures.
    shown_by: ClassVar[str] = "rareswitch.report"

    def __repr__(self) -> str:
        return short_repr(self)

    def __str__(self) -> str:
        return str(_report(self).as_text(self))

    def _repr_html_(self) -> str:
        """In a notebook: a sentence, a table, and a drawing in each of its rows."""
        return str(_report(self).as_part(self))

    def to_frame(self) -> Any:
        """A data frame of pandas or polars, whichever is installed; of both, the one that is imported already."""
        return data_frame(_report(self).rows_of(self).rows)

    def plot(self, path: str | None = None) -> Any:
        """A Matplotlib figure, which is also written to a file where a path is given."""
        report = _report(self)
        figure = report.draw(self)
        if path is not None:
            report.save(figure, path)
        return figure


class Result(Displayed, msgspec.Struct, frozen=True, kw_only=True):
    """Facts for people and programs: numbers and short codes; :mod:`rareswitch.report` has the sentences."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, as JSON has it."""
        return dict(msgspec.to_builtins(self, str_keys=True, enc_hook=plain_number))


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


def _report(result: Displayed) -> Any:
    """What is above all results, as it knows them."""
    import_module(result.shown_by)
    return import_module("rareswitch.report")


def result_html(result: object) -> str:
    """A page of a result that needs no other file."""
    return str(import_module("rareswitch.report").as_html(result))


def data_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A data frame of pandas or polars, which are no dependencies."""
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    for library in sorted(("pandas", "polars"), key=lambda name: name not in sys.modules):
        try:
            return import_module(library).DataFrame(columns)
        except ImportError:
            continue
    raise MissingExtraError("data frames need pandas or polars. Install one of them with: pip install pandas")


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
