"""``rareswitch learners``: what there is to choose from."""

import argparse
from typing import Any

from rareswitch.cli.options import add_command, add_options, print_json
from rareswitch.learner import LEARNERS
from rareswitch.report import table


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    text = "list the learners, their adaptivity and their regret bounds"
    add_options(add_command(commands, "learners", run, help=text), json="print a list of objects in place of the table")


def run(options: argparse.Namespace) -> int:
    """One line for each learner."""
    rows = [[name, e.text, e.adaptivity, e.regret] for name, e in LEARNERS.items()]
    if options.json:
        print_json([dict(zip(("name", "text", "policies", "regret"), row, strict=True)) for row in rows])
    else:
        print(table(["learner", "what it does", "policies", "regret, up to logs; contexts"], rows, left=4))
    return 0
