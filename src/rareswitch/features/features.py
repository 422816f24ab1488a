"""The frozen description of how records become vectors, as a value, as a table for people, and as a file."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from rareswitch.core import Displayed, codec, decoding, flag, of_type, one_of, read_whole, write_whole
from rareswitch.errors import FileFormatError, InputError, ParameterError
from rareswitch.features.encoder import Encoded, Encoder
from rareswitch.features.fields import MOST_COLUMNS, Arms, Field, FieldLayout, checked_text
from rareswitch.features.fit import Proposal
from rareswitch.features.records import Contexts, OfferedArms, Record

__all__ = ["Features"]

SCHEMA = 1
#: Bytes of a file that a person wrote, at most.
_LONGEST_FILE = 1 << 22
#: A product of the columns of up to two parts; of none, a constant. A part has a name, which is empty for the arms.
Term = tuple[tuple[str, FieldLayout], ...]


@codec.kind("features")
@dataclass(frozen=True, eq=False, kw_only=True)
class Features(Displayed):
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
            of_type("fields", part, Field)
        if self.arms is not None:
            of_type("arms", self.arms, Arms)
        flag("constant", self.constant)
        checked_text("key", self.key)
        one_of("absent", self.absent, ("missing", "error"))
        one_of("extra", self.extra, ("ignore", "error"))
        crossings = tuple(tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in self.crossings)
        vars(self).update(fields=tuple(self.fields), crossings=crossings, seen=dict(self.seen))
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

    @property
    def parts(self) -> tuple[Field | Arms, ...]:
        """All that has columns: the fields, and the arms where they have parameters of their own."""
        return (*self.fields,) if self.arms is None else (*self.fields, self.arms)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """What a vector is made of, in order."""
        layouts = {part.name: (part.name, part.layout) for part in self.parts}
        terms: list[Term] = [()] if self.constant else []
        terms += [(layouts[part.name],) for part in self.fields if part.alone]
        terms += [(layouts[first], layouts[second]) for first, second in self.crossings]
        if self.arms is not None:
            block = layouts[self.arms.name]
            terms += [(block,)] if self.arms.level else []
            terms += [(block, layouts[name]) for name in self.arms.own]
        return tuple(terms)

    @cached_property
    def dim(self) -> int:
        """Length of the vectors, d."""
        return sum(columns for _, columns in self.sizes)

    @property
    def sizes(self) -> tuple[tuple[Term, int], ...]:
        """The terms, each with the number of its columns."""
        return tuple((term, math.prod(layout.columns for _, layout in term)) for term in self.terms)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What each column of the vectors is."""
        parts = {part.name: part.column_names for part in self.parts}
        columns: list[str] = []
        for term in self.terms:
            if not term:
                columns.append("constant")
            elif len(term) == 1:
                columns += parts[term[0][0]]
            else:
                columns += [f"{first} × {second}" for first in parts[term[0][0]] for second in parts[term[1][0]]]
        return tuple(columns)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the content: equal descriptions have equal ids, on every machine."""
        return codec.content_id(self)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self)

    def encode(self, context: Record | None, arms: OfferedArms = None) -> Encoded:
        """The vectors of one request.

        Parameters
        ----------
        context
            A record: fields by name.
        arms
            What is offered: a list of ids; records by id; a list of records that hold their ids; or a table of them. By
            default all arms that have parameters of their own.
        """
        return self._encoder.single(context, arms)

    def encode_many(self, contexts: Contexts, arms: OfferedArms = None) -> Encoded:
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
    def fit(cls, contexts: Contexts, arms: OfferedArms = None, **settings: Any) -> Self:
        """Propose features from a sample; see :class:`rareswitch.features.fit.Proposal` for the settings."""
        return cls(**Proposal(**settings).settings(contexts, arms))

    def to_plain(self) -> dict[str, codec.Plain]:
        """Everything that makes a description what it is, with nothing left to defaults, for JSON and TOML."""
        data = {name: part for name, part in codec.plain(self).items() if name != "kind" and part is not None}
        data["fields"] = data.pop("fields")  # last, as a file of TOML has them
        if "arms" in data:
            del data["arms"]["kind"]
        return {"schema": SCHEMA, **data}

    @classmethod
    def from_plain(cls, data: Mapping[str, codec.Plain]) -> "Features":
        """The features of plain data; what may be left out has its default."""
        if not isinstance(data, Mapping):
            raise ParameterError(f"features must be a table of settings by name; got {data!r:.60}.")
        settings = {"kind": "features", **data}
        schema = settings.pop("schema", SCHEMA)
        if type(schema) is not int or schema != SCHEMA:
            raise ParameterError(f"schema must be {SCHEMA}; got {schema!r:.60}. Use a matching version.")
        if isinstance(settings.get("arms"), Mapping):
            settings["arms"] = {"kind": "arms", **settings["arms"]}
        return codec.decode(Features, settings)

    def save(self, path: str | Path) -> None:
        """Write them to a file, TOML or JSON by its ending, which appears whole or not at all."""
        data = self.to_plain()
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n" if _ending(path) == ".json" else _toml(data)
        write_whole(text.encode("utf-8", "surrogatepass"), path)

    @classmethod
    def load(cls, path: str | Path) -> "Features":
        """Read them from a file, TOML or JSON by its ending."""
        ending = _ending(path)
        data = read_whole(path)
        if len(data) > _LONGEST_FILE:
            raise FileFormatError(f"{path}: such a file has at most {_LONGEST_FILE} bytes; this one has {len(data)}.")
        try:
            with decoding(f"a description of features in {ending[1:].upper()}"):
                text = data.decode()
                return cls.from_plain(json.loads(text) if ending == ".json" else tomllib.loads(text))
        except InputError as error:
            raise FileFormatError(f"{path}: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """For processes, to which it is pickled: what is compiled is made again."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        arms = "" if self.arms is None else f", {len(self.arms.ids)} arms and room for {self.arms.spare_arms}"
        return f"<features {self.id[:12]}: {len(self.fields)} fields, {self.dim} columns{arms}>"


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".json", ".toml"):
        raise ParameterError(f"path must end in .toml or .json, which says what is in it; got {str(path)!r:.200}.")
    return ending


def _toml(data: Mapping[str, codec.Plain]) -> str:
    """Plain features as TOML: settings first, then a table of arms and one for each field."""
    lines = _settings({name: value for name, value in data.items() if name not in ("arms", "fields")})
    if "arms" in data:
        lines += ["", "[arms]", *_settings(data["arms"])]
    for entry in data["fields"]:
        lines += ["", "[[fields]]", *_settings(entry)]
    return "\n".join(lines) + "\n"


def _settings(data: Mapping[str, codec.Plain]) -> list[str]:
    """Settings as TOML has them, whose texts, numbers and lists are those of JSON."""
    values = {name: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for name, value in data.items()}
    return [f"{name} = {value}" for name, value in values.items()]
