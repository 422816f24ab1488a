"""The trade-off between policies and regret, as a table and as a picture."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rareswitch.lab import Tradeoff
from rareswitch.lab.report.run_table import Group, grouped
from rareswitch.lab.worlds import LowerBoundWorld, World, switch_lower_bound, theorem_range
from rareswitch.report import DARK_GREY, GREY, WIDTH, figure, headline, name_points, plain_ticks, series_colors
from rareswitch.tables import table

#: Runs that deploy more policies than this many times the largest cap are those of fully adaptive learners.
EVERY_STEP = 4


def tradeoff_table(found: Tradeoff) -> str:
    """Mean regret with the standard error, a row for each cap and a column for each learner."""
    cells = {(cap, g.learner): _cell(g) for cap, runs in found.runs.items() for g in grouped(runs)}
    names = list(dict.fromkeys(name for _, name in cells))
    rows = [[str(cap or "no cap"), *(cells.get((cap, name), "") for name in names)] for cap in found.runs]
    return table(["policies", *names], rows)


def _cell(group: Group) -> str:
    error = "" if np.isnan(group.standard_error) else f" ± {group.standard_error:,.0f}"
    return f"{group.regret:,.0f}{error} ({group.policies:,.6g})"


def draw_tradeoff(found: Tradeoff, world: World) -> Any:
    """Regret against the cap; runs without one are lines in grey where they change at every step, else diamonds."""
    made, (panel,) = figure(1, 1)
    made.set_size_inches(WIDTH, 5.6)
    capped = {cap: grouped(runs) for cap, runs in found.runs.items() if cap is not None}
    free = grouped(found.runs.get(None, []))
    every = [g for g in free if g.policies > EVERY_STEP * max(capped, default=1)]
    names = list(dict.fromkeys(g.learner for groups in [*capped.values(), free] for g in groups))
    colors = series_colors(names)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    ends: dict[str, tuple[float, float]] = {}
    for name in names:
        own = [(cap, g) for cap, groups in capped.items() for g in groups if g.learner == name]
        style: dict[str, Any] = {"linewidth": 2.4 if name == "foresight" else 1.5, "markersize": 4, "capsize": 2}
        if own:
            caps, regrets = [cap for cap, _ in own], [_shown(g.regret) for _, g in own]
            bars = [min(g.bar, 0.9 * regret) for (_, g), regret in zip(own, regrets, strict=True)]
            panel.errorbar(caps, regrets, yerr=bars, fmt="o-", color=colors[name], **style)
            ends[name] = (caps[-1], regrets[-1])
    for g in free:
        if g in every:
            panel.axhline(_shown(g.regret), color=DARK_GREY, linewidth=1, linestyle="--", zorder=0)
        elif g.policies not in capped:
            panel.plot([g.policies], [_shown(g.regret)], "D", color=colors[g.learner], markersize=6)
            ends.setdefault(g.learner, (g.policies, _shown(g.regret)))
    _set_limits(panel, list(capped), ends)
    if isinstance(world, LowerBoundWorld):
        _draw_theorem(panel, world, list(capped))
    plain_ticks(panel.yaxis)
    panel.set(xlabel="policies that may be deployed (diamond: without a cap)", ylabel="regret (mean ± s.e.)")
    right = panel.get_xlim()[1]
    labels = {f"{g.learner}, every step": (right, _shown(g.regret)) for g in every}
    name_points(panel, ends, colors)
    name_points(panel, labels, dict.fromkeys(labels, DARK_GREY))
    headline(panel, f"{_finding(capped, every)}\n{_instance(found, world)}")
    return made


def _shown(regret: float) -> float:
    """A regret that a logarithmic axis can show."""
    return max(regret, 0.1)


def _set_limits(panel: Any, caps: list[int], ends: dict[str, tuple[float, float]]) -> None:
    marks = caps or [1]
    panel.set_xticks(marks, [str(cap) for cap in marks])
    panel.minorticks_off()
    furthest = max([x for x, _ in ends.values()], default=1)
    panel.set_xlim(0.85 * min(marks), max(max(marks), furthest) * 2.6)  # room for the names of the series


def _finding(capped: Mapping[int, list[Group]], every: list[Group]) -> str:
    """What the picture says, where it has foresight and somebody who changes at every step."""
    shown = {cap: g for cap, groups in capped.items() for g in groups if g.learner == "foresight"}
    if not shown or not every:
        return "What fewer policies cost"
    cap = 8 if 8 in shown else max(shown)
    best = min(every, key=lambda g: g.regret)
    ratio = shown[cap].regret / _shown(best.regret)
    count = "1 policy" if cap == 1 else f"{cap} policies"
    return f"foresight with {count} pays {ratio:.2g} times what {best.learner} pays at every step"


def _instance(found: Tradeoff, world: World) -> str:
    one = next(run for runs in found.runs.values() for run in runs)
    seeds = len({run.seed for runs in found.runs.values() for run in runs})
    size = f"T = {one.horizon:,}, d = {world.dim}, K = {world.arms}"
    if isinstance(world, LowerBoundWorld):
        return f"lower-bound instances: {size}, υ = {world.upsilon:.3g} ({world.regime}), {seeds} seeds"
    return f"{one.world} world: {size}, {seeds} seeds"


def _draw_theorem(panel: Any, world: LowerBoundWorld, caps: list[int]) -> None:
    """The lower bound's line, solid where the theorem holds and dotted where it is only its formula."""
    stages = world.dim // 2 * world.stages
    panel.axvline(stages, color=GREY, linewidth=1, linestyle="--")
    panel.annotate(f" {stages} stages", (stages, 1.0), xycoords=("data", "axes fraction"), va="top", color=DARK_GREY)
    x = np.geomspace(min(caps), max(caps), 200)
    scale = world.context_scale * world.theta_scale
    y = np.array([scale * switch_lower_bound(horizon=world.horizon, dim=world.dim, switches=m) for m in x])
    proved = theorem_range(horizon=world.horizon, dim=world.dim)
    inside = np.zeros(len(x), dtype=bool) if proved is None else (x >= proved[0]) & (x <= proved[1])
    panel.plot(x, y, color="black", linewidth=1.2, linestyle=":", label="formula of the lower bound")
    text = "formula of the lower bound (σ = 1)"
    if inside.any():
        panel.plot(x[inside], y[inside], color="black", linewidth=2.2)
        text += ", solid where it is a theorem"
    else:
        text += ",\na theorem for no number of policies at this T"
    panel.annotate(text, (x[0], y[0]), xytext=(0, 5), textcoords="offset points", va="bottom", fontsize=8.5)
