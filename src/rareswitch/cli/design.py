"""``rareswitch design``: certified optimal designs of the context sets in a file."""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.cli.options import add_command, add_options, print_json, save_picture
from rareswitch.cli.signing import add_key, given_key
from rareswitch.context_files import ContextFile, read_context_file
from rareswitch.contexts import ContextSets
from rareswitch.design import CertifiedDesign, GOptimal, Uniform, frank_wolfe_design, g_optimal
from rareswitch.errors import InputError
from rareswitch.policy import Key, Policy, check_signs, save_policy
from rareswitch.report import (
    Exploration,
    check_target,
    design_data,
    design_text,
    draw_design,
    draw_exploration,
    exploration_table,
    explore,
    figure,
)
from rareswitch.rng import uniforms
from rareswitch.validation import whole


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(commands, "design", run)
    parser.description = (
        "Weights on the arms of each context set such that no arm's leverage exceeds (1 + tol) times the rank of "
        "the set, with the certificate. With --distributional, one sampling policy for all sets, judged on others."
    )
    kinds = "one set (arms × features) or many (sets × arms × features, or a set-id column)"
    parser.add_argument("file", metavar="FILE", help=f".npy, .npz, .csv or .parquet: {kinds}")
    tol = "slack of the certificate (default 0.05; 1 is a factor of 2)"
    parser.add_argument("--tol", type=float, default=0.05, help=tol)
    column = "column that tells sets apart (default: set)"
    parser.add_argument("--set-column", default="set", metavar="NAME", help=column)
    parser.add_argument("--threads", type=int, default=1, help="threads that share the sets (default 1)")
    add_options(parser, json="print JSON in place of the table")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="how many sets to print in full (default 5)")
    add_options(parser, plot={})
    parser.add_argument("--plot-set", metavar="NAME", help="the set to draw (default: the first)")
    group = parser.add_argument_group("distributional design")
    group.add_argument("--distributional", action="store_true", help="learn one sampling policy for all sets")
    group.add_argument("--floor", type=float, default=0.2, help="least share of G-optimal play (default 0.2)")
    lam = "λ (default: 1 / number of sets learned from)"
    group.add_argument("--regularization", type=float, metavar="LAMBDA", help=lam)
    group.add_argument("--seed", type=int, default=0, help="seed of the split into halves (default 0)")
    group.add_argument("--out", metavar="FILE", help="keep the policy there, as a fresh policy file")
    add_key(parser, "sign the policy file with the key in this file")


def run(options: argparse.Namespace) -> int:
    """Read the file, design, print and draw. Status 1 if a certificate could not be met."""
    whole("show", options.show, low=0)
    check_target(options.plot)
    key = _key_for_policy(options)
    file = read_context_file(options.file, set_column=options.set_column)
    return _distributional(options, file, key) if options.distributional else _each_set(options, file)


def _key_for_policy(options: argparse.Namespace) -> Key | None:
    """The key to sign with; what can be known beforehand to go wrong with the policy file is refused."""
    key = given_key(options)
    if key is not None and options.out is None:
        raise InputError("a key signs the policy file: say where it shall be, with --out FILE.")
    if options.out is not None and not options.distributional:
        raise InputError("--out keeps the policy that is learned with --distributional; add it, or leave --out out.")
    if options.out is not None and Path(options.out).exists():
        raise InputError(f"{options.out}: exists already, and a policy is never overwritten. Name another file.")
    if key is not None:
        check_signs(key)
    return key


def _each_set(options: argparse.Namespace, file: ContextFile) -> int:
    index, sets = _chosen(file, options.plot_set), file.sets
    design = g_optimal(sets.contexts, sets.alive, tol=options.tol, threads=options.threads)
    if options.json:
        print_json(design_data(file, design))
    else:
        print(design_text(file, design, tol=options.tol, sets_shown=options.show))
    if options.plot is not None:
        made, (panel,) = figure()
        title = f"G-optimal design of set {file.names[index]}" if len(file.names) > 1 else "G-optimal design"
        draw_design(panel, sets.contexts[index], sets.alive[index], design[index], file.features, title)
        save_picture(made, options)
    return 1 if len(design.failed) else 0


