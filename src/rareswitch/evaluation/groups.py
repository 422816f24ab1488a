"""For whom: the groups of decisions within which an effect is asked for."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareswitch.core import FloatArray, IntArray, Table
from rareswitch.decisions import DecisionLog
from rareswitch.errors import ParameterError, ShapeError, did_you_mean
from rareswitch.evaluation.scoring import Texts
from rareswitch.features import Features

__all__ = ["By", "by_column", "labels_of"]

#: The most groups: with more, none has enough decisions, and no table is read.
MOST_GROUPS = 50
#: What stands for the place of the arm among those that were offered.
POSITION = "position"


#: The name of a field, or ``position``; labels; a function of logged decisions to labels.
By = str | Iterable[Any] | Callable[[DecisionLog], Iterable[Any]]


class Groups(NamedTuple):
    """Gives each decision the name of its group."""

    #: What they are groups of.
    name: str
    #: Of decisions in which the arm stands at some places (n,), the groups (n,).
    labels: Callable[[DecisionLog, IntArray], Texts]
    #: Sorts them as they are shown.
    order: Callable[[str], str | int] = str


def _by_labels(by: By, count: int | None) -> Groups:
    """What the caller says: a function of logged decisions to labels (n,), or labels of a log in memory."""
    if not callable(by) and count is None:
        raise ParameterError(
            "by must be a function of logged decisions, or the name of a field, where decisions are read some at a "
            "time; labels are for a log in memory."
        )

    def labels(log: DecisionLog, places: IntArray) -> Texts:
        values = by(log) if callable(by) else by
        try:
            names = np.asarray([str(label) or "(empty)" for label in values])
        except TypeError:
            raise ShapeError(f"by must give labels, one for each decision; got {values!r:.60}.") from None
        if names.shape != (len(log),):
            raise ShapeError(f"by must give {len(log)} labels, one for each decision; got {len(names)}.")
        return names

    return Groups(str(getattr(by, "__name__", "group")).replace("<lambda>", "group"), labels)


def half_names(name: str, middle: str, above: bool) -> tuple[str, str]:
    """Of the lower and the upper half of a number, which begins with the median itself where nothing is above it."""
    return (f"{name} ≤ {middle}", f"{name} > {middle}") if above else (f"{name} < {middle}", f"{name} ≥ {middle}")


def by_column(name: str, table: Table) -> By:
    """The values of a column of the table that a log in memory was read from, or the halves of a number.

    >>> table = Table.of("visits", {"age": [31, 45, None, 62], "country": ["DE", "FR", "DE", "DE"]})
    >>> log = DecisionLog(arm_indices=[0] * 4, propensities=[0.5] * 4, rewards=[0.0] * 4)
    >>> by_column("age", table)(log)
    ['age ≤ 45', 'age ≤ 45', '', 'age > 45']
    """
    if name not in table.columns:
        known = f"a column of {table.path}, {', '.join(table.columns):.300}, or {POSITION!r}"
        raise ParameterError(f"by must be {known}; got {name!r:.60}.{did_you_mean(name, table.columns)}")
    labels = table.texts(name, gaps=True)
    if all(cell is None or type(cell) in (int, float) for cell in table.values[name]):
        numbers = table.numbers(name, gaps=True)
        middle = float(np.nanmedian(numbers))
        above = bool((numbers > middle).any())
        names = half_names(name, f"{middle:.4g}", above)
        upper = (numbers > middle if above else numbers >= middle).astype(int)
        labels = ["" if text == "" else names[half] for text, half in zip(labels, upper.tolist(), strict=True)]

    def groups(log: DecisionLog) -> list[str]:
        return labels

    groups.__name__ = name
    return groups


class ByField:
    """Levels of a field of the context, or the lower and the upper half of a number, read off the vectors.

    Parameters
    ----------
    logs
        All decisions: where the field is a number, they tell its median.

    Examples
    --------
    >>> from rareswitch.features import Arms, Category, Features
    >>> device = Category("device", levels=["ios", "web"], alone=False)
    >>> features = Features(fields=[device], arms=Arms(ids=["a", "b"], own=["device"]))
    >>> x = features.encode_many([{"device": "web"}, {"device": "ios"}], ["a", "b"]).vectors
    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.5], rewards=[1.0, 0.0], contexts=x)
    >>> ByField("device", features, [log]).labels(log, log.arm_indices).tolist()
    ['device=web', 'device=ios']
    """

    def __init__(self, name: str, features: Features, logs: Iterable[DecisionLog]) -> None:
        self.name = name
        self._field = next(field for field in features.fields if field.name == name)
        self._features = features
        self._read = _reader(name, features)
        self._columns = [*self._field.column_names]
        self.order = self._columns
        form = self._field.layout.form
        if form == 2:
            raise ParameterError(f"by cannot be {name!r}: it is a vector, which has no levels. Give labels.")
        if form == 0 and self._field.kind == "number":
            self._split(logs)
        elif form == 0:
            self._halve(f"{name}: yes", f"{name}: no")
            self.order = [self._columns[0], self._columns[-1], *self._columns[1:-1]]

    def _halve(self, upper: str, lower: str) -> None:
        """Name what is above a bound, in place of the column itself, and what is not, behind all columns."""
        self._columns = [upper, *self._columns[1:], lower]
        self.order = [lower, *self._columns[:-1]]

    def _split(self, logs: Iterable[DecisionLog]) -> None:
        """Find the median, and name both halves."""
        parts = [self._read(log) for log in logs]
        values = np.concatenate([part[~self._missing(part), 0] for part in parts])
        layout = self._field.layout
        middle = float(np.median(values)) if len(values) else 0.0
        above = values[values > middle + _ROUNDING]
        # the upper half begins at the next value, or with the median itself where nothing is above it
        self._bound = (middle + float(above.min())) / 2.0 if len(above) else middle - _ROUNDING
        text = f"{layout.center + layout.divisor * middle:.4g}"
        lower, upper = half_names(self.name, text, len(above) > 0)
        self._halve(upper, lower)

    def _missing(self, columns: FloatArray) -> NDArray[np.bool_]:
        place = self._field.layout.missing
        return np.asarray(columns[:, place] > 0.5) if place > 0 else np.zeros(len(columns), dtype=np.bool_)

    def labels(self, log: DecisionLog, places: IntArray) -> Texts:
        columns = self._read(log)
        if self._field.layout.form == 1:
            which = columns.argmax(axis=1)
        else:
            bound = self._bound if self._field.kind == "number" else 0.0
            which = np.where(columns[:, 0] > bound, 0, len(self._columns) - 1)
            which = np.where(self._missing(columns), self._field.layout.missing, which)
        return np.asarray(np.asarray(self._columns)[which])


#: Numbers of vectors that differ by less are the same.
_ROUNDING = 1e-9


class _Reader(NamedTuple):
    """Gives the columns (n, c) that a field of the context has in the vectors of chosen arms."""

    at: slice
    #: Columns of both factors of a term.
    widths: tuple[int, ...]
    #: Of the factor that is not the field; None where there is none.
    other: int | None
    scale: float

    def __call__(self, log: DecisionLog) -> FloatArray:
        assert log.features is not None
        block = self.scale * log.features[:, self.at]
        if self.other is None:
            return np.asarray(block)
        return np.asarray(block.reshape(-1, *self.widths).sum(axis=1 + self.other))


def _reader(name: str, features: Features) -> _Reader:
    scale, start = math.sqrt(len(features.terms)), 0
    for term in features.terms:
        widths, names = tuple(layout.columns for _, layout in term), [part for part, _ in term]
        at = slice(start, start + math.prod(widths))
        if names == [name]:
            return _Reader(at, widths, None, scale)
        other = 1 - names.index(name) if name in names else None
        # a factor that is one of several columns is 1 in one of them and 0 in the others
        if other is not None and term[other][1].form == 1:
            return _Reader(at, widths, other, scale)
        start = at.stop
    raise ParameterError(
        f"by cannot be {name!r}: in the vectors it is only multiplied with other numbers, and cannot be read off. Give "
        "labels, or set alone = true in the features."
    )


def groups_of(
    by: By, features: Features | None, count: int | None, logs: Callable[[], Iterable[DecisionLog]]
) -> Groups:
    """The groups that are asked for.

    Parameters
    ----------
    by
        A field of the context, ``position``, labels, or a function to labels.
    count
        How many decisions there are, of a log in memory.
    logs
        All decisions, some at a time.
    """
    if not isinstance(by, str):
        return _by_labels(by, count)
    fields = {} if features is None else {field.name: field for field in features.fields}
    if by in fields and features is not None:
        if fields[by].of != "context":
            whose = {"arm": "the arm", "both": "context and arm together"}[fields[by].of]
            raise ParameterError(f"by must be a field of the context, which says for whom; {by!r} is of {whose}.")
        field = ByField(by, features, logs())
        return Groups(by, field.labels, field.order.index)
    if by == POSITION:
        # where the arm stands among those that were offered
        place = lambda label: int(label.rpartition(" ")[2])  # noqa: E731
        return Groups(POSITION, lambda log, places: np.char.add("place ", places.astype(np.str_)), place)
    known = [name for name, field in fields.items() if field.of == "context"]
    fields_text = (
        f"one of the fields {', '.join(known)}" if known else "a field, where policies carry features, as these do not"
    )
    raise ParameterError(f"by must be {fields_text}; {POSITION!r}; or labels. Got {by!r:.60}.")


def labels_of(field: str, features: Features | None, log: DecisionLog) -> Texts:
    """The groups (n,) of logged decisions by a field of the context, read off the vectors of the chosen arms."""
    groups = groups_of(field, features, len(log), lambda: [log])
    return groups.labels(log, np.zeros(len(log), dtype=np.int64))
