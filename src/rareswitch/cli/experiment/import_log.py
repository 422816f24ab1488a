"""``rareswitch experiment import``: logs that servers wrote with the frozen policy."""

import argparse

from rareswitch.cli.options import add_options
from rareswitch.cli.output import Output
from rareswitch.cli.sources import add_columns, column_options, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--log", nargs="+", required=True, metavar="PATTERN", help="files, patterns in quotes, or URLs such as s3://…"
    )
    add_columns(parser)
    parser.add_argument("--skip-conflicts", action="store_true", help="leave out rows that contradict stored ones")
    add_options(parser, now="the time of rows that have none (default: now)", quiet={})


def run(options: argparse.Namespace) -> Output:
    """Import decisions and rewards that servers logged with a frozen policy of the experiment, from Parquet or CSV.

    See docs/logs.md. Importing the same rows twice changes nothing.
    """
    from rareswitch.log import import_parts
    from rareswitch.report import ProgressBar

    with opened(options) as trial, ProgressBar("reading", quiet=options.quiet) as bar:
        imported = import_parts(
            trial.store,
            options.log,
            learner=trial.description.learner,
            policies=[policy.id for policy in trial.policies],
            **column_options(options),
            features=trial.description.features,
            conflicts=options.skip_conflicts,
            now=options.now,
            progress=bar,
        )
    return Output(imported.as_dict(), str(imported))
