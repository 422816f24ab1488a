"""Pictures of a judged contest: one for each world, and one of all."""

from collections.abc import Sequence
from typing import Any

from rareswitch.report.figures import BLUE, DARK_GREY, GREY, ORANGE, beside, figure, headline
from rareswitch.report.verdict import OFFSET, Standing, Verdict

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
            mean, worst = cell.regret + OFFSET, cell.worst + OFFSET
            panel.plot([mean, worst], [row, row], color=color, linewidth=1, alpha=0.4)
            panel.plot([worst], [row], "|", color=color, markersize=7, alpha=0.7)
            panel.errorbar([mean], [row], xerr=min(cell.bar, 0.9 * mean), fmt="o", color=color, **DOT)
        if verdict.yardstick is not None:
            unit = next(s for s in ranked if s.entry == verdict.yardstick).cells[world].regret + OFFSET
            panel.axvline(unit, color="black", linewidth=0.9, linestyle="--", zorder=0)
        _label(panel, ranked, verdict.yardstick)
        panel.set_xlabel(f"regret + {OFFSET:g} (dot: mean ± s.e.; tick: worst seed; dashed: yardstick)")
        headline(panel, f"{world}, T = {verdict.horizon:,}, {verdict.seeds} seeds")
    return made


def draw_standings(verdicts: Sequence[Verdict]) -> Any:
    """Ratios to the yardstick of the entries that ran everywhere, a panel for each horizon with a yardstick."""
    shown = [verdict for verdict in verdicts if verdict.yardstick is not None]
    made, panels = _panels(shown, max(sum(s.complete for s in verdict.standings) for verdict in shown))
    for panel, verdict in zip(panels, shown, strict=True):
        complete = [s for s in verdict.standings if s.complete]
        for row, s in enumerate(complete):
            color, ratios = COLORS[s.kind], list(s.ratios.values())
            panel.plot([min(ratios), max(ratios)], [row, row], color=color, linewidth=1, alpha=0.4)
            panel.plot(ratios, [row] * len(ratios), "o", color=color, markersize=3, alpha=0.45, markeredgewidth=0)
            panel.plot([s.geometric_mean], [row], "D", color=color, markersize=6.5)
            name, worst = ("", 1.0) if s.entry == verdict.yardstick else s.worst_world
            beside(panel, name, (worst, row), (5, 0), va="center", fontsize=7, color=DARK_GREY)
        panel.axvline(1.0, color="black", linewidth=0.9, linestyle="--", zorder=0)
        _label(panel, complete, verdict.yardstick)
        low, high = panel.get_xlim()
        panel.set_xlim(low, high * (high / low) ** 0.16)  # room for the names at the right
        panel.set_xlabel("ratio to the yardstick (diamond: geometric mean; dots: worlds, the worst named)")
        headline(panel, f"all worlds, T = {verdict.horizon:,}, {verdict.seeds} seeds: ratio to {verdict.yardstick}")
    return made


def _panels(verdicts: Sequence[Verdict], rows: int) -> tuple[Any, Any]:
    made, panels = figure(len(verdicts))
    made.set_size_inches(7.6 * len(verdicts), 1.6 + ROW * max(rows, 4))
    return made, panels


def _label(panel: Any, ranked: Sequence[Standing], yardstick: str | None) -> None:
    """Names of the entries in the colours of their kinds, the first on top, and a legend."""
    panel.set_xscale("log")
    _plain_ticks(panel)
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


def _plain_ticks(panel: Any) -> None:
    """Numbers as people write them, and few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = panel.get_xlim()
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200.0 * low else (1.0,)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if x < 1.0 else f"{x:,.0f}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
