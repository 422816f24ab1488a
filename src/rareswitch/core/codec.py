"""Values as files: dataclasses as canonical JSON beside named arrays, without pickle.

A class that is kept in files has a name there (:func:`kind`); its fields are what is kept, arrays by their dotted path.
A file holds the hash of its content, its *id*: equal values have equal ids on every machine, and a file that was
changed is refused.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any, TypeVar

import msgspec
import numpy as np

from rareswitch.core.files import Arrays, decoding, pack, unpack
from rareswitch.errors import FileFormatError, InputError, ParameterError, did_you_mean

SCHEMA = 1
T = TypeVar("T")
#: The classes that files know, by name.
KINDS: dict[str, type[Any]] = {}
#: Modules that are imported when a name is not known.
EXTENSIONS = ["rareswitch.lab.rivals"]
_NAMES: dict[type[Any], str] = {}


def kind(name: str) -> Callable[[type[T]], type[T]]:
    """Give a dataclass its name in files. Fields with the metadata ``kept=False`` are no part of the content."""

    def named(cls: type[T]) -> type[T]:
        KINDS[name], _NAMES[cls] = cls, name
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


def encode(value: object) -> tuple[Any, Arrays]:
    """A value as JSON-able data, and its arrays by the path at which they belong."""
    arrays: Arrays = {}
    return _plain(value, "", arrays), arrays


def plain(value: object) -> Any:
    """A value without arrays as JSON-able data."""
    return _plain(value, "", {})


def _plain(value: Any, path: str, arrays: Arrays) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    name = _NAMES.get(type(value))
    if name is not None:
        entries = {entry.name: getattr(value, entry.name) for entry in kept_fields(type(value))}
    elif isinstance(value, Mapping):
        entries = dict(value)
    elif isinstance(value, (tuple, list)):
        return [_plain(part, f"{path}.{k}" if path else f"{k}", arrays) for k, part in enumerate(value)]
    else:
        raise InputError(
            f"only what is made of {', '.join(sorted(KINDS))}, numbers and texts can be identified and kept in files; "
            f"it holds a {type(value).__name__}."
        )
    data = {} if name is None else {"kind": name}
    for entry, part in entries.items():
        place = f"{path}.{entry}" if path else entry
        if isinstance(part, np.ndarray):
            arrays[place] = part
        else:
            data[entry] = _plain(part, place, arrays)
    return data


def decode(cls: type[T], data: Any, arrays: Arrays | None = None) -> T:
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


def revived(data: Any) -> Any:
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


def built(cls: type[T], entries: Mapping[str, Any], name: str) -> T:
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


def to_bytes(value: object, *, signed: Callable[[str], Any] | None = None) -> bytes:
    """The content of a file; ``signed`` makes a signature of its id."""
    data, arrays = encode(value)
    content_id = hashlib.sha256(pack(data, arrays)).hexdigest()
    meta = {"schema": SCHEMA, "id": content_id, "content": data}
    return pack(meta if signed is None else meta | {"signature": signed(content_id)}, arrays)


def content_id(value: object) -> str:
    """SHA-256 of a value's content, as 64 hexadecimal digits."""
    return hashlib.sha256(pack(*encode(value))).hexdigest()


def from_bytes(cls: type[T], data: bytes) -> tuple[T, str, Any]:
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
