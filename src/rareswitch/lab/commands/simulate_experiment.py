"""``rareswitch experiment simulate``: simulated users ask an experiment, and reward it."""

import argparse
from typing import Any

from rareswitch.cli.options import add_options, duration_option, moment_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import ENDINGS, arm_count, given_arms, opened, read_records
from rareswitch.core import number
from rareswitch.errors import ParameterError, several
from rareswitch.experiment import Experiment
from rareswitch.lab.traffic import Traffic, play
from rareswitch.lab.worlds import RecordWorld, World, make_world
from rareswitch.report import ProgressBar, as_text

ARMS = 20
MOST_DAYS = 1e5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--days", type=float, default=7.0, help="how long (default 7)")
    parser.add_argument("--rate", type=float, default=200.0, help="decisions a day (default 200)")
    parser.add_argument("--start", type=moment_option, metavar="ISO", help="when (default: after the last decision)")
    parser.add_argument("--delay", type=duration_option, default=0.0, metavar="TIME", help="of rewards, on average")
    parser.add_argument("--missing", type=float, default=0.0, metavar="SHARE", help="of rewards that never come")
    parser.add_argument("--repeated", type=float, default=0.0, metavar="SHARE", help="of rewards that come twice")
    parser.add_argument("--no-advance", action="store_true", help="make no updates, even when they are due")
    parser.add_argument("--seed", type=int, default=0, help="keys the world and the delays (default 0)")
    users = parser.add_argument_group("users of an experiment with features")
    users.add_argument("--sample", metavar="FILE", help=f"records of contexts, from which users are drawn: {ENDINGS}")
    text = "ids of the arms on offer, or a file with their records; where requests are vectors, their number"
    users.add_argument("--arms", nargs="+", metavar="ID", help=text)
    users.add_argument("--click-rate", type=float, help="of an average arm (default 0.1)")
    plain = parser.add_argument_group("users of an experiment with vectors")
    plain.add_argument(
        "--world", default="gaussian", metavar="WORLD", help="see rareswitch simulate (default gaussian)"
    )
    plain.add_argument("--noise", type=float, default=0.5, help="σ of the rewards (default 0.5)")
    add_options(parser, quiet={})


def run(options: argparse.Namespace) -> Output:
    """Let simulated users ask an experiment for some days of simulated time, and reward it: late, twice or never.

    Updates are made when they are due. For tries and rehearsals; use an experiment of its own.
    """
    traffic = Traffic(**{name: getattr(options, name) for name in ("rate", "delay", "missing", "repeated")})
    number("days", options.days, low=0.0, high=MOST_DAYS)
    with opened(options) as trial, ProgressBar("simulating", quiet=options.quiet) as bar:
        found = play(
            trial,
            _world(trial, options),
            traffic,
            days=options.days,
            seed=options.seed,
            start=options.start,
            advance=not options.no_advance,
            progress=bar,
        )
        facts = {name: getattr(found, name) for name in ("decisions", "rewards", "repeated", "missing", "pending")}
        facts |= {"updates": [count for count, _ in found.updates]}
        facts |= {"regret": float(found.regrets.sum()), "earned": found.earned}
        counts = (
            f"{several(found.decisions, 'decision')}; {several(found.rewards, 'reward')} came, {found.repeated:,} of "
            "them again; "
            f"{found.missing:,} never come and {found.pending:,} not yet."
        )
        updates = ", ".join(f"after {several(count, 'decision')}" for count, _ in found.updates) or "none was due"
        lost = (
            f"Earned {found.earned:,.1f} in expectation, {facts['regret']:,.1f} less than the best arm of each request."
        )
        text = f"{counts}\nUpdates: {updates}.\n{lost}\n\n{as_text(trial.status(now=found.stop), cli=True)}"
    return Output(facts, text)


def _world(trial: Experiment, options: argparse.Namespace) -> World:
    """Where users come from: records for an experiment with features, otherwise a world of vectors."""
    learner, features = trial.description.learner, trial.description.features
    if features is None:
        for name in ("sample", "click_rate"):
            if getattr(options, name) is not None:
                raise ParameterError(f"{name} is for experiments with features; this one takes vectors: see --world.")
        count = (learner.arms or ARMS) if options.arms is None else arm_count(options.arms)
        horizon = int(options.days * options.rate) + trial.status().decisions
        sizes: Any = {"dim": learner.dim, "arms": count, "noise": options.noise, "horizon": max(2, horizon)}
        return make_world(options.world, **sizes)
    if options.sample is None:
        raise ParameterError(
            "sample must be given: records from which users are drawn, as this experiment has features."
        )
    arms = given_arms(options.arms)
    if arms is None:
        if features.arms is None:
            raise ParameterError("arms must be given: ids, or a file with their records.")
        arms = [*map(str, features.arms.ids)]
    offers = {one[features.key]: one for one in arms} if isinstance(arms[0], dict) else dict.fromkeys(arms)
    told: Any = {} if options.click_rate is None else {"click_rate": options.click_rate}
    return RecordWorld(features=features, sample=read_records(options.sample), offers=offers, **told)
