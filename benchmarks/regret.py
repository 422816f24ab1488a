"""Regret: foresight beside other learners, and what settings, schedules, batches and surprises cost.

Ratios are (mean regret + 10) over the same of the yardstick on the same seeds, geometric means over worlds with 90 %
intervals over the seeds. Report on seeds from 0 on; develop on 1000 and up (``--first-seed 1000``).
"""

import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness import NOTHING, Case, FloatArray, Row, Setup, at_most, geometric_mean, main, standard_error
from rareswitch.core import uniforms
from rareswitch.decisions import DecisionLog
from rareswitch.errors import RareswitchError
from rareswitch.evaluation import evaluate, lift_of
from rareswitch.lab import SUITES, checkpoints, learner_for, left_out, simulate, world_at
from rareswitch.lab.report.runs import Ratio, regret_ratio
from rareswitch.lab.worlds import ActionsWorld, AdaptiveTrialWorld, World, make_world
from rareswitch.learner import Foresight, StaticGrid, make_learner, takes
from rareswitch.planning import adaptive_cost, baseline_share, best_ends, cost
from rareswitch.policy import MinPropensity
from rareswitch.report import DARK_GREY, GREY, ORANGE, figure, headline, save
from regret_worlds import (
    CLICKS,
    CLIFF_HORIZON,
    CLIFFS,
    DEVELOPED,
    DEVELOPED_LIFTS,
    LIFTS,
    PROBLEMS,
    experiment_log,
    facts_of,
    log_of,
    plan_for,
    play,
    shown,
)

NOISE = 0.5
SIX = ("gaussian", "fixed", "segments", "disjoint", "rare-clicks", "heavy-tails")
STILL = ("gaussian", "fixed", "segments", "zipf", "anisotropic", "disjoint", "rare-clicks", "heavy-tails")
STEPS, LINUCB, LINEAR = "Thompson 0.5, every step", "LinUCB 1, every step", "foresight 8, linear"
STALE, GREEDY = "thompson-grid 0.5, 8 policies", "greedy, 8 policies"
#: Learner and settings, by label.
ENTRANTS: dict[str, tuple[str, dict[str, Any]]] = {
    STEPS: ("thompson", {"scale": 0.5}),
    LINUCB: ("linucb", {"confidence": 1.0}),
    "OFUL 1": ("oful", {"confidence": 1.0}),
    STALE: ("thompson-grid", {"scale": 0.5, "policies": 8}),
    GREEDY: ("pure-exploitation", {"policies": 8}),
    LINEAR: ("foresight", {"policies": 8, "rewards": "linear"}),
    **{f"foresight {n}": ("foresight", {"policies": n}) for n in (2, 3, 4, 5, 6, 8, 12, 16, 32, 64)},
    **{f"foresight {n}, {k} in reserve": ("foresight", {"policies": n, "reserve": k}) for n, k in ((8, 2), (16, 4))},
    **{
        f"foresight {n}, discount {share}": ("foresight", {"policies": n, "discount": share})
        for n in (8, 16)
        for share in (0.7, 0.5, 0.3)
    },
}


def world_of(name: str, horizon: int, data: str | None = None, tables: str | None = None) -> World:
    """A world of the suites, or one of here; ``gaussian 200x20 σ 2`` has other sizes and noise."""
    if name.startswith("gaussian "):
        sizes, _, noise = name.removeprefix("gaussian ").partition(" σ ")
        dim, arms = map(int, sizes.split("x"))
        return make_world("gaussian", dim=dim, arms=arms, noise=float(noise or NOISE))
    if name.startswith("click "):
        return CLICKS[name.removeprefix("click ")].world()
    return world_at(name, {"data": data, "tables": tables})(horizon)


def one_run(name: str, entrant: str, horizon: int, seed: int, data: str | None, tables: str | None) -> list[float]:
    """Regret and policies of a run."""
    warnings.simplefilter("ignore")
    world = world_of(name, horizon, data, tables)
    learner, settings = ENTRANTS[entrant]
    run = simulate(learner_for(world, learner, horizon=horizon, seed=seed, noise=NOISE, **settings), world, seed=seed)
    return [run.regret, run.policies]


class Comparison(NamedTuple):
    """Entrants in worlds; ratios are to the first of them."""

    worlds: Sequence[str]
    entrants: Sequence[str]
    horizon: int
    #: The most that an entrant may cost, times the yardstick.
    most: Mapping[str, float] = {}
    by_world: bool = False


def outcomes(setup: Setup, comparison: Comparison) -> tuple[list[str], dict[str, FloatArray]]:
    """The worlds that can be made, and regrets and policies (2, seeds, worlds) of each entrant."""
    worlds = [name for name in comparison.worlds if not left_out([name], setup.folders)]
    worlds, entrants = worlds[: setup.pick(100, 1)], comparison.entrants[: setup.pick(100, 4)]
    horizon = setup.pick(comparison.horizon, 1000)
    folders = (setup.folders["data"], setup.folders["tables"])
    jobs = [(world, label, horizon, seed, *folders) for label in entrants for world in worlds for seed in setup.seeds]
    runs = np.array(setup.map(one_run, jobs)).reshape(len(entrants), len(worlds), len(setup.seeds), 2)
    return worlds, {label: runs[k].transpose(2, 1, 0) for k, label in enumerate(entrants)}


