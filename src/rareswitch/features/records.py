"""What callers hand in: values and their codes, contexts as records or tables, arms as ids, records or tables."""

import datetime as dt
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from rareswitch.core import FloatArray, read_records
from rareswitch.errors import EmptySetError, MissingExtraError, RecordError

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

__all__ = ["Contexts", "OfferedArms", "Record", "field_values", "frame_columns", "offer_of", "offers_of"]

#: The code of a missing value.
MISSING = math.nan
#: Beside its known values, those that a field remembers the codes of.
_REMEMBERED = 4096
#: What a field of a record may hold; values of other types are refused with the name of the field.
FieldValue: TypeAlias = str | float | Decimal | dt.date | np.generic | FloatArray | Sequence[float | None] | None
#: What is one of several, known by its text.
Level: TypeAlias = str | int | float | bool
#: The values of a field, one for each record.
FieldValues: TypeAlias = Sequence[FieldValue]
#: Fields by name.
Record: TypeAlias = Mapping[str, Any]
RecordList: TypeAlias = Sequence[Record]
ArmId: TypeAlias = str | int
#: Contexts as callers give them: records, a file of them, or a table of pandas, polars or Arrow.
Contexts: TypeAlias = "RecordList | str | Path | IntoDataFrame"
#: Arms as callers give them: ids, records by id, records or a table that hold ids; or such for each of many requests.
OfferedArms: TypeAlias = Any


class Offer(NamedTuple):
    """The arms of one request."""

    #: Their ids, as the caller gave them.
    names: tuple[ArmId, ...]
    #: Their records; None where only ids were given.
    records: RecordList | None
    #: Whether the records hold the ids too.
    keyed: bool = False


class Codes(dict[FieldValue, float]):
    """Codes by value; a function tells those of values that are not there."""

    def __init__(self, known: dict[FieldValue, float], code: Callable[[FieldValue], float]) -> None:
        super().__init__(known)
        self.code, self.most = code, len(known) + _REMEMBERED

    def __missing__(self, value: FieldValue) -> float:
        code = self.code(value)
        if type(value) is str and len(self) < self.most:
            self[value] = code
        return code

    def of(self, values: FieldValues) -> Sequence[float]:
        """The codes of values."""
        try:
            return list(map(self.__getitem__, values))
        except TypeError:  # a value that cannot be hashed, of which the message shall tell
            return [self.code(value) for value in values]


def scalar(value: FieldValue) -> FieldValue:
    """A scalar as Python's own type; None where it is missing."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # of which Python has a type
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, (float, Decimal)) and value != value):
        return None
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def level_text(value: FieldValue) -> str | None:
    """The text by which a level is known; None where it is missing.

    >>> level_text(3.0), level_text("3"), level_text(True), level_text(0.5), level_text(float("nan"))
    ('3', '3', 'true', '0.5', None)
    """
    value = scalar(value)
    if value is None or type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() < 1000:
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value == math.floor(value) else repr(value)
    raise TypeError(type(value).__name__)


def text_hash(text: str) -> int:
    """64 bits of the hash of a text, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def record_of(row: Any) -> Any:
    """A row of a table of pandas, which is a Series, as a record; anything else as it is."""
    if hasattr(row, "to_dict") and not isinstance(row, Mapping) and len(getattr(row, "shape", ())) == 1:
        return row.to_dict()
    return row


def records_of(name: str, contexts: Contexts) -> RecordList:
    """Records as they are; the rows of a file, or of a table of a library that narwhals knows."""
    if isinstance(contexts, (list, tuple)):
        if {*map(type, contexts)} == {dict}:  # which are known at once
            return contexts
        records = [record_of(record) for record in contexts]
        for k, record in enumerate(records):
            if not isinstance(record, Mapping):
                raise RecordError(
                    f"{name} must be records, dicts of fields by name, or a table; number {k} is a "
                    f"{type(record).__name__}, {record!r:.60}."
                )
        return records
    if isinstance(contexts, (str, Path)):
        return read_records(contexts)
    if isinstance(record_of(contexts), Mapping):
        raise RecordError(f"{name} must be many records or a table; got one record. Pass [record].")
    try:
        import narwhals
    except ImportError as error:
        raise MissingExtraError(
            "tables are read through narwhals. Install it with: pip install 'rareswitch[experiment]', or pass a list of"
            " dicts."
        ) from error
    table = cast("IntoDataFrame", contexts)
    try:
        frame = narwhals.from_native(table, eager_only=True)
    except TypeError:
        raise RecordError(
            f"{name} must be a list of records, a file of them, or a table of pandas, polars or Arrow; got "
            f"{type(contexts).__name__}."
        ) from None
    except narwhals.exceptions.DuplicateError:
        names = Counter(map(str, table.columns))
        twice = next(column for column, times in names.items() if times > 1)
        raise RecordError(
            f"{name}: the columns of a table must have different names; {twice!r:.60} is there twice."
        ) from None
    for column in frame.columns:
        if not isinstance(column, str):
            raise RecordError(
                f"{name}: the columns of a table must have texts as names; got {type(column).__name__} {column!r:.60}. "
                "Rename them, as with table.columns = [str(name) for name in table.columns]."
            )
    return frame.rows(named=True) if frame.columns else [{}] * frame.shape[0]


