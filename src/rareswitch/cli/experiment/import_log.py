"""``rareswitch experiment import``: logs that servers wrote with the frozen policy."""

import argparse
from typing import Any

from rareswitch.cli.experiment import add_now, add_verb, opened
from rareswitch.cli.options import print_json, report_done


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "import",
        run,
        key="check the experiment with the key in this file",
        description=(
            "Take decisions and rewards that servers made with a frozen policy of the experiment from logs in Parquet "
            "(docs/logs.md). Again is as good as once; each row is counted under one name."
        ),
    )
    parser.add_argument(
        "--log", nargs="+", required=True, metavar="PATTERN", help="files, patterns in quotes, or URLs such as s3://…"
    )
    parser.add_argument(
        "--skip-conflicts", action="store_true", help="go on without rows that contradict what is there"
    )
    add_now(parser, "the time of rows that have none (default: now)")
    parser.add_argument("--json", action="store_true", help="print an object in place of text")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(options: argparse.Namespace) -> int:
    """Read, and say what came of it."""
    from rareswitch.log import import_parts
    from rareswitch.report import Progress

    with opened(options) as trial, Progress(1, "reading", quiet=options.quiet) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done, f"part {done} of {total}")

        found = import_parts(
            trial.store,
            options.log,
            learner=trial.description.learner,
            policies=[policy.id for policy in trial.policies],
            conflicts=options.skip_conflicts,
            now=options.now,
            progress=show,
        )
    if options.json:
        print_json(found.as_dict())
    else:
        report_done(str(found), f"{found.rows:,} rows were read")
    return 0
