"""The reproduction of the paper as text, Markdown and one page of HTML with pictures."""

import html
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rareswitch.core import table
from rareswitch.errors import several
from rareswitch.lab.report.sections import Section, sections_markdown, sections_text
from rareswitch.lab.reproduction.claims import Condition, Finding, Outcome
from rareswitch.lab.reproduction.reproduce import Reproduction
from rareswitch.report import (
    WIDTH,
    as_html,
    as_svg,
    as_text,
    draw,
    figure,
    headline,
    name_points,
    plain_page,
    plain_ticks,
    series_colors,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The paper, claim by claim"
HEADER = ("measured", "value", "", "limit", "")


def sections_of(reproduction: Reproduction) -> Iterator[Section]:
    """The verdicts first, then each claim."""
    size = "A quick run, smaller than the whole: " if reproduction.size == "quick" else ""
    minutes = sum(outcome.seconds for outcome in reproduction.outcomes) / 60.0
    text = f"{summary_text(reproduction)}. {size}{minutes:.1f} minutes, {origin_text(reproduction)}."
    if reproduction.interrupted:
        text += " It was stopped before the rest was measured."
    rows = [
        [str(o.number), o.claim, verdict_text(o), str(o.measured.seeds), f"{o.seconds:.1f}"]
        for o in reproduction.outcomes
    ]
    yield Section(title="Verdicts", text=text, header=["", "claim", "verdict", "runs", "seconds"], rows=rows, left=3)
    for outcome in reproduction.outcomes:
        yield Section(
            title=f"{outcome.number}. {outcome.claim}",
            text="\n\n".join(facts_of(outcome)),
            header=HEADER,
            rows=[_row(finding) for finding in outcome.measured.findings],
            left=1,
            world=str(outcome.number),
        )


def summary_text(reproduction: Reproduction) -> str:
    """How many of each verdict."""
    counts = Counter(outcome.verdict for outcome in reproduction.outcomes)
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing measured"
    untestable = sum(len(outcome.untestable) for outcome in reproduction.outcomes)
    return text + (f"; {several(untestable, 'theorem')} as printed NOT TESTABLE" if untestable else "")


def origin_text(reproduction: Reproduction) -> str:
    """The command, the code, the seeds and the machine."""
    command = f"`rareswitch reproduce{' --quick' if reproduction.size == 'quick' else ''}`"
    code = f"{reproduction.version}{f' ({reproduction.commit})' if reproduction.commit else ''}"
    return f"{command} of {code}, seeds from {reproduction.seed} on, {reproduction.processor}"


def verdict_text(outcome: Outcome) -> str:
    """The verdict, and which theorems cannot be tested as they are printed."""
    return "; ".join([outcome.verdict, *(f"{c.theorem}: {c.verdict}" for c in outcome.untestable)])


def facts_of(outcome: Outcome) -> list[str]:
    """What is said of a claim beside the numbers, a paragraph each."""
    facts = [f"{outcome.verdict}. In the paper: {outcome.theorem}. Passes if {outcome.criterion}."]
    facts += [f"Known failure: {outcome.reason}"] if outcome.reason else []
    facts += [as_text(condition) for condition in outcome.conditions]
    return [*facts, *filter(None, [outcome.measured.remark])]


@as_text.register
def condition_text(condition: Condition, *, cli: bool = False) -> str:
    """What a theorem needs, and what the largest run had."""
    verdict = f"{condition.verdict}: " if condition.verdict else ""
    needed, run = (f"{value:.4g}" for value in (condition.needed, condition.run))
    return f"{condition.theorem} as printed: {verdict}it needs {condition.quantity} ≥ {needed}; the run had {run}."


def _row(finding: Finding) -> list[str]:
    value = "no finite number" if finding.value is None else _number(finding.value)
    return [finding.what, value, finding.relation, _number(finding.limit), "yes" if finding.holds else "NO"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.4g}"


@as_text.register
def reproduction_text(reproduction: Reproduction, *, cli: bool = False) -> str:
    """For the terminal."""
    paragraphs = ((s, "\n\n".join(map(wrapped, s.text.split("\n\n")))) for s in sections_of(reproduction))
    return sections_text(replace(s, text=text) for s, text in paragraphs)


def reproduction_markdown(reproduction: Reproduction) -> str:
    """For the documents."""
    return sections_markdown(TITLE, sections_of(reproduction))


@as_html.register
def reproduction_page(reproduction: Reproduction) -> str:
    """One page with a picture for each claim that has points to show."""
    body, outcomes = [f"<h1>{TITLE}</h1>"], {str(outcome.number): outcome for outcome in reproduction.outcomes}
    for s in sections_of(reproduction):
        body += [f"<h2>{html.escape(s.title)}</h2>"]
        body += [f"<p>{html.escape(text)}</p>" for text in s.text.split("\n\n")]
        body += [f"<pre>{html.escape(table(s.header, s.rows, left=s.left))}</pre>"] if s.rows else []
        if s.world in outcomes and outcomes[s.world].measured.series:
            body += [as_svg(draw(outcomes[s.world]))]
    return plain_page(TITLE, body)


@draw.register(Outcome)
def draw_outcome(outcome: Outcome) -> "Figure":
    """The points of a claim, each line with its name."""
    drawing, (panel,) = figure()
    drawing.set_size_inches(WIDTH, 4.4)
    measured = outcome.measured
    lines = [line for line in measured.series if line.points]
    colors = series_colors(line.name for line in lines)
    if measured.log:
        panel.set(xscale="log", yscale="log")
    for line in lines:
        panel.plot(*zip(*line.points, strict=True), "o-", color=colors[line.name], markersize=4)
    panel.set(xlabel=measured.axes[0], ylabel=measured.axes[1])
    headline(panel, textwrap.fill(f"{outcome.claim}: {outcome.verdict}", 52))
    if measured.log:
        plain_ticks(panel.xaxis)
        plain_ticks(panel.yaxis)
    panel.autoscale_view()
    name_points(panel, {line.name: line.points[-1] for line in lines}, colors)
    return drawing
