"""The trade-off between policies and regret, as a table and as a picture."""

from typing import Any

import numpy as np

from rareswitch.env import LowerBoundWorld, World, switch_lower_bound, theorem_range
from rareswitch.report.figures import DARK_GREY, GREY, PALETTE, figure, headline, name_points, plain_ticks
from rareswitch.report.run_table import Group, grouped
from rareswitch.report.tables import table
from rareswitch.sim import Tradeoff


def tradeoff_table(found: Tradeoff) -> str:
    """Mean regret with the standard error, a row for each cap and a column for each learner."""
    cells = {(cap, g.learner): _cell(g) for cap, runs in found.runs.items() for g in grouped(runs)}
    names = list(dict.fromkeys(name for _, name in cells))
    rows = [[str(cap or "no cap"), *(cells.get((cap, name), "") for name in names)] for cap in found.runs]
    return table(["policies", *names], rows)


def _cell(group: Group) -> str:
    error = "" if np.isnan(group.standard_error) else f" ± {group.standard_error:,.0f}"
    return f"{group.regret:,.0f}{error} ({group.updates:,.6g})"


def draw_tradeoff(found: Tradeoff, world: World) -> Any:
    """Regret against the cap, at the right that without one, and the theorem's line where there is one."""
    made, (panel,) = figure(1, 1)
    made.set_size_inches(8.4, 5.2)
    caps = [cap for cap in found.runs if cap is not None]
    names = list(dict.fromkeys(run.learner for runs in found.runs.values() for run in runs))
    right = 1.6 * max(caps)
    colors = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(names)}
    ends: dict[str, tuple[float, float]] = {}
    for name, color in colors.items():
        groups = {cap: g for cap, runs in found.runs.items() for g in grouped(runs) if g.learner == name}
        without = groups.pop(None, None)
        if groups:
            regrets, bars = [g.regret for g in groups.values()], [g.bar for g in groups.values()]
            style: dict[str, Any] = {"fmt": "o-", "linewidth": 1.5, "markersize": 4, "capsize": 2}
            panel.errorbar(list(groups), regrets, yerr=bars, color=color, **style)
            ends[name] = (max(cap for cap in groups if cap is not None), regrets[-1])
        if without is not None:
            panel.plot([right], [without.regret], "D", color=color, markersize=6)
            ends[name] = (right, without.regret)
    panel.set_xscale("log", base=2)
    panel.set_xticks([*caps, right], [*map(str, caps), "no cap"])
    panel.minorticks_off()
    if isinstance(world, LowerBoundWorld):
        _draw_theorem(panel, world, caps)
    panel.set_yscale("log")
    plain_ticks(panel.yaxis)
    panel.set(xlabel="policies that may be deployed (the loop holds to it)", ylabel="regret (mean ± s.e.)")
    name_points(panel, ends, colors)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(frameon=False, fontsize=9)
    return made


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
    panel.plot(x, y, color="black", linewidth=1.2, linestyle=":", label="formula of the lower bound (σ = 1)")
    if inside.any():
        panel.plot(x[inside], y[inside], color="black", linewidth=2.2, label="the lower bound, where it is a theorem")
    else:
        panel.plot([], [], " ", label="(a theorem for no number of policies at this T)")
    size = f"T = {world.horizon:,}, d = {world.dim}, υ = {world.upsilon:.3g} ({world.regime})"
    headline(panel, f"lower-bound instances, {size}")
