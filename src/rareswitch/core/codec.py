"""Values as files: dataclasses as canonical JSON beside named arrays, without pickle.

A class that is kept in files has a name there (:func:`kind`); its fields are what is kept, arrays by their dotted path.
A file holds the hash of its content, its *id*: equal values have equal ids on every machine, and a file that was
changed is refused.
"""

import hashlib
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from rareswitch.errors import FileFormatError, InputError, ParameterError, did_you_mean

__all__ = ["canonical_json", "check_value_count", "decoding", "encode", "kind", "name_of", "plain_json"]

SCHEMA = 1
_KEY = "rareswitch"
#: Of plain data in one file. Parsed, each takes up to 200 bytes, however short it is written.
_MOST_VALUES = 1 << 16
_MOST_AXES = 8
#: What JSON holds.
Plain: TypeAlias = Any
Arrays = dict[str, NDArray[Any]]
#: Types of arrays, as safetensors names them, and as NumPy does.
_DTYPES = {"F64": "<f8", "I64": "<i8", "U64": "<u8", "BOOL": "|b1"}
_LETTERS = {"f": "F64", "i": "I64", "u": "U64", "b": "BOOL"}
T = TypeVar("T")
#: The classes that files know, by name.
KINDS: dict[str, type[Any]] = {}
#: Modules that are imported when a name is not known.
EXTENSIONS = ["rareswitch.lab.rivals"]
_NAMES: dict[type[Any], str] = {}
#: The names of the fields that are the content of each, and whether they are left out where they are None.
_KEPT: dict[type[Any], dict[str, bool]] = {}
#: What is plain data as it is.
_SCALARS = (str, bool, int, float, type(None))


def kind(name: str) -> Callable[[type[T]], type[T]]:
    """Give a dataclass its name in files.

    Fields with the metadata ``kept=False`` are no part of the content; those with ``sparse=True`` are none where they
    are None.
    """

    def named(cls: type[T]) -> type[T]:
        KINDS[name], _NAMES[cls] = cls, name
        _KEPT[cls] = {entry.name: entry.metadata.get("sparse", False) for entry in kept_fields(cls)}
        return cls

    return named


def extend() -> None:
    """Import what adds classes and learners of its own, such as the laboratory's rivals."""
    for module in EXTENSIONS:
        import_module(module)


def name_of(value: object) -> str:
    """The name of a value's class in files."""
    return _NAMES[type(value)]


def kept_fields(cls: type[Any]) -> tuple["Field[Any]", ...]:
    """The fields of a class that are its content."""
    return tuple(entry for entry in fields(cls) if entry.init and entry.metadata.get("kept", True))


def encode(value: object) -> tuple[Plain, Arrays]:
    """A value as JSON-able data, and its arrays by the path at which they belong."""
    arrays: Arrays = {}
    return _plain(value, "", arrays), arrays


def plain(value: object) -> Plain:
    """A value without arrays as JSON-able data."""
    return _plain(value, "", {})


def _plain(value: Any, path: str, arrays: Arrays) -> Plain:
    name, entries = _NAMES.get(type(value)), value
    if name is not None:
        parts = ((entry, getattr(value, entry), sparse) for entry, sparse in _KEPT[type(value)].items())
        entries = {entry: part for entry, part, sparse in parts if part is not None or not sparse}
    elif isinstance(value, (tuple, list)):
        entries = dict(enumerate(value))
    elif isinstance(value, _SCALARS):
        return value
    elif not isinstance(value, Mapping):
        raise InputError(
            f"only what is made of {', '.join(sorted(KINDS))}, numbers and texts can be identified and kept in files; "
            f"it holds a {type(value).__name__}."
        )
    data: dict[Plain, Plain] = {} if name is None else {"kind": name}
    for entry, part in entries.items():
        if isinstance(part, _SCALARS):  # most are
            data[entry] = part
        elif isinstance(part, np.ndarray):
            arrays[f"{path}{entry}"] = part
        else:
            data[entry] = _plain(part, f"{path}{entry}.", arrays)
    return [*data.values()] if isinstance(value, (tuple, list)) and name is None else data


