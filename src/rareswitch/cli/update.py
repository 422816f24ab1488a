"""``rareswitch update``: the next policy from a log of the current one."""

import argparse
import json
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rareswitch.cli.begin import described
from rareswitch.cli.options import add_command, add_options, report_written
from rareswitch.cli.settings import count_option
from rareswitch.cli.signing import add_key, given_key
from rareswitch.errors import LevelWarning

if TYPE_CHECKING:
    from rareswitch.log import Update


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(
        commands,
        "update",
        run,
        description=(
            "Read a log in Parquet, part by part, learn from it, and write the deployment with the next frozen policy "
            "to a fresh folder. The batch ends with as many decisions as came. What is not used is counted and said; "
            "docs/logs.md has the rules."
        ),
    )
    parser.add_argument(
        "--log", nargs="+", required=True, metavar="PATTERN", help="files or patterns in quotes: 'part-*.parquet'"
    )
    parser.add_argument("--policy", required=True, metavar="FOLDER", help="the deployment whose batch has ended")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="a fresh folder for the next one")
    parser.add_argument(
        "--ahead",
        nargs="+",
        type=count_option,
        metavar="N",
        help="decisions to come in all, or of each batch to come; 0 ends the run (default: as planned)",
    )
    parser.add_argument("--window", type=float, metavar="SECONDS", help="how long each decision waits for its reward")
    parser.add_argument(
        "--now", type=moment_option, metavar="ISO", help="when the window is looked at (default: the latest time there)"
    )
    parser.add_argument(
        "--leave-out-conflicts", action="store_true", help="learn without decisions whose rows contradict each other"
    )
    parser.add_argument("--no-late", action="store_true", help="leave rows of earlier policies out")
    add_key(parser, "check the deployment and sign the next one with the key in this file")
    add_options(parser, engine={})
    parser.add_argument("--json", action="store_true", help="print an object in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(options: argparse.Namespace) -> int:
    """Learn, write the folder, report."""
    from rareswitch.engine import make_engine
    from rareswitch.log import find_parts, update
    from rareswitch.report import update_table
    from rareswitch.sim import Progress
    from rareswitch.store import Deployment, check_fresh

    check_fresh(options.out)
    key = given_key(options)
    deployment = Deployment.load(options.policy, key=key)
    deployment.check_key(key)
    files = find_parts(options.log)
    ahead = options.ahead[0] if options.ahead is not None and len(options.ahead) == 1 else options.ahead
    with (
        make_engine(options.engine) as engine,
        Progress(2 * len(files), "reading", quiet=options.quiet) as bar,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", LevelWarning)  # it is said with the other remarks

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done, f"part {done} of {total}")

        done = update(
            deployment,
            files,
            engine=engine,
            conflicts=options.leave_out_conflicts,
            late=not options.no_late,
            ahead=ahead,
            window=options.window,
            now=options.now,
            progress=show,
        )
    done.deployment.save(options.out, key=key)
    if options.json:
        after = done.deployment.state
        facts = {
            "next_policy": after.policy.id,
            "updates": after.updates,
            "done": after.done,
            "ahead": after.ahead,
            "holds": done.deployment.learner.holds(after),
            "notes": [dict(note) for note in after.notes if note.get("update") == after.updates - 1],
        }
        report_written(json.dumps(done.report.as_dict() | facts | {"out": options.out}, allow_nan=False), options.out)
        return 0
    rate = done.report.size / 2**20 / done.report.seconds
    written = f"written to {options.out} ({done.report.seconds:.1f} s, {rate:.0f} MiB/s)"
    text = f"{update_table(done.report)}\n\n{_remarks(done)}{described(done.deployment)}\n{written}"
    report_written(text, options.out)
    return 0


def _remarks(done: "Update") -> str:
    """What else should be known of an update."""
    report = done.report
    lines = [
        f"{'used' if entry.used else 'not used'}: {entry.rows:,} rows of policy {name[:12]}…, that of batch "
        f"{entry.batch}, with {entry.new:,} new rewards"
        for name, entry in report.earlier.items()
    ]
    lines += [
        f"not used: {rows:,} rows of policy {f'{name[:12]}…' if name else '(all others)'}, foreign"
        for name, rows in report.foreign.items()
    ]
    after = done.deployment.state
    note = next((note for note in after.notes[-1:] if note.get("update") == after.updates - 1), {})
    if "noise" in note:
        lines.append(
            f"learned: the noise is {note['noise']:.3g}; the next policy explores at {note['scale']:g} times the "
            "spread of what is believed"
        )
    if "certificate" in note:
        lines.append(
            f"certificate: a decision of it costs at most {note['certificate']:.3g} on average, if its intervals hold"
        )
    if "level" in note:
        lines.append(
            f"noticed: rewards lie around {note['level']:.6g}, which the features do not explain, and there is no "
            "intercept. Subtract a constant from all rewards, or begin anew with --intercept where the learner has it."
        )
    return "".join(f"{line}\n" for line in lines)


def moment_option(text: str) -> float:
    """A time as seconds, read as UTC where it has no zone."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-03-09T06:00:00") from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
