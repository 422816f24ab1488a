"""``rareswitch experiment backup``: a copy of a store, while it is used."""

import argparse

from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE", help="the copy, which must not be there yet")


def run(options: argparse.Namespace) -> Output:
    """Write a copy of an SQLite store, as of one moment, to a new file, while experiments in it go on.

    The copy holds all experiments of the store, is checked, and can be opened like the store itself. Never copy the
    file by other means while it is in use.
    """
    with opened(options) as trial:
        trial.backup(options.file)
        url = trial.store.url
    return Output({"url": url, "file": options.file}, f"Copied {url} to {options.file}.")
