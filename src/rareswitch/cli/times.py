"""Moments and durations, as options; read as Python reads them."""

import argparse


def moment_option(text: str) -> float:
    """A time as seconds since 1970, read as UTC where it has no zone.

    >>> moment_option("2026-03-09")
    1773014400.0
    """
    from rareswitch.plan import moment_of

    try:
        return moment_of("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def duration_option(text: str) -> float:
    """A duration in seconds.

    >>> duration_option("2d"), duration_option("1 day 6 hours"), duration_option("0")
    (172800.0, 108000.0, 0.0)
    """
    from rareswitch.plan import duration_of

    try:
        return duration_of("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
