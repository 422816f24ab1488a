"""The frozen description of how records become vectors, as a value, as a table for people, and as a file."""

import json
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from rareswitch import codec
from rareswitch.errors import FileFormatError, InputError, ParameterError, did_you_mean
from rareswitch.features.encoder import Encoded, Encoder
from rareswitch.features.fields import (
    MOST_COLUMNS,
    Arms,
    Field,
    Layout,
    checked_text,
    one_of,
)
from rareswitch.files import decoding, read_whole, write_whole

_HEADER = ("field", "of", "kind", "columns", "treatment", "in the sample")
_WIDTH = 120


def described(features: "Features") -> str:
    """Each field and what becomes of it, then what the vectors are made of."""
    rows = [
        (
            part.name if part.key == part.name else f"{part.name} ({part.key})",
            part.of,
            part.kind,
            str(part.layout.columns),
            part.treatment,
            features.seen.get(part.name, ""),
        )
        for part in features.fields
    ]
    table: list[tuple[str, ...]] = [_HEADER, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, tuple("─" * width for width in widths))
    if not any(row[-1] for row in rows):
        table = [row[:-1] for row in table]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table] if rows else []
    return "\n".join([*lines, *_terms(features), *_left_out(features)])


def _terms(features: "Features") -> list[str]:
    """How the columns come together."""
    parts: list[tuple[str, int]] = []
    for term in features.terms:
        columns = 1
        for _, layout in term:
            columns *= layout.columns
        parts.append((" × ".join(name or "arm" for name, _ in term) or "constant", columns))
    summands = " + ".join(f"{name}\u00a0{columns}" for name, columns in parts).replace(" × ", "\u00a0×\u00a0")
    text = f"{features.dim} columns = {summands}; divided by √{len(parts)}, so that no vector is longer than 1"
    lines = [line.replace("\u00a0", " ") for line in _wrapped(text)]
    if features.arms is not None:
        arms = features.arms
        lines.append(
            f"{len(arms.ids)} arms with parameters of their own ({_some(arms.ids)}), "
            + (
                f"{arms.spare_arms} spare block{'s' * (arms.spare_arms > 1)} for arms that come later"
                if arms.spare_arms
                else "no room for others"
            )
        )
    absent = "are missing" if features.absent == "missing" else "are an error"
    extra = "are counted and not used" if features.extra == "ignore" else "are an error"
    return [*lines, f"fields that a record lacks {absent}; fields that are not described {extra}"]


def _left_out(features: "Features") -> list[str]:
    """What the sample had that is not used."""
    used = {part.name for part in features.fields}
    texts = [f"left out: {name}: {why}" for name, why in features.seen.items() if name not in used]
    return [line for text in texts for line in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, subsequent_indent="  ")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


SCHEMA = 1
FIELDS = ("number", "category", "hashed", "flag", "vector")
#: Bytes of a file that a person wrote, at most.
_LONGEST_FILE = 1 << 22


def to_plain(features: "Features") -> dict[str, Any]:
    """Everything that makes a description what it is, with nothing left to defaults."""
    data = {name: part for name, part in codec.plain(features).items() if name != "kind" and part is not None}
    data["fields"] = data.pop("fields")  # last, as a file of TOML has them
    if "arms" in data:
        del data["arms"]["kind"]
    return {"schema": SCHEMA, **data}