def compare(setup: Setup, comparison: Comparison) -> Iterator[Row]:
    """A row for each entrant, over all worlds or in each."""
    worlds, runs = outcomes(setup, comparison)
    base = next(iter(runs))
    groups = {name: [k] for k, name in enumerate(worlds)} if comparison.by_world else {"": list(range(len(worlds)))}
    for name, columns in groups.items():
        for label, (regrets, policies) in runs.items():
            own, yardstick = regrets[:, columns], runs[base][0][:, columns]
            ratio, most = regret_ratio(own, yardstick), comparison.most.get(label)
            means = ", ".join(f"{worlds[k]} {regrets[:, k].mean():,.0f}" for k in columns)
            yield Row(
                what=f"{name}: {label}" if name else label,
                measured=f"{means}; worst {own.max():,.0f}; {policies.mean():,.0f} policies; {len(own)} seeds",
                ratio="1" if label == base else text(ratio),
                must=at_most(ratio.value, most),
            )


def text(ratio: Ratio) -> str:
    """As tables show it."""
    return f"{ratio.value:.2f}× ({ratio.interval or 'too few seeds'}; median {ratio.median:.2f})"


def policies(setup: Setup) -> Iterator[Row]:
    """2 to 64 policies against full adaptivity, and whether regret falls with each."""
    counts = setup.pick((2, 3, 4, 5, 6, 8, 12, 16, 32, 64), (2, 4, 8))
    labels = [f"foresight {n}" for n in counts]
    most = {"foresight 2": 6.5, "foresight 4": 2.1, "foresight 16": 1.2, "foresight 32": 1.1}
    comparison = Comparison(SIX, (STEPS, *labels), 10_000, most)
    yield from compare(setup, comparison)
    _, runs = outcomes(setup, comparison)
    steps = {
        f"{few} to {many}": regret_ratio(runs[f"foresight {many}"][0], runs[f"foresight {few}"][0])
        for few, many in pairwise(counts)
    }
    yield Row(
        what="regret with more policies over that with fewer",
        measured=", ".join(f"{step}: {text(ratio)}" for step, ratio in steps.items()),
        must=("no interval above 1", not any(ratio.low > 1.0 for ratio in steps.values())),
    )


def settings(setup: Setup) -> Iterator[Row]:
    """What each setting of foresight costs against linear foresight on the same batches, in all worlds."""
    names = [name for name in SETTINGS if "linear" not in name]
    every = dict.fromkeys(world for suite in SUITES.values() for world in suite.worlds)
    worlds = [name for name in every if not left_out([name], setup.folders)][: setup.pick(100, 2)]
    horizon, folders = setup.pick(10_000, 1000), (setup.folders["data"], setup.folders["tables"])

    def regrets(world: str, setting: str, batches: str) -> FloatArray | None:
        runs = setup.map(setting_run, [(world, setting, batches, horizon, seed, *folders) for seed in setup.seeds])
        return None if None in runs else np.array(runs, dtype=np.float64)

    if setup.before:
        yield from against_before(setup, worlds, horizon, folders)
        return
    for setting in names[: setup.pick(100, 1)]:
        for batches in ("geometric", "equal"):
            ratios: dict[str, float] = {}
            for world in worlds:
                linear = f"{setting}, linear" if f"{setting}, linear" in SETTINGS else "linear"
                base, own = regrets(world, linear, batches), regrets(world, setting, batches)
                if base is not None and own is not None:
                    ratios[world] = float(own.mean() / base.mean())
            if not ratios:
                continue
            worst, above = max(ratios, key=ratios.__getitem__), [name for name in ratios if ratios[name] > 2.0]
            yield Row(
                what=f"{setting}, {batches}",
                measured=f"geometric mean {geometric_mean(ratios.values()):.2f}, worst {worst}; {len(ratios)} worlds"
                + (f"; above 2: {', '.join(above)}" if above else ""),
                ratio=f"worst {ratios[worst]:.2f}×",
                must=("none above 2×", not above),
            )


def against_before(setup: Setup, worlds: list[str], horizon: int, folders: tuple[Any, ...]) -> Iterator[Row]:
    """Foresight by default against what another version kept, world by world and for all."""
    ratios = []
    for world in worlds:
        jobs = [(world, "default", "geometric", horizon, seed, *folders) for seed in setup.seeds]
        then, now = [setup.before.get(setup.key(*job)) for job in jobs], setup.map(setting_run, jobs)
        if None in then or None in now:
            continue
        ours, theirs = float(np.mean(np.array(now, dtype=float))), float(np.mean(np.array(then, dtype=float)))
        ratios.append(ours / theirs)
        measured = f"regret {ours:,.1f}, before {theirs:,.1f}; {len(now)} seeds"
        yield Row(what=world, measured=measured, ratio=f"{ratios[-1]:.2f}×", must=at_most(ratios[-1], 1.1))
    mean = geometric_mean(ratios)
    yield Row(what="all", measured=f"{len(ratios)} worlds", ratio=f"{mean:.3f}×", must=at_most(mean, 1.02))


