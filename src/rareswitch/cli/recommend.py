"""``rareswitch recommend``: which learner, how many policies, and what is proved."""

import argparse

from rareswitch.cli.options import add_options, count_option
from rareswitch.cli.output import Output
from rareswitch.learner import CONTEXTS
from rareswitch.plan import recommend


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(
        parser,
        dim={"required": True, "help": "features of an arm"},
        arms={"required": True, "help": "arms in a set"},
        horizon={"help": "decisions (default 100000)"},
    )
    policies = "policies that can be deployed, the first included (default: the number that each bound needs)"
    parser.add_argument("--policies", metavar="M", type=count_option, help=policies)
    kinds = (
        "fixed: one set for ever; stochastic: sets drawn from one distribution; adversarial: any sets, such as those "
        "of seasons and drifts (default stochastic)"
    )
    parser.add_argument("--contexts", choices=CONTEXTS, default="stochastic", help=kinds)
    parser.add_argument(
        "--min-propensity", metavar="X", type=float, help="also show what this minimum propensity costs"
    )


def run(options: argparse.Namespace) -> Output:
    """Recommend a learner for a problem of this size, with its bound, those of others, and the policies they need."""
    from rareswitch.report import as_text, recommendation_text

    problem = {name: getattr(options, name) for name in ("dim", "arms", "horizon", "policies", "contexts")}
    recommendation = recommend(**problem)
    facts = recommendation.as_dict()
    if options.min_propensity is None:
        return Output(facts, recommendation_text(recommendation))
    from rareswitch.plan import best_ends, min_propensity_price
    from rareswitch.policy import MinPropensity, least_probability

    ends = best_ends(options.horizon, recommendation.policies, dim=options.dim)
    least = MinPropensity(least=least_probability("min_propensity", options.min_propensity))
    price = min_propensity_price(least, arms=options.arms, ends=ends, dim=options.dim)
    text = recommendation_text(recommendation, min_propensity=as_text(price))
    return Output(facts | {"min_propensity": price.as_dict()}, text)
