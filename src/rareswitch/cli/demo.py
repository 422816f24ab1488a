"""``rareswitch demo``: the main job on built-in defaults."""

import argparse
from functools import partial
from typing import Any

from rareswitch.cli.options import add_command, add_options, save_picture

HORIZON, DIM, ARMS, SEEDS, NOISE = 30_000, 10, 20, 5, 0.5


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(commands, "demo", run)
    add_options(parser, plot={}, horizon={"default": HORIZON, "help": argparse.SUPPRESS})


def run(options: argparse.Namespace) -> int:
    """Compare learners by the number of policies they deploy and the regret that this costs."""
    from rareswitch.cli.simulate import make_for
    from rareswitch.design import GOptimal
    from rareswitch.env import make_world
    from rareswitch.report import check_target, draw_runs, run_table
    from rareswitch.sim import sweep

    check_target(options.plot)
    horizon = options.horizon
    print(
        f"{horizon:,} decisions between {ARMS} arms with {DIM} features, in a world with one long vector among short "
        f"ones.\nforesight plans its exploration, with 8 policies and no tuning; the paper's batched learners "
        f"change theirs a\nhandful of times; oful and linucb show what more changes would buy ({SEEDS} seeds, "
        f"σ = {NOISE}):\n"
    )
    design: dict[str, Any] = {"g_optimal": GOptimal()}
    learners = {
        "foresight": partial(make_for, "foresight", NOISE, {}),
        "batch-linucb-kw, 2 updates": partial(make_for, "batch-linucb-kw", NOISE, design | {"updates": 2}),
        "batch-linucb-kw": partial(make_for, "batch-linucb-kw", NOISE, design),
        "batch-linucb-dg, 3 updates": partial(make_for, "batch-linucb-dg", NOISE, design | {"updates": 3}),
        "batch-linucb-dg": partial(make_for, "batch-linucb-dg", NOISE, design),
        "batch-linucb-dg-certified": partial(make_for, "batch-linucb-dg-certified", NOISE, design),
        "oful": partial(make_for, "oful", NOISE, {}),
        "linucb": partial(make_for, "linucb", NOISE, {}),
        "linucb, tuned by hand": partial(make_for, "linucb", NOISE, {"confidence": 0.25}),
    }
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
        save_picture(draw_runs(found.runs), options)
    return 0
