"""Features as plain data, and as TOML or JSON files that people write."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rareswitch.errors import FileFormatError, InputError, ParameterError, did_you_mean
from rareswitch.features.arms import Arms
from rareswitch.features.categories import Category, Hashed
from rareswitch.features.field import Field
from rareswitch.features.quantities import Flag, Number, Vector
from rareswitch.files import decoding, read_whole, write_whole

if TYPE_CHECKING:
    from rareswitch.features.features import Features

SCHEMA = 1
KINDS: dict[str, type[Field]] = {kind.kind: kind for kind in (Number, Category, Hashed, Flag, Vector)}
#: Bytes of a file that a person wrote, at most.
_LONGEST_FILE = 1 << 22
_PARTS = ("schema", "constant", "key", "absent", "extra", "crossings", "arms", "fields")


def to_plain(features: "Features") -> dict[str, Any]:
    """Everything that makes a description what it is, with nothing left to defaults."""
    data = {"schema": SCHEMA, "constant": features.constant, "key": features.key, "absent": features.absent}
    data |= {"extra": features.extra, "crossings": [list(pair) for pair in features.crossings]}
    if features.arms is not None:
        data["arms"] = _settings(features.arms)
    data["fields"] = [{"kind": part.kind, **_settings(part)} for part in features.fields]
    return data


def from_plain(data: Any) -> dict[str, Any]:
    """The settings of features, of plain data; what is left out has its default."""
    told = _table("features", data, _PARTS)
    schema = told.pop("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        raise ParameterError(f"schema must be {SCHEMA}; got {schema!r:.60}. Use a matching version.")
    for name in ("fields", "crossings"):
        if type(told.get(name, [])) is not list:
            raise ParameterError(f"{name} must be a list; got {told[name]!r:.60}.")
    if "arms" in told:
        told["arms"] = Arms(**_table("arms", told["arms"], tuple(f.name for f in fields(Arms)), needed=("ids",)))
    told["fields"] = [_field(entry) for entry in told.get("fields", [])]
    return told


def _field(entry: Any) -> Field:
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if type(kind) is not str or kind not in KINDS:
        wanted = f"kind of a field must be one of {', '.join(KINDS)}"
        raise ParameterError(f"{wanted}; got {kind!r:.60} in {entry!r:.100}.{did_you_mean(kind, KINDS)}")
    made = KINDS[kind]
    needed = tuple(name for name in ("name", "levels", "columns", "length") if name in made.__dataclass_fields__)
    told = _table(
        f"the {kind} {entry.get('name')!r:.60}", entry, ("kind", *(f.name for f in fields(made))), needed=needed
    )
    del told["kind"]
    for name, value in told.items():
        if isinstance(value, list) and name != "levels":
            raise ParameterError(
                f"{name} of the field {entry.get('name')!r:.60} must not be a list; got {value!r:.60}."
            )
    return made(**told)


def _table(what: str, data: Any, names: tuple[str, ...], *, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """A copy of a table whose names are known."""
    if not isinstance(data, Mapping):
        raise ParameterError(f"{what} must be a table of settings by name; got {data!r:.60}.")
    for name in data:
        if name not in names:
            raise ParameterError(
                f"{what} has no setting {name!r:.60}; it has {', '.join(names)}.{did_you_mean(name, names)}"
            )
    for name in needed:
        if name not in data:
            raise ParameterError(f"{what} needs the setting {name!r}.")
    return dict(data)


def _settings(part: Any) -> dict[str, Any]:
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def save(data: dict[str, Any], path: str | Path) -> None:
    """Write plain features; the file appears whole or not at all."""
    ending = _ending(path)
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n" if ending == ".json" else _toml(data)
    write_whole(text.encode("utf-8", "surrogatepass"), path)


def load(path: str | Path) -> dict[str, Any]:
    """The settings of features, of a file."""
    ending = _ending(path)
    data = read_whole(path)
    if len(data) > _LONGEST_FILE:
        raise FileFormatError(f"{path}: such a file has at most {_LONGEST_FILE} bytes; this one has {len(data)}.")
    try:
        with decoding(f"a description of features in {ending[1:].upper()}"):
            text = data.decode()
            return from_plain(json.loads(text) if ending == ".json" else tomllib.loads(text))
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".json", ".toml"):
        raise ParameterError(f"path must end in .toml or .json, which says what is in it; got {str(path)!r:.200}.")
    return ending


def _toml(data: dict[str, Any]) -> str:
    """Plain features as TOML: settings first, then a table of arms and one for each field."""
    lines = [f"{name} = {_value(value)}" for name, value in data.items() if name not in ("arms", "fields")]
    if "arms" in data:
        lines += ["", "[arms]", *(f"{name} = {_value(value)}" for name, value in data["arms"].items())]
    for entry in data["fields"]:
        lines += ["", "[[fields]]", *(f"{name} = {_value(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
