"""How the runs of a contest are judged, against the best single fully adaptive entry: verdicts, tables and pictures."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import TYPE_CHECKING, Literal

import numpy as np

from rareswitch.errors import several
from rareswitch.lab.report.runs import (
    HEADER,
    LEVEL,
    OFFSET,
    UNKNOWN,
    Group,
    Ratio,
    SummaryFacts,
    grouped,
    lifted,
    linear_differs,
    regret_ratio,
    resolution,
    short,
)
from rareswitch.lab.report.sections import Section, sections_markdown, sections_text
from rareswitch.lab.simulate import Run
from rareswitch.report import BLUE, DARK_GREY, GREY, ORANGE, beside, figure, headline, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What regret is counted against: the best arm of each round, or the best linear policy in hindsight.
Against = Literal["best arm", "best linear policy"]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An entry in all worlds."""

    entry: str
    kind: str
    #: By world; those in which it ran.
    cells: Mapping[str, Group]
    #: (regret + 10)/(the yardstick's + 10) of the means, by world; empty without a yardstick.
    ratios: Mapping[str, Ratio]
    #: Of its worst 5 % of seeds, against the yardstick's mean.
    tail_ratios: Mapping[str, float]
    #: The geometric mean of the ratios; None without a yardstick, or if it did not run in every world.
    mean: Ratio | None
    #: Whether it ran in every world.
    complete: bool

    @property
    def geometric_mean(self) -> float:
        """Of the ratios; NaN if it did not run in every world."""
        return UNKNOWN if self.mean is None else self.mean.value

    @property
    def unresolved(self) -> list[str]:
        """The worlds in which the seeds do not tell the ratio to a factor 1.5."""
        return [world for world, ratio in self.ratios.items() if not ratio.resolved]

    @property
    def worst_world(self) -> tuple[str, float]:
        """Where its ratio is largest, and that ratio."""
        return _largest({world: ratio.value for world, ratio in self.ratios.items()})

    @property
    def worst_tail(self) -> tuple[str, float]:
        """Where its worst 5 % of seeds are worst, and that ratio."""
        return _largest(self.tail_ratios)

    @property
    def policies(self) -> tuple[float, float]:
        """Fewest and most policies of a run, as means over the seeds of a world."""
        counts = [cell.policies for cell in self.cells.values()]
        return min(counts), max(counts)

    def summary(self) -> SummaryFacts:
        """What ``--json`` prints."""
        facts: SummaryFacts = {"entry": self.entry, "kind": self.kind, "unresolved": self.unresolved}
        facts |= {"geometric_mean": _known(self.geometric_mean), "interval": self.mean and self.mean.ends}
        for prefix, (world, ratio) in {"worst": self.worst_world, "worst_5_percent": self.worst_tail}.items():
            facts |= {f"{prefix}_world": world or None, f"{prefix}_ratio": _known(ratio)}
        ratios: Mapping[str, SummaryFacts] = _summaries_of(self.ratios)
        worlds = {world: cell.summary() | ratios.get(world, {"ratio": None}) for world, cell in self.cells.items()}
        return facts | {"worlds": worlds}


@dataclass(frozen=True, kw_only=True)
class ContestVerdict:
    """The contest at one horizon."""

    horizon: int
    against: Against
    seeds: int
    worlds: tuple[str, ...]
    #: Worlds that are not judged: some fully adaptive entry has not finished its seeds there.
    unfinished: tuple[str, ...]
    #: The fully adaptive entry with the smallest geometric mean of regret + 10; None if there is none.
    yardstick: str | None
    #: From small to large geometric means; at the end those that did not run in every world.
    standings: tuple[Standing, ...]
    #: The rival with the least mean regret, in each world where one and a challenger ran. It is chosen afterwards and
    #: on the same seeds, which favours it.
    rivals: Mapping[str, Group]
    #: Challengers in these worlds, with the best rival of each as their yardstick.
    challengers: tuple[Standing, ...]

    def best(self, world: str, kind: str) -> Standing | None:
        """The entry of that kind with the least regret in a world."""
        standings = [s for s in self.standings if s.kind == kind and world in s.cells]
        return min(standings, key=lambda s: s.cells[world].regret, default=None)

    def ranked(self, world: str) -> list[Standing]:
        """Those that ran in a world, from small to large regret."""
        return sorted((s for s in self.standings if world in s.cells), key=lambda s: s.cells[world].regret)

    def summary(self) -> SummaryFacts:
        """What ``--json`` prints."""
        names = ("horizon", "against", "seeds", "yardstick", "unfinished")
        facts = {name: getattr(self, name) for name in names} | {"entries": [s.summary() for s in self.standings]}
        best = {world: cell.learner for world, cell in self.rivals.items()}
        ratios = {s.entry: _summaries_of(s.ratios) for s in self.challengers}
        means = {s.entry: s.mean.summary() for s in self.challengers if s.mean is not None}
        return facts | {"rivals": {"best": best, "ratios": ratios, "geometric_means": means} if best else None}


