"""A judged contest as tables, for the terminal and as Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rareswitch.core import table
from rareswitch.lab.report.runs import HEADER, LEVEL, OFFSET, Ratio, linear_differs, resolution, short
from rareswitch.lab.report.verdict import ContestVerdict, Rivalry, Standing
from rareswitch.report import BLUE, DARK_GREY, GREY, ORANGE, beside, figure, headline, plain_ticks

COLORS = {"adaptive": BLUE, "rare": ORANGE, "other": GREY}
TEXTS = {"adaptive": "a new policy every step", "rare": "at most 8 policies", "other": "others"}
DOT: dict[str, Any] = {"markersize": 5, "capsize": 2, "linewidth": 1.6}
#: Inches for each entry.
ROW = 0.23


def draw_world(verdicts: Sequence[ContestVerdict], world: str) -> Any:
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


def draw_standings(verdicts: Sequence[ContestVerdict]) -> Any:
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


def _panels(verdicts: Sequence[ContestVerdict], rows: int) -> tuple[Any, Any]:
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


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table with its heading."""

    title: str
    text: str = ""
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    #: How many columns are words.
    left: int = 2
    #: Where the section is about one world.
    world: str = ""


def contest_text(verdicts: Sequence[ContestVerdict]) -> str:
    """All tables for the terminal: the worlds first, what matters most last."""
    sections = (s for verdict in verdicts for s in (*_worlds(verdict), *_summaries(verdict)))
    heads = ((s, "\n".join(filter(None, (s.title, s.text)))) for s in sections)
    return "\n\n\n".join(f"{head}\n\n{table(s.header, s.rows, left=s.left)}" for s, head in heads)


def contest_markdown(verdicts: Sequence[ContestVerdict], pictures: Mapping[str, str] | None = None) -> str:
    """All tables as Markdown, the summaries first; pictures by world, and ``""`` for that of the summary.

    A picture shows all horizons and comes once, with the first table that it belongs to.
    """
    left = dict(pictures or {})
    lines = ["# The contest"]
    for sections in (_summaries, _worlds):
        for verdict in verdicts:
            for s in sections(verdict):
                lines += ["", f"## {s.title}", *(["", s.text] if s.text else [])]
                if s.world in left:
                    lines += ["", f"![{s.world or 'summary'}]({left.pop(s.world)})"]
                lines += ["", _row(s.header), _row([":--" if k < s.left else "--:" for k in range(len(s.header))])]
                lines += [_row(row) for row in s.rows]
    return "\n".join(lines) + "\n"


def _summaries(verdict: ContestVerdict) -> Iterator[Section]:
    counts = ((len(verdict.worlds), "world"), (verdict.seeds, "seed"))
    size = ", ".join([f"T = {verdict.horizon:,}", *(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)])
    text = "There is no yardstick: no fully adaptive entry was run."
    if verdict.yardstick is not None:
        ratio = f"(regret + {OFFSET:g})/(that of {verdict.yardstick} + {OFFSET:g})"
        text = (
            f"Ratios are {ratio}, the best single fully adaptive entry.\nIntervals of {100 * LEVEL:g} % are over the "
            "seeds, by resampling; not resolved are worlds whose interval is wider than a factor 1.5.\nWorst 5 %: the "
            "mean regret of an entry's worst twentieth of the seeds, against the yardstick's mean."
        )
    if verdict.against != "best arm":
        text += f"\nRegret is counted against the {verdict.against} in hindsight; an entry that beats it loses nothing."
    if verdict.unfinished:
        text += f"\nNot judged, as unfinished: {', '.join(verdict.unfinished)}."
    header = ["entry", "kind", "policies", "geometric mean", HEADER[1], "not resolved", "worst world", "ratio"]
    header += ["worst 5 % in", "ratio"]
    rows = [_standing_row(s) for s in verdict.standings]
    yield Section(title=f"Standings at {_counted(verdict, size)}", text=text, header=header, rows=rows)
    if verdict.yardstick is not None:
        rows = [[s.entry, *(_marked(s, w) for w in verdict.worlds)] for s in verdict.standings]
        title = f"Ratios by world at {_counted(verdict)}"
        text = resolution(r for s in _others(verdict) for r in s.ratios.values())
        yield Section(title=title, text=text, header=["entry", *verdict.worlds], rows=rows, left=1)
    header = ["world", "best adaptive", "best rare", "yardstick", "adaptive", "ratio", "rare", "ratio"]
    rows = [_best_row(verdict, world) for world in verdict.worlds]
    text = "Chosen afterwards, world by world: regret, and its ratio to the yardstick's."
    title = f"Each world's own best at {_counted(verdict)}"
    yield Section(title=title, text=text, header=header, rows=rows, left=3)
    if verdict.rivalry is not None:
        yield _rivals(verdict, verdict.rivalry)


