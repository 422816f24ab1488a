"""``rareswitch learners``: what there is to choose from."""

import argparse
import json
from typing import Any

from rareswitch.learner import LEARNERS
from rareswitch.report.tables import table


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("learners", help="list the learners, their adaptivity and their regret bounds")
    parser.add_argument("--json", action="store_true", help="print a list of objects in place of the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """One line for each learner."""
    rows = [[name, e.text, e.adaptivity, e.regret] for name, e in LEARNERS.items()]
    if options.json:
        print(json.dumps([dict(zip(("name", "text", "policies", "regret"), row, strict=True)) for row in rows]))
    else:
        print(table(["learner", "what it does", "policies", "regret, up to logs; contexts"], rows, left=4))
    return 0
