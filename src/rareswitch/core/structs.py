"""The base of all reports: typed structs that print as text and as JSON."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from rareswitch.errors import MissingExtraError

#: Of what ``--json`` prints.
SCHEMA_VERSION = 1


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for people and programs: numbers and short codes; :mod:`rareswitch.report` has the sentences."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, as JSON has it."""
        return dict(msgspec.to_builtins(self, str_keys=True, enc_hook=plain_number))

    def __str__(self) -> str:
        return result_text(self)


def result_text(result: object) -> str:
    """The text of a result."""
    return str(import_module("rareswitch.report").as_text(result))  # which is above, as it knows all of them


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
