"""``rareswitch effects``: is one arm better than another, for whom, and by how much."""

import argparse
from typing import Any

from rareswitch.cli.options import add_command, add_options, in_options, print_json, save_picture
from rareswitch.cli.sources import add_source, opened_source

#: Status where the log can answer nothing that was asked.
NO_ANSWER = 3


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(
        commands,
        "effects",
        run,
        description=(
            "What showing one arm in place of another adds to the reward of a decision, for all or by group: effects "
            "with intervals that hold although policies were learned on the way, or the reason why the log cannot "
            f"tell, and what would help. Status {NO_ANSWER} where it can answer nothing."
        ),
    )
    add_source(parser)
    asked = parser.add_argument_group("what is asked")
    asked.add_argument("--arm", metavar="ARM", help="one arm (default: every arm, the best first)")
    asked.add_argument(
        "--against",
        metavar="ARM",
        help="another arm; baseline: what would otherwise have been shown; rest: the mean of the other offered arms "
        "(default: baseline where decisions name one, else rest)",
    )
    asked.add_argument(
        "--by",
        metavar="FIELD",
        help="for whom: levels of a field of the context, or halves of a number; position: the place of the arm",
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="of the intervals (default 0.95)")
    add_options(parser, json="print an object in place of text", plot={})


def run(options: argparse.Namespace) -> int:
    """Say what is known, and draw it."""
    from rareswitch.evaluation import effects
    from rareswitch.report import check_target, draw_effects

    check_target(options.plot)
    with opened_source(options) as log:
        found = effects(log.source, options.arm, options.against, by=options.by, level=options.level)
    if options.json:
        print_json(found.as_dict())
    else:
        print(in_options(found))
    if options.plot is not None:
        save_picture(draw_effects(found), options)
    return 0 if any(one.interval is not None for one in found) else NO_ANSWER
