"""``rareswitch effects``: is one arm better than another, for whom, and by how much."""

import argparse

from rareswitch.cli.options import add_options
from rareswitch.cli.output import print_json, save_picture
from rareswitch.cli.sources import add_source, opened_source

#: Status where the log can answer nothing that was asked.
NO_ANSWER = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
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
    add_options(parser, plot={})


def run(options: argparse.Namespace) -> int:
    """Estimate the effect of showing one arm in place of another on the reward of a decision, for all or by group.

    The confidence intervals stay valid under adaptive updates. Where the log cannot answer, the reason and the data
    that would are shown; status 3 where it can answer nothing.
    """
    from rareswitch.evaluation import effects
    from rareswitch.report import check_target, draw_effects

    check_target(options.plot)
    with opened_source(options) as log:
        found = effects(log.source, options.arm, options.against, by=options.by, level=options.level)
    if options.json:
        print_json(found.as_dict())
    else:
        print(found)
    if options.plot is not None:
        save_picture(draw_effects(found), options)
    return 0 if any(one.interval is not None for one in found) else NO_ANSWER
