"""``rareswitch experiment audit``: whether decisions and policies come out again."""

import argparse
from typing import Any

from rareswitch.cli.experiment import add_verb, id_option, json_option, opened
from rareswitch.cli.options import print_json
from rareswitch.errors import ParameterError


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "audit",
        run,
        key="check the signatures with the key in this file",
        description=(
            "Recompute decisions from their frozen policies, and say whether arm and propensity match exactly. Without "
            "an ID, learn all policies again from what they were learned from. Status 1 where something differs."
        ),
    )
    parser.add_argument("ids", nargs="*", type=id_option, metavar="ID", help="of decisions (default: all policies)")
    parser.add_argument("--context", type=json_option, metavar="JSON", help="the request of one, if it was not kept")
    parser.add_argument("--arms", type=json_option, metavar="JSON", help="its arms")
    parser.add_argument("--json", action="store_true", help="print a list or an object in place of text")


def run(options: argparse.Namespace) -> int:
    """Say what comes out."""
    if options.context is not None and len(options.ids) != 1:
        raise ParameterError(f"context is that of one decision; got {len(options.ids)} ids.")
    if options.arms is not None and options.context is None:
        raise ParameterError("arms are those of a request that is given again: give its --context too.")
    with opened(options) as trial:
        if not options.ids:
            return _verify(trial, options)
        found = [trial.audit(one, options.context, options.arms) for one in options.ids]
    if options.json:
        print_json([one.as_dict() | {"matches": one.matches} for one in found])
    else:
        print("\n\n".join(map(str, found)))
    return 0 if all(one.matches for one in found) else 1


def _verify(trial: Any, options: argparse.Namespace) -> int:
    found = trial.verify()
    if options.json:
        print_json(found, holds=found.holds, signature=trial.signature)
    else:
        print(f"{found}\nAll signatures are of this key." if trial.signature == "checked" else found)
    return 0 if found.holds else 1
