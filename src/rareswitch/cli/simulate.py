"""``rareswitch simulate`` and ``rareswitch compare``: learners in simulated worlds."""

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rareswitch.design import GOptimal
from rareswitch.engine import make_engine
from rareswitch.env import WORLDS, NamedWorld, World
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.learner import LEARNERS, Learner, find_learner, recommend
from rareswitch.report.figures import check_target, save
from rareswitch.report.run_plot import draw_runs
from rareswitch.report.run_table import run_table
from rareswitch.sim import Contest, LearnerFactory, Sweep, WorldFactory, sweep
from rareswitch.sim.simulate import check_length
from rareswitch.sim.suiting import learner_for
from rareswitch.validation import whole

INTERRUPTED = 130
SHOWN = (
    "foresight",
    "batch-linucb-kw",
    "batch-linucb-dg-certified",
    "rarely-switch-suplinucb",
    "oful",
    "linucb",
    "thompson",
)
"""What ``compare`` runs if no learner is named."""
OPTIONS = {
    "--updates": "updates",
    "--batches": "batches",
    "--growth": "growth",
    "--scale": "scale",
    "--design-tol": "g_optimal",
}
"""Options that only some learners take, and the setting that each gives."""


def add_parser(commands: Any) -> None:
    """Add the two commands and their options."""
    learners = "learners:\n" + "\n".join(f"  {name:26} {entry.text}" for name, entry in LEARNERS.items())
    worlds = "worlds:\n" + "\n".join(f"  {name:26} {text}" for name, (text, *_) in WORLDS.items())
    for name, text, several in (
        ("simulate", "run one learner in a simulated world", False),
        ("compare", "run several learners in simulated worlds", True),
    ):
        parser = commands.add_parser(
            name,
            help=text,
            description=text.capitalize() + ".",
            epilog=f"{learners}\n\n{worlds}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if several:
            parser.add_argument(
                "--learners",
                nargs="+",
                default=list(SHOWN),
                metavar="NAME",
                help="which ones, or 'all' (default: a few)",
            )
            parser.add_argument("--envs", nargs="+", default=["gaussian"], metavar="WORLD", help="default: gaussian")
            parser.add_argument(
                "--horizons", nargs="+", type=count_option, default=[100_000], metavar="T", help="default: 100000"
            )
        else:
            parser.add_argument("--learner", required=True, metavar="NAME", help="see below")
            parser.add_argument("--env", default="gaussian", metavar="WORLD", help="see below (default gaussian)")
            parser.add_argument("--horizon", type=count_option, default=100_000, metavar="T", help="default: 100000")
        parser.add_argument("--dim", type=int, default=10, help="features of an arm (default 10)")
        parser.add_argument("--arms", type=int, default=20, help="arms in a set (default 20)")
        parser.add_argument("--seeds", type=int, default=4, help="how many runs of each (default 4)")
        parser.add_argument("--first-seed", type=int, default=0, help="the seeds are this one and those that follow")
        parser.add_argument(
            "--noise", type=float, default=0.5, help="σ of the rewards, where the world lets one choose (default 0.5)"
        )
        parser.add_argument("--delta", type=float, default=0.05, help="failure probability (default 0.05)")
        parser.add_argument(
            "--confidence", default="tight", help="'paper', 'tight' or a multiplier of the widths (default tight)"
        )
        parser.add_argument("--design-tol", type=float, help="slack of G-optimal designs (1 is the paper's factor 2)")
        parser.add_argument("--updates", type=int, help="policies that foresight deploys (default 8)")
        parser.add_argument("--batches", type=int, help="number of batches (default: the algorithm's own)")
        parser.add_argument("--growth", type=float, help="C, by which determinants grow between policies (default 2)")
        parser.add_argument("--scale", type=float, help="of Thompson sampling's draws (default 1, the posterior's)")
        parser.add_argument("--cap", type=int, help="the most policies a run may deploy; the last one stays to the end")
        add_engine(parser)
        parser.add_argument("--out", metavar="PARQUET", help="keep the runs there; what it holds is not run again")
        parser.add_argument("--plot", metavar="PNG", help="write a picture (needs rareswitch[plot])")
        parser.add_argument("--json", action="store_true", help="print a list of runs in place of the table")
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        parser.set_defaults(run=run, several=several)


def run(options: argparse.Namespace) -> int:
    """Run all combinations, print a table or JSON, draw. Status 130 if Ctrl-C cut it short."""
    names = options.learners if options.several else [options.learner]
    names = list(LEARNERS) if names == ["all"] else names
    places = options.envs if options.several else [options.env]
    horizons = options.horizons if options.several else [options.horizon]
    if options.plot is not None:
        check_target(options.plot)
    for horizon in horizons:
        whole("horizon", horizon, low=2)
    whole("dim", options.dim)
    whole("arms", options.arms)
    whole("seeds", options.seeds)
    if options.cap is not None:
        whole("cap", options.cap)
    learners = {name: _factory(name, options) for name in names}
    _check_options(names, options)
    worlds: dict[str, WorldFactory] = {
        name: NamedWorld(name=name, dim=options.dim, arms=options.arms, noise=options.noise) for name in places
    }
    _check_cases(learners, worlds, horizons)
    here = {name: make(max(horizons)) for name, make in worlds.items()}
    if not options.json:
        _advise(names, here, max(horizons), options.design_tol)
    with make_engine(options.engine) as engine:
        found = sweep(
            learners,
            worlds,
            horizons=horizons,
            seeds=range(options.first_seed, options.first_seed + options.seeds),
            cap=options.cap,
            path=options.out,
            engine=engine,
            quiet=options.quiet,
        )
    return _report(found, options)


def _report(found: Sweep, options: argparse.Namespace) -> int:
    if options.json:
        print(json.dumps([run.summary() for run in found.runs], allow_nan=False))
    elif found.runs:
        print(run_table(found.runs))
        if found.resumed and options.out:
            print(f"\n{found.resumed} of these runs were taken from {options.out}")
    for (name, place), reason in found.skipped.items():
        print(f"rareswitch: {name} was not run in {place}: {reason}", file=sys.stderr)
    if options.plot is not None and found.runs:
        save(draw_runs(found.runs), options.plot)
        if not options.json:
            print(f"\npicture written to {options.plot}")
    return status(found, options.out)


def status(found: Sweep | Contest, out: str | None) -> int:
    """What a command exits with; after Ctrl-C it says what is kept."""
    if found.interrupted:
        kept = f"; they are in {out}" if out else ""
        print(f"rareswitch: stopped after {len(found.runs)} finished runs{kept}.", file=sys.stderr)
        return INTERRUPTED
    return 0 if found.runs else 2


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes a learner with the settings of the command line, here or in another process."""

    name: str
    settings: dict[str, Any]
    noise: float

    def __call__(self, world: World, horizon: int, seed: int) -> Learner:
        return learner_for(world, self.name, horizon=horizon, seed=seed, noise=self.noise, **self.settings)


def _factory(name: str, options: argparse.Namespace) -> LearnerFactory:
    takes = find_learner(name).takes
    given: dict[str, Any] = {
        "updates": options.updates,
        "batches": options.batches,
        "growth": options.growth,
        "scale": options.scale,
        "g_optimal": None if options.design_tol is None else GOptimal(tol=options.design_tol),
        "confidence": confidence_option(options.confidence),
        "delta": options.delta,
    }
    settings = {key: value for key, value in given.items() if key in takes and value is not None}
    return Maker(name=name, settings=settings, noise=options.noise)


def _check_options(names: list[str], options: argparse.Namespace) -> None:
    """Refuse an option that none of the learners would heed."""
    for option, setting in OPTIONS.items():
        if getattr(options, option[2:].replace("-", "_")) is None or any(setting in LEARNERS[n].takes for n in names):
            continue
        takers = ", ".join(name for name, entry in LEARNERS.items() if setting in entry.takes)
        raise ParameterError(f"{option} means nothing to {', '.join(names)}; it is for {takers}.")


def _check_cases(learners: dict[str, LearnerFactory], worlds: dict[str, WorldFactory], horizons: list[int]) -> None:
    """Make every world and learner once, so that what cannot be made is an error before any work is done."""
    for make_here in worlds.values():
        for horizon in horizons:
            here = make_here(horizon)
            check_length(here, horizon)
            for make in learners.values():
                with suppress(UnsuitableError):
                    make(here, horizon, 0)


def _advise(names: list[str], worlds: dict[str, World], horizon: int, design_tol: float | None) -> None:
    """Say what a world is like, where learning a design cannot pay, and where two learners are one."""
    notes = []
    design_tol = 1.0 if design_tol is None else design_tol
    for place, world in worlds.items():
        if hasattr(world, "describe"):
            notes.append(f"note on {place}: {world.describe()}")
        advice = recommend(dim=world.dim, arms=world.arms, horizon=horizon)
        if advice.proven == "batch-linucb-kw" and any("dg" in name for name in names):
            notes.append(f"note on {place}: {advice.proven_reason} Learning a design (dg) cannot improve the bound.")
        if "rarely-switch-suplinucb" in names and horizon < world.dim**3:
            notes.append(
                f"note on {place}: T = {horizon} is below d³ = {world.dim**3}, where the accuracy that layer 0 of "
                "rarely-switch-suplinucb asks for exceeds the rewards: its bound says nothing yet."
            )
        if design_tol >= 1.0 and world.arms <= (1.0 + design_tol) * world.dim and "batch-linucb-kw" in names:
            notes.append(
                f"note on {place}: K = {world.arms} is at most {1.0 + design_tol:g}·d, where the design at factor "
                f"{1.0 + design_tol:g} is uniform and batch-linucb-kw plays as batch-linucb; see --design-tol."
            )
    if notes:
        print("\n".join(notes) + "\n")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where the work runs."""
    parser.add_argument(
        "--engine",
        default="serial",
        help="where the work runs: serial, processes[:n], dask[:n] on this machine or dask:address (default serial)",
    )


def confidence_option(text: str) -> Any:
    """A confidence mode, or a number."""
    try:
        return float(text)
    except ValueError:
        return text


def count_option(text: str) -> int:
    """A whole number, also as 1e5 or 100_000."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not abs(value) <= 1e12 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at most 1e12")
    return int(value)
