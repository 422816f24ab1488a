"""``rareswitch simulate``, ``compare``, ``agents`` and ``worlds``: learners in simulated worlds."""

import argparse
import sys
from functools import partial

from rareswitch.cli import INTERRUPTED
from rareswitch.cli.laboratory import OWN
from rareswitch.cli.options import Arguments, check_heeded, given_settings, of_runs, settings_for
from rareswitch.cli.output import Facts, Output, print_json, save_picture
from rareswitch.core import make_executor, whole
from rareswitch.design import GOptimal
from rareswitch.lab.collaborate import Collaboration, collaborate
from rareswitch.lab.contest import Contest
from rareswitch.lab.report.plots import draw_runs
from rareswitch.lab.report.runs import collaborative_table, concurrent_table, earned_text, meetings_table, run_table
from rareswitch.lab.simulate import Run, simulate
from rareswitch.lab.sweep import LearnerFactory, Sweep, WorldFactory, learner_for, sweep
from rareswitch.lab.worlds import WORLDS, NamedWorld, TableWorld, World, make_world
from rareswitch.learner import Learner, all_learners, find_learner
from rareswitch.planning import Problem
from rareswitch.report import ProgressBar, check_target


def run_worlds(options: argparse.Namespace) -> Output:
    """A line for each world."""
    facts = [{"name": name, "text": text} for name, (text, _) in WORLDS.items()]
    return Output(facts, "\n".join(f"{name:20} {text}" for name, (text, _) in WORLDS.items()))


def run_simulate(options: argparse.Namespace) -> int:
    """Runs of one learner in one world."""
    return _run([options.learner], [options.world], [options.horizon], options)


def run_compare(options: argparse.Namespace) -> int:
    """Runs of learners in worlds."""
    names = list(all_learners()) if options.learners == ["all"] else options.learners
    return _run(names, options.worlds, options.horizons, options)


def _run(names: list[str], places: list[str], horizons: list[int], options: argparse.Namespace) -> int:
    """Run learners in worlds, print a table and draw."""
    if options.plot is not None:
        check_target(options.plot)
    settings = of_runs(options)
    for name in ("dim", "arms") if options.cap is None else ("dim", "arms", "cap"):
        whole(name, getattr(options, name))
    learners = factories(names, options)
    worlds: dict[str, WorldFactory] = {
        name: NamedWorld(name=name, dim=options.dim, arms=options.arms, noise=options.noise) for name in places
    }
    if not options.json:
        longest = {name: make_world(max(horizons)) for name, make_world in worlds.items()}
        _advise(names, longest, max(horizons), 1.0 if options.design_tol is None else options.design_tol)
    with make_executor(options.engine) as executor:
        outcome = sweep(learners, worlds, horizons=horizons, cap=options.cap, executor=executor, **settings)
    if options.json:
        print_json([run.summary() for run in outcome.runs])
    elif outcome.runs:
        print(run_table(outcome.runs))
        for name, factory in worlds.items():
            world, runs = factory(max(horizons)), [run for run in outcome.runs if run.world == name]
            if isinstance(world, TableWorld) and runs:
                where = f"{name}\n" if len(worlds) > 1 else ""
                print(f"\n{where}{earned_text(runs, world)}")
        if outcome.resumed and options.out:
            print(f"\n{outcome.resumed} of these runs were taken from {options.out}")
    for (name, where), reason in outcome.skipped.items():
        print(f"rareswitch: {name} was not run in {where}: {reason}", file=sys.stderr)
    if options.plot is not None and outcome.runs:
        save_picture(draw_runs(outcome.runs), options)
    return exit_status(outcome, options.out)


def exit_status(outcome: Sweep | Contest, out: str | None) -> int:
    """The exit status of a command; after Ctrl-C it says where the finished runs are."""
    if outcome.interrupted:
        where = f"; they are in {out}" if out else ""
        print(f"rareswitch: stopped after {len(outcome.runs)} finished runs{where}.", file=sys.stderr)
        return INTERRUPTED
    return 0 if outcome.runs else 2


def make_for(name: str, noise: float, settings: Arguments, world: World, horizon: int, seed: int) -> Learner:
    """The learner with the settings of the command line; partials of this also travel to other processes."""
    return learner_for(world, name, horizon=horizon, seed=seed, noise=noise, **settings)


def factories(names: list[str], options: argparse.Namespace) -> dict[str, LearnerFactory]:
    """Makers of these learners with the settings of the command line."""
    for name in names:
        find_learner(name)
    free = {name: value for name, value in vars(options).items() if name not in OWN}
    settings = given_settings(argparse.Namespace(**free), names)
    if options.design_tol is not None:
        check_heeded("--design-tol", "g_optimal", names)
        settings["g_optimal"] = GOptimal(tol=options.design_tol)
    return {name: partial(make_for, name, options.noise, settings_for(name, settings)) for name in names}


def _advise(names: list[str], worlds: dict[str, World], horizon: int, design_tol: float) -> None:
    """Say what a world is like, where learning a design cannot pay, and where two learners are one."""
    lines, factor = [], 1.0 + design_tol
    for name, world in worlds.items():
        notes = [world.describe()] if hasattr(world, "describe") else []
        problem = Problem(dim=world.dim, arms=world.arms, horizon=horizon)
        if any("dg" in learner for learner in names) and (best := problem.best()).learner == "batch-linucb-kw":
            notes.append(f"{problem.why(best)} Learning a design (dg) cannot improve the bound.")
        if "rarely-switch-suplinucb" in names and horizon < world.dim**3:
            notes.append(
                f"T = {horizon} is below d³ = {world.dim**3}: the bound of rarely-switch-suplinucb is vacuous, as the "
                "accuracy of its layer 0 exceeds the rewards."
            )
        if design_tol >= 1.0 and world.arms <= factor * world.dim and "batch-linucb-kw" in names:
            same = f"the design at factor {factor:g} is uniform and batch-linucb-kw plays as batch-linucb"
            notes.append(f"K = {world.arms} is at most {factor:g}·d, where {same}; see --design-tol.")
        lines += [f"note on {name}: {text}" for text in notes]
    if lines:
        print("\n".join(lines) + "\n")


def run_agents(options: argparse.Namespace) -> Output:
    """Runs of one learner with each number of agents."""
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

            def show(done: int, before: int = k * options.horizon, agents: int = agents) -> None:
                bar(before + done, total, f"{agents} agents")

            run = {"agents": agents, "seed": options.seed, "name": options.world, "progress": show}
            if by_step:
                stepped.append((agents, simulate(learner, world, **run)))
            else:
                shared.append(collaborate(learner, world, executor=executor, **run))
    if shared:
        return Output([*map(_facts, shared)], f"{meetings_table(shared[-1])}\n\n{collaborative_table(shared)}")
    return Output([run.summary() | {"agents": agents} for agents, run in stepped], concurrent_table(stepped))


def _facts(outcome: Collaboration) -> Facts:
    facts = {"agents": outcome.agents, "rounds": len(outcome.meetings), "parallel_time": outcome.parallel_time}
    lists = {"received": [m.received for m in outcome.meetings], "policies": [m.policy_id for m in outcome.meetings]}
    return outcome.run.summary() | facts | lists | {"decisions": outcome.decisions}
