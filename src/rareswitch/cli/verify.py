"""``rareswitch verify``: whether the policies of a deployment are learned again from its summaries."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from rareswitch.cli.options import add_command
from rareswitch.cli.signing import add_key, given_key, loaded


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
    add_key(parser, "check the signatures with the key in this file")
    parser.add_argument("--json", action="store_true", help="print an object in place of sentences")


def run(options: argparse.Namespace) -> int:
    """Say what comes out."""
    deployment = loaded(options.folder, given_key(options))
    found, signature = deployment.verify(), deployment.signature
    if options.json:
        print(json.dumps(asdict(found) | {"holds": found.holds, "signature": signature}))
    else:
        print(f"{found}\nAll signatures are of this key." if signature == "checked" else found)
    return 0 if found.holds else 1