def from_plain(data: Any) -> "Features":
    """The features of plain data; what is left out has its default."""
    if not isinstance(data, Mapping):
        raise ParameterError(f"features must be a table of settings by name; got {data!r:.60}.")
    settings = {"kind": "features", **data}
    schema = settings.pop("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        raise ParameterError(f"schema must be {SCHEMA}; got {schema!r:.60}. Use a matching version.")
    if isinstance(settings.get("arms"), Mapping):
        settings["arms"] = {"kind": "arms", **settings["arms"]}
    fields = settings.get("fields", [])
    for entry in fields if isinstance(fields, list) else ():
        kind = entry.get("kind") if isinstance(entry, Mapping) else None
        if kind not in FIELDS:
            wanted = f"kind of a field must be one of {', '.join(FIELDS)}"
            raise ParameterError(f"{wanted}; got {kind!r:.60} in {entry!r:.100}.{did_you_mean(kind, FIELDS)}")
    return codec.decode(Features, settings)


def save(data: dict[str, Any], path: str | Path) -> None:
    """Write plain features; the file appears whole or not at all."""
    ending = _ending(path)
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n" if ending == ".json" else _toml(data)
    write_whole(text.encode("utf-8", "surrogatepass"), path)


def load(path: str | Path) -> "Features":
    """The features of a file."""
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


#: A product of the columns of up to two parts; of none, a constant. A part has a name, which is empty for the arms.
Term = tuple[tuple[str, Layout], ...]


@codec.kind("features")
@dataclass(frozen=True, eq=False, kw_only=True)
class Features:
    """How a context and an arm become a vector of length at most 1; frozen, and known by the hash of its content.

    A vector is made of terms: a constant, fields alone, crossings of two fields (every column of one times every column
    of the other), a level for each arm, and fields crossed with the arms, which gives each arm parameters of its own.
    Each term has length at most 1 whatever the records hold, and all are divided by the square root of their number: no
    vector is longer than 1.

    Examples
    --------
    >>> from rareswitch.features import Arms, Category, Number
    >>> features = Features(
    ...     fields=[Number("age", mean=40, scale=10, alone=False), Category("device", levels=["ios", "web"])],
    ...     arms=Arms(ids=["spring", "summer"], spare_arms=1, own=["age"]),
    ... )
    >>> features.dim, features.columns[4:7]
    (13, ('arm spring', 'arm summer', 'spare 0'))
    >>> encoded = features.encode({"age": 95, "device": "android"}, ["spring", "autumn"])
    >>> encoded.names, encoded.vectors.shape, dict(encoded.counts)
    (('spring', 'autumn'), (2, 13), {'clipped': 1, 'unknown': 1, 'spare': 1})
    """

    fields: Sequence[Field] = ()
    #: Whether there is a column that is always the same.
    constant: bool = False
    #: Pairs of names of fields whose columns are multiplied.
    crossings: Sequence[tuple[str, str]] = ()
    #: Parameters of their own for each arm.
    arms: Arms | None = None
    #: Under which name a record of an arm holds its id, where arms are given as a list of records.
    key: str = "id"
    #: What becomes of fields that a record lacks: they are ``"missing"``, or an ``"error"``.
    absent: str = "missing"
    #: What becomes of fields that are not described: ``"ignore"``, which is counted, or ``"error"``.
    extra: str = "ignore"
    #: What was seen in the sample, by field, where there was one; no part of the content.
    seen: Mapping[str, str] = field(default_factory=dict, repr=False, metadata={"kept": False})

    def __post_init__(self) -> None:
        for name in ("fields", "crossings"):
            if isinstance(getattr(self, name), str) or not isinstance(getattr(self, name), Sequence):
                raise ParameterError(f"{name} must be a list; got {getattr(self, name)!r:.60}.")
        for part in self.fields:
            if not isinstance(part, Field):
                raise ParameterError(f"fields must be of Number, Category, Hashed, Flag or Vector; got {part!r:.60}.")
        if self.arms is not None and not isinstance(self.arms, Arms):
            raise ParameterError(f"arms must be of the type Arms; got {self.arms!r:.60}.")
        if type(self.constant) is not bool:
            raise ParameterError(f"constant must be true or false; got {self.constant!r:.60}.")
        checked_text("key", self.key)
        one_of("absent", self.absent, ("missing", "error"))
        one_of("extra", self.extra, ("ignore", "error"))
        crossings = tuple(tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in self.crossings)
        vars(self).update(fields=tuple(self.fields), crossings=crossings, seen=MappingProxyType(dict(self.seen)))
        self._check_names()
        if self.dim > MOST_COLUMNS:
            raise ParameterError(
                f"dim must be at most {MOST_COLUMNS}; these features have {self.dim} columns. Hash categories into "
                "fewer columns, or leave out crossings."
            )

    def _check_names(self) -> None:
        names = [part.name for part in self.fields]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ParameterError(
                f"fields must have different names; {twice!r:.60} is there twice. Give one another name, and say with "
                "key=… where it is found in the record."
            )
        own = () if self.arms is None else self.arms.own
        for pair in self.crossings:
            if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1]:
                raise ParameterError(f"crossings must be pairs of names of two fields; got {pair!r:.60}.")
        for name in (*own, *(name for pair in self.crossings for name in pair)):
            if name not in names:
                raise ParameterError(
                    f"fields must have {name!r:.60}, which is crossed or own to arms; there are "
                    f"{', '.join(names) or 'none'!s:.200}."
                )
        pairs = [frozenset(pair) for pair in self.crossings]
        if len(set(pairs)) < len(pairs) or len(set(own)) < len(own):
            raise ParameterError("crossings and own fields of arms must differ; one is there twice.")
        used = {*own, *(name for pair in self.crossings for name in pair)}
        for part in self.fields:
            if not part.alone and part.name not in used:
                raise ParameterError(
                    f"fields must be used: {part.name!r} is not alone, in no crossing, and not own to arms. Set "
                    "alone = true, cross it, or leave it out."
                )
        if self.arms is None and all(part.of == "context" for part in self.fields):
            raise ParameterError(
                "fields must tell arms apart: give a field of the arm or of both, or arms with parameters of their own "
                "(arms=Arms(ids=…))."
            )

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """What a vector is made of, in order."""
        layouts = {part.name: (part.name, part.layout) for part in self.fields}
        terms: list[Term] = [()] if self.constant else []
        terms += [(layouts[part.name],) for part in self.fields if part.alone]
        terms += [(layouts[one], layouts[other]) for one, other in self.crossings]
        if self.arms is not None:
            block = ("", self.arms.layout)
            terms += [(block,)] if self.arms.level else []
            terms += [(block, layouts[name]) for name in self.arms.own]
        return tuple(terms)

    @cached_property
    def dim(self) -> int:
        """Length of the vectors, d."""
        total = 0
        for term in self.terms:
            columns = 1
            for _, layout in term:
                columns *= layout.columns
            total += columns
        return total

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What each column of the vectors is."""
        parts = {part.name: part.column_names for part in self.fields}
        if self.arms is not None:
            parts[""] = self.arms.column_names
        found: list[str] = []
        for term in self.terms:
            if not term:
                found.append("constant")
            elif len(term) == 1:
                found += parts[term[0][0]]
            else:
                found += [f"{one} × {other}" for one in parts[term[0][0]] for other in parts[term[1][0]]]
        return tuple(found)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the content: equal descriptions have equal ids, on every machine."""
        return codec.content_id(self)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self)

    def encode(self, context: Mapping[str, Any] | None, arms: Any = None) -> Encoded:
        """The vectors of one request.

        Parameters
        ----------
        context
            A record: fields by name.
        arms
            What is offered: a list of ids; records by id; a list of records that hold their ids; or a table of them. By
            default all arms that have parameters of their own.
        """
        return self._encoder.one(context, arms)

    def encode_many(self, contexts: Any, arms: Any = None) -> Encoded:
        """The vectors of many requests: what :meth:`encode` gives for each, in one array.

        Parameters
        ----------
        contexts
            A list of records, or a table of pandas, polars or Arrow.
        arms
            As for one request, the same for all; or a list of such, one for each.
        """
        return self._encoder.many(contexts, arms)

    @classmethod
    def fit(cls, contexts: Any, arms: Any = None, **settings: Any) -> Self:
        """Propose features from a sample; see :func:`rareswitch.features.fit.propose` for the settings."""
        from rareswitch.features.fit import propose

        return cls(**propose(contexts, arms, **settings))

    def to_plain(self) -> dict[str, Any]:
        """The content as plain data, for JSON and TOML."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, data: Any) -> "Features":
        """The features of plain data; what may be left out has its default."""
        return from_plain(data)

    def save(self, path: str | Path) -> None:
        """Write them to a file, TOML or JSON by its ending."""
        save(self.to_plain(), path)

    @classmethod
    def load(cls, path: str | Path) -> "Features":
        """Read them from a file, TOML or JSON by its ending."""
        return load(path)

    def __getstate__(self) -> dict[str, Any]:
        """For processes, to which it is pickled: what is compiled is made again."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__} | {"seen": dict(self.seen)}

    def __setstate__(self, told: dict[str, Any]) -> None:
        vars(self).update(told)
        self.__post_init__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        arms = "" if self.arms is None else f", {len(self.arms.ids)} arms and room for {self.arms.spare_arms}"
        return f"<features {self.id[:12]}: {len(self.fields)} fields, {self.dim} columns{arms}>"

    def __str__(self) -> str:
        return described(self)
