"""A judged contest as tables, for the terminal and as Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rareswitch.report.tables import table
from rareswitch.report.verdict import OFFSET, Standing, Verdict


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table with its heading."""

    title: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 2
    """How many columns are words."""
    world: str = ""
    """Where the section is about one world."""


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
    size = f"T = {verdict.horizon:,}, {len(verdict.worlds)} worlds, {verdict.seeds} seeds"
    if verdict.yardstick is None:
        text = "There is no yardstick: no fully adaptive entry was run."
    else:
        text = (
            f"Ratios are (regret + {OFFSET:g})/(that of {verdict.yardstick} + {OFFSET:g}), the best single fully "
            "adaptive entry."
        )
    if verdict.unfinished:
        text += f" Not judged, as unfinished: {', '.join(verdict.unfinished)}."
    yield Section(
        title=f"Standings at {size}",
        text=text,
        header=["entry", "kind", "updates", "geometric mean", "worst world", "ratio", "worst seed in", "ratio"],
        rows=[
            [s.entry, s.kind, _updates(s), _ratio(s.geometric_mean), *_place(s.worst_world), *_place(s.worst_seed)]
            for s in verdict.standings
        ],
    )
    if verdict.yardstick is not None:
        yield Section(
            title=f"Ratios by world at T = {verdict.horizon:,}",
            text="",
            header=["entry", *verdict.worlds],
            rows=[[s.entry, *(_ratio(s.ratios.get(w)) for w in verdict.worlds)] for s in verdict.standings],
            left=1,
        )
    yield Section(
        title=f"Each world's own best at T = {verdict.horizon:,}",
        text="Chosen afterwards, world by world: regret, and its ratio to the yardstick's.",
        header=["world", "best adaptive", "best rare", "yardstick", "adaptive", "ratio", "rare", "ratio"],
        rows=[_best_row(verdict, world) for world in verdict.worlds],
        left=3,
    )


def _worlds(verdict: Verdict) -> Iterator[Section]:
    for world in verdict.worlds:
        ranked = verdict.ranked(world)
        yield Section(
            title=f"{world}, T = {verdict.horizon:,}",
            text="",
            header=["entry", "kind", "updates", "regret", "± s.e.", "worst seed", "ratio", "seconds"],
            rows=[_world_row(s, world, s.entry == verdict.yardstick) for s in ranked],
            world=world,
        )


def _world_row(standing: Standing, world: str, is_yardstick: bool) -> list[str]:
    cell = standing.cells[world]
    error = "" if math.isnan(cell.standard_error) else f"{cell.standard_error:,.1f}"
    updates = f"{cell.updates:,.4g}" if cell.updates < 1e4 else f"{cell.updates:,.0f}"
    name = f"{standing.entry} (yardstick)" if is_yardstick else standing.entry
    numbers = [f"{cell.regret:,.1f}", error, f"{cell.worst:,.1f}", _ratio(standing.ratios.get(world))]
    return [name, standing.kind, updates, *numbers, f"{cell.seconds:.2f}"]


def _best_row(verdict: Verdict, world: str) -> list[str]:
    names, numbers = [], []
    for kind in ("adaptive", "rare"):
        best = verdict.best(world, kind)
        names.append("" if best is None else best.entry)
        numbers.append("" if best is None else f"{best.cells[world].regret:,.1f}")
        numbers.append("" if best is None else _ratio(best.ratios.get(world)))
    unit = next((f"{s.cells[world].regret:,.1f}" for s in verdict.standings if s.entry == verdict.yardstick), "")
    return [world, *names, unit, *numbers]


def _updates(standing: Standing) -> str:
    low, high = (f"{count:,.0f}" for count in standing.updates)
    return low if low == high else f"{low} to {high}"


def _place(found: tuple[str, float]) -> list[str]:
    return [found[0], _ratio(found[1])]


def _ratio(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.2f}" if value < 100.0 else f"{value:,.0f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