def decode(cls: type[T], data: Plain, arrays: Arrays | None = None) -> T:
    """The value that :func:`encode` was given; an error where it was none of this class."""
    for path, array in (arrays or {}).items():
        *parents, last = path.split(".")
        place = data
        for step in parents:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if last in place:
            raise FileFormatError(f"the array {path!r:.60} has the place of something else.")
        place[last] = array
    value = revived(data)
    if not isinstance(value, cls):
        held = f"a {data['kind']}" if isinstance(data, dict) and "kind" in data else repr(data)
        raise FileFormatError(f"a {_NAMES[cls]} was expected, and this is {held:.60}. Name another file.")
    return value


def revived(data: Plain) -> Plain:
    """Plain data with its named parts as values; an error says which setting of which part is wrong."""
    if isinstance(data, list):
        return [revived(part) for part in data]
    if not isinstance(data, dict):
        return data
    entries = {name: revived(part) for name, part in data.items() if name != "kind"}
    if "kind" not in data:
        return entries
    name = data["kind"]
    if isinstance(name, str) and name not in KINDS:
        extend()
    if not isinstance(name, str) or name not in KINDS:
        raise ParameterError(
            f"there is no kind {name!r:.60}.{did_you_mean(name, KINDS)} The kinds are {', '.join(sorted(KINDS))}."
        )
    label = f"the {name} {entries['name']!r:.60}" if isinstance(entries.get("name"), str) else name
    return built(KINDS[name], entries, label)


def built(cls: type[T], entries: Mapping[str, Plain], name: str) -> T:
    """A value of a class, of its settings; ``name`` is what errors call it."""
    known = {entry.name: entry for entry in kept_fields(cls)}
    if foreign := [entry for entry in entries if entry not in known]:
        raise ParameterError(
            f"{name} has no setting {foreign[0]!r:.60}; it has {', '.join(known)}.{did_you_mean(foreign[0], known)}"
        )
    for entry in known.values():
        if entry.name not in entries and entry.default is MISSING and entry.default_factory is MISSING:
            raise ParameterError(f"{name} needs the setting {entry.name!r}.")
    try:
        return msgspec.convert(dict(entries), cls, dec_hook=lambda _, part: part)
    except (msgspec.ValidationError, UnicodeError) as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        raise ParameterError(f"{name}: {str(error).replace('`', '').replace(' - at $.', ' at ')}.") from error


def to_bytes(value: object, *, signed: Callable[[str], Plain] | None = None) -> bytes:
    """The content of a file; ``signed`` makes a signature of its id."""
    data, arrays = encode(value)
    content_id = hashlib.sha256(pack(data, arrays)).hexdigest()
    meta = {"schema": SCHEMA, "id": content_id, "content": data}
    return pack(meta if signed is None else meta | {"signature": signed(content_id)}, arrays)


def content_id(value: object) -> str:
    """SHA-256 of a value's content, as 64 hexadecimal digits."""
    return hashlib.sha256(pack(*encode(value))).hexdigest()


def from_bytes(cls: type[T], data: bytes) -> tuple[T, str, Plain]:
    """What a file holds, its id, and the signature if it has one."""
    what = _NAMES[cls]
    with decoding(f"a {what}"):
        meta, arrays = unpack(data)
        schema = meta.get("schema") if isinstance(meta, dict) else None
        if type(schema) is not int or schema < 1:
            raise FileFormatError(f"files have a schema, a whole number; this has {schema!r:.60}: it is no {what}.")
        if schema != SCHEMA:
            raise FileFormatError(
                f"files of this version of rareswitch have schema {SCHEMA}; this one has {schema}, which is newer. "
                "Install the version that wrote it, or a later one."
            )
        if not {"schema", "id", "content"} <= {*meta} <= {"schema", "id", "content", "signature"}:
            raise FileFormatError(f"not a {what}: it holds {', '.join(sorted(meta)):.200}.")
        if hashlib.sha256(pack(meta["content"], arrays)).hexdigest() != meta["id"]:
            raise FileFormatError(f"the content does not match its id {meta['id']!r:.80}: the file was changed.")
        value = decode(cls, meta["content"], arrays)
        if content_id(value) != meta["id"]:
            raise FileFormatError("the file is not in canonical form: it was changed or written by something else.")
        return value, meta["id"], meta.get("signature")