#: With eight policies but for those that say otherwise.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"rewards": "linear"},
    "4 policies": {"policies": 4},
    "4 policies, linear": {"policies": 4, "rewards": "linear"},
    "16 policies": {"policies": 16},
    "16 policies, linear": {"policies": 16, "rewards": "linear"},
    "no level": {"intercept": False},
    "no level, logistic": {"intercept": False, "rewards": "binary"},
    "logistic": {"rewards": "binary"},
    "no design play": {"min_propensity": 0.0},
    "0.3 % design play": {"min_propensity": 0.003},
    "3 % design play": {"min_propensity": 0.03},
    "2 in reserve": {"reserve": 2},
    "discount 0.9": {"discount": 0.9},
}


def setting_run(name: str, setting: str, batches: str, horizon: int, seed: int, *folders: str | None) -> float | None:
    """The regret of a setting; None where the world's rewards are not for it."""
    warnings.simplefilter("ignore")
    world, chosen = world_of(name, horizon, *folders), dict(SETTINGS[setting])
    if batches == "equal":
        count = chosen.pop("policies", 8)
        chosen["grid"] = [round(horizon * (k + 1) / count) for k in range(count)]
    try:
        return float(simulate(Foresight(dim=world.dim, horizon=horizon, seed=seed, **chosen), world, seed=seed).regret)
    except RareswitchError:
        return None


