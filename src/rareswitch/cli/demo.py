"""``rareswitch demo``: the main job on built-in defaults."""

import argparse
from typing import Any

from rareswitch.design import GOptimal
from rareswitch.env import World, make_world
from rareswitch.learner import Learner, make_learner
from rareswitch.report.figures import check_target, save
from rareswitch.report.run_plot import draw_runs
from rareswitch.report.run_table import run_table
from rareswitch.sim import LearnerFactory, sweep

HORIZON, DIM, ARMS, SEEDS, NOISE = 50_000, 10, 20, 3, 0.5


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("demo", help="show what rareswitch does, on built-in defaults")
    parser.add_argument("--plot", metavar="PNG", help="write a picture (needs rareswitch[plot])")
    parser.add_argument("--horizon", type=int, default=HORIZON, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare learners by the number of policies they deploy and the regret that this costs."""
    if options.plot is not None:
        check_target(options.plot)
    horizon = options.horizon
    print(
        f"{horizon:,} decisions between {ARMS} arms with {DIM} features, in a world with one long vector among short "
        f"ones.\nforesight plans its exploration, with 8 policies and nothing told; the paper's batched learners "
        f"change theirs a\nhandful of times; oful and linucb show what more changes would buy ({SEEDS} seeds, "
        f"σ = {NOISE}):\n"
    )
    names = {
        "foresight": ("foresight", None),
        "batch-linucb-kw, 2 updates": ("batch-linucb-kw", 2),
        "batch-linucb-kw": ("batch-linucb-kw", None),
        "batch-linucb-dg, 3 updates": ("batch-linucb-dg", 3),
        "batch-linucb-dg": ("batch-linucb-dg", None),
        "batch-linucb-dg-certified": ("batch-linucb-dg-certified", None),
        "oful": ("oful", None),
        "linucb": ("linucb", None),
        "linucb, tuned by hand": ("linucb", 0.25),
    }
    learners = {label: _factory(name, setting) for label, (name, setting) in names.items()}
    worlds = {"one-big": make_world("one-big", dim=DIM, arms=ARMS, noise=NOISE)}
    found = sweep(learners, worlds, horizons=[horizon], seeds=range(SEEDS))
    if found.interrupted:
        raise KeyboardInterrupt
    print(run_table(found.runs))
    print(
        "\nkw explores each set by its own G-optimal design; dg learns at each update how to explore sets like those "
        "it saw;\ncertified does so by a design with a proof of how good it is. oful changes when the determinant of "
        "its data has\ndoubled, linucb at every step; all of them with intervals that are proved, but for the one that "
        "was tuned by hand\nfor this world. Every policy is frozen, with exact propensities."
    )
    if options.plot is not None:
        save(draw_runs(found.runs), options.plot)
        print(f"\npicture written to {options.plot}")
    return 0


def _factory(name: str, setting: float | None) -> LearnerFactory:
    """A learner with its one setting: the number of batches, or the multiplier of the widths."""
    own: dict[str, Any] = {} if name == "foresight" else {"noise": NOISE}
    if name.startswith("batch"):
        own |= {"g_optimal": GOptimal()} | ({} if setting is None else {"batches": int(setting)})
    elif setting is not None:
        own |= {"confidence": setting}

    def make(world: World, horizon: int, seed: int) -> Learner:
        keyed = {"seed": seed} if name == "foresight" else {}
        return make_learner(name, dim=world.dim, arms=world.arms, horizon=horizon, **own, **keyed)

    return make