def canonical_json(data: Plain) -> bytes:
    """One text for equal data: sorted keys, no spaces, shortest numbers, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def plain_json(text: bytes | str, *, most: int = _MOST_VALUES) -> Plain:
    """What :func:`canonical_json` was given, or any error: nothing that takes much more memory than the text."""
    return json.loads(check_value_count(text.decode("ascii") if isinstance(text, bytes) else text, most=most))


def check_value_count(text: str, *, most: int = _MOST_VALUES) -> str:
    """Refuse plain data of more values than are kept in a file."""
    values = text.count(",") + text.count("[") + text.count("{")
    if values > most or not text.isascii():
        raise FileFormatError(f"a file holds at most {most} values beside its arrays, in ASCII; got {values}.")
    return text


def pack(meta: Plain, arrays: Arrays) -> bytes:
    """8 bytes of header length, a JSON header padded to a multiple of 8, then the arrays, little-endian."""
    text, _ = _header(meta, {name: (_LETTERS[array.dtype.kind], array.shape) for name, array in arrays.items()})
    parts = (arrays[name].astype(_DTYPES[_LETTERS[arrays[name].dtype.kind]], order="C") for name in sorted(arrays))
    return struct.pack("<Q", len(text)) + text + b"".join(part.tobytes() for part in parts)


def _header(meta: Plain, shapes: Mapping[str, tuple[str, Sequence[int]]]) -> tuple[bytes, dict[str, slice]]:
    """The one header of such a file, and where each array is in its body: one after the other, without gaps."""
    header: dict[str, Plain] = {"__metadata__": {_KEY: canonical_json(meta).decode()}}
    places, start = {}, 0
    for name in sorted(shapes):
        dtype, shape = shapes[name]
        stop = start + np.dtype(_DTYPES[dtype]).itemsize * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}
        places[name], start = slice(start, stop), stop
    text = canonical_json(header)
    check_value_count(text.decode())
    return text + b" " * (-len(text) % 8), places


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """A block that reads what :func:`pack` made: whatever else goes wrong in it, the data are not ``what``."""
    try:
        yield
    except FileFormatError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FileFormatError(f"not {what}, or a damaged one ({error!s:.200}).") from error


def unpack(data: bytes) -> tuple[Plain, Arrays]:
    """What :func:`pack` was given, if it gives these very bytes; otherwise any error.

    No array is made before the header is known to be the one that tells of exactly this body.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError("its header is not all there")
    text, body = data[8 : 8 + length], memoryview(data)[8 + length :]
    header = plain_json(text)
    meta = plain_json(header.pop("__metadata__")[_KEY])
    shapes = {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()}
    for name, (dtype, shape) in shapes.items():
        sizes = len(shape) <= _MOST_AXES and all(type(size) is int and 0 <= size < 1 << 31 for size in shape)
        if not sizes or dtype not in _DTYPES:
            raise ValueError(f"the array {name!r:.60} has the shape {shape!s:.60} and the type {dtype!r:.60}")
    again, places = _header(meta, shapes)
    if again != text or max((place.stop for place in places.values()), default=0) != len(body):
        raise ValueError("its header is not the one that belongs to its content")
    arrays = {}
    for name, place in places.items():
        dtype, shape = shapes[name]
        if dtype == "BOOL" and max(body[place], default=0) > 1:
            raise ValueError(f"the array {name!r:.60} has flags that are neither true nor false")
        array = np.frombuffer(body[place], dtype=_DTYPES[dtype]).reshape(shape)
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
    return meta, arrays