def judge_contest(
    runs: Sequence[Run],
    kinds: Mapping[str, str],
    *,
    against: Against = "best arm",
    rivals: Sequence[str] = (),
    challengers: Sequence[str] = (),
) -> list[ContestVerdict]:
    """The verdict at each horizon.

    Parameters
    ----------
    runs
        Of a contest. An entry that lacks a seed which others have in that world and horizon does not count there.
    kinds
        Of each entry of the contest, those without a run included; the yardstick is one of kind ``adaptive``.
    against
        What regret is counted against.
    rivals, challengers
        Entries of which the latter are held against the best of the former in each world.
    """
    if against == "best linear policy":
        runs = [replace(run, regret=run.linear_regret) for run in runs]
    adaptive = [entry for entry, kind in kinds.items() if kind == "adaptive"]  # also those that have no run yet
    verdicts = []
    for horizon in dict.fromkeys(run.horizon for run in runs):
        own_runs = [run for run in runs if run.horizon == horizon]
        seeds = sorted({run.seed for run in own_runs})
        cells = {(g.learner, g.world): g for g in grouped(own_runs) if g.seeds == seeds}
        seen, judged = dict.fromkeys(run.world for run in own_runs), {world for _, world in cells}
        worlds = [world for world in seen if world in judged and all((entry, world) in cells for entry in adaptive)]
        lifts = {entry: [float(lifted(cells[entry, w].regret)) for w in worlds] for entry in adaptive if worlds}
        yardstick = min(lifts, key=lambda entry: round(geometric_mean(lifts[entry]), 12), default=None)
        unit = {world: cells[yardstick, world] for world in worlds} if yardstick else {}
        entries = dict.fromkeys(run.learner for run in own_runs)
        standings = [*_standings(entries, kinds, cells, worlds, unit)]
        standings.sort(key=lambda s: (not s.complete, 0.0 if math.isnan(s.geometric_mean) else s.geometric_mean))
        best = {}
        for world in worlds:
            own = [cells[entry, world] for entry in rivals if (entry, world) in cells]
            if own and any((entry, world) in cells for entry in challengers):
                best[world] = min(own, key=lambda cell: cell.regret)
        verdicts.append(
            ContestVerdict(
                horizon=horizon,
                against=against,
                seeds=len(seeds),
                worlds=tuple(worlds),
                unfinished=tuple(world for world in seen if world not in worlds),
                yardstick=yardstick,
                standings=tuple(standings),
                rivals=best,
                challengers=tuple(_standings(challengers, kinds, cells, best, best)),
            )
        )
    return verdicts


def _standings(
    entries: Iterable[str],
    kinds: Mapping[str, str],
    cells: Mapping[tuple[str, str], Group],
    worlds: Collection[str],
    unit: Mapping[str, Group],
) -> Iterator[Standing]:
    """Entries that ran in some of these worlds, by their runs and those of a yardstick, if there is one."""
    for entry in entries:
        if own := {world: cells[entry, world] for world in worlds if (entry, world) in cells}:
            ratios, mean = _ratios(own, {world: unit[world] for world in own}) if unit else ({}, None)
            tails = {
                world: float(lifted(cell.tail) / lifted(unit[world].regret)) for world, cell in own.items() if unit
            }
            complete = len(own) == len(worlds)
            yield Standing(
                entry=entry,
                kind=kinds[entry],
                cells=own,
                ratios=ratios,
                tail_ratios=tails,
                mean=mean if complete else None,
                complete=complete,
            )


def _ratios(own: Mapping[str, Group], unit: Mapping[str, Group]) -> tuple[dict[str, Ratio], Ratio]:
    """By world, and over all of them."""
    if own == unit:
        alone = {world: Ratio(seeds=len(cell.runs)) for world, cell in own.items()}
        return alone, next(iter(alone.values()))
    by_world = {world: regret_ratio(cell.regrets, unit[world].regrets) for world, cell in own.items()}
    together = (np.stack([side[world].regrets for world in own], axis=1) for side in (own, unit))
    return by_world, regret_ratio(*together)


def _summaries_of(ratios: Mapping[str, Ratio]) -> dict[str, SummaryFacts]:
    return {name: ratio.summary() for name, ratio in ratios.items()}


def _largest(values: Mapping[str, float]) -> tuple[str, float]:
    return max(values.items(), key=lambda item: item[1], default=("", UNKNOWN))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


COLORS = {"adaptive": BLUE, "rare": ORANGE, "other": GREY}
TEXTS = {"adaptive": "a new policy every step", "rare": "at most 8 policies", "other": "others"}
#: Inches for each entry.
ROW = 0.23


