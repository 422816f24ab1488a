"""What text files share: lines, compressed or not; ids and times as texts; what a log knows beside its rows."""

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.files import replacing
from rareswitch.ids import KeyArray, id_keys, key_bytes, keys_of_bytes
from rareswitch.log import DecisionLog

#: Under this name our files hold what other readers do not know.
OURS = "rareswitch"
#: The columns of a log that it may lack.
OPTIONAL = ("contexts", "features", "behavior_probs", "baselines", "times")
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


def check_ids(path: str | Path, keys: KeyArray, batches: Any, lines: Sequence[int], texts: Sequence[str]) -> None:
    """Refuse two decisions of one policy under the same id."""
    seen: dict[tuple[int, ...], int] = {}
    for at, (key, batch) in enumerate(zip(keys.tolist(), np.asarray(batches).tolist(), strict=True)):
        first = seen.setdefault((*key, batch), at)
        if first != at:
            raise FileFormatError(
                f"{path}, line {lines[at]}: the id {texts[at]!r:.60} was there in line {lines[first]}; each decision "
                "needs an id of its own. Leave one out, or name another column."
            )


def seconds_of(text: str) -> float | None:
    """A time in ISO 8601 as seconds since 1970, to the nearest float; None where it is none.

    >>> seconds_of("1970-01-02T00:00:00.2500000Z"), seconds_of("1970-01-01 01:00:00+01:00"), seconds_of("soon")
    (86400.25, 0.0, None)
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone or 'Z'}")
    except ValueError:
        return None
    whole = moment - _EPOCH
    digits = fraction or "0"
    # one division of whole numbers, which is rounded once
    unit = 10 ** len(digits)
    return float(((whole.days * 86400 + whole.seconds) * unit + int(digits)) / unit)


def time_text(seconds: float) -> str | None:
    """Seconds since 1970 in ISO 8601 with 7 digits, as :func:`seconds_of` reads them; None beyond the calendar.

    >>> time_text(86400.25)
    '1970-01-02T00:00:00.2500000Z'
    """
    if not -6e10 < seconds < 2.5e11:
        return None
    whole, fraction = divmod(round(seconds * 10**7), 10**7)
    moment = np.datetime64(whole, "s").astype("datetime64[s]")
    return f"{moment}.{fraction:07d}Z"


def facts_of(logged: DecisionLog) -> dict[str, Any]:
    """What a log knows beside its rows."""
    return {
        "arms": None if logged.arms is None else [*logged.arms],
        "batches": [*logged.batch_names],
        "columns": [name for name in OPTIONAL if getattr(logged, name) is not None],
        "estimated": logged.estimated,
        "width": int(logged.available.shape[1]),
    }


def checked_facts(path: str | Path, facts: Any) -> dict[str, Any]:
    """What :func:`facts_of` told, read from a file."""
    texts = ("batches", "columns")
    right = (
        isinstance(facts, dict)
        and facts.keys() >= {"arms", "batches", "columns", "estimated", "width"}
        and all(isinstance(facts[name], list) and all(isinstance(t, str) for t in facts[name]) for name in texts)
        and (facts["arms"] is None or all(isinstance(text, str) for text in facts["arms"]))
        and isinstance(facts["estimated"], str)
        and type(facts["width"]) is int
        and 0 < facts["width"] <= 1 << 20
    )
    if not right:
        raise FileFormatError(f"{path}: what rareswitch wrote there about the log is damaged. Write it anew.")
    return dict(facts)


def numbered(names: Sequence[str], known: Sequence[str] | None = None) -> tuple[list[int], tuple[str, ...]]:
    """The number of each name, and the names: in the order in which they come, after those that are known before.

    >>> numbered(["b", "a", "b"])
    ([0, 1, 0], ('b', 'a'))
    """
    order = {name: at for at, name in enumerate(known or ())}
    found = [order.setdefault(name, len(order)) for name in names]
    return found, tuple(order)