def _rivals(verdict: ContestVerdict, found: Rivalry) -> Section:
    header = ["world", "best rival", "its regret"]
    for entry in found.ratios:
        header += [entry, HEADER[1]]
    rows = []
    for world, cell in found.best.items():
        ratios = (own.get(world) for own in found.ratios.values())
        rows.append([world, cell.learner, f"{cell.regret:,.1f}", *(text for ratio in ratios for text in _pair(ratio))])
    means = (found.means.get(entry) for entry in found.ratios)
    rows.append(["geometric mean", "", "", *(text for ratio in means for text in _pair(ratio))])
    text = (
        f"Ratios (regret + {OFFSET:g})/(that of the best rival + {OFFSET:g}), paired by seed. The best rival of each "
        "world is chosen afterwards, which favours it."
    )
    marked = resolution(ratio for own in found.ratios.values() for ratio in own.values())
    title = f"Against the best rival of each world at {_counted(verdict)}"
    return Section(title=title, text="\n".join(filter(None, (text, marked))), header=header, rows=rows)


def _counted(verdict: ContestVerdict, size: str = "") -> str:
    """The horizon, or more of the contest's size, and what regret is counted against where it is not the best arm."""
    size = size or f"T = {verdict.horizon:,}"
    return size if verdict.against == "best arm" else f"{size}, against the {verdict.against}"


def _worlds(verdict: ContestVerdict) -> Iterator[Section]:
    """A table for each world; regret against the best linear policy is a column of it where it is another."""
    if verdict.against != "best arm":
        return
    for world in verdict.worlds:
        ranked = verdict.ranked(world)
        linear = linear_differs(run for s in ranked for run in s.cells[world].runs)
        header = ["entry", "kind", "policies", "regret", "± s.e.", "worst 5 %", *HEADER, "seconds"]
        rows = [_world_row(s, world, s.entry == verdict.yardstick) for s in ranked]
        if linear:
            header.insert(5, "beyond linear")
            for row, s in zip(rows, ranked, strict=True):
                row.insert(5, f"{s.cells[world].linear_regret:,.1f}")
        text = resolution(s.ratios[world] for s in _others(verdict) if world in s.ratios)
        yield Section(title=f"{world}, T = {verdict.horizon:,}", text=text, header=header, rows=rows, world=world)


def _others(verdict: ContestVerdict) -> list[Standing]:
    """All but the yardstick."""
    return [s for s in verdict.standings if s.entry != verdict.yardstick]


def _world_row(standing: Standing, world: str, is_yardstick: bool) -> list[str]:
    cell = standing.cells[world]
    policies = f"{cell.policies:,.4g}" if cell.policies < 1e4 else f"{cell.policies:,.0f}"
    name = f"{standing.entry} (yardstick)" if is_yardstick else standing.entry
    numbers = [f"{cell.regret:,.1f}", cell.error_text, f"{cell.tail:,.1f}"]
    compared = standing.ratios[world].cells if world in standing.ratios else [""] * len(HEADER)
    return [name, standing.kind, policies, *numbers, *compared, f"{cell.seconds:.2f}"]


def _best_row(verdict: ContestVerdict, world: str) -> list[str]:
    best = [verdict.best(world, kind) for kind in ("adaptive", "rare")]
    unit = next((s for s in verdict.standings if s.entry == verdict.yardstick), None)
    regrets = ["" if s is None else f"{s.cells[world].regret:,.1f}" for s in (unit, *best)]
    ratios = ["" if s is None else _marked(s, world) for s in best]
    return [world, *("" if s is None else s.entry for s in best), *regrets[:2], ratios[0], regrets[2], ratios[1]]


def _standing_row(standing: Standing) -> list[str]:
    low, high = (f"{count:,.0f}" for count in standing.policies)
    policies = low if low == high else f"{low} to {high}"
    mean = ["", ""] if standing.mean is None else [standing.mean.cells[0], standing.mean.interval]
    mean.append(f"{len(standing.unresolved)} of {len(standing.ratios)}" if standing.ratios else "")
    (world, ratio), (tail_world, tail_ratio) = standing.worst_world, standing.worst_tail
    return [standing.entry, standing.kind, policies, *mean, world, _plain(ratio), tail_world, _plain(tail_ratio)]


def _pair(ratio: Ratio | None) -> list[str]:
    return ["", ""] if ratio is None else [ratio.marked, ratio.interval]


def _marked(standing: Standing, world: str) -> str:
    return standing.ratios[world].marked if world in standing.ratios else ""


def _plain(value: float) -> str:
    return "" if math.isnan(value) else short(value)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
