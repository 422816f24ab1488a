"""``rareswitch design``: certified optimal designs of the context sets in a file."""

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rareswitch.cli.laboratory import DRAWN, METHODS
from rareswitch.cli.options import given_key
from rareswitch.cli.output import Facts, print_json, save_picture
from rareswitch.core import ContextSets, uniforms, whole
from rareswitch.design import (
    GOptimal,
    MixedArgmax,
    MixedSoftmax,
    StagedDesign,
    Uniform,
    core_learning,
    frank_wolfe_design,
    g_optimal,
    staged_design,
)
from rareswitch.errors import InputError, several
from rareswitch.lab.context_files import ContextFile, read_context_file
from rareswitch.lab.report.design import (
    design_data,
    design_text,
    draw_design,
    draw_exploration,
    exploration_table,
    explore,
)
from rareswitch.lab.worlds import WORLDS, make_world
from rareswitch.policy import Key, Policy, check_signs, save_policy
from rareswitch.report import check_target, figure

Mixture = MixedArgmax | MixedSoftmax


class LearnedDesign(NamedTuple):
    """A sampling policy and its properties, as text and for ``--json``."""

    policy: Mixture
    lines: list[str]
    facts: dict[str, Facts]


def certified(sets: ContextSets, lam: float, options: argparse.Namespace) -> LearnedDesign:
    """The Frank-Wolfe design with its certificate on these sets."""
    g_optimal_share = {} if options.g_optimal_share is None else {"g_optimal_share": options.g_optimal_share}
    design = frank_wolfe_design(
        sets.contexts,
        sets.available,
        regularization=lam,
        tol=options.tol,
        g_optimal=GOptimal(tol=options.tol),
        **g_optimal_share,
    )
    bound = f"at most {design.bound:.3f} = (1 + tol)·d/(1 − G-optimal share)"
    lines = [f"certificate: V = {design.variation:.3f} on the training sets, {bound}"]
    return LearnedDesign(design.policy, lines, {"certificate": {"variation": design.variation, "bound": design.bound}})


def mixed(
    form: Literal["argmax", "softmax"], sets: ContextSets, lam: float, options: argparse.Namespace
) -> LearnedDesign:
    """Algorithm 2, with argmax (Theorem 3) or softmax policies (Theorem 4)."""
    optimal = GOptimal(tol=options.tol)
    design = staged_design(sets.contexts, sets.available, regularization=lam, form=form, g_optimal=optimal)
    return _staged(design, sets.dim)


def core(sets: ContextSets, lam: float, options: argparse.Namespace) -> LearnedDesign:
    """Algorithm 3: the mixed-softmax policy of the core, which Algorithm 4 identifies."""
    power = {} if options.power is None else {"power": options.power}
    optimal = GOptimal(tol=options.tol)
    design = core_learning(sets.contexts, sets.available, regularization=lam, g_optimal=optimal, **power)
    learned, reduced = _staged(design, sets.dim), design.core
    assert reduced is not None  # as it was learned from a core
    after = several(reduced.iterations, "iteration")
    text = f"core: {len(reduced.indices)} of {len(sets)} sets after {after}, leverage at most d^c"
    facts = {"size": len(reduced.indices), "of": len(sets), "iterations": reduced.iterations}
    return learned._replace(
        lines=[f"{text} = {reduced.threshold:.4g}", *learned.lines], facts=learned.facts | {"core": facts}
    )


def _staged(design: StagedDesign, dim: int) -> LearnedDesign:
    count, atoms = len(design.stage_lengths), len(design.atom_stages)
    most = math.floor(dim * math.log2(4 * dim + 1) + 1)
    lines = [f"stages: {count} (at most {most} = d log(4d + 1) + 1), {atoms} of them long enough to be played"]
    facts = {"count": count, "most": most, "played": atoms, "blocks": design.blocks}
    return LearnedDesign(design.policy, lines, {"stages": facts})


#: What learns the policy, in the order of METHODS.
LEARN: tuple[Callable[[ContextSets, float, argparse.Namespace], LearnedDesign], ...] = (
    certified,
    partial(mixed, "argmax"),
    partial(mixed, "softmax"),
    core,
)
#: Options that one method heeds.
OWN = {"g_optimal_share": "certified", "power": "core"}


def check_distributional(options: argparse.Namespace) -> Key | None:
    """The key to sign the policy file with; options that do not fit each other are refused."""
    key = given_key(options)
    if key is not None and options.out is None:
        raise InputError("--key-file and --key sign the policy file, and there is none: give --out FILE too.")
    if options.out is not None and not options.distributional:
        raise InputError(
            "--out is for the policy that --distributional learns: add --distributional, or leave --out out."
        )
    if options.out is not None and Path(options.out).exists():
        raise InputError(f"{options.out}: exists already, and a policy is never overwritten. Name another file.")
    if options.method is not None and not options.distributional:
        raise InputError("--method is for --distributional: add that, or leave --method out.")
    chosen = options.method or "certified"
    for name, method in OWN.items():
        if getattr(options, name) is not None and chosen != method:
            raise InputError(
                f"--{name.replace('_', '-')} is for --method {method}; got --method {chosen}. Leave one of them out."
            )
    if key is not None:
        check_signs(key)
    return key


