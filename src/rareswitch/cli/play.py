"""``rareswitch play``: a deployed policy in a simulated world, to have a log to learn from."""

import argparse
import os
from typing import Any

from rareswitch.cli.begin import described
from rareswitch.cli.options import add_command
from rareswitch.cli.settings import count_option
from rareswitch.cli.signing import add_key, given_key, loaded

ARMS = 20


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(
        commands,
        "play",
        run,
        description=(
            "Let the current policy of a deployment make the decisions of its batch in a simulated world, and write "
            "them as parts of a log, as your servers would."
        ),
    )
    parser.add_argument("--policy", required=True, metavar="FOLDER", help="the deployment")
    parser.add_argument("--env", default="gaussian", metavar="WORLD", help="see rareswitch simulate (default gaussian)")
    parser.add_argument("--arms", type=int, help=f"arms in a set (default: the deployment's, or {ARMS})")
    parser.add_argument("--noise", type=float, default=0.5, help="σ of the rewards (default 0.5)")
    parser.add_argument("--seed", type=int, default=0, help="keys the world and the decisions (default 0)")
    parser.add_argument("--count", type=count_option, metavar="N", help="decisions (default: as planned)")
    parser.add_argument("--missing", type=float, default=0.0, help="share of rewards that are not known (default 0)")
    parser.add_argument("--parts", type=int, default=4, help="files of the log (default 4)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="a fresh folder for the parts")
    add_key(parser, "check the deployment with the key in this file")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(options: argparse.Namespace) -> int:
    """Write the log and say how to go on."""
    from rareswitch.env import make_world
    from rareswitch.sim import Progress, play

    deployment = loaded(options.policy, given_key(options))
    learner, state = deployment.learner, deployment.state
    arms = (learner.arms or ARMS) if options.arms is None else options.arms
    count = state.stop - state.start if options.count is None else options.count
    horizon = max(state.horizon, state.start + count)
    world = make_world(options.env, dim=learner.dim, arms=arms, noise=options.noise, horizon=horizon)
    with Progress(count, "playing", quiet=options.quiet) as bar:
        paths = play(
            deployment,
            world,
            seed=options.seed,
            folder=options.out,
            parts=options.parts,
            count=options.count,
            missing=options.missing,
            progress=bar.update,
        )
    pattern = os.path.join(options.out, "part-*.parquet")
    print(
        f"{described(deployment)}\n{count:,} decisions in {len(paths)} parts written; learn from them with: "
        f"--log '{pattern}'"
    )
    return 0
