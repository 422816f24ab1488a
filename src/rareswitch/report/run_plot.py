"""Pictures of runs: regret against time, regret against updates, survivors by batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rareswitch.report.figures import PALETTE, figure, headline
from rareswitch.report.run_table import Group, grouped
from rareswitch.sim import Run

#: Policies of a run, above which they are not shown one by one.
MANY = 40


def draw_runs(runs: Sequence[Run]) -> Any:
    """One row of three panels for each world, at its longest horizon."""
    groups = grouped(runs)
    worlds = list(dict.fromkeys(g.world for g in groups))
    learners = list(dict.fromkeys(g.learner for g in groups))
    colors = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(learners)}
    made, panels = figure(3, len(worlds))
    for row, world in enumerate(worlds):
        longest = max(g.horizon for g in groups if g.world == world)
        here = [g for g in groups if (g.world, g.horizon) == (world, longest)]
        for panel, draw in zip(panels[3 * row :], (_draw_curves, _draw_trade, _draw_survivors), strict=False):
            draw(panel, here, colors)
        headline(panels[3 * row], f"{world}, T = {longest:,}")
    return made


def _draw_curves(panel: Any, groups: list[Group], colors: dict[str, str]) -> None:
    for k, g in enumerate(groups):
        regrets = np.array([run.regrets for run in g.runs])
        mean = regrets.mean(axis=0)
        times = g.runs[0].times
        style = "-" if k < len(PALETTE) else "--"  # colours repeat after so many
        panel.plot(times, mean, style, color=colors[g.learner], label=g.learner, linewidth=1.6)
        if len(g.runs) > 1:
            error = regrets.std(axis=0, ddof=1) / np.sqrt(len(g.runs))
            panel.fill_between(times, mean - error, mean + error, color=colors[g.learner], alpha=0.2, linewidth=0)
        ends = g.runs[0].batch_ends[:-1]
        if len(ends) <= MANY:
            panel.plot(ends, np.interp(ends, times, mean), "o", color=colors[g.learner], markersize=3.5)
    panel.set(xlabel="decisions", ylabel="regret (mean ± s.e.; dots: policy updates)", xlim=(0, None), ylim=(0, None))
    panel.legend(frameon=False, fontsize=9 if len(groups) <= 8 else 7, loc="upper left", ncols=1 + (len(groups) > 8))


def _draw_trade(panel: Any, groups: list[Group], colors: dict[str, str]) -> None:
    for g in groups:
        panel.errorbar(g.updates, g.regret, yerr=g.bar, fmt="o", color=colors[g.learner], markersize=7, capsize=3)
    most = max(g.updates for g in groups)
    if most > MANY:
        panel.set(xscale="log", xlim=(0.8, 2.0 * most))
    else:
        panel.set_xlim(0, most * 1.25 + 0.5)
    top = 1.15 * max(g.regret for g in groups) + 1e-9
    panel.set(xlabel="policies deployed", ylabel="regret at the horizon", ylim=(0, top))


def _draw_survivors(panel: Any, groups: list[Group], colors: dict[str, str]) -> None:
    shown = [g for g in groups if {len(run.survivors) for run in g.runs} <= set(range(1, MANY + 1))]
    if not shown:
        panel.set_axis_off()
        return
    # batches of runs that differ in their number cannot be averaged
    for g in (g for g in shown if len({len(run.survivors) for run in g.runs}) == 1):
        mean = np.mean([run.survivors for run in g.runs], axis=0)
        panel.plot(np.arange(1, len(mean) + 1), mean, "o-", color=colors[g.learner], markersize=4, linewidth=1.4)
    top = 1.08 * max(float(run.survivors.max()) for g in shown for run in g.runs)
    panel.set(xlabel="batch", ylabel="arms left by elimination (mean)", ylim=(0, top))
    panel.locator_params(axis="x", integer=True)
