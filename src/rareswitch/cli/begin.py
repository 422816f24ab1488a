"""``rareswitch begin``: the first policy of a deployment."""

import argparse
from typing import TYPE_CHECKING, Any

from rareswitch.cli.options import add_command, add_options
from rareswitch.cli.settings import add_settings, given_settings
from rareswitch.cli.signing import add_key, given_key

if TYPE_CHECKING:
    from rareswitch.store import Deployment


def add_parser(commands: Any) -> None:
    """Add the command and its options: the settings of all learners."""
    parser = add_command(
        commands,
        "begin",
        run,
        description=(
            "Make the first frozen policy and write it to a folder, from which servers take it and `rareswitch update` "
            "goes on. Learners that change at every step or by growth cannot be deployed."
        ),
    )
    add_options(parser, learner={"default": "foresight", "help": "see rareswitch learners (default foresight)"})
    parser.add_argument("--out", required=True, metavar="FOLDER", help="a fresh folder for the deployment")
    add_key(parser, "sign the deployment with the key in this file")
    add_settings(parser)


def run(options: argparse.Namespace) -> int:
    """Write the folder and say what its policy is for."""
    from rareswitch.learner import find_learner
    from rareswitch.store import Deployment

    find_learner(options.learner)
    deployment = Deployment.begin(options.learner, **given_settings(options, [options.learner]))
    deployment.save(options.out, key=given_key(options))
    print(f"{options.learner} begins. {described(deployment)}\nwritten to {options.out}")
    return 0


def described(deployment: "Deployment") -> str:
    """Which policy is current, what it is to do, and what is known of the regret where batches were not as planned."""
    state = deployment.state
    if state.done:
        text = f"The run is over: {state.start:,} decisions have been learned from."
    else:
        text = (
            f"Policy {state.updates}, {state.policy.id[:12]}…, makes the decisions {state.start:,} to "
            f"{state.stop - 1:,} of {state.horizon:,}, as far as is planned."
        )
    holds = deployment.learner.holds(state)
    return f"{text}\n{holds}" if holds.startswith("The batches were not") else text
