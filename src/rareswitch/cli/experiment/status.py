"""``rareswitch experiment status``: where an experiment stands."""

import argparse

from rareswitch.cli.options import add_options
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser, now="as of when (default: now)")


def run(options: argparse.Namespace) -> Output:
    """Show decisions and rewards by policy, the lift over the baseline, open windows, and the next update."""
    from rareswitch.report import as_text

    with opened(options) as trial:
        status = trial.status(now=options.now)
    return Output(status.as_dict() | {"signature": trial.signature}, as_text(status, cli=True))
