"""The trade-off between policies and regret, as a table and as a picture."""

from typing import Any

import numpy as np

from rareswitch.env import LowerBoundWorld, World, switch_lower_bound, theorem_range
from rareswitch.report.figures import GREY, PALETTE, figure
from rareswitch.report.run_table import Group, grouped
from rareswitch.report.tables import table
from rareswitch.sim import Tradeoff


def tradeoff_table(found: Tradeoff) -> str:
    """Mean regret with the standard error, a row for each cap and a column for each learner."""
    cells = {(cap, g.learner): g for cap, runs in found.runs.items() for g in grouped(runs)}
    names = list(dict.fromkeys(name for _, name in cells))
    rows = []
    for cap in found.runs:
        groups = [cells.get((cap, name)) for name in names]
        rows.append(["no cap" if cap is None else str(cap), *("" if g is None else _cell(g) for g in groups)])
    return table(["policies", *names], rows)


def _cell(group: Group) -> str:
    error = "" if np.isnan(group.standard_error) else f" ± {group.standard_error:,.0f}"
    return f"{group.regret:,.0f}{error} ({group.updates:,.4g})"


def draw_tradeoff(found: Tradeoff, world: World) -> Any:
    """Regret against the cap, at the right that without one, and the theorem's line where there is one."""
    made, (panel,) = figure(1, 1)
    made.set_size_inches(8.4, 5.2)
    caps = [cap for cap in found.runs if cap is not None]
    names = list(dict.fromkeys(run.learner for runs in found.runs.values() for run in runs))
    right = 1.6 * max(caps)
    for k, name in enumerate(names):
        groups = {cap: g for cap, runs in found.runs.items() for g in grouped(runs) if g.learner == name}
        capped = [(cap, groups[cap]) for cap in caps if cap in groups]
        if capped:
            panel.errorbar(
                [cap for cap, _ in capped],
                [g.regret for _, g in capped],
                yerr=[0.0 if np.isnan(g.standard_error) else g.standard_error for _, g in capped],
                fmt="o-",
                color=PALETTE[k % len(PALETTE)],
                label=name,
                linewidth=1.5,
                markersize=4,
                capsize=2,
            )
        if None in groups:
            panel.plot([right], [groups[None].regret], "D", color=PALETTE[k % len(PALETTE)], markersize=6)
    panel.set_xscale("log", base=2)
    panel.set_xticks([*caps, right], [*map(str, caps), "no cap"])
    panel.minorticks_off()
    if isinstance(world, LowerBoundWorld):
        _draw_theorem(panel, world, caps)
    panel.set_xlabel("policies that may be deployed (the loop holds to it)")
    panel.set_ylabel("regret (mean ± s.e.)")
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=9)
    return made


def _draw_theorem(panel: Any, world: LowerBoundWorld, caps: list[int]) -> None:
    """The lower bound's line, solid where the theorem holds and dotted where it is only its formula."""
    stages = world.dim // 2 * world.stages
    panel.axvline(stages, color=GREY, linewidth=1, linestyle="--")
    panel.annotate(f" {stages} stages", (stages, 1.0), xycoords=("data", "axes fraction"), va="top", color="#5a646d")
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
    panel.set_title(
        f"lower-bound instances, T = {world.horizon:,}, d = {world.dim}, υ = {world.upsilon:.3g} ({world.regime})",
        loc="left",
        fontweight="bold",
    )
