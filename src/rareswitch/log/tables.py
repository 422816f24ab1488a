"""Tables of decisions, one row each, under columns of any names: CSV, foreign Parquet, frames of pandas or polars."""

import csv
import gzip
import json
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import (
    BoolArray,
    FloatArray,
    IntArray,
    KeyArray,
    Table,
    TableCell,
    cell_text,
    id_keys,
    is_number,
    key_bytes,
    keys_of_bytes,
    naming_file,
    number,
    one_of,
    read_table,
    replacing,
)
from rareswitch.decisions import DecisionLog
from rareswitch.errors import ColumnWarning, FileFormatError, ParameterError, ShapeError
from rareswitch.features import Features, frame_columns, offer_of

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

__all__ = ["estimate_propensities", "from_frame", "read_csv", "write_csv"]

V = TypeVar("V")
#: How the key of a text id is written, of which the text itself is not kept.
_KEY = re.compile("#[0-9a-f]{32}")
_NUMBER = re.compile("0|[1-9][0-9]{0,17}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Columns of lists of numbers.
LISTS = ("behavior_probs", "contexts", "features")
#: What columns are for, and their names by default.
ROLES = ("id", "time", "policy", "arm", "propensity", "reward", "offered", "baseline", *LISTS, "estimated")
#: Values by column: of each one, or several of which any will do.
Where: TypeAlias = Mapping[str, TableCell | Sequence[TableCell] | set[str] | range]
#: Records of arms by id, or a list or a table of them.
ArmRecords: TypeAlias = Any
#: Names of columns by role, as callers give them; None: the role has no column.
ColumnNames: TypeAlias = Mapping[str, str | None]


class TableOptions(TypedDict, total=False):
    """How a table is read, beside the names of its columns: see :func:`read_csv`."""

    where: Where | None
    features: Features | None
    arms: ArmRecords
    propensities: Literal["logged", "estimate"]
    within: Sequence[str]


def read_csv(path: str | Path, *, columns: ColumnNames | None = None, **options: Unpack[TableOptions]) -> DecisionLog:
    r"""A log in CSV, or in Parquet of any columns, a row a decision.

    Parameters
    ----------
    path
        Of the file. The first line of CSV names its columns; it is compressed where the name ends in ``.gz``.
    columns
        The names of columns by what they are for, where they are others: ``{"arm": "item", "time": None}``; None is
        for a role that no column has.

        - ``arm``, ``reward``, ``propensity``: the id of the chosen arm; what it earned, empty where that is not known;
          the probability with which it was chosen;
        - ``id``, ``time``, ``policy``, ``offered``, ``baseline``: may be missing. A time is in seconds since 1970 or in
          ISO 8601; each policy is a batch, in the order in which they first come; ``offered`` are the ids of the arms
          that could be chosen, separated by ``|`` or in a list, in CSV as JSON, all that occur by default; ``baseline``
          is the arm the caller would have shown;
        - ``features``, ``contexts``, ``behavior_probs``: may be missing. Lists, in CSV as JSON: the vector of the
          chosen arm; the vectors and the probabilities of all offered arms, in their order.
    where
        Take rows alone that have these values: ``{"position": 1}``, or one of several: ``{"position": [1, 2]}``.
    features
        By which the other columns become vectors. Columns of numbers alone are numbers, of true and false flags.
    arms
        Records of the arms, for features: by id, or a list or a table in which each holds its id under
        ``features.key``.
    propensities
        ``"estimate"``: from how often arms were chosen, for logs without them.
    within
        Columns within whose values they are estimated.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "clicks.csv")
    >>> _ = path.write_text("item,click,p,slot\n7,1,0.25,1\n12,0,0.5,2\n7,,0.25,2\n")
    >>> names = {"arm": "item", "reward": "click", "propensity": "p"}
    >>> read_csv(path, columns=names)
    <decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>
    >>> read_csv(path, columns=names, where={"slot": 2}).chosen_names
    ['12', '7']
    """
    return log_of_table(read_table(path), columns, **options).log


def from_frame(
    frame: "IntoDataFrame | Sequence[Mapping[str, TableCell]]",
    *,
    columns: ColumnNames | None = None,
    **options: Unpack[TableOptions],
) -> DecisionLog:
    """A log of a frame of pandas, polars or Arrow, or of a list of records: a row a decision, as in :func:`read_csv`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"item": ["shirt", "shoe", "shirt"], "click": [1, 0, None], "p": [0.25, 0.5, 0.25]})
    >>> log = from_frame(frame, columns={"arm": "item", "reward": "click", "propensity": "p"})
    >>> log, log.chosen_names
    (<decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>, ['shirt', 'shoe', 'shirt'])
    """
    return log_of_table(Table.of("frame", frame_columns("frame", frame)), columns, **options).log


class TableLog(NamedTuple):
    """A log, and the ids of its decisions as they are written."""

    log: DecisionLog
    #: None where they have none.
    ids: list[str] | None


def log_of_table(
    table: Table,
    columns: ColumnNames | None = None,
    *,
    where: Where | None = None,
    features: Features | None = None,
    arms: ArmRecords = None,
    propensities: Literal["logged", "estimate"] = "logged",
    within: Sequence[str] = (),
) -> TableLog:
    """The decisions of a table; see :func:`read_csv`."""
    estimate = estimating(propensities)
    if within and not estimate:
        raise ParameterError(f"within is for propensities that are estimated; got {', '.join(map(str, within)):.60}.")
    if arms is not None and features is None:
        raise ParameterError("arms are records for features; give features=… as well.")
    roles = _roles(table, columns or {}, needed=("arm", "reward") if estimate else ("arm", "reward", "propensity"))
    names, codes = _offered(table, roles)
    if where is not None:
        rows = _where(table, where)
        table, codes = table.take(rows), codes[rows]
    available = codes >= 0
    found: dict[str, Any] = {
        "arms": names,
        "codes": codes,
        "available": available,
        "arm_indices": _indices(table, roles["arm"], names, codes),
        "rewards": table.numbers(roles["reward"], gaps=True),
    }
    if "policy" in roles:
        numbers: dict[str, int] = {}
        policies = [numbers.setdefault(name, len(numbers)) for name in table.texts(roles["policy"], gaps=True)]
        found |= {"batches": np.array(policies), "batch_names": tuple(numbers)}
    ids = table.texts(roles["id"]) if "id" in roles else None
    if ids is not None:
        found["ids"] = parse_ids(ids)
    if "time" in roles:
        found["times"] = np.array(_each(table, roles["time"], _time, empty=np.nan))
    if "baseline" in roles:
        found["baselines"] = _indices(table, roles["baseline"], names, codes, empty=-1)
    if "estimated" in roles:
        found["estimated"] = next((text for text in table.texts(roles["estimated"], gaps=True) if text), "")
    for role in LISTS:
        if role in roles:
            found[role] = _lists(table, roles[role], None if role == "features" else available)
    others = [name for name in table.columns if name not in roles.values()]
    if features is not None:
        found["contexts"] = _encoded(table.records(others), features, arms, names, codes)
    else:
        unused = [name for name in others if name not in within and name not in (where or {})]
        _warn_of_misspelt(unused, {*roles, *(columns or {}), "propensity", "estimated"})
    if not estimate:
        return TableLog(checked_log(table.path, propensities=table.numbers(roles["propensity"]), **found), ids)
    log = checked_log(table.path, propensities=np.ones(len(table)), **found | {"behavior_probs": None})
    strata = [*zip(*(table.texts(name, gaps=True) for name in within), strict=True)]
    levels = [json.dumps(stratum) for stratum in strata] if within else None
    return TableLog(estimate_propensities(log, within=levels, named=" and ".join(within)), ids)


def estimate_propensities(
    log: DecisionLog, *, within: ArrayLike | None = None, named: str = "", smoothing: float = 1.0
) -> DecisionLog:
    """The same log with propensities from the frequencies of its arms; it is marked as such for good.

    Within each batch, and each stratum of it, an arm that was chosen c times and offered m times has the rate
    (c + s)/(m + sK), for K arms and the smoothing s; in a decision its probability is this over the sum of the rates of
    all arms that were offered. Where all arms are always offered that is their share of the choices, smoothed by
    Laplace's rule. It is right where the log's policy did not look at the context beyond the strata. Whatever else it
    looked at makes an evaluation biased, and no interval says by how much.

    Parameters
    ----------
    log
        The propensities that it has are not used.
    within
        (n,) the stratum of each decision: anything that can be compared, such as a position or a country.
    named
        What the strata are called.
    smoothing
        s, above 0: no arm that was offered has the probability 0.

    Examples
    --------
    >>> log = DecisionLog(arm_indices=[0, 0, 1], propensities=[1.0] * 3, rewards=[1.0, 0.0, 0.0])
    >>> estimate_propensities(log).propensities.tolist()
    [0.6, 0.6, 0.4]
    >>> estimate_propensities(log).estimated
    'arm frequencies within each policy, smoothing 1'
    """
    smoothing = number("smoothing", smoothing, low=0.0, open_low=True)
    strata, rows = log.batches, np.arange(len(log))
    if within is not None:
        try:
            _, levels = np.unique(np.asarray(within), return_inverse=True)
        except TypeError:
            levels = np.empty(0, dtype=np.int64)
        if levels.shape != (len(log),):
            raise ShapeError(f"within must be {len(log)} values that can be compared, one for each decision.")
        strata = np.asarray(log.batches * (int(levels.max()) + 1) + levels, dtype=np.int64)
    names, codes = log.arm_codes
    kinds, size = len(names), (int(strata.max()) + 1) * len(names)
    cells = np.where(codes >= 0, strata[:, None] * kinds + codes, -1)
    offered = np.bincount(cells[cells >= 0], minlength=size)
    chosen = np.bincount(cells[rows, log.arm_indices], minlength=size)
    rates = (chosen + smoothing) / (offered + smoothing * kinds)
    probabilities = np.where(cells >= 0, rates[cells], 0.0)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    strata_text = "each policy" + (f" and {named or 'stratum'}" if within is not None else "")
    return replace(
        log,
        propensities=probabilities[rows, log.arm_indices],
        behavior_probs=probabilities,
        policies={},
        estimated=f"arm frequencies within {strata_text}, smoothing {smoothing:g}",
    )


def estimating(propensities: str) -> bool:
    """Whether a reader shall estimate propensities."""
    return one_of("propensities", propensities, ("logged", "estimate")) == "estimate"


def write_csv(path: str | Path, log: DecisionLog) -> None:
    """Write a log as CSV, compressed where the name ends in ``.gz``; :func:`read_csv` reads it, estimates are equal.

    Vectors and probabilities of all offered arms are JSON in columns of their own, in the order of ``offered``; how
    propensities were estimated is in the first row.
    """
    log = log.with_behavior_probs().by_batch()
    (names, codes), rows = log.arm_codes, np.arange(len(log))
    columns: dict[str, Sequence[Any]] = {"id": id_texts(log.ids)}
    if log.times is not None:
        columns["time"] = ["" if np.isnan(time) else repr(time) for time in log.times.tolist()]
    columns["policy"] = [log.batch_names[batch] for batch in log.batches.tolist()]
    columns["arm"] = log.chosen_names
    columns["propensity"] = [*map(repr, log.propensities.tolist())]
    columns["reward"] = ["" if np.isnan(reward) else repr(reward) for reward in log.rewards.tolist()]
    columns["offered"] = [_joined([names[code] for code in row if code >= 0]) for row in codes.tolist()]
    if log.baselines is not None:
        shown = codes[rows, np.maximum(log.baselines, 0)]
        columns["baseline"] = [names[c] if b >= 0 else "" for c, b in zip(shown, log.baselines, strict=True)]
    for name in ("behavior_probs", "contexts"):
        if (column := getattr(log, name)) is not None:
            columns[name] = [
                json.dumps(row[offered].tolist()) for row, offered in zip(column, log.available, strict=True)
            ]
    if log.contexts is None and log.features is not None:
        columns["features"] = [json.dumps(row.tolist()) for row in log.features]
    if log.estimated:
        columns["estimated"] = [log.estimated, *[""] * (len(log) - 1)]
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _roles(table: Table, columns: ColumnNames, needed: Sequence[str]) -> dict[str, str]:
    """The columns by what they are for; those that may be missing, and are, are left out."""
    for role in columns:
        if role not in ROLES:
            raise ParameterError(f"columns must name columns by their roles, {', '.join(ROLES)}; got {role!r:.60}.")
    roles = {}
    for role in ROLES:
        name = columns.get(role, role)
        if role not in needed and (
            name is None or role == "propensity" or (role not in columns and name not in table.columns)
        ):
            continue
        if name is None:
            raise ParameterError(f"columns must name one for {role}; got None.")
        if name not in table.columns:
            remedy = "; where they are not known, pass propensities='estimate'; all that rests on them is marked then"
            raise FileFormatError(
                f"{table.path}: there is no column {name!r:.60}{' of propensities' if role == 'propensity' else ''}; "
                f"it has {', '.join(table.columns):.300}. Name the right one: columns={{{role!r}: …}} (--columns "
                f"{role}=…){remedy if role == 'propensity' else ''}."
            )
        roles[role] = name
    return roles


def _warn_of_misspelt(unused: Sequence[str], known: Collection[str]) -> None:
    """Say of columns that are not used if their names are close to those of roles about which nothing is known."""
    for role in ROLES:
        if role not in known and (close := get_close_matches(role, unused, n=1, cutoff=0.75)):
            warnings.warn(
                f"the column {close[0]!r:.60} is not used, and no column is {role}. If it is that one, name it: "
                f"columns={{{role!r}: {close[0]!r:.60}}} (--columns {role}={close[0]:.60}).",
                ColumnWarning,
                stacklevel=4,
            )


def _offered(table: Table, roles: Mapping[str, str]) -> tuple[tuple[str, ...], IntArray]:
    """The ids of all arms, and (n, K) which of them were offered in each row, -1 behind the last."""
    if "offered" in roles:
        table.check_column(roles["offered"], gaps=False)
        cells = table.columns[roles["offered"]]
        rows = [[*map(cell_text, cell)] if isinstance(cell, list) else split(cell_text(cell)) for cell in cells]
    else:
        rows = [sorted({*table.texts(roles["arm"])}, key=_order)] * len(table)
    names = sorted({name for row in {*map(tuple, rows)} for name in row}, key=_order)
    order = {name: code for code, name in enumerate(names)}
    codes = np.full((len(rows), max(map(len, rows))), -1)
    for at, row in enumerate(rows):
        codes[at, : len(row)] = [order[name] for name in row]
    return tuple(names), codes


def _indices(table: Table, column: str, names: Sequence[str], codes: IntArray, empty: int | None = None) -> IntArray:
    """(n,) where the arms of a column stand among those that were offered."""
    order = {name: code for code, name in enumerate(names)}
    texts = table.texts(column, gaps=empty is not None)
    same = codes == np.array([order.get(text, -2) for text in texts])[:, None]
    for at in np.flatnonzero(~same.any(axis=1)).tolist():
        if texts[at] or empty is None:
            raise table.wrong(at, f"the {column} {texts[at]!r:.60} is none of those offered.")
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _where(table: Table, values: Where) -> list[int]:
    """The rows with these values in these columns."""
    rows = [*range(len(table))]
    for name, value in values.items():
        texts = {*map(str, value)} if isinstance(value, (list, tuple, set, range)) else {str(value)}
        column = table.texts(name, gaps=True)
        rows = [row for row in rows if column[row] in texts]
        if not rows:
            shown = ", ".join(sorted({*column}))
            raise ParameterError(
                f"where must leave some rows; none has {name} = {value!r:.60}. There are {shown:.100}."
            )
    return rows


def _each(table: Table, name: str, read: Callable[[TableCell], V], empty: V | None = None) -> list[V]:
    """What a function reads in each cell of a column; an empty one is what is said, or refused."""
    values = []
    for row, cell in enumerate(table.columns[name]):
        if cell is None and empty is not None:
            values.append(empty)
            continue
        try:
            values.append(read(cell))
        except (ValueError, RecursionError) as error:
            raise table.wrong(row, f"{name} must be {error}; got {cell!r:.60}.") from None
    return values


def _lists(table: Table, name: str, available: BoolArray | None) -> FloatArray:
    """(n, d) a column of lists of numbers; or (n, K, …) with an entry in each for every available arm (n, K)."""
    rows = _each(table, name, _json)
    try:
        if available is None:
            return np.array(rows, dtype=np.float64)
        entries = np.array([entry for row in rows for entry in row], dtype=np.float64)
        spread = np.zeros((*available.shape, *entries.shape[1:]))
        spread[available] = entries
    except (TypeError, ValueError, IndexError) as error:
        raise FileFormatError(f"{table.path}: the column {name!r} is damaged ({error!s:.60}).") from error
    return spread


def _encoded(
    records: list[dict[str, TableCell]], features: Features, arms: ArmRecords, names: Sequence[str], codes: IntArray
) -> FloatArray:
    """(n, K, d) by features of the columns that have no other role."""
    by_id = _by_id(arms, features.key)
    absent = (
        [] if by_id is None else [names[code] for code in np.unique(codes) if code >= 0 and names[code] not in by_id]
    )
    if absent:
        raise ParameterError(
            f"arms must have a record of each arm that is offered; there is none of {absent[0]!r:.60}."
        )
    rows = [tuple(names[code] for code in row if code >= 0) for row in codes.tolist()]
    offers: list[Any] = [[*row] if by_id is None else {name: by_id[name] for name in row} for row in rows]
    encoded = features.encode_many(records, offers[0] if len(set(rows)) == 1 else offers).checked
    found = np.zeros((*codes.shape, features.dim))
    found[codes >= 0] = encoded.contexts[encoded.available]
    return found


def _by_id(arms: ArmRecords, key: str) -> dict[str, Mapping[str, TableCell]] | None:
    if arms is None:
        return None
    offer = offer_of(arms, key, ())
    return dict(zip(map(str, offer.names), offer.records or [{}] * len(offer.names), strict=True))


def split(text: str) -> list[str]:
    """Arms that were offered, separated by ``|``, or as a JSON list.

    >>> split("red|blue"), split('["a|b", "c"]')
    (['red', 'blue'], ['a|b', 'c'])
    """
    if text.startswith("[") and text.endswith("]"):
        with suppress(ValueError):
            return [str(name) for name in json.loads(text)]
    return [name for name in text.split("|") if name]


def _joined(names: Sequence[str]) -> str:
    """What :func:`split` reads."""
    text = "|".join(names)
    return text if split(text) == [*names] else json.dumps(names, ensure_ascii=False)


def _time(cell: TableCell) -> float:
    """Seconds since 1970, from these or from ISO 8601."""
    text = cell_text(cell)
    seconds = float(text) if is_number(text) else parse_time(text)
    if seconds is None or not np.isfinite(seconds):
        raise ValueError("a time in seconds since 1970, or such as 2026-11-16T05:00:00Z")
    return seconds


def _json(cell: TableCell) -> list[Any]:
    if isinstance(cell, list):
        return cell
    try:
        return list(json.loads(cell_text(cell)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a list, or JSON ({error!s:.60})") from None


def _order(name: str) -> tuple[bool, int, str]:
    """Numbers by size, before texts."""
    return (False, int(name), name) if name.isdecimal() and len(name) < 19 else (True, 0, name)


# what text files share: compressed or not; ids and times as texts


@contextmanager
def writing(path: str | Path) -> Iterator[TextIO]:
    """A text file to write, which appears whole or not at all; compressed where its name ends in ``.gz``."""
    try:
        with replacing(path) as temporary, ExitStack() as held:
            raw: Any = held.enter_context(open(temporary, "wb"))
            if str(path).endswith(".gz"):  # without name and time: the same log gives the same bytes
                raw = held.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
            yield held.enter_context(TextIOWrapper(raw, encoding="utf-8", newline=""))
    except UnicodeEncodeError as error:
        raise FileFormatError(f"{path}: names must be valid Unicode to be written ({error.reason}).") from error


def checked_log(path: str | Path, **columns: Any) -> DecisionLog:
    """A log of the columns of a file; what is wrong with them is raised with its name."""
    with naming_file(path):
        return DecisionLog(**columns)


def id_texts(keys: KeyArray) -> list[str]:
    """Ids as texts: a number by its digits, of a text the 32 digits of its key.

    >>> id_texts(id_keys([7]))
    ['7']
    >>> parse_ids(id_texts(id_keys([7, "a"]))).tolist() == id_keys([7, "a"]).tolist()
    True
    """
    return [
        str(low) if high == 0 else f"#{data.hex()}"
        for (low, high), data in zip(keys.tolist(), key_bytes(keys), strict=True)
    ]


def parse_ids(texts: Sequence[str]) -> KeyArray:
    """The keys of ids in a file: of numbers where all are, or are keys as :func:`id_texts` writes them; of texts else.

    >>> parse_ids(["7", "12"])[:, 0].tolist()
    [7, 12]
    >>> parse_ids(["7", "b"])[0].tolist() == id_keys(["7"])[0].tolist()
    True
    """
    numbers = all(_NUMBER.fullmatch(text) or _KEY.fullmatch(text) for text in texts)
    found = np.empty((len(texts), 2), dtype=np.uint64)
    for at, text in enumerate(texts):
        if _KEY.fullmatch(text):
            found[at] = keys_of_bytes(bytes.fromhex(text[1:]), 1)[0]
        else:
            found[at] = id_keys([int(text) if numbers else text])[0]
    return id_keys(found)


def parse_time(text: str) -> float | None:
    """A time in ISO 8601 as seconds since 1970, to the microsecond; None where it is none.

    >>> parse_time("1970-01-02T00:00:00.2500000Z"), parse_time("1970-01-01 01:00+01:00"), parse_time("soon")
    (86400.25, 0.0, None)
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) / timedelta(seconds=1)
