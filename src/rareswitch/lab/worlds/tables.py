"""Worlds of tables: columns that are read, features that are fitted, labelled tables and choices."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from rareswitch.core import (
    BoolArray,
    FloatArray,
    IntArray,
    Table,
    TableCell,
    context_sets,
    finite_array,
    frozen,
    is_number,
    naming_file,
    read_table,
    unit_ball,
    whole,
)
from rareswitch.errors import FileFormatError, InputError, ParameterError, ShapeError
from rareswitch.features import Arms, Encoded, Features, Field
from rareswitch.lab.worlds.classification import COMPONENTS, ClassificationWorld, TableWorld, right_pays
from rareswitch.lab.worlds.world import World

__all__ = ["ChoiceWorld", "table_world"]

ENDINGS = (".csv", ".csv.gz", ".parquet")


def _read(path: str | Path) -> Table:
    """A table, in which a text among numbers is an error: most often it is a slip."""
    if not str(path).lower().endswith(ENDINGS):
        raise FileFormatError(f"{path}: a table is read from a file whose name ends in {', '.join(ENDINGS)}.")
    table = read_table(path)
    if "" in table.columns:
        raise FileFormatError(f"{path}: column {[*table.columns].index('') + 1} has no name in line 1. Give it one.")
    for name, values in table.values.items():
        infinite = [row for row, value in enumerate(values) if isinstance(value, float) and math.isinf(value)]
        if infinite:
            rule = f"the column {name!r:.60} holds an infinite number. Leave it empty if missing."
            raise table.wrong(infinite[0], rule)
        texts = [row for row, value in enumerate(values) if isinstance(value, str) and not is_number(value)]
        if texts and sum(isinstance(value, str) for value in values) > 2 * len(texts):  # most are numbers
            rule = f"the column {name!r:.60} holds {values[texts[0]]!r:.60} where most others are numbers"
            remedy = "Correct it; leave it empty if it is missing; write a letter before numbers that are names."
            raise table.wrong(texts[0], f"{rule}. {remedy}")
    return table


#: The most columns of vectors that are proposed, as Features does.
MOST_COLUMNS = 100
#: Numbers of vectors that are held: 1 GiB of them.
_MOST_ENTRIES = 1 << 27


def fitting(fields: Sequence[Field], columns: int, *, blocks: int = 1, besides: int = 0) -> list[Field]:
    """The fields that fit into ``columns`` beside others, the narrowest first; each is there ``blocks`` times.

    An error where not even one fits.
    """
    names, total = set[str](), besides
    for field in sorted(fields, key=lambda field: field.layout.columns):
        if total + blocks * field.layout.columns > columns:
            break
        total += blocks * field.layout.columns
        names.add(field.name)
    if not names:
        least = besides + blocks * min(field.layout.columns for field in fields)
        raise ParameterError(f"columns must be at least {least} for features to make a difference; got {columns}.")
    return [field for field in fields if field.name in names]


def remarks_of(features: Features, encoded: Encoded, *, beyond: Collection[str] = (), columns: int = 0) -> str:
    """What was left out of a table, with the fields that did not fit into ``columns``, and what was clipped."""
    fields = {*beyond, *(field.name for field in features.fields)}
    left = [f"{name} ({why})" for name, why in features.seen.items() if name not in fields]
    said = [f"Left out: {'; '.join(left)}."] if left else []
    if beyond:
        said.append(f"Left out, as there would be more than columns={columns}: {', '.join(beyond)}.")
    clipped = encoded.counts["clipped"]
    return " ".join([*said, *([f"{clipped} numbers were clipped."] if clipped else [])])


def check_size(sets: int, arms: int, dim: int) -> None:
    """Refuse vectors that would not fit into memory."""
    entries = sets * arms * dim
    if entries > _MOST_ENTRIES:
        raise ParameterError(
            f"columns must be fewer: {sets} sets of up to {arms} arms and {dim} features would take "
            f"{entries * 8 / 2**30:.1f} GiB, and the limit is {_MOST_ENTRIES * 8 / 2**30:g}. Allow fewer with "
            "columns=…, or give fewer rows."
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ChoiceWorld(TableWorld):
    """Each round shows a random set of a table; the chosen arm pays its reward there, without other noise.

    Parameters
    ----------
    contexts
        (sets, K, d), in the unit ball.
    payoffs
        (sets, K) rewards.
    available
        (sets, K) which arms exist; all by default.
    remarks
        What whoever runs it should know, as of columns that were left out.

    Examples
    --------
    >>> world = ChoiceWorld(name="toy", contexts=[[[1.0], [0.0]], [[0.2], [0.4]]], payoffs=[[3, 1], [0, 2]])
    >>> world.draw(1, seed=1).means
    array([[3., 1.]])
    >>> world.best_linear()
    array([1.])
    """

    name: str
    contexts: FloatArray
    payoffs: FloatArray
    available: BoolArray | None = None
    remarks: str = ""

    def __post_init__(self) -> None:
        sets = context_sets(self.contexts, self.available)
        unit_ball(sets)
        payoffs = finite_array("payoffs", self.payoffs)
        if sets.single or payoffs.shape != sets.available.shape:
            shapes = f"got {np.shape(self.contexts)} and {payoffs.shape}"
            raise ShapeError(f"contexts must be (sets, arms, dim) beside payoffs (sets, arms); {shapes}.")
        if np.ptp(payoffs[sets.available]) == 0.0:
            raise ParameterError("payoffs must differ; where all arms pay the same, there is nothing to choose.")
        payoffs = frozen(np.where(sets.available, payoffs, 0.0))
        vars(self).update(contexts=sets.contexts, payoffs=payoffs, offered=sets.available)

    def __repr__(self) -> str:
        return f"ChoiceWorld({self.name}: {len(self.payoffs)} sets of up to {self.arms} arms, d = {self.dim})"

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        set: str = "set",  # noqa: A002
        arm: str = "arm",
        reward: str = "reward",
        columns: int = MOST_COLUMNS,
    ) -> Self:
        """The world of a table in CSV (also compressed, ``.csv.gz``) or Parquet with a row for each set and arm.

        Parameters
        ----------
        set, arm, reward
            The columns that say to which set a row belongs, what its arm is called, and what choosing it pays. All
            others are features: what is the same for all arms of a set, in every set, is of the context, the rest is of
            the arm.
        columns
            The most columns, 100 by default; what does not fit is left out, and told.
        """
        columns = whole("columns", columns)
        if len({set, arm, reward}) < 3:
            raise ParameterError(
                f"set, arm and reward are three columns; got {set!r:.60}, {arm!r:.60} and {reward!r:.60}."
            )
        table = _read(path)
        sets, arms = table.labels(set, option="set"), table.labels(arm, option="arm")
        paid = table.numbers(reward, option="reward")
        rows = _by_set(table, sets, arms)
        features = [name for name in table.values if name not in (set, arm, reward)]
        with naming_file(path):
            encoded, remarks = _encoded(table, rows, arms, features, columns, key=arm)
            payoffs = np.zeros(encoded.checked.available.shape)
            payoffs[encoded.checked.available] = [paid[row] for places in rows for row in places]
            return cls(
                name=Path(path).name,
                contexts=encoded.checked.contexts,
                payoffs=payoffs,
                available=encoded.checked.available,
                remarks=remarks,
            )

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        return int(self.contexts.shape[2])

    @property
    def noise_scale(self) -> float:
        """σ of the rewards: that of any variable between the smallest and the largest."""
        return float(np.ptp(self.payoffs[self.offered])) / 2.0

    def describe(self) -> str:
        """A line on what it is made of."""
        return f"{len(self.payoffs)} sets of up to {self.arms} arms. {self.remarks}".rstrip()

    def vectors(self, sets: IntArray) -> FloatArray:
        return np.asarray(self.contexts[sets])

    def scores(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.contexts @ theta)

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights.ravel() @ self.contexts.reshape(-1, self.dim))

    def least_squares(self) -> FloatArray:
        fitted, *_ = np.linalg.lstsq(self.contexts[self.offered], self.payoffs[self.offered], rcond=None)
        return np.asarray(fitted)


def _by_set(table: Table, sets: Sequence[str], arms: Sequence[str]) -> list[list[int]]:
    """The rows of each set, in the order in which sets come; within a set, in the order in which arms first come."""
    order = {name: place for place, name in enumerate(dict.fromkeys(arms))}
    by_set: dict[str, dict[str, int]] = {}
    for row, (name, arm) in enumerate(zip(sets, arms, strict=True)):
        first = by_set.setdefault(name, {}).setdefault(arm, row)
        if first != row:
            raise table.wrong(
                row,
                f"the arm {arm!r:.60} of the set {name!r:.60} was there in {table.places[first]}; each arm is offered "
                "once. Drop one of them, or give it another name.",
            )
    if max(map(len, by_set.values())) < 2:
        raise FileFormatError(
            f"{table.path}: no set has more than one arm, so there is nothing to choose. A choice table has a row for "
            "each set and arm, also for those that were not chosen."
        )
    return [sorted(rows.values(), key=lambda row: order[arms[row]]) for rows in by_set.values()]


def _encoded(
    table: Table, rows: Sequence[Sequence[int]], arms: Sequence[str], names: Sequence[str], most: int, *, key: str
) -> tuple[Encoded, str]:
    """The vectors of all sets, by features that are proposed from them."""
    shared = [
        name
        for name in names
        if all(table.values[name][row] == table.values[name][places[0]] for places in rows for row in places)
    ]
    contexts = [{name: table.values[name][places[0]] for name in shared} for places in rows]
    own = [name for name in names if name not in shared]
    offers: list[dict[str, Row]] = [
        {arms[row]: {name: table.values[name][row] for name in own} for row in places} for places in rows
    ]
    features, beyond = Features.fit(contexts, offers, key=key, most=most, missing="error"), list[str]()
    options: dict[str, Any] = {"own": False, "missing": "error"}  # all values are known
    if features.arms is not None:  # all arms are known: there need not be room for others
        options = {"spare_arms": 0, "missing": "error"}
        features = Features.fit(contexts, offers, key=key, most=most, **options)
    if features.dim > most:
        levels = int(features.constant) if features.arms is None else len(features.arms.ids)
        telling = [field for field in features.fields if field.of != "context"]
        if not telling:
            raise ParameterError(f"columns must be at least {levels} for a level of each arm; got {most}.")
        affordable = {field.name for field in fitting(telling, most, besides=levels)}
        beyond = [field.name for field in telling if field.name not in affordable]
        features = Features.fit(contexts, offers, key=key, most=most, drop=beyond, **options)
    check_size(len(rows), max(map(len, rows)), features.dim)
    encoded = features.encode_many(contexts, offers)
    return encoded, remarks_of(features, encoded, beyond=beyond, columns=most)


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
Row = dict[str, TableCell]


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
    table = _read(path)
    labels, classes = _classes(table, label)
    names = [name for name in table.values if name != label]
    if not names:
        raise FileFormatError(f"{path}: there is no column beside {label!r:.60}; rows need features.")
    with naming_file(path):
        records = table.records(names)
        rows = Features.fit(records, [_ROW], key=label, own=True, spare_arms=0, most=_WIDEST, missing="error")
        if not rows.fields:
            raise ParameterError(f"no column tells rows apart. {remarks_of(rows, rows.encode_many(records, [_ROW]))}")
        if features == "disjoint":
            return _disjoint(path, rows, records, labels, COMPONENTS if components is None else components)
        most = whole("columns", MOST_COLUMNS if columns is None else columns)
        return _shared(path, rows, records, labels, classes, most)


def _disjoint(
    path: str | Path, rows: Features, records: Sequence[Row], labels: IntArray, components: int
) -> ClassificationWorld:
    alone = replace(rows, arms=Arms(ids=[_ROW], own=[field.name for field in rows.fields], level=False))
    encoded = alone.encode_many(records, [_ROW])
    vectors = encoded.checked.contexts[:, 0, :]
    return ClassificationWorld.of_columns(
        Path(path).name, vectors, labels, components=components, remarks=remarks_of(rows, encoded)
    )


def _shared(
    path: str | Path, rows: Features, records: Sequence[Row], labels: IntArray, classes: tuple[str, ...], most: int
) -> ChoiceWorld:
    # a column is there for all classes and once more for each, beside their levels
    fields = {field.name: field for field in fitting(rows.fields, most, blocks=1 + len(classes), besides=len(classes))}
    held = [{name: record[name] for name in fields} for record in records]
    crossed = Features.fit(held, [*classes], key=rows.key, kinds=fields, own=True, spare_arms=0, most=most)
    shared = replace(crossed, fields=[replace(field, alone=True) for field in crossed.fields], seen=rows.seen)
    check_size(len(labels), len(classes), shared.dim)
    encoded = shared.encode_many(held, [*classes])
    beyond = [field.name for field in rows.fields if field.name not in fields]
    return ChoiceWorld(
        name=Path(path).name,
        contexts=encoded.checked.contexts,
        payoffs=right_pays(labels, len(classes)),
        remarks=remarks_of(shared, encoded, beyond=beyond, columns=most),
    )


def _classes(table: Table, label: str) -> tuple[IntArray, tuple[str, ...]]:
    """The class of each row as a number, and the classes: numbers by size, before texts by alphabet."""
    values = table.labels(label, option="label")
    classes = tuple(sorted(set(values), key=_order))
    if len(classes) < 2:
        raise FileFormatError(
            f"{table.path}: the column {label!r:.60} holds {classes[0]!r:.60} in every row; two classes are needed."
        )
    if len(classes) > _MOST_CLASSES or (len(classes) > _FEW and 2 * len(classes) > len(values)):
        raise FileFormatError(
            f"{table.path}: the column {label!r:.60} has {len(classes)} different values in {len(values)} rows; "
            f"classes are at most {_MOST_CLASSES}, with two rows each on average. Name another column with label=…, or "
            "put the values into groups."
        )
    numbers = {name: number for number, name in enumerate(classes)}
    return np.array([numbers[name] for name in values]), classes


def _order(name: str) -> tuple[bool, float, str]:
    """Numbers first, by size; names such as "nan" and "inf" are not numbers, and have a place of their own."""
    return (False, float(name), name) if is_number(name) else (True, 0.0, name)


#: Kinds of tables and what makes worlds of them, whose keywords are the options.
TABLES: dict[str, Callable[..., World]] = {"table": table_world, "choices": ChoiceWorld.from_file}


def world_of_file(kind: str, text: str) -> World:
    r"""The world of a table of a kind, named as ``FILE,option=value,…``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "leaves.csv")
    >>> _ = path.write_text("width,kind\n1.5,oak\n2.5,elm\n1.6,oak\n")
    >>> world_of_file("table", f"{path},label=kind,components=1")
    ClassificationWorld(leaves.csv: 3 examples, 2 classes, d = 4)
    """
    make = TABLES[kind]
    known = {
        name: keyword.annotation in (int, int | None)  # whether it is a whole number
        for name, keyword in inspect.signature(make).parameters.items()
        if keyword.kind is keyword.KEYWORD_ONLY
    }
    path, options = text, dict[str, Any]()
    while not Path(path).is_file() and (match := re.fullmatch(r"(.*),(\w+)=([^,]*)", path, re.DOTALL)):
        path, option, value = match.groups()
        if option not in known or option in options:
            raise InputError(f"{kind}:FILE takes each of the options {', '.join(known)} once; got '{option}={value}'.")
        if known[option] and not (value.isdecimal() and len(value) <= 9):
            raise InputError(f"{option} of {kind}:FILE must be a whole number; got '{value}'.")
        options[option] = int(value) if known[option] else value
    if not path:
        raise InputError(f"the world '{kind}' is made from a table in a file. Name it: {kind}:path/to/file.csv.")
    return make(path, **options)
