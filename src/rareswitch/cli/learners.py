"""``rareswitch learners`` and ``rareswitch recommend``: which learner, how many policies, and its regret bound."""

import argparse
from itertools import zip_longest
from textwrap import wrap

from rareswitch.cli.options import add_options, count_option
from rareswitch.cli.output import Output

#: Widths of the columns, which make 80 together with the spaces between them.
NAME, POLICIES, REGRET = 25, 19, 32
#: As in the library, which takes longer to load than these take to be refused.
CONTEXTS = ("fixed", "stochastic", "adversarial")


def add_learners(parser: argparse.ArgumentParser) -> None:
    """List the learners: a description, the number of policies, and the regret bound."""


def run_learners(options: argparse.Namespace) -> Output:
    """A table with a line of text for each learner."""
    from rareswitch.learner import all_learners

    lines = [_line("learner", "policies", "regret, up to logs; contexts")]
    lines.append(_line(*("─" * width for width in (NAME, POLICIES, REGRET))))
    facts = []
    for name, entry in all_learners().items():
        facts.append({"name": name, "text": entry.text, "policies": entry.adaptivity, "regret": entry.regret})
        cells = wrap(entry.adaptivity, POLICIES), wrap(entry.regret, REGRET)
        for row, (policies, regret) in enumerate(zip_longest(*cells, fillvalue="")):
            lines.append(_line("" if row else name, policies, regret))
        lines += wrap(entry.text, 76, initial_indent="    ", subsequent_indent="    ")
    return Output(facts, "\n".join(lines))


def _line(name: str, policies: str, regret: str) -> str:
    return f"{name:{NAME}}  {policies:{POLICIES}}  {regret}".rstrip()


def add_recommend(parser: argparse.ArgumentParser) -> None:
    """Recommend a learner and a number of policies for a problem of this size, with all regret bounds."""
    add_options(
        parser,
        dim={"required": True, "help": "features of an arm"},
        arms={"required": True, "help": "arms in a set"},
        horizon={},
    )
    policies = "the most policies, the first included (default: the number that each bound needs)"
    parser.add_argument("--policies", metavar="M", type=count_option, help=policies)
    kinds = (
        "fixed: the same set every time; stochastic: sets drawn from one distribution; adversarial: arbitrary sets, as "
        "with seasons and drift (default stochastic)"
    )
    parser.add_argument("--contexts", choices=CONTEXTS, default="stochastic", help=kinds)
    parser.add_argument("--min-propensity", metavar="X", type=float, help="show the cost of this minimum propensity")


def run_recommend(options: argparse.Namespace) -> Output:
    """A recommendation, and the cost of a minimum propensity."""
    from rareswitch.planning import best_ends, min_propensity_price, recommend
    from rareswitch.policy import MinPropensity, least_probability
    from rareswitch.report import as_text, recommendation_text

    problem = {name: getattr(options, name) for name in ("dim", "arms", "horizon", "policies", "contexts")}
    recommendation = recommend(**problem)
    facts = recommendation.as_dict()
    if options.min_propensity is None:
        return Output(facts, recommendation_text(recommendation))
    ends = best_ends(options.horizon, recommendation.policies, dim=options.dim)
    least = MinPropensity(least=least_probability("min_propensity", options.min_propensity))
    price = min_propensity_price(least, arms=options.arms, ends=ends, dim=options.dim)
    text = recommendation_text(recommendation, min_propensity=as_text(price, cli=True))
    return Output(facts | {"min_propensity": price.as_dict()}, text)
