"""``rareswitch simulate`` and ``rareswitch compare``: learners in simulated worlds."""

import argparse
import sys
from functools import partial
from typing import Any

from rareswitch.cli import INTERRUPTED
from rareswitch.cli.options import (
    SEEDS_HELP,
    add_lists,
    add_options,
    add_settings,
    check_heeded,
    given_settings,
    of_runs,
    settings_for,
)
from rareswitch.cli.output import print_json, save_picture
from rareswitch.core import make_executor, whole
from rareswitch.design import GOptimal
from rareswitch.lab.contest import Contest
from rareswitch.lab.report.plots import draw_runs
from rareswitch.lab.report.runs import run_table
from rareswitch.lab.sweep import LearnerFactory, Sweep, WorldFactory, learner_for, sweep
from rareswitch.lab.worlds import WORLDS, NamedWorld, World
from rareswitch.learner import Learner, all_learners, find_learner
from rareswitch.plan import recommend
from rareswitch.report import check_target

#: What ``compare`` runs if no learner is named.
SHOWN = [
    *("foresight", "batch-linucb-kw", "batch-linucb-dg-certified", "rarely-switch-suplinucb"),
    *("oful", "linucb", "thompson"),
]
#: Settings of learners that are told by the world and the run.
OWN = ("dim", "arms", "horizon", "noise", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of either command."""
    learners = {name: entry.text for name, entry in all_learners().items()}
    add_lists(parser, {"learners": learners, "worlds": {name: text for name, (text, _) in WORLDS.items()}})
    several = parser.prog.endswith(" compare")
    if several:
        few = {"default": SHOWN, "help": "which ones, or 'all' (default: a few)"}
        add_options(parser, learners=few, worlds={"default": ["gaussian"], "help": "default: gaussian"})
        add_options(parser, horizons={"default": [100_000], "help": "default: 100000"})
    else:
        add_options(parser, learner={"default": "foresight", "help": "see below (default foresight)"})
        add_options(parser, world={"default": "gaussian", "help": "see below (default gaussian)"}, horizon={})
    noise = "σ of the rewards, where the world lets one choose (default 0.5)"
    seeds = {"default": 8, "help": f"{SEEDS_HELP} (default 8)"} if several else 4
    add_options(parser, dim=10, arms=20, seeds=seeds, first_seed=0, noise={"default": 0.5, "help": noise})
    parser.add_argument("--design-tol", type=float, help="slack of G-optimal designs (1 is the paper's factor 2)")
    add_settings(parser, without=OWN)
    parser.add_argument("--cap", type=int, help="the most policies a run may deploy; the last one stays to the end")
    add_options(parser, engine={}, out={}, plot={}, quiet={})


def run(options: argparse.Namespace) -> int:
    """Run learners in simulated worlds, and show their regret. Status 130 if Ctrl-C cut it short."""
    if "learners" not in options:
        options.learners, options.worlds, options.horizons = [options.learner], [options.world], [options.horizon]
    names = list(all_learners()) if options.learners == ["all"] else options.learners
    horizons = options.horizons
    check_target(options.plot)
    facts = of_runs(options) | {"horizons": horizons, "cap": options.cap}
    for name in ("dim", "arms") if options.cap is None else ("dim", "arms", "cap"):
        whole(name, getattr(options, name))
    learners = factories(names, options)
    worlds: dict[str, WorldFactory] = {
        name: NamedWorld(name=name, dim=options.dim, arms=options.arms, noise=options.noise) for name in options.worlds
    }
    if not options.json:
        longest = {name: make_world(max(horizons)) for name, make_world in worlds.items()}
        _advise(names, longest, max(horizons), 1.0 if options.design_tol is None else options.design_tol)
    with make_executor(options.engine) as executor:
        found = sweep(learners, worlds, executor=executor, **facts)
    if options.json:
        print_json([run.summary() for run in found.runs])
    elif found.runs:
        print(run_table(found.runs))
        if found.resumed and options.out:
            print(f"\n{found.resumed} of these runs were taken from {options.out}")
    for (name, where), reason in found.skipped.items():
        print(f"rareswitch: {name} was not run in {where}: {reason}", file=sys.stderr)
    if options.plot is not None and found.runs:
        save_picture(draw_runs(found.runs), options)
    return status(found, options.out)


def status(found: Sweep | Contest, out: str | None) -> int:
    """What a command exits with; after Ctrl-C it says what is kept."""
    if found.interrupted:
        kept = f"; they are in {out}" if out else ""
        print(f"rareswitch: stopped after {len(found.runs)} finished runs{kept}.", file=sys.stderr)
        return INTERRUPTED
    return 0 if found.runs else 2


def make_for(name: str, noise: float, settings: dict[str, Any], world: World, horizon: int, seed: int) -> Learner:
    """The learner with the settings of the command line; partials of this also travel to other processes."""
    return learner_for(world, name, horizon=horizon, seed=seed, noise=noise, **settings)


def factories(names: list[str], options: argparse.Namespace) -> dict[str, LearnerFactory]:
    """Makers of these learners with the settings of the command line."""
    for name in names:
        find_learner(name)
    free = {name: value for name, value in vars(options).items() if name not in OWN}
    given = given_settings(argparse.Namespace(**free), names)
    if options.design_tol is not None:
        check_heeded("--design-tol", "g_optimal", names)
        given["g_optimal"] = GOptimal(tol=options.design_tol)
    return {name: partial(make_for, name, options.noise, settings_for(name, given)) for name in names}


def _advise(names: list[str], worlds: dict[str, World], horizon: int, design_tol: float) -> None:
    """Say what a world is like, where learning a design cannot pay, and where two learners are one."""
    notes, factor = [], 1.0 + design_tol
    for name, world in worlds.items():
        said = [world.describe()] if hasattr(world, "describe") else []
        advice = recommend(dim=world.dim, arms=world.arms, horizon=horizon)
        if advice.proven == "batch-linucb-kw" and any("dg" in learner for learner in names):
            said.append(f"{advice.proven_reason} Learning a design (dg) cannot improve the bound.")
        if "rarely-switch-suplinucb" in names and horizon < world.dim**3:
            layer = "where the accuracy that layer 0 of rarely-switch-suplinucb asks for exceeds the rewards"
            said.append(f"T = {horizon} is below d³ = {world.dim**3}, {layer}: its bound says nothing yet.")
        if design_tol >= 1.0 and world.arms <= factor * world.dim and "batch-linucb-kw" in names:
            same = f"the design at factor {factor:g} is uniform and batch-linucb-kw plays as batch-linucb"
            said.append(f"K = {world.arms} is at most {factor:g}·d, where {same}; see --design-tol.")
        notes += [f"note on {name}: {text}" for text in said]
    if notes:
        print("\n".join(notes) + "\n")
