"""Pictures of runs, and what notebooks show of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rareswitch.errors import several
from rareswitch.lab.collaborate import Collaboration
from rareswitch.lab.report.runs import Group, Ratio, collaborative_table, grouped, meetings_table, ratios, run_table
from rareswitch.lab.simulate import Run
from rareswitch.lab.sweep import Sweep
from rareswitch.report import (
    WIDTH,
    ResultRows,
    as_text,
    draw,
    figure,
    headline,
    name_points,
    plain_ticks,
    rows_of,
    series_colors,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Policies of a run, above which they are not shown one by one.
MANY = 40


def draw_runs(runs: Sequence[Run]) -> Any:
    """Panels for each world and horizon, one below the other; the series are named at their lines."""
    groups = grouped(runs)
    places = list(dict.fromkeys((g.world, g.horizon) for g in groups))
    adaptive = {g.learner for g in groups if g.policies > g.horizon / 2 and g.policies > MANY}
    colors = series_colors((g.learner for g in groups), adaptive)
    best, compared = ratios(groups)
    kinds = 3 if len(places) == 1 and any(_eliminates(g) for g in groups) else 2
    picture, panels = figure(1, kinds * len(places))
    picture.set_size_inches(WIDTH, 3.9 * kinds * len(places))
    for k, place in enumerate(places):
        shown = [g for g in groups if (g.world, g.horizon) == place]
        curves, trade, *survivors = panels[kinds * k : kinds * (k + 1)]
        _draw_curves(curves, shown, colors)
        _draw_trade(trade, shown, colors, compared, best.get(place, ""))
        for panel in survivors:
            _draw_survivors(panel, [g for g in shown if _eliminates(g)], colors)
    return picture


def _draw_curves(panel: "Axes", groups: list[Group], colors: Mapping[str, str]) -> None:
    means = {g.learner: np.mean([run.regrets for run in g.runs], axis=0) for g in groups}
    times = groups[0].runs[0].times
    shown = times >= times[-1] / 1000
    top = max(max(mean[-1] for mean in means.values()), 0.1)
    least = min(mean[shown & (mean > 0.0)].min(initial=top) for mean in means.values())
    bottom = max(0.7 * least, 1e-5 * top)
    panel.set(xscale="log", yscale="log", xlim=(times[shown][0], times[-1]))
    for g in groups:
        mean, color = means[g.learner], colors[g.learner]
        panel.plot(times, mean, color=color, label=g.learner, linewidth=1.6)
        if len(g.runs) > 1:
            error = np.std([run.regrets for run in g.runs], axis=0, ddof=1) / np.sqrt(len(g.runs))
            low = np.maximum(mean - error, 0.1 * mean)
            panel.fill_between(times, low, mean + error, color=color, alpha=0.2, linewidth=0)
        ends = g.runs[0].batch_ends[:-1]
        if len(ends) <= MANY:
            panel.plot(ends, np.interp(ends, times, mean), "o", color=color, markersize=3.5)
    panel.set_ylim(bottom, 1.3 * top)
    name_points(panel, {name: (times[-1], max(mean[-1], bottom)) for name, mean in means.items()}, colors)
    _plain(panel)
    panel.set(xlabel="decisions", ylabel="regret (mean ± s.e.; dots: policy updates)")
    first = groups[0]
    best = min(groups, key=lambda g: g.regret).learner
    seeds = f"{len(first.runs)} seeds" if len(first.runs) > 1 else "one seed"
    least_paid = f": {best} paid least" if len(groups) > 1 else ""
    headline(panel, f"{first.world}, T = {first.horizon:,}, {seeds}{least_paid}")


def _draw_trade(
    panel: "Axes", groups: list[Group], colors: Mapping[str, str], compared: Mapping[Group, Ratio], best: str
) -> None:
    most, floor = max(g.policies for g in groups), 0.1
    regrets = [max(g.regret, floor) for g in groups]
    panel.set(xscale="log", yscale="log", xlim=(0.8, 1.5 * most), ylim=(0.7 * min(regrets), 1.5 * max(regrets)))
    for g, regret in zip(groups, regrets, strict=True):
        open_one = g in compared and not compared[g].resolved
        color = colors[g.learner]
        dots = panel.errorbar(g.policies, regret, yerr=min(g.bar, 0.9 * regret), fmt="o", color=color, capsize=3)
        dots[0].set(markersize=7, markerfacecolor="white" if open_one else color)
    name_points(panel, {g.learner: (g.policies, r) for g, r in zip(groups, regrets, strict=True)}, colors)
    _plain(panel)
    unresolved = any(not compared[g].resolved for g in groups if g in compared)
    hollow = " (hollow: ratio to the best not resolved)" if unresolved else ""
    panel.set(xlabel="policies deployed", ylabel=f"regret at the end{hollow}")
    headline(panel, _trade_title(groups, compared, best))


def _plain(panel: "Axes") -> None:
    for axis in (panel.xaxis, panel.yaxis):
        plain_ticks(axis)


def _trade_title(groups: list[Group], compared: Mapping[Group, Ratio], best: str) -> str:
    """What few policies cost, where somebody has few."""
    few = [g for g in groups if g in compared and g.policies <= MANY]
    if not few:
        return "regret at the end, by policies deployed"
    rare = min(few, key=lambda g: g.regret)
    policies = f"{rare.policies:.3g} policies"
    if compared[rare].value == 1.0:
        return f"{rare.learner} paid least, with {policies}"
    return f"with {policies}, {rare.learner} paid {compared[rare].value:.2f} times what {best} paid"


def _eliminates(group: Group) -> bool:
    """Whether it drops arms, in batches that are few and equally many in all runs, so that they can be averaged."""
    counts = {len(run.survivors) for run in group.runs}
    few = len(counts) == 1 and counts <= set(range(2, MANY + 1))
    return few and any(run.survivors.min() < run.survivors.max() for run in group.runs)


def _draw_survivors(panel: "Axes", groups: list[Group], colors: Mapping[str, str]) -> None:
    if not groups:
        panel.set_axis_off()
        return
    means = {g.learner: np.mean([run.survivors for run in g.runs], axis=0) for g in groups}
    panel.set(ylim=(0, 1.08 * max(mean.max() for mean in means.values())))
    panel.set_xlim(0.8, max(len(mean) for mean in means.values()) + 0.2)
    for name, mean in means.items():
        panel.plot(np.arange(1, len(mean) + 1), mean, "o-", color=colors[name], markersize=4, linewidth=1.4)
    name_points(panel, {name: (len(mean), mean[-1]) for name, mean in means.items()}, colors)
    panel.set(xlabel="batch", ylabel="arms left (mean)")
    panel.locator_params(axis="x", integer=True)
    headline(panel, "arms that elimination leaves")


@as_text.register
def run_text(run: Run, *, cli: bool = False) -> str:
    """A run in a line."""
    policies = several(run.policies, "policy")
    return f"{run.learner} in {run.world}, {run.horizon:,} decisions, {policies}: regret {run.regret:,.1f}."


@as_text.register
def sweep_text(sweep: Sweep, *, cli: bool = False) -> str:
    """The table of its runs."""
    return run_table(sweep.runs)


@as_text.register
def collaboration_text(collaboration: Collaboration, *, cli: bool = False) -> str:
    """The run, and its rounds of communication."""
    return f"{collaborative_table([collaboration])}\n\n{meetings_table(collaboration)}"


@rows_of.register
def run_rows(run: Run) -> ResultRows:
    """A row for each batch; of a run that updates at every step, for each of some numbers of decisions."""
    few = 0 < len(run.batch_ends) <= MANY
    ends = run.batch_ends if few else run.times[:: -max(1, len(run.times) // 10)][::-1]
    regrets = np.interp(ends, run.times, run.regrets)
    columns = enumerate(zip(ends.tolist(), np.diff(regrets, prepend=0.0).tolist(), regrets.tolist(), strict=True), 1)
    rows = [
        {**({"policy": k} if few else {}), "decisions in all": end, "regret": lost, "regret in all": total}
        for k, (end, lost, total) in columns
    ]
    return ResultRows(rows=rows, drawn="regret")


@rows_of.register
def sweep_rows(sweep: Sweep) -> ResultRows:
    """A row for each run."""
    names = ("learner", "world", "horizon", "seed", "policies", "regret", "linear_regret", "seconds")
    lead = f"{several(len(sweep.runs), 'run')}, {sweep.resumed:,} of them from the file."
    return ResultRows(
        rows=[{name: getattr(run, name) for name in names} for run in sweep.runs], drawn="regret", lead=lead
    )


@rows_of.register
def collaboration_rows(collaboration: Collaboration) -> ResultRows:
    """A row for each round of communication."""
    names = ("start", "stop", "longest", "received", "sent")
    rows = [{name: getattr(meeting, name) for name in names} for meeting in collaboration.meetings]
    return ResultRows(rows=rows, drawn="longest", lead=as_text(collaboration.run))


@draw.register
def draw_run(run: Run) -> Any:
    """As in a sweep."""
    return draw_runs([run])


@draw.register
def draw_sweep(sweep: Sweep) -> Any:
    """All of its runs."""
    return draw_runs(sweep.runs)


@draw.register
def draw_collaboration(collaboration: Collaboration) -> Any:
    """The run of all agents together."""
    return draw_runs([collaboration.run])
