"""The files of an experiment in a folder: versions, and parts with decisions or rewards; checked when they are read."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, StoreError
from rareswitch.files import canonical_json, making_folder, plain_json, pyarrow, read_whole, replacing, write_whole
from rareswitch.footers import METADATA, check_footer, seal_footer
from rareswitch.store.store import DecisionRow, RewardRow, VersionRow

#: Rows of a row group: what is read where the context set of one decision is asked for.
GROUP = 1024
#: The contents of a version, and the names of the files that they are in.
CONTENTS = {
    "policy": "policy.safetensors",
    "state": "state.safetensors",
    "summaries": "summaries.safetensors",
    "report": "report.json",
}
VERSION = "version.json"
#: Of a decision, what is read only where it is asked for.
LONG = ("contexts", "names")


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write plain data with their digest."""
    write_whole(canonical_json({"data": data, "digest": _digest(canonical_json(data))}), path)


def read_json(path: Path) -> dict[str, Any]:
    """What :func:`write_json` wrote, if it was not changed."""
    try:
        found = plain_json(read_whole(path), most=1 << 22)
        data: dict[str, Any] = found["data"]
        if found["digest"] != _digest(canonical_json(data)):
            raise ValueError("it is not what its digest says")
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{path}: {_damaged(error)}") from error
    return data


def write_version(folder: Path, version: VersionRow) -> None:
    """Write a version, which appears whole or not at all."""
    contents = {name: _bytes(getattr(version, name)) for name in CONTENTS}
    told = {"number": version.number, "signature": version.signature, "time": version.time}
    with making_folder(folder) as temporary:
        for name, data in contents.items():
            write_whole(data, temporary / CONTENTS[name])
        write_json(temporary / VERSION, told | {"digests": {name: _digest(data) for name, data in contents.items()}})


def read_version(folder: Path) -> VersionRow:
    """A version, if all its files are what was published."""
    told = read_json(folder / VERSION)
    contents = {}
    for name, file in CONTENTS.items():
        contents[name] = read_whole(folder / file)
        if _digest(contents[name]) != told["digests"][name]:
            raise FileFormatError(
                f"{folder / file}: not the file that was published: it was changed or taken from elsewhere. Restore it "
                "from a copy."
            )
    return VersionRow(
        number=told["number"],
        policy=contents["policy"],
        state=contents["state"],
        summaries=contents["summaries"],
        report=contents["report"].decode(),
        signature=told["signature"],
        time=told["time"],
    )


def write_decisions(path: Path, rows: Sequence[DecisionRow]) -> None:
    """Write a part with decisions."""
    _write(path, rows, DecisionRow, {"has_contexts": [row.contexts is not None for row in rows]})


def write_rewards(path: Path, rows: Sequence[RewardRow]) -> None:
    """Write a part with rewards."""
    _write(path, rows, RewardRow, {})


def read_decisions(path: Path) -> list[DecisionRow]:
    """The decisions of a part, without contexts and names of arms: empty where :func:`read_long` has some."""
    short = [name for name in DecisionRow._fields if name not in LONG]
    with _opened(path) as file:
        table = file.read([*short, "has_contexts"])
    columns = [table.column(name).to_pylist() for name in short]
    contexts = [b"" if has else None for has in table.column("has_contexts").to_pylist()]
    rows = zip(*columns, contexts, strict=True)
    return [DecisionRow._make((*short, held, None, cautions)) for *short, cautions, held in rows]


def read_rewards(path: Path) -> list[RewardRow]:
    """The rewards of a part."""
    with _opened(path) as file:
        table = file.read(list(RewardRow._fields))
    return [RewardRow(*values) for values in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def read_long(path: Path, rows: Sequence[int]) -> list[tuple[bytes, str | None]]:
    """Contexts, and names of arms, of some rows of a part."""
    groups = sorted({row // GROUP for row in rows})
    starts = {group: GROUP * at for at, group in enumerate(groups)}
    with _opened(path) as file:
        table = file.read_row_groups(groups, list(LONG)).take([starts[row // GROUP] + row % GROUP for row in rows])
    return list(zip(*(table.column(name).to_pylist() for name in LONG), strict=True))


def place_of(part: int, row: int) -> bytes:
    """Where a decision is, in place of its contexts.

    >>> where_is(place_of(3, 17))
    (3, 17)
    """
    return part.to_bytes(8, "little") + row.to_bytes(8, "little")


def where_is(place: bytes) -> tuple[int, int]:
    """Part and row of what :func:`place_of` made."""
    return int.from_bytes(place[:8], "little"), int.from_bytes(place[8:], "little")


_TYPES = {"version": "int64", "place": "int64", "baseline": "int64"}
_TYPES |= dict.fromkeys(("propensity", "time", "rank", "value"), "double")
_TYPES |= dict.fromkeys(("key", "features", "digest", "contexts"), "binary")


def _write(path: Path, rows: Sequence[Any], kind: Any, more: dict[str, Any]) -> None:
    pa, parquet = pyarrow()
    types = [(name, pa.type_for_alias(_TYPES.get(name, "string"))) for name in kind._fields]
    columns = [pa.array(values, of) for values, (_, of) in zip(zip(*rows, strict=True), types, strict=True)]
    table = pa.table(columns, pa.schema(types))
    for name, values in more.items():
        table = table.append_column(name, pa.array(values))
    with replacing(path) as temporary:
        options = {"compression": "zstd", "write_page_checksum": True}
        with parquet.ParquetWriter(temporary, table.schema, **options) as writer:
            writer.write_table(table, row_group_size=GROUP)
            writer.add_key_value_metadata(METADATA)
        seal_footer(temporary)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A part, whose damage is raised with its name."""
    pa, parquet = pyarrow()
    try:
        with open(path, "rb") as source:
            check_footer(source, path)
            yield parquet.ParquetFile(source, page_checksum_verification=True)
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: {_damaged(error)}") from error


def _bytes(given: bytes | str) -> bytes:
    return given.encode() if isinstance(given, str) else given


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _damaged(error: Exception) -> str:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return f"it was changed or is damaged ({text:.200}). Restore it from a copy."


def last_number(folder: Path) -> int:
    """The highest number of what is in a folder; 0 where nothing is."""
    names = (entry.partition(".")[0] for entry in os.listdir(folder))
    return max((int(name) for name in names if name.isdecimal()), default=0)
