"""``rareswitch experiment advance``: the next policy, if it is due."""

import argparse
import warnings
from typing import TYPE_CHECKING

from rareswitch.cli.options import add_options, count_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened
from rareswitch.errors import LevelWarning, OutlierWarning, ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Gate

#: Status where no update was made; and where a gate rejected it.
NOT_DUE, REJECTED = 3, 4
#: Of a gate where none is given.
LEVEL = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--forecast",
        nargs="+",
        type=count_option,
        metavar="N",
        help="decisions to come, in all or in each batch (default: those of the schedule)",
    )
    parser.add_argument("--force", action="store_true", help="update although it is not due")
    parser.add_argument(
        "--gate",
        nargs="?",
        type=float,
        const=LEVEL,
        metavar="LEVEL",
        help="publish only if held-out decisions show that the new policy is not worse (false-promotion rate at most "
        f"LEVEL, default {LEVEL}); else the old one goes on, with status {REJECTED}",
    )
    parser.add_argument("--gate-loss", type=float, metavar="X", help="reward per decision that may be lost (default 0)")
    parser.add_argument("--gate-holdout", type=float, metavar="S", help="share of the batch to test on (default 0.3)")
    parser.add_argument("--preview", action="store_true", help="show what an update would do, and change nothing")
    add_options(parser, now="when it is made, for schedules and windows (default: now)", engine={}, quiet={})


def run(options: argparse.Namespace) -> Output:
    """Learn the next policy from the decisions and rewards so far, if the schedule says so, and publish it.

    Status 3 where no update is due. Of several processes that advance at once, one makes the policy. After a crash, run
    it again: it learns the very same policy.
    """
    from rareswitch.core import make_executor
    from rareswitch.report import ProgressBar

    gate = _gate(options)
    forecast = options.forecast[0] if options.forecast is not None and len(options.forecast) == 1 else options.forecast
    with (
        opened(options) as trial,
        make_executor(options.engine) as executor,
        ProgressBar("reading", quiet=options.quiet) as bar,
        warnings.catch_warnings(),
    ):
        for in_report in (LevelWarning, OutlierWarning):
            warnings.simplefilter("ignore", in_report)
        if options.preview:
            report = trial.preview(now=options.now, forecast=forecast, gate=gate, executor=executor)
        else:
            report = trial.advance(
                now=options.now, forecast=forecast, force=options.force, gate=gate, executor=executor, progress=bar
            )
    updated = report.made or report.elsewhere
    return Output(report, status=0 if updated else NOT_DUE if report.gate is None else REJECTED)


def _gate(options: argparse.Namespace) -> "Gate | None":
    """The gate of the options."""
    from rareswitch.experiment import Gate

    values = {"loss": options.gate_loss, "holdout": options.gate_holdout}
    settings = {name: value for name, value in values.items() if value is not None}
    if options.gate is not None:
        return Gate(level=options.gate, **settings)
    if settings:
        raise ParameterError(f"gate_{next(iter(settings))} is a setting of the gate: give --gate too.")
    return None
