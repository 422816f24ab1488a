"""``rareswitch experiment advance``: the next policy, if it is due."""

import argparse
import warnings
from typing import Any

from rareswitch.cli.experiment import add_now, add_verb, opened
from rareswitch.cli.options import add_options, count_option, print_json, report_done
from rareswitch.errors import LevelWarning, OutlierWarning, ParameterError

#: Status where no update was made; and where a gate refused it.
NOT_DUE, REFUSED = 3, 4
#: Of a gate where none is given.
LEVEL = 0.05


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "advance",
        run,
        key="check the experiment and sign the next policy with the key in this file",
        description=(
            "Learn the next policy from the decisions and rewards that have come, if the schedule says that it is due, "
            f"and let it decide from now on. Status {NOT_DUE} where it is not due; of several processes that advance "
            "at once, one makes the policy. After a crash, run it again: it learns the very same policy."
        ),
    )
    parser.add_argument(
        "--forecast",
        nargs="+",
        type=count_option,
        metavar="N",
        help="decisions to come in all, or of each batch to come (default: what the schedule foresees)",
    )
    parser.add_argument("--force", action="store_true", help="update although it is not due")
    parser.add_argument(
        "--gate",
        nargs="?",
        type=float,
        const=LEVEL,
        metavar="LEVEL",
        help="let the policy decide only if decisions that it was not learned from say that it is no worse than the "
        f"one before it; in a share LEVEL of updates at most that is wrong ({LEVEL} where none is given). Otherwise "
        f"the old one goes on, with status {REFUSED}",
    )
    parser.add_argument(
        "--gate-loss", type=float, metavar="X", help="what the policy may lose a decision, in units of rewards (0)"
    )
    parser.add_argument("--gate-holdout", type=float, metavar="S", help="share of the batch to test it on (0.3)")
    parser.add_argument("--preview", action="store_true", help="say what an update would do, and change nothing")
    add_now(parser, "when it is made, for schedules and windows (default: now)")
    add_options(parser, engine={})
    parser.add_argument("--json", action="store_true", help="print an object in place of text")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(options: argparse.Namespace) -> int:
    """Update, and say what was seen and what is planned."""
    from rareswitch.executors import make_executor
    from rareswitch.report import Progress, as_text

    gate = _gate(options)
    forecast = options.forecast[0] if options.forecast is not None and len(options.forecast) == 1 else options.forecast
    with (
        opened(options) as trial,
        make_executor(options.engine) as executor,
        Progress(1, "reading", quiet=options.quiet) as bar,
        warnings.catch_warnings(),
    ):
        for said in (LevelWarning, OutlierWarning):  # by the report
            warnings.simplefilter("ignore", said)

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done, f"part {done} of {total}")

        if options.preview:
            found = trial.preview(now=options.now, forecast=forecast, gate=gate, executor=executor)
        else:
            told: dict[str, Any] = {"force": options.force, "gate": gate, "executor": executor, "progress": show}
            found = trial.advance(now=options.now, forecast=forecast, **told)
    if options.json:
        print_json(found)
    else:
        report_done(as_text(found, cli=True), f"policy {found.version} decides now")
    if found.made or found.elsewhere:
        return 0
    return NOT_DUE if found.gate is None else REFUSED


def _gate(options: argparse.Namespace) -> Any:
    """The gate that the options say, None where there is none."""
    from rareswitch.experiment import Gate

    told = {"loss": options.gate_loss, "holdout": options.gate_holdout}
    given = {name: value for name, value in told.items() if value is not None}
    if options.gate is None:
        if given:
            raise ParameterError(f"--gate-{next(iter(given))} says how a gate is, and there is none: give --gate too.")
        return None
    return Gate(level=options.gate, **given)
