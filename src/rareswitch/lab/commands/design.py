"""``rareswitch design``: certified optimal designs of the context sets in a file."""

import argparse
from typing import Any

import numpy as np

from rareswitch.cli.options import add_command, add_options, print_json, save_picture
from rareswitch.cli.settings import count_option
from rareswitch.cli.signing import add_key
from rareswitch.context_files import ContextFile, read_context_file
from rareswitch.contexts import ContextSets
from rareswitch.design import g_optimal
from rareswitch.errors import InputError
from rareswitch.lab.commands.distributional import add_distributional, check_distributional, run_distributional
from rareswitch.lab.report import design_data, design_text, draw_design
from rareswitch.lab.worlds import WORLDS, make_world
from rareswitch.report import check_target, figure
from rareswitch.validation import count_of, whole

#: Sizes of what is drawn from a world if none are given, and the most numbers in all sets, 1 GiB.
DRAWN = {"sets": 1000, "dim": 10, "arms": 20}
MOST_DRAWN = 1 << 27


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(commands, "design", run)
    parser.description = (
        "Weights on the arms of each context set such that no arm's leverage exceeds (1 + tol) times the rank of "
        "the set, with the certificate. With --distributional, one sampling policy for all sets, judged on others."
    )
    kinds = "one set (arms × features) or many (sets × arms × features, or a set-id column)"
    named = "or the name of a world that simulate has, from which sets are drawn"
    parser.add_argument("file", metavar="FILE", help=f".npy, .npz, .csv or .parquet: {kinds}; {named}")
    for name, text in (("sets", "sets to draw from a world"), ("dim", "its features"), ("arms", "its arms in a set")):
        parser.add_argument(f"--{name}", type=count_option, metavar="N", help=f"{text} (default {DRAWN[name]})")
    tol = "slack of the certificate (default 0.05; 1 is a factor of 2)"
    parser.add_argument("--tol", type=float, default=0.05, help=tol)
    column = "column that tells sets apart (default: set)"
    parser.add_argument("--set-column", default="set", metavar="NAME", help=column)
    parser.add_argument("--threads", type=int, default=1, help="threads that share the sets (default 1)")
    add_options(parser, json="print JSON in place of the table")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="how many sets to print in full (default 5)")
    add_options(parser, plot={})
    parser.add_argument("--plot-set", metavar="NAME", help="the set to draw (default: the first)")
    add_distributional(parser)
    add_key(parser, "sign the policy file with the key in this file")


def run(options: argparse.Namespace) -> int:
    """Read the file, design, print and draw. Status 1 if a certificate could not be met."""
    whole("show", options.show, low=0)
    check_target(options.plot)
    key = check_distributional(options)
    file = _sets(options)
    return run_distributional(options, file.sets, key) if options.distributional else _each_set(options, file)


def _each_set(options: argparse.Namespace, file: ContextFile) -> int:
    index, sets = _chosen(file, options.plot_set), file.sets
    design = g_optimal(sets.contexts, sets.available, tol=options.tol, threads=options.threads)
    if options.json:
        print_json(design_data(file, design))
    else:
        print(design_text(file, design, tol=options.tol, sets_shown=options.show))
    if options.plot is not None:
        made, (panel,) = figure()
        title = f"G-optimal design of set {file.names[index]}" if len(file.names) > 1 else "G-optimal design"
        draw_design(panel, sets.contexts[index], sets.available[index], design[index], file.features, title)
        save_picture(made, options)
    return 1 if len(design.failed) else 0


def _sets(options: argparse.Namespace) -> ContextFile:
    """Those of the file, or drawn from the world of that name."""
    sizes = {name: getattr(options, name) for name in DRAWN}
    if options.file not in WORLDS:
        for name, value in sizes.items():
            if value is not None:
                raise InputError(f"--{name} is for sets that are drawn from a world; got the file {options.file}.")
        return read_context_file(options.file, set_column=options.set_column)
    count, dim, arms = (DRAWN[name] if value is None else count_of(name, value) for name, value in sizes.items())
    world = make_world(options.file, dim=dim, arms=arms, horizon=max(2, count))
    count_of("sets", count, high=max(1, MOST_DRAWN // (world.dim * world.arms)))
    rounds = world.draw(count, seed=options.seed)
    available = np.ones(rounds.means.shape, dtype=np.bool_) if rounds.available is None else rounds.available
    return ContextFile(
        sets=ContextSets(rounds.contexts, available),
        names=tuple(map(str, range(count))),
        arm_counts=np.full(count, rounds.contexts.shape[1]),
        features=tuple(f"x{k}" for k in range(rounds.contexts.shape[2])),
    )


def _chosen(file: ContextFile, name: str | None) -> int:
    if name is None:
        return 0
    if name not in file.names:
        known = ", ".join(file.names[:10]) + (", …" if len(file.names) > 10 else "")
        raise InputError(f"--plot-set must name a set of the file; got {name!r}. The sets are {known}.")
    return file.names.index(name)
