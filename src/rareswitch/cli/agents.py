"""``rareswitch agents``: one learner with many agents."""

import argparse
import json
from typing import Any

from rareswitch.cli.simulate import Maker, add_engine, count_option
from rareswitch.engine import make_engine
from rareswitch.env import make_world
from rareswitch.learner import LEARNERS, find_learner
from rareswitch.report.agents_table import collaborative_table, concurrent_table, meetings_table
from rareswitch.sim import Collaboration, Run, collaborate, simulate
from rareswitch.sim.progress import Progress
from rareswitch.validation import whole


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    learners = "\n".join(f"  {name:26} {entry.text}" for name, entry in LEARNERS.items())
    parser = commands.add_parser(
        "agents",
        help="one learner with many agents, in a simulated world",
        description=(
            "Let many agents play with the same frozen policies. Where batches end at known decisions the agents share "
            "each\nof them and meet at its end (collaborative learning); where a policy changes when enough was seen, "
            "they act\ntogether at each step (concurrent learning)."
        ),
        epilog=f"learners:\n{learners}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--learner", default="foresight", metavar="NAME", help="see below (default foresight)")
    parser.add_argument(
        "--agents", nargs="+", type=count_option, default=[1, 8, 64], metavar="A", help="default: 1 8 64"
    )
    parser.add_argument("--env", default="gaussian", metavar="WORLD", help="see rareswitch simulate (default gaussian)")
    parser.add_argument("--horizon", type=count_option, default=100_000, metavar="T", help="of all agents together")
    parser.add_argument("--dim", type=int, default=10, help="features of an arm (default 10)")
    parser.add_argument("--arms", type=int, default=20, help="arms in a set (default 20)")
    parser.add_argument("--noise", type=float, default=0.5, help="σ of the rewards (default 0.5)")
    parser.add_argument("--seed", type=int, default=0, help="keys the world and the decisions (default 0)")
    add_engine(parser)
    parser.add_argument("--json", action="store_true", help="print a list in place of the tables")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run with each number of agents and print tables or JSON."""
    find_learner(options.learner)
    numbers = list(dict.fromkeys(options.agents))
    for agents in numbers:
        whole("agents", agents, high=options.horizon)
    world = make_world(options.env, dim=options.dim, arms=options.arms, noise=options.noise, horizon=options.horizon)
    make = Maker(name=options.learner, settings={}, noise=options.noise)
    shared: list[Collaboration] = []
    stepped: list[tuple[int, Run]] = []
    with (
        make_engine(options.engine) as engine,
        Progress(options.horizon * len(numbers), "playing", quiet=options.quiet) as bar,
    ):
        for k, agents in enumerate(numbers):
            learner = make(world, options.horizon, options.seed)

            def show(made: int, before: int = k * options.horizon, agents: int = agents) -> None:
                bar.update(before + made, f"{agents} agents")

            facts: dict[str, Any] = {"seed": options.seed, "name": options.env, "progress": show}
            if learner.fixed_ends:
                shared.append(collaborate(learner, world, agents=agents, engine=engine, **facts))
            else:
                stepped.append((agents, simulate(learner, world, agents=agents, **facts)))
    if options.json:
        print(json.dumps([_facts(one) for one in shared] + [run.summary() | {"agents": a} for a, run in stepped]))
    elif shared:
        print(f"{meetings_table(shared[-1])}\n\n{collaborative_table(shared)}")
    else:
        print(concurrent_table(stepped))
    return 0


def _facts(found: Collaboration) -> dict[str, Any]:
    return found.run.summary() | {
        "agents": found.agents,
        "rounds": len(found.meetings),
        "parallel_time": found.parallel_time,
        "received": [meeting.received for meeting in found.meetings],
        "policies": [meeting.policy_id for meeting in found.meetings],
        "decisions": found.decisions,
    }