def _distributional(options: argparse.Namespace, file: ContextFile, key: Key | None) -> int:
    learned_from, held_out = _halves(file.sets, options.seed)
    lam = 1.0 / len(learned_from) if options.regularization is None else options.regularization
    optimal = GOptimal(tol=options.tol)
    settings = {"regularization": lam, "floor": options.floor, "tol": options.tol, "g_optimal": optimal}
    found = frank_wolfe_design(learned_from.contexts, learned_from.alive, **settings)
    samplers = {"uniform": Uniform(), "G-optimal of each set": optimal, "certified mixture": found.policy}
    compared = explore(samplers, held_out, regularization=lam)
    sizes = {"regularization": lam, "learned_from": len(learned_from), "held_out": len(held_out)}
    if options.out is not None:
        policy = Policy(dim=file.sets.dim, sampler=found.policy)
        save_policy(policy, options.out, key=key)
    if options.json:
        print_json(_policy_data(found, compared, sizes))
    else:
        print(_policy_text(found, compared, sizes, file.sets.dim))
        if options.out is not None:
            print(f"\npolicy {policy.id[:12]}… written to {options.out}{' and signed' if key is not None else ''}")
    if options.plot is not None:
        made, (panel,) = figure()
        draw_exploration(panel, compared, file.sets.dim, "Exploration of held-out sets")
        save_picture(made, options)
    return 0


def _halves(sets: ContextSets, seed: int) -> tuple[ContextSets, ContextSets]:
    if len(sets) < 2:
        rule = "--distributional needs at least two context sets, half to learn from and half to judge by"
        raise InputError(f"{rule}; got 1. Without it the command designs that one set.")
    order = np.argsort(uniforms(seed, "halves", 0, len(sets))[:, 0], kind="stable")
    half = math.ceil(len(sets) / 2)
    return sets[np.sort(order[:half])], sets[np.sort(order[half:])]


def _policy_text(found: CertifiedDesign, compared: list[Exploration], sizes: dict[str, Any], dim: int) -> str:
    policy = found.policy
    lines = [
        f"certified mixture, learned from {sizes['learned_from']} sets (λ = {sizes['regularization']:.3g}):",
        f"  {policy.g_optimal_share:6.1%}  G-optimal design of the set at hand",
    ]
    for weight, matrix in zip((1.0 - policy.g_optimal_share) * policy.weights, policy.matrices, strict=True):
        values = np.linalg.eigvalsh(matrix)
        ends = f"from {values[0]:.3g} to {values[-1]:.3g}"
        lines.append(f"  {weight:6.1%}  arm with the largest xᵀVx, eigenvalues of V {ends}")
    bound = f"at most {found.bound:.3f} = (1 + tol)·d/(1 - floor)"
    lines.append(f"certificate: V = {found.variation:.3f} on those sets, {bound}")
    lines.append(f"\non {sizes['held_out']} held-out sets (no policy has V/d below 1 as λ → 0):")
    return "\n".join([*lines, exploration_table(compared, dim)])


def _policy_data(found: CertifiedDesign, compared: list[Exploration], sizes: dict[str, Any]) -> dict[str, Any]:
    policy = found.policy
    shares = {"g_optimal_share": policy.g_optimal_share, "g_optimal_tol": policy.g_optimal.tol}
    mixture = shares | {"weights": policy.weights.tolist(), "matrices": policy.matrices.tolist()}
    rows = [{"sampler": e.name, "variation": e.variation, "deviation": e.deviation} for e in compared]
    certificate = {"variation": found.variation, "bound": found.bound}
    return {"policy": mixture} | sizes | {"certificate": certificate, "on_held_out": rows}


def _chosen(file: ContextFile, name: str | None) -> int:
    if name is None:
        return 0
    if name not in file.names:
        known = ", ".join(file.names[:10]) + (", …" if len(file.names) > 10 else "")
        raise InputError(f"--plot-set must name a set of the file; got {name!r}. The sets are {known}.")
    return file.names.index(name)
