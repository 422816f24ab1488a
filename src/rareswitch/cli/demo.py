"""``rareswitch demo``: the main job on built-in data."""

import argparse
import time
from typing import Any

import numpy as np

from rareswitch.context_files import ContextFile
from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler, Uniform, core_learning, frank_wolfe_design, g_optimal
from rareswitch.distributions import OneBig
from rareswitch.report import design_plot
from rareswitch.report.design_table import design_text
from rareswitch.report.exploration import exploration_table, explore
from rareswitch.rng import normals


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("demo", help="show what rareswitch does on built-in data")
    parser.add_argument("--plot", metavar="PNG", help="write a picture (needs rareswitch[plot])")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """One certified design, a hundred thousand of them, and one policy learned for a whole distribution."""
    print("1. Which arms to sample so that every arm's value is known equally well?\n")
    points = normals(5, "demo", 0, 24, 2) * np.array([0.45, 0.2]) @ np.array([[0.9, 0.5], [-0.5, 0.9]])
    file = ContextFile(
        sets=ContextSets(points[None], np.ones((1, 24), dtype=np.bool_)),
        names=("demo",),
        arm_counts=np.array([24]),
        features=("x1", "x2"),
    )
    design = g_optimal(file.sets.contexts, tol=1e-3)
    print(design_text(file, design, tol=1e-3))

    distribution = OneBig(dim=10, arms=20)
    many = distribution.draw(100_000, seed=1)
    start = time.perf_counter()
    designs = g_optimal(many.contexts, many.alive)
    seconds = time.perf_counter() - start
    print(
        f"\n2. The same for {len(many):,} sets of 20 arms in 10 dimensions: {seconds:.2f} s on one core, "
        f"{len(many) / seconds:,.0f} designs a second, {len(many) - len(designs.failed):,} certified."
    )

    print("\n3. One sampling policy for a whole distribution of sets (one long vector among short ones, d = 10),")
    print("   learned from 1000 sets and judged on 4000 others:\n")
    sample, fresh, lam = many[:1000], distribution.draw(4000, seed=2), 1e-4
    core = core_learning(sample.contexts, sample.alive, regularization=lam)
    certified = frank_wolfe_design(sample.contexts, sample.alive, regularization=lam)
    samplers: dict[str, Sampler] = {
        "uniform": Uniform(),
        "G-optimal of each set": GOptimal(),
        "CoreLearning (the paper's)": core.policy,
        "certified mixture": certified.policy,
    }
    compared = explore(samplers, fresh, regularization=lam)
    print(exploration_table(compared, distribution.dim))
    if options.plot:
        made, (left, right) = design_plot.figure(2)
        design_plot.draw_design(left, points, file.sets.alive[0], design[0], "A certified design")
        design_plot.draw_exploration(right, compared, distribution.dim, "One policy for a whole distribution")
        design_plot.save(made, options.plot)
        print(f"\npicture written to {options.plot}")
    return 0
