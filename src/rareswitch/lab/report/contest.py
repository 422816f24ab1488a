"""A judged contest as tables, for the terminal and as Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rareswitch.lab.report.resampling import HEADER, LEVEL, OFFSET, Ratio, resolution, short
from rareswitch.lab.report.rivals import Rivalry
from rareswitch.lab.report.run_table import linear_differs
from rareswitch.lab.report.verdict import Standing, Verdict
from rareswitch.tables import table


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


def contest_text(verdicts: Sequence[Verdict]) -> str:
    """All tables for the terminal: the worlds first, what matters most last."""
    sections = (s for verdict in verdicts for s in (*_worlds(verdict), *_summaries(verdict)))
    heads = ((s, "\n".join(filter(None, (s.title, s.text)))) for s in sections)
    return "\n\n\n".join(f"{head}\n\n{table(s.header, s.rows, left=s.left)}" for s, head in heads)


def contest_markdown(verdicts: Sequence[Verdict], pictures: Mapping[str, str] | None = None) -> str:
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


def _summaries(verdict: Verdict) -> Iterator[Section]:
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


def _rivals(verdict: Verdict, found: Rivalry) -> Section:
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


def _counted(verdict: Verdict, size: str = "") -> str:
    """The horizon, or more of the contest's size, and what regret is counted against where it is not the best arm."""
    size = size or f"T = {verdict.horizon:,}"
    return size if verdict.against == "best arm" else f"{size}, against the {verdict.against}"


def _worlds(verdict: Verdict) -> Iterator[Section]:
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
                row.insert(5, _regret(s.cells[world].linear_regret))
        text = resolution(s.ratios[world] for s in _others(verdict) if world in s.ratios)
        yield Section(title=f"{world}, T = {verdict.horizon:,}", text=text, header=header, rows=rows, world=world)


def _others(verdict: Verdict) -> list[Standing]:
    """All but the yardstick."""
    return [s for s in verdict.standings if s.entry != verdict.yardstick]


def _world_row(standing: Standing, world: str, is_yardstick: bool) -> list[str]:
    cell = standing.cells[world]
    policies = f"{cell.policies:,.4g}" if cell.policies < 1e4 else f"{cell.policies:,.0f}"
    name = f"{standing.entry} (yardstick)" if is_yardstick else standing.entry
    numbers = [f"{cell.regret:,.1f}", cell.error_text, f"{cell.tail:,.1f}"]
    compared = standing.ratios[world].cells if world in standing.ratios else [""] * len(HEADER)
    return [name, standing.kind, policies, *numbers, *compared, f"{cell.seconds:.2f}"]


def _best_row(verdict: Verdict, world: str) -> list[str]:
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


def _regret(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.1f}"


def _marked(standing: Standing, world: str) -> str:
    return standing.ratios[world].marked if world in standing.ratios else ""


def _plain(value: float) -> str:
    return "" if math.isnan(value) else short(value)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
