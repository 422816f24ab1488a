"""Pictures of a judged contest: one for each world, and one of all."""

from collections.abc import Sequence
from typing import Any

from rareswitch.lab.report.resampling import OFFSET, Ratio
from rareswitch.lab.report.verdict import Standing, Verdict
from rareswitch.report import BLUE, DARK_GREY, GREY, ORANGE, beside, figure, headline, plain_ticks

COLORS = {"adaptive": BLUE, "rare": ORANGE, "other": GREY}
TEXTS = {"adaptive": "a new policy every step", "rare": "at most 8 policies", "other": "others"}
DOT: dict[str, Any] = {"markersize": 5, "capsize": 2, "linewidth": 1.6}
#: Inches for each entry.
ROW = 0.23


def draw_world(verdicts: Sequence[Verdict], world: str) -> Any:
    """Regret of every entry in a world, a panel for each horizon."""
    shown = [verdict for verdict in verdicts if world in verdict.worlds]
    made, panels = _panels(shown, max(len(verdict.ranked(world)) for verdict in shown))
    for panel, verdict in zip(panels, shown, strict=True):
        ranked = verdict.ranked(world)
        for row, s in enumerate(ranked):
            cell, color = s.cells[world], COLORS[s.kind]
            mean, tail = cell.regret + OFFSET, cell.tail + OFFSET
            panel.plot([mean, tail], [row, row], color=color, linewidth=1, alpha=0.4)
            panel.plot([tail], [row], "|", color=color, markersize=7, alpha=0.7)
            style = DOT | {"markerfacecolor": _face(s.ratios.get(world), color)}
            panel.errorbar([mean], [row], xerr=min(cell.bar, 0.9 * mean), fmt="o", color=color, **style)
        if verdict.yardstick is not None:
            unit = next(s for s in ranked if s.entry == verdict.yardstick).cells[world].regret + OFFSET
            panel.axvline(unit, color="black", linewidth=0.9, linestyle="--", zorder=0)
        _label(panel, ranked, verdict.yardstick)
        panel.set_xlabel(
            f"regret + {OFFSET:g} (dot: mean ± s.e., hollow where its ratio to the yardstick is not resolved;\n"
            "tick: the worst 5 % of seeds; dashed: yardstick)"
        )
        headline(panel, f"{world}, T = {verdict.horizon:,}, {verdict.seeds} seeds")
    return made


def draw_standings(verdicts: Sequence[Verdict]) -> Any:
    """Ratios to the yardstick of the entries that ran everywhere, a panel for each horizon with a yardstick."""
    shown = [verdict for verdict in verdicts if verdict.yardstick is not None]
    made, panels = _panels(shown, max(sum(s.complete for s in verdict.standings) for verdict in shown))
    for panel, verdict in zip(panels, shown, strict=True):
        complete = [s for s in verdict.standings if s.complete]
        for row, s in enumerate(complete):
            color, ratios = COLORS[s.kind], [ratio.value for ratio in s.ratios.values()]
            panel.plot([min(ratios), max(ratios)], [row, row], color=color, linewidth=1, alpha=0.4, zorder=1)
            for ratio in s.ratios.values():
                style = {"markersize": 3.5, "markerfacecolor": _face(ratio, color), "markeredgewidth": 0.7}
                panel.plot([ratio.value], [row], "o", color=color, zorder=3, **style)
            mean = s.mean or Ratio(seeds=verdict.seeds)
            panel.plot([mean.low, mean.high], [row, row], color=color, linewidth=5, alpha=0.35, zorder=2)
            panel.plot([s.geometric_mean], [row], "D", color=color, markersize=6.5, zorder=4)
            name, worst = ("", 1.0) if s.entry == verdict.yardstick else s.worst_world
            beside(panel, name, (max(worst, s.geometric_mean), row), (5, 6), va="center", fontsize=7, color=DARK_GREY)
        panel.axvline(1.0, color="black", linewidth=0.9, linestyle="--", zorder=0)
        _label(panel, complete, verdict.yardstick)
        low, high = panel.get_xlim()
        panel.set_xlim(low, high * (high / low) ** 0.16)  # room for the names at the right
        panel.set_xlabel(
            "ratio to the yardstick (diamond: geometric mean\nwith its 90 % interval; dots: worlds, the worst named,\n"
            "hollow where the seeds do not resolve it to a factor 1.5)"
        )
        headline(panel, f"all worlds, T = {verdict.horizon:,}, {verdict.seeds} seeds: ratio to {verdict.yardstick}")
    return made


def _face(ratio: Ratio | None, color: str) -> str:
    """The inside of a dot: empty where a ratio is not resolved."""
    return color if ratio is None or ratio.resolved else "white"


def _panels(verdicts: Sequence[Verdict], rows: int) -> tuple[Any, Any]:
    made, panels = figure(len(verdicts))
    made.set_size_inches(7.6 * len(verdicts), 1.6 + ROW * max(rows, 4))
    return made, panels


def _label(panel: Any, ranked: Sequence[Standing], yardstick: str | None) -> None:
    """Names of the entries in the colours of their kinds, the first on top, and a legend."""
    panel.set_xscale("log")
    plain_ticks(panel.xaxis)
    panel.set_yticks(range(len(ranked)), [s.entry for s in ranked], fontsize=8.5)
    for tick, s in zip(panel.get_yticklabels(), ranked, strict=True):
        tick.set_color(DARK_GREY if s.kind == "other" else COLORS[s.kind])
        tick.set_fontweight("bold" if s.entry == yardstick else "normal")
    panel.set_ylim(len(ranked) - 0.4, -0.6)
    panel.grid(axis="x", color="#e4e8eb", linewidth=0.8)
    panel.set_axisbelow(True)
    for kind in (kind for kind in COLORS if any(s.kind == kind for s in ranked)):
        panel.plot([], [], "o", color=COLORS[kind], label=TEXTS[kind])
    panel.legend(frameon=False, fontsize=8.5, loc="upper right")
