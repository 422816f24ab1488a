"""``rareswitch verify``: whether the policies of a deployment are learned again from its summaries."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from rareswitch.cli.options import add_command


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(
        commands,
        "verify",
        run,
        description=(
            "Learn all policies of a deployment again from its summaries, and say which come out the same. Status 1 if "
            "one would now be learned otherwise."
        ),
    )
    parser.add_argument("folder", metavar="FOLDER", help="the deployment")
    parser.add_argument("--json", action="store_true", help="print an object in place of sentences")


def run(options: argparse.Namespace) -> int:
    """Say what comes out."""
    from rareswitch.store import Deployment

    found = Deployment.load(options.folder).verify()
    print(json.dumps(asdict(found) | {"holds": found.holds}) if options.json else found)
    return 0 if found.holds else 1
