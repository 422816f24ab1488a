"""``rareswitch begin``: the first policy of a deployment."""

import argparse
from typing import Any

from rareswitch.cli.simulate import confidence_option, count_option
from rareswitch.log import Deployment

SETTINGS = ("dim", "horizon", "arms", "updates", "batches", "noise", "delta", "scale", "floor", "seed")
"""Options whose values are handed on as they are."""


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "begin",
        help="begin a deployment: a folder with the first policy, for logs to be learned from",
        description=(
            "Make the first frozen policy and write it to a folder, from which servers take it and `rareswitch update` "
            "goes on. Settings that are not given are the learner's own."
        ),
        epilog="See rareswitch learners; those that change at every step or by growth cannot be deployed.",
    )
    parser.add_argument("--learner", default="foresight", metavar="NAME", help="default: foresight")
    parser.add_argument("--dim", type=int, required=True, help="features of an arm")
    parser.add_argument("--horizon", type=count_option, required=True, metavar="T", help="decisions in all")
    parser.add_argument("--arms", type=int, help="most arms in a set (foresight: any number by default)")
    parser.add_argument("--updates", type=int, help="policies that foresight deploys (default 8)")
    parser.add_argument("--batches", type=int, help="number of batches, for the other learners")
    parser.add_argument(
        "--ends", nargs="+", type=count_option, metavar="N", help="after how many decisions batches end; the last is T"
    )
    parser.add_argument("--noise", type=float, help="σ of the rewards, for learners that must be told")
    parser.add_argument("--delta", type=float, help="failure probability (default 0.05)")
    parser.add_argument("--confidence", type=confidence_option, help="'paper', 'tight' or a multiplier of the widths")
    parser.add_argument("--scale", type=float, help="of Thompson sampling's draws")
    parser.add_argument("--floor", type=float, help="share of decisions in which foresight explores by design")
    parser.add_argument("--intercept", action="store_true", help="rewards have a level of their own (foresight)")
    parser.add_argument("--seed", type=int, help="keys the draws of randomised learners (default 0)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="a fresh folder for the deployment")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the folder and say what its policy is for."""
    given = {name: getattr(options, name) for name in SETTINGS}
    given |= {"confidence": options.confidence, "grid": options.ends, "intercept": options.intercept or None}
    settings = {name: value for name, value in given.items() if value is not None}
    deployment = Deployment.begin(options.learner, **settings)
    deployment.save(options.out)
    print(f"{options.learner} begins. {described(deployment)}\nwritten to {options.out}")
    return 0


def described(deployment: Deployment) -> str:
    """Which policy is current, and what it is to do."""
    learner = deployment.learner
    if learner.done:
        return f"The run is over: all {learner.horizon:,} decisions have been learned from."
    return (
        f"Policy {learner.updates}, {deployment.policy.id[:12]}…, makes the decisions {learner.start:,} to "
        f"{learner.stop - 1:,} of {learner.horizon:,}."
    )
