"""A labelled table as a world: its classes are the arms, its rows the contexts, and the right class pays 1."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from rareswitch.csv_tables import is_number
from rareswitch.errors import FileFormatError, InputError, ParameterError
from rareswitch.features import Arms, Features
from rareswitch.lab.worlds.choices import ChoiceWorld
from rareswitch.lab.worlds.classification import COMPONENTS, ClassificationWorld, right_pays
from rareswitch.lab.worlds.columns import Columns, read_columns
from rareswitch.lab.worlds.table_features import MOST_COLUMNS, check_size, fitting, remarks_of
from rareswitch.validation import IntArray, count_of

#: ``disjoint``: each class has parameters of its own for the row's principal components and a constant. ``shared``: the
#: row's columns are there for all classes, beside a level for each class and its own parameters for these columns.
Layout = Literal["disjoint", "shared"]
#: Of more classes than this, most rows must not be the only ones of theirs.
_FEW = 20
_MOST_CLASSES = 500
#: Columns of rows before they are reduced.
_WIDEST = 5000
#: The one arm of a row, where vectors are of rows alone.
_ROW = "row"


def table_world(
    path: str | Path,
    *,
    label: str = "label",
    features: Layout = "disjoint",
    components: int | None = None,
    columns: int | None = None,
) -> ClassificationWorld | ChoiceWorld:
    r"""The world of a table in CSV (also compressed, ``.csv.gz``) or Parquet: a row an example.

    Parameters
    ----------
    label
        The column that holds the class: texts or numbers, at least two different ones. All others become vectors by
        :class:`~rareswitch.features.Features`, which standardise numbers, give categories a column for each level and
        missing values one of their own.
    features
        ``"disjoint"``: the row's vector, standardised and reduced to principal components, with a constant, in the
        block of the arm. ``"shared"``: the row's columns, a level for each arm, and the row's columns crossed with the
        arms.
    components
        Of disjoint features: the most principal components, 8 by default.
    columns
        Of shared features: the most columns, 100 by default; what does not fit is left out, and told.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "flowers.csv")
    >>> _ = path.write_text("petal,colour,kind\n1.4,white,a\n4.7,blue,b\n5.1,white,c\n1.3,blue,a\n")
    >>> table_world(path, label="kind")
    ClassificationWorld(flowers.csv: 4 examples, 3 classes, d = 9)
    >>> table_world(path, label="kind", features="shared")
    ChoiceWorld(flowers.csv: 4 sets of up to 3 arms, d = 19)
    """
    if features not in get_args(Layout):
        raise ParameterError(f"features must be one of {', '.join(get_args(Layout))}; got {features!r:.60}.")
    for name, value, needed in (("components", components, "disjoint"), ("columns", columns, "shared")):
        if value is not None and features != needed:
            raise ParameterError(f"{name} is for {needed} features; these are {features}.")
    table = read_columns(path)
    labels, classes = _classes(table, label)
    names = [name for name in table.values if name != label]
    if not names:
        raise FileFormatError(f"{path}: there is no column beside {label!r:.60}; rows need features.")
    try:
        records = table.records(names)
        rows = Features.fit(records, [_ROW], key=label, own=True, spare_arms=0, most=_WIDEST)
        if not rows.fields:
            raise ParameterError(f"no column tells rows apart. {remarks_of(rows, rows.encode_many(records, [_ROW]))}")
        if features == "disjoint":
            return _disjoint(path, rows, records, labels, COMPONENTS if components is None else components)
        most = count_of("columns", MOST_COLUMNS if columns is None else columns)
        return _shared(path, rows, records, labels, classes, most)
    except FileFormatError:
        raise
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _disjoint(path: str | Path, rows: Features, records: Any, labels: IntArray, components: int) -> ClassificationWorld:
    alone = replace(rows, arms=Arms(ids=[_ROW], own=[field.name for field in rows.fields], level=False))
    encoded = alone.encode_many(records, [_ROW])
    vectors = encoded.checked.contexts[:, 0, :]
    return ClassificationWorld.of_columns(
        Path(path).name, vectors, labels, components=components, remarks=remarks_of(rows, encoded)
    )


def _shared(
    path: str | Path, rows: Features, records: Any, labels: IntArray, classes: tuple[str, ...], most: int
) -> ChoiceWorld:
    # a column is there for all classes and once more for each, beside their levels
    fields = {field.name: field for field in fitting(rows.fields, most, blocks=1 + len(classes), besides=len(classes))}
    held = [{name: record[name] for name in fields} for record in records]
    crossed = Features.fit(held, [*classes], key=rows.key, kinds=fields, own=True, spare_arms=0, most=most)
    made = replace(crossed, fields=[field.changed(alone=True) for field in crossed.fields], seen=rows.seen)
    check_size(len(labels), len(classes), made.dim)
    encoded = made.encode_many(held, [*classes])
    beyond = [field.name for field in rows.fields if field.name not in fields]
    return ChoiceWorld(
        name=Path(path).name,
        contexts=encoded.checked.contexts,
        payoffs=right_pays(labels, len(classes)),
        remarks=remarks_of(made, encoded, beyond=beyond, columns=most),
    )


def _classes(table: Columns, label: str) -> tuple[IntArray, tuple[str, ...]]:
    """The class of each row as a number, and the classes: numbers by size, before texts by alphabet."""
    found = table.names(label, "label")
    classes = tuple(sorted(set(found), key=_order))
    if len(classes) < 2:
        raise FileFormatError(
            f"{table.path}: the column {label!r:.60} holds {classes[0]!r:.60} in every row; two classes are needed."
        )
    if len(classes) > _MOST_CLASSES or (len(classes) > _FEW and 2 * len(classes) > len(found)):
        raise FileFormatError(
            f"{table.path}: the column {label!r:.60} has {len(classes)} different values in {len(found)} rows; classes "
            f"are at most {_MOST_CLASSES}, with two rows each on average. Name another column with label=…, or put the "
            "values into groups."
        )
    numbers = {name: number for number, name in enumerate(classes)}
    return np.array([numbers[name] for name in found]), classes


def _order(name: str) -> tuple[bool, float, str]:
    """Numbers first, by size; names such as "nan" and "inf" are not numbers, and have a place of their own."""
    return (False, float(name), name) if is_number(name) else (True, 0.0, name)
