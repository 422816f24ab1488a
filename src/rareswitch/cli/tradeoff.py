"""``rareswitch tradeoff``: what is lost with fewer policies."""

import argparse
import json
import sys
from typing import Any

from rareswitch.cli.simulate import INTERRUPTED, confidence_option, count_option
from rareswitch.env import World, make_world
from rareswitch.learner import LEARNERS as KNOWN
from rareswitch.learner import Learner, budget_settings, find_learner
from rareswitch.report.figures import check_target, save
from rareswitch.report.tradeoff import draw_tradeoff, tradeoff_table
from rareswitch.sim import CappedFactory, tradeoff
from rareswitch.sim.suiting import learner_for
from rareswitch.validation import whole

SHOWN = ("oful", "rarely-switch-suplinucb", "linucb", "thompson")
CAPS = (1, 2, 4, 8, 16, 32, 64)


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "tradeoff",
        help="what is lost with fewer policies: regret under a cap on their number",
        description=(
            "Run learners under a cap on the number of policies, and without one. Learners that can plan for a cap are "
            "told of it: batched ones get so many batches, those that change every step a geometric grid, those that "
            "wait for growing determinants a fitting factor."
        ),
    )
    parser.add_argument("--learners", nargs="+", default=list(SHOWN), metavar="NAME", help="see rareswitch learners")
    parser.add_argument("--env", default="lower-bound", metavar="WORLD", help="default: the paper's hard instances")
    parser.add_argument("--caps", nargs="+", type=int, default=list(CAPS), metavar="M", help="default: 1 2 4 … 64")
    parser.add_argument("--horizon", type=count_option, default=100_000, metavar="T", help="default: 100000")
    parser.add_argument("--dim", type=int, default=2, help="features of an arm (default 2)")
    parser.add_argument("--arms", type=int, default=2, help="arms in a set (default 2)")
    parser.add_argument(
        "--seeds", type=int, default=16, help="how many runs of each; each has its own signs (default 16)"
    )
    parser.add_argument("--first-seed", type=int, default=0, help="the seeds are this one and those that follow")
    parser.add_argument("--noise", type=float, default=1.0, help="σ of the rewards (default 1, the paper's)")
    parser.add_argument(
        "--confidence", default="tight", help="'paper', 'tight' or a multiplier of the widths (default tight)"
    )
    parser.add_argument("--out", metavar="PARQUET", help="keep the runs there; what it holds is not run again")
    parser.add_argument("--plot", metavar="PNG", help="write a picture (needs rareswitch[plot])")
    parser.add_argument("--json", action="store_true", help="print a list of runs in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run all caps, print a table or JSON, draw. Status 130 if Ctrl-C cut it short."""
    if options.plot is not None:
        check_target(options.plot)
    whole("horizon", options.horizon, low=2)
    whole("seeds", options.seeds)
    names = list(KNOWN) if options.learners == ["all"] else options.learners
    learners = {name: _factory(name, options) for name in names}
    world = make_world(options.env, dim=options.dim, arms=options.arms, noise=options.noise, horizon=options.horizon)
    if hasattr(world, "describe") and not options.json:
        print(f"{world.describe()}\n")
    found = tradeoff(
        learners,
        world,
        horizon=options.horizon,
        caps=options.caps,
        seeds=range(options.first_seed, options.first_seed + options.seeds),
        name=options.env,
        path=options.out,
        quiet=options.quiet,
    )
    if options.json:
        rows = [run.summary() | {"cap": cap} for cap, runs in found.runs.items() for run in runs]
        print(json.dumps(rows, allow_nan=False))
    elif found.runs:
        print(tradeoff_table(found))
        print("\nregret ± s.e. over the seeds (policies deployed, mean)")
        if found.resumed:
            print(f"{found.resumed} of these runs were taken from {options.out}")
    if options.plot is not None and found.runs:
        save(draw_tradeoff(found, world), options.plot)
        if not options.json:
            print(f"picture written to {options.plot}")
    for (name, _), reason in found.skipped.items():
        print(f"rareswitch: {name} was not run: {reason}", file=sys.stderr)
    if found.interrupted:
        kept = f" and kept in {options.out}" if options.out else ""
        print(f"rareswitch: stopped; finished runs are shown{kept}.", file=sys.stderr)
        return INTERRUPTED
    return 0 if found.runs else 2


def _factory(name: str, options: argparse.Namespace) -> CappedFactory:
    takes = find_learner(name).takes

    def make(cap: int | None, world: World, horizon: int, seed: int) -> Learner:
        plan = {} if cap is None else budget_settings(name, updates=cap, dim=world.dim, horizon=horizon)
        told = {"confidence": confidence_option(options.confidence)} if "confidence" in takes else {}
        return learner_for(world, name, horizon=horizon, seed=seed, noise=options.noise, **told, **plan)

    return make