def draw_world(verdicts: Sequence[ContestVerdict], world: str) -> "Figure":
    """Regret of every entry in a world, a panel for each horizon."""
    shown = [verdict for verdict in verdicts if world in verdict.worlds]
    picture, panels = _panels(shown, max(len(verdict.ranked(world)) for verdict in shown))
    for panel, verdict in zip(panels, shown, strict=True):
        ranked = verdict.ranked(world)
        for row, s in enumerate(ranked):
            cell, color = s.cells[world], COLORS[s.kind]
            mean, tail = cell.regret + OFFSET, cell.tail + OFFSET
            panel.plot([mean, tail], [row, row], color=color, linewidth=1, alpha=0.4)
            panel.plot([tail], [row], "|", color=color, markersize=7, alpha=0.7)
            dots = panel.errorbar([mean], [row], xerr=min(cell.bar, 0.9 * mean), fmt="o", color=color, capsize=2)
            dots[0].set(markersize=5, markerfacecolor=_face(s.ratios.get(world), color))
        if verdict.yardstick is not None:
            unit = next(s for s in ranked if s.entry == verdict.yardstick).cells[world].regret + OFFSET
            panel.axvline(unit, color="black", linewidth=0.9, linestyle="--", zorder=0)
        _label(panel, ranked, verdict.yardstick)
        panel.set_xlabel(
            f"regret + {OFFSET:g} (dot: mean ± s.e., hollow where its ratio to the yardstick is not resolved;\n"
            "tick: the worst 5 % of seeds; dashed: yardstick)"
        )
        headline(panel, f"{world}, T = {verdict.horizon:,}, {verdict.seeds} seeds")
    return picture


def draw_standings(verdicts: Sequence[ContestVerdict]) -> "Figure":
    """Ratios to the yardstick of the entries that ran everywhere, a panel for each horizon with a yardstick."""
    shown = [verdict for verdict in verdicts if verdict.yardstick is not None]
    picture, panels = _panels(shown, max(sum(s.complete for s in verdict.standings) for verdict in shown))
    for panel, verdict in zip(panels, shown, strict=True):
        complete = [s for s in verdict.standings if s.complete]
        for row, s in enumerate(complete):
            color, ratios = COLORS[s.kind], [ratio.value for ratio in s.ratios.values()]
            panel.plot([min(ratios), max(ratios)], [row, row], color=color, linewidth=1, alpha=0.4, zorder=1)
            for ratio in s.ratios.values():
                (dot,) = panel.plot([ratio.value], [row], "o", color=color, zorder=3, markersize=3.5)
                dot.set(markerfacecolor=_face(ratio, color), markeredgewidth=0.7)
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
    return picture


def _face(ratio: Ratio | None, color: str) -> str:
    """The inside of a dot: empty where a ratio is not resolved."""
    return color if ratio is None or ratio.resolved else "white"


def _panels(verdicts: Sequence[ContestVerdict], rows: int) -> "tuple[Figure, Sequence[Axes]]":
    picture, panels = figure(len(verdicts))
    picture.set_size_inches(7.6 * len(verdicts), 1.6 + ROW * max(rows, 4))
    return picture, panels


def _label(panel: "Axes", ranked: Sequence[Standing], yardstick: str | None) -> None:
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


def contest_text(verdicts: Sequence[ContestVerdict]) -> str:
    """All tables for the terminal: the worlds first, what matters most last."""
    return sections_text(s for verdict in verdicts for s in (*_worlds(verdict), *_summaries(verdict)))


def contest_markdown(verdicts: Sequence[ContestVerdict], pictures: Mapping[str, str] | None = None) -> str:
    """All tables as Markdown, the summaries first; pictures by world, and ``""`` for that of the summary."""
    sections = (s for part in (_summaries, _worlds) for verdict in verdicts for s in part(verdict))
    return sections_markdown("The contest", sections, pictures)


def _summaries(verdict: ContestVerdict) -> Iterator[Section]:
    size = f"T = {verdict.horizon:,}, {several(len(verdict.worlds), 'world')}, {several(verdict.seeds, 'seed')}"
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
    if verdict.rivals:
        yield _rivals(verdict)


def _rivals(verdict: ContestVerdict) -> Section:
    header, challengers = ["world", "best rival", "its regret"], verdict.challengers
    for s in challengers:
        header += [s.entry, HEADER[1]]
    rows = [
        [world, cell.learner, f"{cell.regret:,.1f}", *(c for s in challengers for c in _pair(s.ratios.get(world)))]
        for world, cell in verdict.rivals.items()
    ]
    rows.append(["geometric mean", "", "", *(text for s in challengers for text in _pair(s.mean))])
    text = (
        f"Ratios (regret + {OFFSET:g})/(that of the best rival + {OFFSET:g}), paired by seed. The best rival of each "
        "world is chosen afterwards, which favours it."
    )
    marked = resolution(ratio for s in challengers for ratio in s.ratios.values())
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
