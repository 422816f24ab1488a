"""``rareswitch experiment status``: where an experiment stands."""

import argparse
from typing import Any

from rareswitch.cli.experiment import add_now, add_verb, opened
from rareswitch.cli.options import print_json


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "status",
        run,
        key="check the experiment with the key in this file",
        description="Say what was decided and earned, what is missing, and what the next update waits for.",
    )
    add_now(parser, "as of when (default: now)")
    parser.add_argument("--json", action="store_true", help="print an object in place of a table")


def run(options: argparse.Namespace) -> int:
    """Print it."""
    with opened(options) as trial:
        found = trial.status(now=options.now)
    if options.json:
        print_json(found, signature=trial.signature)
    else:
        from rareswitch.report import as_text

        print(as_text(found, cli=True))
    return 0