def click_run(cell: str, rewards: str | None, seed: int, quick: bool) -> float:
    """The regret of foresight in a shape of clicks."""
    warnings.simplefilter("ignore")
    shape = CLICKS[cell]
    world, horizon = shape.world(), 1000 if quick else shape.horizon
    batches: dict[str, Any] = {"policies": shape.policies}
    if shape.equal:
        batches = {"grid": StaticGrid(ends=tuple(horizon * (k + 1) // shape.policies for k in range(shape.policies)))}
    batches |= {} if rewards is None else {"rewards": rewards}
    learner = Foresight(dim=world.dim, horizon=horizon, seed=seed, intercept=True, **batches)
    return float(simulate(learner, world, seed=seed).regret)


def clicks(setup: Setup) -> Iterator[Row]:
    """Foresight by default against its linear model, in sixteen shapes of clicks."""
    for cell in list(CLICKS)[: setup.pick(100, 1)]:
        first, count = setup.seeds.start, CLICKS[cell].more_seeds * len(setup.seeds)
        linear, default = (
            np.array(setup.map(click_run, [(cell, rewards, seed, setup.quick) for seed in range(first, first + count)]))
            for rewards in ("linear", None)
        )
        mean, worst = default.mean() / linear.mean(), default.max() / linear.max()
        yield Row(
            what=cell,
            measured=f"regret {default.mean():,.0f} (worst {default.max():,.0f}), linear {linear.mean():,.0f} "
            f"({linear.max():,.0f}); {len(linear)} seeds",
            ratio=f"mean {mean:.3f}×, worst {worst:.3f}×",
            must=("mean at most 1.05×, worst 1.3×", bool(mean <= 1.05 and worst <= 1.3)),
        )


#: Learner and settings; those that want to know are told σ and, where no other norm is set, the world's ‖θ‖.
CLIFF_ENTRANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "foresight": ("foresight", {"intercept": True}),
    "Thompson 0.5": ("thompson-grid", {"scale": 0.5}),
    "without ‖θ‖": ("thompson-grid", {"scale": 0.5, "norm": 1.0}),
}


def cliff_run(name: str, entrant: str, seed: int) -> float:
    """The regret of a run in which something comes that its plan does not know of."""
    warnings.simplefilter("ignore")
    cliff, total = CLIFFS[name], CLIFF_HORIZON
    dim, count = cliff.world.dim, cliff.policies
    if cliff.equal:
        ends = [total * k // count for k in range(1, count + 1)]
    elif cliff.busier == 1:
        ends = [round(end) for end in best_ends(total, count, dim=dim)]
    else:
        first = cliff.busier * best_ends(total / cliff.busier, count, dim=dim)[0]
        ends = [round(end) for end in (first, *best_ends(total, count - 1, dim=dim, start=first))]
    learner, chosen = CLIFF_ENTRANTS[entrant]
    made = learner_for(cliff.world, learner, horizon=total, seed=seed, noise=NOISE, grid=ends, **chosen)
    state = made.begin()
    if cliff.warm:
        draws = uniforms(seed, "logged", 0, 2000, 2)
        arms = np.where(draws[:, 0] < 0.97, 0, (draws[:, 1] * cliff.world.arms).astype(np.int64))
        state = made.begin(warm=log_of(made, cliff.world, arms, seed, total))
    return float(sum(batch.regrets.sum() for batch in play(made, cliff.world, seed, state=state)))


def cliffs(setup: Setup) -> Iterator[Row]:
    """Where a plan could be too sure, beside Thompson sampling at scale 0.5 on the same batches, told ‖θ‖ and σ."""
    for name in list(CLIFFS)[: setup.pick(100, 2)]:
        runs = {
            entrant: np.array(setup.map(cliff_run, [(name, entrant, seed) for seed in setup.seeds]))
            for entrant in CLIFF_ENTRANTS
        }
        ours, theirs, untold = (regrets.mean() for regrets in runs.values())
        ratio = float(ours / theirs)
        yield Row(
            what=name,
            measured="; ".join(f"{entrant} {own.mean():,.0f}, worst {own.max():,.0f}" for entrant, own in runs.items())
            + f"; {len(setup.seeds)} seeds",
            ratio=f"{ratio:.2f}×; {ours / untold:.2f}× of Thompson without ‖θ‖",
            must=at_most(ratio, 1.3),
        )


TOTAL, WEEK, LOGGED = 10_000, 1250, 500
#: Ends of batches (``best``, ``weekly`` or ``never``), how the first policy comes about, learner, delay of rewards.
SCHEDULES: dict[str, tuple[str, str, str, int]] = {
    "best": ("best", "", "foresight", 0),
    "best, rewards a day late": ("best", "", "foresight", TOTAL // 56),
    "weekly": ("weekly", "", "foresight", 0),
    "weekly, rewards a week late": ("weekly from the second", "", "foresight", WEEK),
    "weekly with a baseline": ("weekly", "planned share", "foresight", 0),
    "weekly after a uniform log": ("weekly", "log", "foresight", 0),
    "weekly after a log of the baseline": ("weekly", "baseline's log", "foresight", 0),
    "thompson-grid 0.5, weekly": ("weekly", "", "thompson-grid", 0),
    "greedy, weekly": ("weekly", "", "pure-exploitation", 0),
    "never": ("never", "", "foresight", 0),
}


def ends_of(schedule: str, dim: int) -> list[int]:
    """Decisions after which batches end."""
    which, _, _, delay = SCHEDULES[schedule]
    if which == "best":
        return [round(end) for end in best_ends(TOTAL, 8, dim=dim, earliest=2 * delay, gap=delay, delay=delay)]
    if which == "never":
        return [TOTAL]
    return [WEEK * k for k in range(2 if "second" in which else 1, 9)]


def schedule_run(schedule: str, name: str, seed: int) -> list[float]:
    """Regret at each of the checkpoints."""
    warnings.simplefilter("ignore")
    world = world_of(name, TOTAL)
    if schedule == STEPS:
        learner = learner_for(world, "thompson", horizon=TOTAL, seed=seed, noise=NOISE, scale=0.5)
        return [float(regret) for regret in simulate(learner, world, seed=seed).regrets]
    _, start, kind, delay = SCHEDULES[schedule]
    chosen: dict[str, Any] = {"scale": 0.5} if kind == "thompson-grid" else {}
    grid = ends_of(schedule, world.dim)
    learner = learner_for(world, kind, horizon=TOTAL, seed=seed, noise=NOISE, grid=grid, **chosen)
    state, baseline = learner.begin(), None
    if start == "planned share":
        state, baseline = learner.begin(baseline=baseline_share(world.dim, learner.clock.begin())), shown
    elif start:
        coins = uniforms(seed, "log", 0, LOGGED, 2)
        anything, share = (coins[:, 1] * world.arms).astype(np.int64), 1.0 if start == "log" else 0.2
        named = shown(world.draw(LOGGED, seed=seed, first=TOTAL).means, seed, TOTAL)
        arms = np.where(coins[:, 0] < share, anything, named)
        state = learner.begin(warm=log_of(learner, world, arms, seed, TOTAL))
    batches = play(learner, world, seed, state=state, baseline=baseline, delay=delay)
    curve = np.cumsum(np.concatenate([batch.regrets for batch in batches]))[checkpoints(TOTAL) - 1]
    return [float(regret) for regret in curve]


def schedule_curves(setup: Setup, worlds: Sequence[str]) -> dict[str, FloatArray]:
    """(worlds, seeds, checkpoints) regret so far, of each schedule and at every step."""
    labels = (STEPS, *setup.pick(list(SCHEDULES), ["best", "weekly", "never"]))
    pairs, shape = [(world, seed) for world in worlds for seed in setup.seeds], (len(worlds), len(setup.seeds), -1)
    return {k: np.array(setup.map(schedule_run, [(k, *pair) for pair in pairs])).reshape(shape) for k in labels}


def schedules(setup: Setup) -> Iterator[Row]:
    """Eight policies at other times and after other starts, against full adaptivity and the best times."""
    worlds = SIX[: setup.pick(6, 1)]
    curves = schedule_curves(setup, worlds)
    finals = {label: runs[:, :, -1].T for label, runs in curves.items()}
    weekly = regret_ratio(finals["weekly"], finals[STEPS]).value
    if setup.picture is not None:
        draw_schedules(setup.picture, curves, regret_ratio(finals["best"], finals[STEPS]).value, weekly)
    most = {"best": 1.4, "weekly with a baseline": 0.6 * weekly}
    for label in list(finals)[1:]:
        ratio = regret_ratio(finals[label], finals[STEPS])
        dims = [world_of(world, TOTAL).dim for world in worlds]
        delay = SCHEDULES[label][3]
        model = [cost(ends_of(label, dim), dim=dim, delay=delay) / adaptive_cost(TOTAL, dim=dim) for dim in dims]
        yield Row(
            what=f"{label} (ends for d = 10: {', '.join(map(str, ends_of(label, 10)))})",
            measured=", ".join(f"{name} {finals[label][:, k].mean():,.0f}" for k, name in enumerate(worlds)),
            ratio=f"{text(ratio)}, {regret_ratio(finals[label], finals['best']).value:.2f} times best; "
            f"the model says {geometric_mean(model):.2f}",
            must=at_most(ratio.value, most.get(label)),
        )


def draw_schedules(path: Path, curves: Mapping[str, FloatArray], best: float, weekly: float) -> None:
    """Regret so far of the same eight policies weekly and at the best times, between full adaptivity and none."""
    image, (panel,) = figure()
    marks, blind = checkpoints(TOTAL), curves["never"][:, :, -1:].mean(axis=1, keepdims=True) / TOTAL
    styles: dict[str, tuple[str, str, Any]] = {
        "never": ("never updated", DARK_GREY, ":"),
        "weekly": ("8 policies,\none a week", ORANGE, "--"),
        "best": ("8 policies,\nat the library's times", ORANGE, "-"),
        STEPS: ("a new policy at\nevery decision", GREY, "-"),
    }
    for label, (words, color, style) in styles.items():
        curve = (curves[label] / blind).mean(axis=(0, 1))
        panel.plot(marks, curve, color=color, linestyle=style, linewidth=2.2)
        panel.text(1.1 * TOTAL, (0.8 if label == STEPS else 1.2) * curve[-1], words, color=color, va="center")
        ends = ends_of(label, 10)[:-1] if label in SCHEDULES else []
        panel.plot(ends, np.interp(ends, marks, curve), "o", color=color)
    panel.set(xscale="log", yscale="log", xlim=(10, TOTAL), ylim=(10, 1.3 * TOTAL))
    panel.set(xlabel="decisions so far (dots: updates)", ylabel="regret so far, in decisions of uniform exploration")
    headline(panel, f"8 policies cost {weekly:.1f} times full adaptivity weekly,\n{best:.1f} times at the best times")
    save(image, path, "python benchmarks/regret.py --case schedules --picture docs/evidence/schedules.png")


def promised_run(name: str, horizon: int, first: int, count: int, *folders: str | None) -> dict[str, Any]:
    """What a plan promises, and what runs of foresight that follow it lose, in its unit."""
    warnings.simplefilter("ignore")
    developed = first >= 1000
    problems = DEVELOPED if developed else PROBLEMS
    problem, seed = problems[name]._replace(horizon=horizon), list(problems).index(name) + 1000 * developed
    world = world_of(problem.world, horizon, *folders)
    facts = facts_of(world, seed)
    made = plan_for(problem, world, facts, seed)
    ends = [end.decisions or 0 for end in made.best.ends]
    whole, linear = [], []
    for run in range(first, first + count):
        learner = Foresight(dim=world.dim, grid=ends, seed=run)
        batches = play(learner, world, seed, delay=problem.delay, first=run * horizon)
        whole.append(sum(batch.regrets.sum() for batch in batches))
        linear.append(sum((batch.regrets - batch.unlearnable).sum() for batch in batches))
    units = (1.0, 1.0) if made.best.metric else (facts.regret, facts.linear_regret)
    promised = made.best.metric or made.best.regret
    return {
        "policies": len(ends),
        "gain": [*made.gain, facts.linear_regret / facts.spread],
        "promised": [promised.expected, promised.low, promised.high],
        "whole": [float(lost / units[0]) for lost in whole],
        "linear": [float(lost / units[1]) for lost in linear],
    }


def promises(setup: Setup) -> Iterator[Row]:
    """What a plan says that its schedule loses, and what foresight on that schedule loses."""
    problems = DEVELOPED if setup.seeds.start >= 1000 else PROBLEMS
    names = [name for name in problems if not left_out([problems[name].world], setup.folders)][: setup.pick(100, 2)]
    folders, seeds = (setup.folders["data"], setup.folders["tables"]), (setup.seeds.start, len(setup.seeds))
    jobs = [(name, setup.pick(problems[name].horizon, 1000), *seeds, *folders) for name in names]
    inside, runs = {"linear": 0, "whole": 0}, []
    for name, run in zip(names, setup.map(promised_run, jobs), strict=True):
        expected, low, high = run["promised"]
        means = {kind: float(np.mean(run[kind])) for kind in inside}
        held = {kind: low <= mean <= high for kind, mean in means.items()}
        runs += [low <= lost <= high for lost in run["linear"]]
        for kind in inside:
            inside[kind] += held[kind]
        more = "" if means["whole"] == means["linear"] else f"; against the best arms {means['whole']:.3g}"
        yield Row(
            what=f"{name}, {run['policies']} policies",
            measured=f"planned {expected:.3g} ({low:.3g} to {high:.3g}), lost {means['linear']:.3g}{more}; "
            f"{seeds[1]} runs",
            ratio=f"{means['linear'] / expected:.2f}×{'' if held['linear'] else ', outside'}",
        )
    what = {"linear": "against the best linear policy", "whole": "against the best arms"}
    for kind, count in inside.items():
        wanted = round(0.85 * len(names))
        yield Row(
            what=f"regret {what[kind]}: mean in the interval",
            measured=f"{count} of {len(names)} problems",
            must=(f"at least {wanted}", count >= wanted) if kind == "linear" else NOTHING,
        )
    yield Row(what="single runs in the interval", measured=f"{sum(runs)} of {len(runs)} ({np.mean(runs):.0%})")


#: At which multiples of the planned time it is looked whether the lift is seen.
LOOKS = (0.44, 0.66, 0.82, 1.0, 1.22, 1.51, 2.25)


def seen_run(name: str, first: int, count: int, *folders: str | None) -> dict[str, Any]:
    """When a plan says that a lift is seen, and the share of experiments in which it is at multiples of that."""
    warnings.simplefilter("ignore")
    problems, seed = (DEVELOPED_LIFTS, 1000) if first >= 1000 else (LIFTS, 0)
    problem, seed = problems[name], seed + list(problems).index(name)
    world = world_of(problem.world, problem.horizon, *folders)
    made = plan_for(problem, world, facts_of(world, seed), seed)
    *_, detection = made.detections
    planned = detection.decisions or math.inf
    if planned > 30_000:
        return {"planned": planned, "seen": []}
    looks, seen = [round(factor * planned) for factor in LOOKS], []
    for run in range(first, first + count):
        log = experiment_log(
            *(world, made, seed),
            first=run * looks[-1],
            total=looks[-1],
            delay=problem.delay,
            holdout=detection.holdout,
            least=detection.min_propensity,
        )
        seen.append([lift_seen(log.select(slice(look)), detection.holdout) for look in looks])
    return {"planned": planned, "seen": np.mean(seen, axis=0).tolist()}


def lift_seen(log: DecisionLog, holdout: float | None) -> bool:
    """Whether the interval of the lift is above 0, over a holdout or over uniform choice."""
    if holdout is not None:
        (lift, *_) = lift_of(log)
        return lift.interval is not None and lift.interval.low > 0.0
    (gain,) = evaluate(log, "uniform").gains
    return gain.interval is not None and gain.interval.high < 0.0


def power(setup: Setup) -> Iterator[Row]:
    """When a plan says that a lift is seen in four of five experiments, and when it is."""
    problems = DEVELOPED_LIFTS if setup.seeds.start >= 1000 else LIFTS
    names = [name for name in problems if not left_out([problems[name].world], setup.folders)][: setup.pick(100, 2)]
    folders, seeds = (setup.folders["data"], setup.folders["tables"]), (setup.seeds.start, len(setup.seeds))
    within = 0
    for name, run in zip(names, setup.map(seen_run, [(name, *seeds, *folders) for name in names]), strict=True):
        factor = crossing(np.array(run["seen"]), 0.8)
        right = 1 / 1.5 <= factor <= 1.5
        within += right
        at = dict(zip(LOOKS, run["seen"], strict=False))
        yield Row(
            what=name,
            measured=f"planned {run['planned']:,.0f}, simulated {factor * run['planned']:,.0f} decisions; seen then in "
            f"{at.get(1.0, math.nan):.0%}; {seeds[1]} experiments",
            ratio=f"{factor:.2f}×{'' if right else ', beyond'}",
        )
    wanted = round(0.8 * len(names))
    promise = f"at least {wanted}", within >= wanted
    yield Row(what="within a factor 1.5", measured=f"{within} of {len(names)} problems", must=promise)


def crossing(shares: FloatArray, level: float) -> float:
    """The multiple of the planned time at which the share of experiments passes a level; NaN if it never does."""
    above = np.flatnonzero(np.maximum.accumulate(shares) >= level)
    if not len(above):
        return math.nan
    at = int(above[0])
    if not at:
        return LOOKS[0]
    low, high = shares[at - 1], shares[at]
    step = (level - low) / (high - low)
    return float(LOOKS[at - 1] * (LOOKS[at] / LOOKS[at - 1]) ** step)


def horizon_run(name: str, count: int, horizon: int, seed: int) -> list[float]:
    """Regret and policies of foresight; without its horizon where the count is 0."""
    world = world_of(name, horizon)
    known: dict[str, Any] = {"horizon": horizon, "policies": count} if count else {}
    run = simulate(Foresight(dim=world.dim, seed=seed, **known), world, seed=seed, horizon=horizon)
    return [run.regret, run.policies]


def unknown_horizon(setup: Setup) -> Iterator[Row]:
    """Foresight without its horizon against a run that knows it, with the same number of policies."""
    horizon, pairs = setup.pick(100_000, 1000), []
    worlds = [name for name in SUITES["ten"].worlds if name != "movielens"][: setup.pick(100, 2)]
    for name in worlds:
        without = np.array(setup.map(horizon_run, [(name, 0, horizon, seed) for seed in setup.seeds]))
        count = int(without[0, 1])
        known = np.array(setup.map(horizon_run, [(name, count, horizon, seed) for seed in setup.seeds]))
        pairs.append((without[:, 0], known[:, 0]))
        yield Row(
            what=f"{name}, {count} policies",
            measured=f"regret {without[:, 0].mean():,.0f} without, {known[:, 0].mean():,.0f} with the horizon",
            ratio=text(regret_ratio(*pairs[-1])),
        )
    mean = regret_ratio(*np.array(pairs).transpose(1, 2, 0))
    what = f"geometric mean of {len(pairs)} worlds, T = {horizon:,}"
    yield Row(what=what, measured=f"{len(setup.seeds)} seeds", ratio=text(mean), must=at_most(mean.value, 1.2))


#: World, horizon, and the mean regret of E4's public program there with its three batches; σ = 1.
INSTANCES = {
    "end-of-optimism:2": (10_000, 184),
    "end-of-optimism:3": (30_000, 436),
    "end-of-optimism:5": (50_000, 1965),
    "random-actions:9x5": (10_000, 764),
    "random-actions:50x20": (10_000, 864),
}
RELATIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "foresight, 3 policies": ("foresight", {"policies": 3}),
    "foresight, 8 policies": ("foresight", {"policies": 8}),
    "E4": ("e4", {}),
    "stale LinMED-90, 8 policies": ("linmed-grid", {"policies": 8}),
    "stale LinMED-99, 8 policies": ("linmed-grid", {"policies": 8, "greedy": 0.99}),
    "batched Thompson 1": ("batched-thompson", {}),
    "batched Thompson 0.5": ("batched-thompson", {"scale": 0.5}),
    "LinMED-90, every step": ("linmed", {}),
    "LinMED-99, every step": ("linmed", {"greedy": 0.99}),
}


def relative_run(label: str, name: str, horizon: int, seed: int) -> list[float]:
    """Regret and policies; learners that want to know are told σ and ‖θ‖."""
    learner, settings = RELATIVES[label]
    world = make_world(name, noise=1.0)
    assert isinstance(world, ActionsWorld)
    facts = {"noise": 1.0, "norm": float(np.linalg.norm(world.hidden)), "seed": seed}
    chosen = {key: value for key, value in facts.items() if key in takes(learner)} | settings
    run = simulate(make_learner(learner, dim=world.dim, arms=world.arms, horizon=horizon, **chosen), world, seed=seed)
    return [run.regret, run.policies]


def relatives(setup: Setup) -> Iterator[Row]:
    """Foresight on the fixed sets of actions on which E4 was published; ratios are to E4's public program."""
    for label in list(RELATIVES)[: setup.pick(100, 3)]:
        seeds = setup.seeds[:5] if "every step" in label else setup.seeds  # a minute a run
        for name in list(INSTANCES)[: setup.pick(100, 2)]:
            horizon, program = setup.pick(INSTANCES[name][0], 1000), INSTANCES[name][1]
            runs = np.array(setup.map(relative_run, [(label, name, horizon, seed) for seed in seeds]))
            regrets, asked = runs[:, 0], label == "foresight, 3 policies"
            right = regrets.mean() < program and regrets.max() <= 2 * program
            yield Row(
                what=f"{label}: {name}, T = {horizon:,}",
                measured=f"{regrets.mean():.0f} ± {standard_error(regrets):.0f}, worst of {len(regrets)} "
                f"{regrets.max():.0f}; {runs[:, 1].mean():,.0f} policies",
                ratio=f"{regrets.mean() / program:.2f}× {program}, worst {regrets.max() / program:.2f}×",
                must=(f"below {program}, worst at most {2 * program}", bool(right)) if asked else NOTHING,
            )


TRIAL, TRIAL_ENDS = AdaptiveTrialWorld(), [100, 200, 300, 400, 500]
#: Learner and settings; all but foresight are told the true prior and the noise.
TRIAL_ENTRANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("batch-linucb", {}),
    "Thompson sampling": ("thompson-grid", {"grid": TRIAL_ENDS}),
    "greedy": ("thompson-grid", {"grid": TRIAL_ENDS, "scale": 0.01}),
    "greedy, after every reward": ("thompson", {"scale": 0.01}),
    "foresight, told nothing": ("foresight", {"grid": TRIAL_ENDS}),
    "RHO, for regret": ("rho", {"grid": TRIAL_ENDS}),
    "RHO, weight 0.3": ("rho", {"grid": TRIAL_ENDS, "weight": 0.3}),
}
PUBLISHED = {"uniform": 0.1484, "RHO, weight 0.3": 0.0852}


def trial_run(label: str, seed: int) -> float:
    """Regret of a decision in a trial of 500 users."""
    learner, settings = TRIAL_ENTRANTS[label]
    facts = {"noise": TRIAL.noise_scale, "norm": TRIAL.prior_scale, "seed": seed}
    facts = {} if learner == "foresight" else {key: value for key, value in facts.items() if key in takes(learner)}
    sizes = {"dim": TRIAL.dim, "arms": TRIAL.arms} | ({} if learner == "foresight" else {"horizon": TRIAL_ENDS[-1]})
    # the first policy of batch-linucb is uniform, and no second one may be made
    cap = 1 if label == "uniform" else None
    return float(simulate(make_learner(learner, **sizes, **facts, **settings), TRIAL, seed=seed, cap=cap).regret / 500)


def adaptive_trial(setup: Setup) -> Iterator[Row]:
    """AExGym's linear trial (arXiv:2408.04570): ten arms, five features of the user, five batches of 100."""
    for label in TRIAL_ENTRANTS:
        seeds = setup.seeds[: max(1, len(setup.seeds) // 8)] if "RHO" in label else setup.seeds  # it takes longest
        regrets = np.array(setup.map(trial_run, [(label, seed) for seed in seeds]))
        error, published = standard_error(regrets), PUBLISHED.get(label)
        yield Row(
            what=label,
            measured=f"{regrets.mean():.4f} ± {error:.4f} a decision, {len(regrets)} trials"
            + (f"; published {published}" if published else ""),
            must=at_most(float(regrets.mean()), 0.08 if label == "foresight, told nothing" else None, ""),
        )


def floor_run(name: str, least: float, horizon: int, seed: int) -> list[float]:
    """Regret, and the effective share of decisions that tells of uniform play, under a floor."""
    world = make_world(name, dim=10, arms=10, noise=NOISE)
    learner = Foresight(dim=10, horizon=horizon)
    state = learner.begin(min_propensity=MinPropensity(least=least) if least else None)
    batches = play(learner, world, seed, state=state)
    weights = 1.0 / (10 * np.concatenate([batch.propensities for batch in batches[1:]]))
    effective = weights.sum() ** 2 / np.square(weights).sum() / len(weights)
    return [float(sum(batch.regrets.sum() for batch in batches)), float(effective)]


def least_propensity(setup: Setup) -> Iterator[Row]:
    """What a least probability of every arm costs, beside its price, and the sample that it buys."""
    horizon = setup.pick(10_000, 1000)
    for name in ("gaussian", "segments", "fixed")[: setup.pick(3, 1)]:
        runs = {
            least: np.mean(setup.map(floor_run, [(name, least, horizon, seed) for seed in setup.seeds]), axis=0)
            for least in (0.0, 0.005, 0.02, 0.05, 0.1)
        }
        for least in (0.005, 0.02, 0.05):
            price, paid = least * 10 * runs[0.1][0], runs[least][0] - runs[0.0][0]
            yield Row(
                what=f"{name}, at least {least:g}, {10 * least:.0%} of decisions",
                measured=f"regret {runs[least][0]:.0f}, without {runs[0.0][0]:.0f}, all uniform {runs[0.1][0]:.0f}",
                ratio=f"paid {paid / price:.2f} of the price; effective sample of uniform play {runs[least][1]:.1%}",
                must=("0.5 to 1.1 of the price", bool(0.5 <= paid / price <= 1.1)),
            )


def comparison(*parts: Comparison) -> Any:
    """A case that is nothing but comparisons."""

    def run(setup: Setup) -> Iterator[Row]:
        for part in parts[: setup.pick(100, 1)]:
            yield from compare(setup, part)

    return run


FORESIGHTS = tuple(label for label in ENTRANTS if label.startswith(("foresight 8", "foresight 16")) and label != LINEAR)
RESERVES = {"foresight 8, 2 in reserve": 1.15, "foresight 16, 4 in reserve": 1.15}
CHANGING = [
    Comparison(("late-groups", "mix-drift", "turning"), (LINUCB, "OFUL 1", STALE, *FORESIGHTS), 30_000, by_world=True),
    *(
        Comparison(
            STILL,
            (f"foresight {n}", f"foresight {n}, {k} in reserve", f"foresight {n}, discount 0.5"),
            30_000,
            RESERVES,
        )
        for n, k in ((8, 2), (16, 4))
    ),
]
MANY = [
    Comparison((size,), (STALE, "foresight 8", GREEDY, STEPS), horizon, {"foresight 8": 1.1})
    for size, horizon in (("gaussian 20x50", 20_000), ("gaussian 10x1000", 10_000), ("gaussian 200x20", 20_000))
]
BELIEFS = [
    Comparison((name,), (LINEAR, "foresight 8"), horizon, {"foresight 8": most})
    for name, horizon, most in (("rare-clicks", 30_000, 0.9), ("logistic-ball", 20_000, 0.5), ("wine", 30_000, 0.5))
]
CASES = {
    "policies": Case(policies, "2 to 64 policies over 10,000 decisions, against full adaptivity.", 20),
    "settings": Case(settings, "Settings of foresight in all worlds; --before compares with another version.", 3, 1),
    "clicks": Case(clicks, "Foresight by default against its linear model, in sixteen shapes of clicks.", 16, 1),
    "beliefs": Case(comparison(*BELIEFS), "Where a line cannot be a rate: foresight against its linear model.", 20, 1),
    "cliffs": Case(
        cliffs,
        "What no plan foresees, beside Thompson sampling on the same batches, T = 10,000. The arm from 30.8 % comes 22 "
        "decisions before an update: three of the 200 sets that the plan samples have it, so the plan takes it for "
        "rare and explores too little for it.",
        12,
        1,
    ),
    "changing": Case(comparison(*CHANGING), "Contexts or parameters that change: reserve and discount.", 10),
    "many": Case(comparison(*MANY), "Many arms and many features.", 5, 1),
    "schedules": Case(schedules, "Eight policies at other times and after other starts.", 8, 1),
    "plan": Case(
        promises,
        "What rareswitch plan promises, and what runs that follow it lose. Single runs spread by a third and more, so "
        "that the mean of three is too uncertain to be held against an interval.",
        12,
    ),
    "power": Case(power, "When rareswitch plan says that a lift is seen, and when it is.", 40, 3),
    "horizon": Case(unknown_horizon, "A horizon that is not known.", 6, first_seed=200),
    "relatives": Case(relatives, "Foresight beside its nearest relatives, where E4 was published.", 20),
    "trial": Case(adaptive_trial, "AExGym's adaptive trial.", 400, 8),
    "min-propensity": Case(least_propensity, "What a least probability of every arm costs and buys.", 20),
}

if __name__ == "__main__":
    sys.exit(main("Regret", CASES, description=__doc__))
