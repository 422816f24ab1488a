"""``rareswitch tradeoff``: what is lost with fewer policies."""

import argparse
import sys
from functools import partial
from typing import Any

from rareswitch.cli import INTERRUPTED
from rareswitch.cli.options import add_options, confidence_option, of_runs
from rareswitch.cli.output import print_json, save_picture
from rareswitch.lab.report.plots import draw_tradeoff, tradeoff_table
from rareswitch.lab.sweep import budgeted, learner_for, tradeoff
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Learner, all_learners, find_learner, takes
from rareswitch.report import check_target

SHOWN = ["foresight", "oful", "linucb", "thompson"]
CAPS = [1, 2, 4, 8, 16, 32, 64]
#: Sizes of a world if none are given, and those of the paper's hard instances.
USUAL: dict[str, Any] = {"dim": 10, "arms": 20, "noise": 0.5}
HARD: dict[str, Any] = {"dim": 2, "arms": 2, "noise": 1.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser, learners={"default": SHOWN, "help": "see rareswitch learners"})
    add_options(
        parser, world={"default": "gaussian", "help": "default gaussian; lower-bound: the paper's hard instances"}
    )
    parser.add_argument("--caps", nargs="+", type=int, default=CAPS, metavar="M", help="default: 1 2 4 … 64")
    add_options(parser, horizon={"default": 10_000, "help": "default: 10000"})
    hard = "; for lower-bound"
    add_options(parser, dim=f"features of an arm (default {USUAL['dim']}{hard} {HARD['dim']})")
    add_options(parser, arms=f"arms in a set (default {USUAL['arms']}{hard} {HARD['arms']})")
    add_options(parser, noise=f"σ of the rewards (default {USUAL['noise']}{hard} {HARD['noise']})")
    add_options(parser, seeds={"default": 16, "help": "how many runs of each (default 16)"})
    add_options(parser, first_seed=0)
    widths = "'paper', 'tight' (what is proved) or a multiplier of the widths (default 1, which does well in practice)"
    parser.add_argument("--confidence", default="1", help=widths)
    add_options(parser, out={}, plot={}, quiet={})


def run(options: argparse.Namespace) -> int:
    """Run learners under a cap on the number of policies, and without one.

    Learners that can plan for a cap do: batched ones take that number of batches, those that change every step a
    geometric grid, those that wait for growing determinants a fitting factor. Status 130 if Ctrl-C cut it short.
    """
    check_target(options.plot)
    sizes = HARD if options.world.startswith("lower-bound") else USUAL
    for name in sizes:
        if getattr(options, name) is None:
            setattr(options, name, sizes[name])
    facts: dict[str, Any] = of_runs(options) | {"horizon": options.horizon, "caps": options.caps, "name": options.world}
    names = list(all_learners()) if options.learners == ["all"] else options.learners
    learners = {find_learner(name).name: partial(_make, name, options) for name in names}
    world = make_world(options.world, dim=options.dim, arms=options.arms, noise=options.noise, horizon=options.horizon)
    if hasattr(world, "describe") and not options.json:
        print(f"{world.describe()}\n")
    found = tradeoff(learners, world, **facts)
    if options.json:
        print_json([run.summary() | {"cap": cap} for cap, runs in found.runs.items() for run in runs])
    elif found.runs:
        print(f"{tradeoff_table(found)}\n\nregret ± s.e. over the seeds (policies deployed, mean)")
        if found.resumed:
            print(f"{found.resumed} of these runs were taken from {options.out}")
    if options.plot is not None and found.runs:
        save_picture(draw_tradeoff(found, world), options, gap="")
    for (name, _), reason in found.skipped.items():
        print(f"rareswitch: {name} was not run: {reason}", file=sys.stderr)
    if found.interrupted:
        kept = f" and kept in {options.out}" if options.out else ""
        print(f"rareswitch: stopped; finished runs are shown{kept}.", file=sys.stderr)
        return INTERRUPTED
    return 0 if found.runs else 2


def _make(name: str, options: argparse.Namespace, cap: int | None, world: World, horizon: int, seed: int) -> Learner:
    """The learner, planned for the cap where it can be."""
    made, plan = (name, {}) if cap is None else budgeted(name, policies=cap, dim=world.dim, horizon=horizon)
    told = {"confidence": confidence_option(options.confidence)} if "confidence" in takes(made) else {}
    return learner_for(world, made, horizon=horizon, seed=seed, noise=options.noise, **told, **plan)
