"""``rareswitch experiment audit``: whether decisions and policies can be reproduced."""

import argparse

from rareswitch.cli.options import id_option, json_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened
from rareswitch.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("ids", nargs="*", type=id_option, metavar="ID", help="of decisions (default: all policies)")
    parser.add_argument("--context", type=json_option, metavar="JSON", help="the request of one, if it was not stored")
    parser.add_argument("--arms", type=json_option, metavar="JSON", help="its arms")


def run(options: argparse.Namespace) -> Output:
    """Recompute decisions from their frozen policies, and compare arm and propensity.

    Without an ID, learn all policies again from their summaries. Status 1 where something differs.
    """
    if options.context is not None and len(options.ids) != 1:
        raise ParameterError(f"context is that of one decision; got {len(options.ids)} ids.")
    if options.arms is not None and options.context is None:
        raise ParameterError("arms are those of a request that is given again: give its --context too.")
    with opened(options) as trial:
        if options.ids:
            audits = [trial.audit(name, options.context, options.arms) for name in options.ids]
            facts = [audit.as_dict() | {"matches": audit.matches} for audit in audits]
            return Output(facts, "\n\n".join(map(str, audits)), int(not all(audit.matches for audit in audits)))
        verification = trial.verify()
        signed = "\nAll signatures are of this key." if trial.signature == "checked" else ""
        more = {"holds": verification.holds, "signature": trial.signature}
    return Output(verification.as_dict() | more, f"{verification}{signed}", int(not verification.holds))
