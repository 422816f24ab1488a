"""``rareswitch recommend``: which learner, how many policies, and what is proved."""

import argparse
from typing import Any

from rareswitch.cli.options import add_command, add_options, count_option, print_json
from rareswitch.learner import CONTEXTS
from rareswitch.plan import recommend


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(commands, "recommend", run)
    parser.description = (
        "Say which learner fits a problem of this size, what is proved for it and for the others, and how many "
        "policies are needed for which rate."
    )
    add_options(parser, dim={"required": True, "help": "features of an arm"})
    add_options(
        parser, arms={"required": True, "help": "arms in a set"}, horizon={"help": "decisions (default 100000)"}
    )
    told = "policies that can be deployed, the first included (default: what each bound asks for)"
    parser.add_argument("--policies", metavar="M", type=count_option, help=told)
    kinds = (
        "fixed: one set for ever; stochastic: sets drawn from one distribution; adversarial: any sets, such as those "
        "of seasons and drifts (default stochastic)"
    )
    parser.add_argument("--contexts", choices=CONTEXTS, default="stochastic", help=kinds)
    parser.add_argument(
        "--min-propensity", metavar="X", type=float, help="least probability of every arm, of which the price is said"
    )
    add_options(parser, json="print an object in place of the text")


def run(options: argparse.Namespace) -> int:
    """Print the recommendation."""
    from rareswitch.report import as_text, recommendation_text

    asked = {name: getattr(options, name) for name in ("dim", "arms", "horizon", "policies", "contexts")}
    found = recommend(**asked)
    price = None
    if options.min_propensity is not None:
        from rareswitch.plan import best_ends, min_propensity_price
        from rareswitch.policy import MinPropensity, least_probability

        ends = best_ends(options.horizon, found.policies, dim=options.dim)
        min_propensity = MinPropensity(least=least_probability("min_propensity", options.min_propensity))
        price = min_propensity_price(min_propensity, arms=options.arms, ends=ends, dim=options.dim)
    if options.json:
        print_json(found.summary() | ({} if price is None else {"min_propensity": price.as_dict()}))
    else:
        print(recommendation_text(found, min_propensity="" if price is None else as_text(price)))
    return 0
