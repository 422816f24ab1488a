"""What text files share: compressed or not; ids and times as texts."""

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rareswitch.core import KeyArray, id_keys, key_bytes, keys_of_bytes, replacing
from rareswitch.errors import FileFormatError, InputError
from rareswitch.log.decision_log import DecisionLog

#: How the key of a text id is written, of which the text itself is not kept.
_KEY = re.compile("#[0-9a-f]{32}")
_NUMBER = re.compile("0|[1-9][0-9]{0,17}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,12}))?\s?(Z|[+-]\d\d:?\d\d)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    try:
        return DecisionLog(**columns)
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error


def id_texts(keys: KeyArray) -> list[str]:
    """Ids as texts: a number by its digits, of a text the 32 digits of its key.

    >>> id_texts(id_keys([7]))
    ['7']
    >>> ids_of_texts(id_texts(id_keys([7, "a"]))).tolist() == id_keys([7, "a"]).tolist()
    True
    """
    return [
        str(low) if high == 0 else f"#{data.hex()}"
        for (low, high), data in zip(keys.tolist(), key_bytes(keys), strict=True)
    ]


def ids_of_texts(texts: Sequence[str]) -> KeyArray:
    """The keys of ids in a file: of numbers where all are, or are keys as :func:`id_texts` writes them; of texts else.

    >>> ids_of_texts(["7", "12"])[:, 0].tolist()
    [7, 12]
    >>> ids_of_texts(["7", "b"])[0].tolist() == id_keys(["7"])[0].tolist()
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
    """A time in ISO 8601 as seconds since 1970, to the nearest float; None where it is none.

    >>> parse_time("1970-01-02T00:00:00.2500000Z"), parse_time("1970-01-01 01:00:00+01:00"), parse_time("soon")
    (86400.25, 0.0, None)
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone or 'Z'}") - _EPOCH
    except ValueError:
        return None
    digits = fraction or "0"
    unit = 10 ** len(digits)  # one division of whole numbers, which is rounded once
    return float(((moment.days * 86400 + moment.seconds) * unit + int(digits)) / unit)
