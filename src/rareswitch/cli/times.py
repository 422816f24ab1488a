"""Moments and lengths of time, as options."""

import argparse
import re
from datetime import UTC, datetime

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def moment_option(text: str) -> float:
    """A time as seconds since 1970, read as UTC where it has no zone.

    >>> moment_option("2026-03-09")
    1773014400.0
    """
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-03-09T06:00:00") from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()


def duration_option(text: str) -> float:
    """A length of time in seconds: a number with s, m, h, d or w, or seconds.

    >>> duration_option("2d"), duration_option("1.5h"), duration_option("90")
    (172800.0, 5400.0, 90.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhdw]?)", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time such as 90s, 30m, 6h, 2d or 1w")
    return float(found[1]) * _UNITS[found[2] or "s"]