def frame_columns(name: str, frame: Contexts) -> dict[str, list[FieldValue]]:
    """The columns of a table, or of records, by name; None where a value is missing.

    >>> frame_columns("frame", [{"arm": "a", "reward": 1.0}, {"arm": "b"}])
    {'arm': ['a', 'b'], 'reward': [1.0, None]}
    """
    records = records_of(name, frame)
    names = dict.fromkeys(column for record in records for column in record)
    return {column: [scalar(record.get(column)) for record in records] for column in names}


def field_values(contexts: Contexts, name: str) -> list[FieldValue]:
    """The values of one field in records or in a table; None where it is missing.

    >>> field_values([{"shown": "a"}, {}], "shown")
    ['a', None]
    """
    return [scalar(record.get(name)) for record in records_of("contexts", contexts)]


def offer_of(arms: OfferedArms, key: str, named: tuple[ArmId, ...]) -> Offer:
    """The arms of one request: ids, records by id, records that hold their id under ``key``; or all that are named."""
    records: RecordList | None
    keyed = False
    if isinstance(arms, (dict, Mapping)):  # dicts are known at once
        names, records = tuple(arms), [*arms.values()]
        if {*map(type, records)} != {dict}:
            records = [_record(name, record) for name, record in arms.items()]
    elif isinstance(arms, (list, tuple)):
        names, records = tuple(arms), None
        if arms and isinstance(arms[0], Mapping):
            names, records, keyed = _names(arms, key), arms, True
    elif arms is None and named:
        names, records = named, None
    elif len(getattr(arms, "shape", ())) == 1:  # an array or a column of ids
        names, records = tuple(arms.to_list() if hasattr(arms, "to_list") else arms.tolist()), None
    elif _is_table(arms):
        records = records_of("arms", arms)
        names, keyed = _names(records, key), True
    else:
        raise RecordError(
            f"arms must be a list of ids, records by id, or a list of records that hold {key!r}; got {arms!r:.60}."
        )
    if not names:
        raise EmptySetError("a request needs at least one arm; got none.")
    kinds = {*map(type, names)}
    if not kinds <= {str, int}:
        names = tuple(map(_arm_id, names))
    elif int in kinds and not _narrow([name for name in names if type(name) is int] if str in kinds else names):
        raise RecordError("a whole number as the id of an arm must have at most 64 bits. Give it as a text.")
    texts = names if len(kinds) == 1 else tuple(map(str, names))  # 3 and "3" are one arm
    if (records is None or keyed or len(kinds) > 1) and len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise RecordError(f"each arm is offered once; {twice!r:.60} is there twice.")
    return Offer(names, records, keyed)


def offers_of(arms: OfferedArms, count: int, key: str, named: tuple[ArmId, ...]) -> list[Offer]:
    """The arms of many requests: one offer for all of them, or one each."""
    if not isinstance(arms, (list, tuple)) or not arms or not _is_offer(arms[0]):
        return [offer_of(arms, key, named)]
    if len(arms) != count:
        raise RecordError(f"arms must be one list for all, or one for each of {count} contexts; got {len(arms)}.")
    return [offer_of(own, key, named) for own in arms]


def _is_table(arms: OfferedArms) -> bool:
    """Whether this is neither a list nor a dict: what narwhals may know."""
    return arms is not None and not isinstance(arms, (list, tuple, Mapping, str, bytes))


def _is_offer(first: OfferedArms) -> bool:
    """Whether the first of a list is itself the offer of a request, and no arm."""
    if isinstance(first, (dict, Mapping)):  # dicts are known at once
        rows = first.values()
        return {*map(type, rows)} == {dict} or (
            bool(first) and all(row is None or isinstance(record_of(row), Mapping) for row in rows)
        )
    return isinstance(first, (list, tuple)) or (_is_table(first) and not isinstance(first, (int, np.integer)))


def _names(records: RecordList, key: str) -> tuple[ArmId, ...]:
    try:
        return tuple([record[key] for record in records])
    except (KeyError, TypeError, IndexError):
        raise RecordError(
            f"each arm needs an id: give records by id, or records that hold {key!r}; got {records[0]!r:.100}."
        ) from None


def _record(name: ArmId, row: Record | None) -> Record:
    record: Record | None = record_of(row)
    if record is not None and not isinstance(record, Mapping):
        raise RecordError(f"the arm {name!r:.60} must have a record, a dict of fields by name; got {record!r:.60}.")
    return {} if record is None else record


def _narrow(names: Sequence[Any]) -> bool:
    """Whether whole numbers have 64 bits, as all encodings and databases know them."""
    return bool(max(names) < 2**63 and min(names) >= -(2**63))


def _arm_id(name: ArmId) -> ArmId:
    """The id of an arm as a text or a whole number."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return int(name)
    raise RecordError(f"the id of an arm must be a text or a whole number; got {type(name).__name__} {name!r:.60}.")