def run_distributional(options: argparse.Namespace, sets: ContextSets, key: Key | None) -> int:
    """Learn from half of the sets, judge on both halves, print and draw."""
    learned_from, held_out = split_sets(sets, options.seed)
    lam = 1.0 / len(learned_from) if options.regularization is None else options.regularization
    method = options.method or "certified"
    learned = LEARN[METHODS.index(method)](learned_from, lam, options)
    title = f"{method} mixture" if method == "certified" else method
    samplers = {"uniform": Uniform(), "G-optimal of each set": GOptimal(tol=options.tol), title: learned.policy}
    inside, outside = (explore(samplers, half, regularization=lam) for half in (learned_from, held_out))
    sizes = {"method": method, "regularization": lam, "learned_from": len(learned_from), "held_out": len(held_out)}
    if options.out is not None:
        policy = Policy(dim=sets.dim, sampler=learned.policy)
        save_policy(policy, options.out, key=key)
    if options.json:
        rows = {
            name: [{"sampler": e.name, "variation": e.variation, "deviation": e.deviation} for e in half]
            for name, half in (("on_learned_from", inside), ("on_held_out", outside))
        }
        print_json({"policy": _mixture(learned.policy)} | sizes | learned.facts | rows)
    else:
        lines = [f"{title}, learned from {len(learned_from)} sets (λ = {lam:.3g}):"]
        lines += [*_atoms(learned.policy, options.show), *learned.lines, ""]
        lines.append(f"in: training sets; out: {len(held_out)} held-out sets (no V/d is below 1 as λ → 0)")
        print("\n".join([*lines, exploration_table(inside, outside, sets.dim)]))
        if options.out is not None:
            print(f"\npolicy {policy.id[:12]}… written to {options.out}{' and signed' if key is not None else ''}")
    if options.plot is not None:
        drawing, (panel,) = figure()
        draw_exploration(panel, outside, sets.dim, "Exploration of held-out sets")
        save_picture(drawing, options)
    return 0


def split_sets(sets: ContextSets, seed: int) -> tuple[ContextSets, ContextSets]:
    """Sets to learn from and sets to judge by."""
    if len(sets) < 2:
        rule = "--distributional needs at least two context sets, half for training and half held out"
        raise InputError(f"{rule}; got 1. Leave --distributional out for the design of that one set.")
    order = np.argsort(uniforms(seed, "halves", 0, len(sets))[:, 0], kind="stable")
    half = math.ceil(len(sets) / 2)
    return sets[np.sort(order[:half])], sets[np.sort(order[half:])]


def _atoms(policy: Mixture, shown: int) -> list[str]:
    """A line for each part of the mixture, the first ``shown`` of them."""
    lines = [f"  {policy.g_optimal_share:6.1%}  G-optimal design of the set at hand"]
    rule = "arm with the largest xᵀVx" if isinstance(policy, MixedArgmax) else "softmax of xᵀVx"
    parts = list(zip((1.0 - policy.g_optimal_share) * policy.weights, policy.matrices, strict=True))
    for weight, matrix in parts[:shown]:
        values = np.linalg.eigvalsh(matrix)
        lines.append(f"  {weight:6.1%}  {rule}, eigenvalues of V from {values[0]:.3g} to {values[-1]:.3g}")
    return lines if len(parts) <= shown else [*lines, f"  … and {len(parts) - shown} more"]


def _mixture(policy: Mixture) -> Facts:
    shares = {"g_optimal_share": policy.g_optimal_share, "g_optimal_tol": policy.g_optimal.tol}
    exponent = {"exponent": policy.exponent} if isinstance(policy, MixedSoftmax) else {}
    return shares | exponent | {"weights": policy.weights.tolist(), "matrices": policy.matrices.tolist()}


#: The most numbers in all sets that are drawn, 1 GiB.
MOST_DRAWN = 1 << 27


def run_design(options: argparse.Namespace) -> int:
    """Designs of sets, or of their distribution."""
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
        drawing, (panel,) = figure()
        title = f"G-optimal design of set {file.names[index]}" if len(file.names) > 1 else "G-optimal design"
        draw_design(panel, sets.contexts[index], sets.available[index], design[index], file.features, title)
        save_picture(drawing, options)
    return 1 if len(design.failed) else 0


def _sets(options: argparse.Namespace) -> ContextFile:
    """The sets of the file, or sets drawn from the world of that name."""
    sizes = {name: getattr(options, name) for name in DRAWN}
    if options.file not in WORLDS:
        for name, value in sizes.items():
            if value is not None:
                raise InputError(
                    f"--{name} is for sets that are drawn from a world; got the file {options.file}. Leave it out."
                )
        return read_context_file(options.file, set_column=options.set_column)
    count, dim, arms = (DRAWN[name] if value is None else whole(name, value) for name, value in sizes.items())
    world = make_world(options.file, dim=dim, arms=arms, horizon=max(2, count))
    whole("sets", count, high=max(1, MOST_DRAWN // (world.dim * world.arms)))
    rounds = world.draw(count, seed=options.seed)
    return ContextFile.of(rounds.contexts, rounds.available)


def _chosen(file: ContextFile, name: str | None) -> int:
    if name is None:
        return 0
    if name not in file.names:
        known = ", ".join(file.names[:10]) + (", …" if len(file.names) > 10 else "")
        raise InputError(f"--plot-set must name a set of the file; got {name!r}. The sets are {known}.")
    return file.names.index(name)
