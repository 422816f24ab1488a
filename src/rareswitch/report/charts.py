"""Charts as SVG, from numbers to text: for the page of the service, HTML reports, notebooks and documents.

Colours are attributes, which a style sheet overrides by the classes of what is drawn; nothing is loaded, and nothing
runs. Who does not see a chart is given its label.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from rareswitch.core import percent_text
from rareswitch.evaluation import Interval
from rareswitch.planning import DAY
from rareswitch.report.figures import PALETTE
from rareswitch.report.numerals import number_text, shortened

__all__ = ["Mark", "Segment", "bar_mark", "interval_mark", "line_chart", "stacked_chart", "timeline_chart"]

#: Pixels: of a chart for screens and of one for phones, of a label's line, and of the axis below.
SCREEN, PHONE, LINE, AXIS = 880, 358, 16, 26
#: Series with colours of their own; the rest is added up.
MOST_SERIES = 7
INK, SOFT, RULE, ACCENT, PALE = "#1d1c1a", "#6b6862", "#dedad2", "#1f5fa8", "#c9d8ea"
#: Between ticks in seconds: minutes, hours, days and weeks.
STEPS = (
    60,
    300,
    600,
    1800,
    3600,
    10_800,
    21_600,
    43_200,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    28 * DAY,
    91 * DAY,
    364 * DAY,
)
#: The first Monday after the clock of seconds began.
MONDAY = 4 * DAY


class Mark(NamedTuple):
    """A line across a chart, such as an update."""

    at: float
    text: str


class Segment(NamedTuple):
    """A policy on the line of time or of decisions."""

    text: str
    start: float
    end: float
    #: done, running or due.
    state: str


#: Marks in names that would turn the text after them around are written out.
DIRECTIONS = {mark: f"\\u{mark:04x}" for mark in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


class Canvas:
    """The parts of a drawing, with all texts escaped."""

    def __init__(self, width: float, height: float, label: str, kind: str = "") -> None:
        self.width, self.height, self.label, self.kind = width, height, label, kind
        self.parts: list[str] = []

    def add(self, tag: str, content: str = "", /, **attributes: float | str) -> None:
        """An element; names of attributes have underscores in place of hyphens, and ``kind`` is its class."""
        items = (
            ("class" if name == "kind" else name.replace("_", "-"), f"{value:.1f}".removesuffix(".0"))
            if isinstance(value, float)
            else ("class" if name == "kind" else name.replace("_", "-"), value)
            for name, value in attributes.items()
        )
        words = "".join(f' {name}="{escape(str(value).translate(DIRECTIONS))}"' for name, value in items)
        self.parts.append(f"<{tag}{words}>{escape(content.translate(DIRECTIONS))}</{tag}>")

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "start", kind: str = "soft", fill: str = SOFT
    ) -> None:
        """A line of text."""
        self.add("text", text, x=float(x), y=float(y), text_anchor=anchor, kind=kind, fill=fill, font_size="12")

    def line(self, x1: float, y1: float, x2: float, y2: float, *, kind: str = "rule", stroke: str = RULE) -> None:
        """A straight line."""
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), kind=kind, stroke=stroke)

    def __str__(self) -> str:
        fit = ' preserveAspectRatio="none"' if self.kind == "bar" else ""
        name = (
            f'role="img" aria-label="{escape(self.label.translate(DIRECTIONS))}"'
            if self.label
            else 'aria-hidden="true"'
        )
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        font = 'font-family="system-ui, sans-serif"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="{self.kind}" {size}{fit} {font} {name}>'
        return f"{head}{''.join(self.parts)}</svg>"


class Axis(NamedTuple):
    """From values to pixels."""

    low: float
    high: float
    left: float
    right: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.left + (min(max(value, self.low), self.high) - self.low) / span * (self.right - self.left)


def time_ticks(low: float, high: float, most: int) -> list[Mark]:
    """Dates or times of day between two moments.

    >>> [tick.text for tick in time_ticks(1772409600.0, 1772409600.0 + 30 * DAY, 5)]
    ['2 Mar', '9 Mar', '16 Mar', '23 Mar', '30 Mar']
    """
    step = next((step for step in STEPS if (high - low) / step < most), STEPS[-1] * math.ceil((high - low) / STEPS[-1]))
    first, offset = low, MONDAY if step >= 7 * DAY else 0.0
    first = offset + math.ceil((low - offset) / step) * step
    count = max(0, math.floor((high - first) / step) + 1)
    return [Mark(first + k * step, _moment_text(first + k * step, step)) for k in range(count)]


def _moment_text(moment: float, step: float) -> str:
    when = datetime.fromtimestamp(moment, UTC)
    if step < DAY and moment % DAY:
        return f"{when:%H:%M}"
    return f"{when.day} {when:%b}" if step < 300 * DAY else f"{when:%b %Y}"


def number_ticks(low: float, high: float, most: int) -> list[Mark]:
    """Round numbers between two.

    >>> [tick.text for tick in number_ticks(0.0, 2400.0, 4)]
    ['0', '1,000', '2,000']
    """
    raw = (high - low) / most or 1.0
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1.0, 2.0, 5.0, 10.0) if unit * factor >= raw)
    first, digits = math.ceil(low / step - 1e-9), max(0, -math.floor(math.log10(step) + 1e-9))
    values = [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return [Mark(value, number_text(value, digits)) for value in values]


def _axis(canvas: Canvas, scale: Axis, ticks: Sequence[Mark], top: float, bottom: float) -> None:
    """Ticks below a chart; the outer ones stay inside."""
    for tick in ticks:
        x = scale(tick.at)
        canvas.line(x, top, x, bottom + 4.0)
        anchor = "start" if x < scale.left + 20 else "end" if x > canvas.width - 20 else "middle"
        canvas.text(x, bottom + 18.0, tick.text, anchor=anchor)


def timeline_chart(segments: Sequence[Segment], now: float, *, dates: bool, width: int, label: str) -> str:
    """Policies one after the other: those that decided, the one that does, and those to come."""
    height, bar = 78, 30.0
    canvas = Canvas(width, height, label, "timeline")
    low, high = segments[0].start, max(now, *(segment.end for segment in segments))
    scale = Axis(low, high, 0.0, float(width))
    at = scale(now)
    ticks = (time_ticks if dates else number_ticks)(low, high, 8 if width > PHONE else 4)
    _axis(canvas, scale, ticks, 10.0 + bar, 14.0 + bar)
    for segment in segments:
        x, end = scale(segment.start), scale(segment.end)
        fill = {"done": PALE, "running": ACCENT}.get(segment.state, "none")
        size: dict[str, float | str] = {
            "x": x + 1.0,
            "y": 10.0,
            "width": max(1.5, end - x - 2.0),
            "height": bar,
            "rx": 3.0,
        }
        if segment.state == "due":
            canvas.add("rect", kind="due", fill=fill, stroke=SOFT, stroke_dasharray="3 3", **size)
        else:
            canvas.add("rect", kind=segment.state, fill=fill, **size)
        if end - x > 8.0 * len(segment.text) + 6.0:
            ink = "#ffffff" if segment.state == "running" else INK
            middle, aside = (x + end) / 2, 4.0 * len(segment.text) + 4.0
            if abs(at - middle) < aside and end - x > 4.0 * aside:  # beside the line of the current time
                middle = at + aside if at + 2.0 * aside < end else at - aside
            canvas.text(middle, 30.0, segment.text, anchor="middle", kind=f"in-{segment.state}", fill=ink)
    canvas.line(at, 4.0, at, 16.0 + bar, kind="now", stroke=INK)
    return str(canvas)


def stacked_chart(
    counts: Mapping[str, Sequence[int]], *, start: float, step: float, marks: Sequence[Mark], width: int, label: str
) -> str:
    """Shares of series in equal spans of time, named at the right, with a line at each mark."""
    names = [*counts][: MOST_SERIES if len(counts) > MOST_SERIES + 1 else MOST_SERIES + 1]
    series = {name: counts[name] for name in names}
    if len(counts) > len(names):
        others = [counts[name] for name in counts if name not in series]
        series[f"{len(others)} others"] = [*map(sum, zip(*others, strict=True))]
    spans = len(next(iter(counts.values())))
    totals = [sum(values[at] for values in series.values()) for at in range(spans)]
    room, height = (150 if width > PHONE else 108), (280 if width > PHONE else 220)
    canvas = Canvas(width, height, label, "stacked")
    across = Axis(start, start + spans * step, 0.0, float(width - room))
    bottom, top = float(height - AXIS), 12.0
    below, places = [0.0] * spans, list[tuple[float, str, int]]()
    last = max((at for at in range(spans) if totals[at]), default=0)
    for k, (name, values) in enumerate(series.items()):
        above = [b + (v / t if t else 0.0) for b, v, t in zip(below, values, totals, strict=True)]
        path = "".join(
            f"M{across(start + at * step):.1f} {bottom - below[at] * (bottom - top):.1f}"
            f"H{across(start + (at + 1) * step):.1f}V{bottom - above[at] * (bottom - top):.1f}"
            f"H{across(start + at * step):.1f}Z"
            for at in range(spans)
            if above[at] > below[at]
        )
        kind = f"s{k}" if name in counts else "others"
        canvas.add("path", d=path, kind=kind, fill=PALETTE[k] if name in counts else RULE)
        if above[last] > below[last]:
            places.append((bottom - (below[last] + above[last]) / 2 * (bottom - top), name, k))
        below = above
    _axis(canvas, across, time_ticks(start, start + spans * step, 6 if width > PHONE else 3), bottom, bottom)
    for mark in marks:
        if start < mark.at < start + spans * step:
            canvas.line(across(mark.at), top - 8, across(mark.at), bottom, kind="update", stroke=INK)
    for y, name, k in _apart(places, top + 6, bottom - 2):
        share = series[name][last] / totals[last] if totals[last] else 0.0
        text = f"{shortened(name, 18 if width > PHONE else 10)} {percent_text(round(share, 2))}"
        kind = f"label s{k}" if name in counts else "label others"
        canvas.text(width - room + 10, y + 4.0, text, kind=kind, fill=INK)
        canvas.add(
            "rect",
            x=float(width - room + 3),
            y=y - 5.0,
            width=3.0,
            height=10.0,
            kind=f"s{k}" if name in counts else "others",
            fill=PALETTE[k] if name in counts else RULE,
        )
    return str(canvas)


def _apart(places: Sequence[tuple[float, str, int]], top: float, bottom: float) -> list[tuple[float, str, int]]:
    """Labels at heights that are a line apart at least, as near to their own as that lets them be."""
    ordered = sorted(places)
    heights = [y for y, _, _ in ordered]
    for at in range(1, len(heights)):
        heights[at] = max(heights[at], heights[at - 1] + LINE)
    low = bottom
    for at in reversed(range(len(heights))):
        heights[at] = min(heights[at], low)
        low = heights[at] - LINE
    return [
        (max(top, y) if at == 0 else y, name, k)
        for at, (y, (_, name, k)) in enumerate(zip(heights, ordered, strict=True))
    ]


def line_chart(points: Sequence[tuple[float, Interval]], *, width: int, label: str, zero: bool = True) -> str:
    """Values over time with their intervals, beside a line at 0."""
    height = 220 if width > PHONE else 180
    canvas = Canvas(width, height, label, "line")
    bounds = [bound for _, interval in points for bound in (interval.low, interval.high)] + ([0.0] if zero else [])
    times = [at for at, _ in points]
    left, bottom = 58.0, float(height - AXIS)
    across = Axis(min(times), max(times), left + 12, float(width - 12))
    up = Axis(min(bounds), max(bounds), bottom - 8, 12.0)
    for tick in number_ticks(min(bounds), max(bounds), 4):
        canvas.line(left, up(tick.at), width, up(tick.at), kind="zero" if tick.at == 0.0 else "rule")
        canvas.text(left - 8, up(tick.at) + 4, tick.text, anchor="end")
    _axis(canvas, across, time_ticks(min(times), max(times), 6 if width > PHONE else 3), bottom, bottom)
    upper = "L".join(f"{across(at):.1f} {up(interval.high):.1f}" for at, interval in points)
    lower = "L".join(f"{across(at):.1f} {up(interval.low):.1f}" for at, interval in reversed(points))
    canvas.add("path", d=f"M{upper}L{lower}Z", kind="band", fill=PALE)
    middle = "L".join(f"{across(at):.1f} {up(interval.value):.1f}" for at, interval in points)
    canvas.add("path", d=f"M{middle}", kind="curve", fill="none", stroke=ACCENT, stroke_width="2")
    for at, interval in points:
        canvas.add("circle", cx=across(at), cy=up(interval.value), r=3.0, kind="dot", fill=ACCENT)
    return str(canvas)


def interval_mark(
    interval: Interval, low: float, high: float, *, reference: float | None = None, width: int = 150
) -> str:
    """A value with its interval in a row of a table, whose text says the numbers."""
    canvas = Canvas(width, 22, "", "interval")
    scale = Axis(low, high, 6.0, width - 6.0)
    if reference is not None:
        canvas.line(scale(reference), 0.0, scale(reference), 22.0, kind="zero")
    unclear = reference is not None and interval.low <= reference <= interval.high
    kind, color = ("unclear", SOFT) if unclear else ("clear", ACCENT)
    canvas.add(
        "line",
        x1=scale(interval.low),
        x2=scale(interval.high),
        y1=11.0,
        y2=11.0,
        kind=f"whisker {kind}",
        stroke=color,
        stroke_width="3",
        stroke_linecap="round",
    )
    canvas.add("circle", cx=scale(interval.value), cy=11.0, r=5.0, kind=f"dot {kind}", fill=color)
    return str(canvas)


def bar_mark(share: float, kind: str = "", *, before: float | None = None, width: int = 220) -> str:
    """A share as a bar in a row of a table; with ``before`` a line where it was."""
    canvas = Canvas(width, 14, "", "bar")
    canvas.add("rect", x=0.0, y=2.0, width=float(width), height=10.0, rx=2.0, kind="track", fill=RULE)
    canvas.add(
        "rect",
        x=0.0,
        y=2.0,
        width=max(1.0, share * width) if share else 0.0,
        height=10.0,
        rx=2.0,
        kind=f"fill {kind}",
        fill=ACCENT,
    )
    if before is not None:
        canvas.add("rect", x=min(width - 2.0, before * width), y=0.0, width=2.0, height=14.0, kind="before", fill=INK)
    return str(canvas)
