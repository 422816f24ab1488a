"""``rareswitch experiment backup``: a copy of a store, while it is used."""

import argparse
from typing import Any

from rareswitch.cli.experiment import add_verb, opened


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "backup",
        run,
        key="check the experiment with the key in this file",
        description=(
            "Write a copy of an SQLite store, as of one moment, to a new file, while experiments in it go on. The "
            "copy holds all experiments of the store, is checked, and can be opened like the store itself. Never copy "
            "the file by other means while it is in use."
        ),
    )
    parser.add_argument("file", metavar="FILE", help="the copy, which must not be there yet")


def run(options: argparse.Namespace) -> int:
    """Write it."""
    with opened(options) as trial:
        trial.backup(options.file)
    print(f"Copied {trial.store.url} to {options.file}.")
    return 0
