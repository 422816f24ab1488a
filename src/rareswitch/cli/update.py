"""``rareswitch update``: the next policy from a log of the current one."""

import argparse
import json
from typing import Any

from rareswitch.cli.begin import described
from rareswitch.cli.simulate import add_engine
from rareswitch.engine import make_engine
from rareswitch.log import Deployment, find_parts, update
from rareswitch.log.deployment import check_fresh
from rareswitch.report.update_table import update_table
from rareswitch.sim.progress import Progress


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "update",
        help="learn the next policy of a deployment from the log of the current one",
        description=(
            "Read a log in Parquet, part by part, learn from it, and write the deployment with the next frozen policy "
            "to a fresh folder. What is not used is counted and said; docs/logs.md has the rules."
        ),
    )
    parser.add_argument(
        "--log", nargs="+", required=True, metavar="PATTERN", help="files or patterns in quotes: 'part-*.parquet'"
    )
    parser.add_argument("--policy", required=True, metavar="FOLDER", help="the deployment whose batch has ended")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="a fresh folder for the next one")
    add_engine(parser)
    parser.add_argument(
        "--incomplete", action="store_true", help="learn although decisions of the batch are not in the log"
    )
    parser.add_argument("--json", action="store_true", help="print an object in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Learn, write the folder, report."""
    check_fresh(options.out)
    deployment = Deployment.load(options.policy)
    files = find_parts(options.log)
    with make_engine(options.engine) as engine, Progress(len(files), "reading", quiet=options.quiet) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done, f"part {done} of {total}")

        done = update(deployment, files, engine=engine, incomplete=options.incomplete, progress=show)
    done.deployment.save(options.out)
    if options.json:
        after = done.deployment
        facts = {"next_policy": after.policy.id, "updates": after.learner.updates, "done": after.learner.done}
        print(json.dumps(done.report.as_dict() | facts | {"out": options.out}, allow_nan=False))
        return 0
    print(f"{described(deployment)}\n\n{update_table(done.report)}\n")
    for rows_of, kind in (
        (done.report.earlier, "an earlier policy of this deployment"),
        (done.report.foreign, "foreign"),
    ):
        for name, rows in rows_of.items():
            print(f"not used: {rows:,} rows of policy {f'{name[:12]}…' if name else '(all others)'}, {kind}")
    rate = done.report.size / 2**20 / done.report.seconds
    print(f"{described(done.deployment)}\nwritten to {options.out} ({done.report.seconds:.1f} s, {rate:.0f} MiB/s)")
    return 0
