"""``rareswitch agents``: one learner with many agents."""

import argparse
from typing import Any

from rareswitch.cli.options import add_options, count_option
from rareswitch.cli.output import Output
from rareswitch.core import make_executor, whole
from rareswitch.lab.collaborate import Collaboration, collaborate
from rareswitch.lab.report.runs import collaborative_table, concurrent_table, meetings_table
from rareswitch.lab.simulate import Run, simulate
from rareswitch.lab.sweep import learner_for
from rareswitch.lab.worlds import make_world
from rareswitch.learner import find_learner
from rareswitch.report import ProgressBar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser, learner={"default": "foresight", "help": "see rareswitch learners (default foresight)"})
    numbers: dict[str, Any] = {"nargs": "+", "type": count_option, "default": [1, 8, 64], "metavar": "A"}
    parser.add_argument("--agents", **numbers, help="default: 1 8 64")
    add_options(parser, world={"default": "gaussian", "help": "see rareswitch simulate (default gaussian)"})
    add_options(parser, horizon="of all agents together", dim=10, arms=20, noise=0.5, seed=0, engine={})
    add_options(parser, quiet={})


def run(options: argparse.Namespace) -> Output:
    """Let many agents decide with the same frozen policies.

    Where batches end at known decisions the agents share each of them and meet at its end (collaborative learning);
    where a policy changes when the data have grown enough, they act together at each step (concurrent learning).
    """
    find_learner(options.learner)
    numbers = list(dict.fromkeys(options.agents))
    for agents in numbers:
        whole("agents", agents, high=options.horizon)
    world = make_world(options.world, dim=options.dim, arms=options.arms, noise=options.noise, horizon=options.horizon)
    learner = learner_for(world, options.learner, horizon=options.horizon, seed=options.seed, noise=options.noise)
    by_step = learner.clock.uses_features or learner.clock.every_step
    shared: list[Collaboration] = []
    stepped: list[tuple[int, Run]] = []
    total = options.horizon * len(numbers)
    with make_executor(options.engine) as executor, ProgressBar("deciding", quiet=options.quiet) as bar:
        for k, agents in enumerate(numbers):

            def show(made: int, before: int = k * options.horizon, agents: int = agents) -> None:
                bar(before + made, total, f"{agents} agents")

            facts: dict[str, Any] = {"agents": agents, "seed": options.seed, "name": options.world, "progress": show}
            if by_step:
                stepped.append((agents, simulate(learner, world, **facts)))
            else:
                shared.append(collaborate(learner, world, executor=executor, **facts))
    if shared:
        return Output([*map(_facts, shared)], f"{meetings_table(shared[-1])}\n\n{collaborative_table(shared)}")
    return Output([run.summary() | {"agents": agents} for agents, run in stepped], concurrent_table(stepped))


def _facts(found: Collaboration) -> dict[str, Any]:
    facts = {"agents": found.agents, "rounds": len(found.meetings), "parallel_time": found.parallel_time}
    lists = {"received": [m.received for m in found.meetings], "policies": [m.policy_id for m in found.meetings]}
    return found.run.summary() | facts | lists | {"decisions": found.decisions}
