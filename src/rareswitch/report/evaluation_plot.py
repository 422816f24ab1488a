"""A picture of an evaluation: what each candidate would have earned, how it weighs the log, and what of it counts."""

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from rareswitch.core import percent_text
from rareswitch.evaluation import LEAST_POWER, BatchValue, Evaluation, Value
from rareswitch.report.figures import BLUE, DARK_GREY, GREY, beside, draw, figure
from rareswitch.report.numerals import decimals, number_text, shortened

__all__ = ["draw_evaluation"]

LIGHT = "#cfd6dc"
#: Inches: of the picture, and of its head and foot; of a row, at least, and more for each batch; of all rows, about.
WIDTH, ENDS, ROW, LANE, ROWS = 11.0, 2.3, 0.62, 0.07, 16.0
#: Of the bars in the last panel.
BAR = 0.13
#: Batches that have a lane of their own below their candidate; of more, the last ones are shown.
MOST_LANES = 20
#: Characters of a line of a reason, and of a candidate's name.
REASON, NAME = 44, 22
#: Where the batches of a candidate begin and end below it, as shares of the height of its row.
TOP, BOTTOM = 0.20, 0.57
SMALL: dict[str, Any] = {"fontsize": 9.5, "color": DARK_GREY}
#: Behind texts that may lie on lines.
BOX: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2.0}


@draw.register
def draw_evaluation(evaluation: Evaluation) -> Any:
    """A row for each candidate, the same in all panels; refused ones have the reason in their row.

    Returns
    -------
    Figure
        From left to right: values with intervals, pooled and by batch, beside what was earned; the weights of
        decisions, where they were counted; and the share of decisions that counts.
    """
    values = evaluation.values
    lanes = min(MOST_LANES, max(len(value.batches) for value in values))
    counted = any(value.overlap.weights for value in values)
    picture, panels = figure(3 if counted else 2)
    panels[0].get_gridspec().set_width_ratios([2.2, 1.0, 1.0] if counted else [2.2, 1.0])
    height = max(ROW, min(ROW + LANE * lanes, ROWS / len(values)))
    picture.set_size_inches(WIDTH, ENDS + len(values) * height)
    picture.suptitle(_title(evaluation), x=0.01, ha="left", fontweight="bold", fontsize=14)
    _draw_values(panels[0], evaluation)
    if counted:
        _draw_weights(panels[1], values)
    _draw_overlap(panels[-1], values, BAR / height)
    for panel in panels:
        panel.set_ylim(len(values) - 0.3, -0.45)
        panel.set_yticks([])
        panel.spines["left"].set_visible(False)
        for row in range(1, len(values)):
            panel.axhline(row - 0.33, color="#e4e8eb", linewidth=0.8, zorder=0)
    panels[0].set_yticks(range(len(values)), [shortened(value.candidate, NAME) for value in values], fontsize=11)
    panels[0].tick_params(axis="y", length=0)
    return picture


def _draw_values(panel: Any, evaluation: Evaluation) -> None:
    gains = {gain.name: gain.interval for gain in evaluation.gains}
    intervals = [value.interval for value in evaluation.values]
    digits, mark = decimals(intervals), "≈" if evaluation.estimated else ""
    low, high = _limits(evaluation)
    panel.set_xlim(low, high)
    if (earned := evaluation.earned) is not None:
        panel.axvspan(earned.low, earned.high, color=LIGHT, alpha=0.45, linewidth=0, zorder=0)
        panel.axvline(earned.value, color=DARK_GREY, linewidth=1.0, linestyle="--", zorder=1)
        label = f"earned {number_text(earned.value, digits)}"
        beside(panel, label, (earned.value, 1.0), (0, 2), xycoords=panel.get_xaxis_transform(), ha="center", **SMALL)
    for row, value in enumerate(evaluation.values):
        if value.interval is None:
            _draw_reason(panel, row, f"not identifiable: {_short(value.refusals)}")
            continue
        color = DARK_GREY if value.candidate == "logged" else BLUE
        for lane, batch in _in_lanes(value.batches):
            if batch.interval is not None:
                y = row + lane
                panel.plot([batch.interval.low, batch.interval.high], [y, y], color=color, linewidth=0.8, alpha=0.55)
                panel.plot([batch.value], [y], "o", color=color, markersize=2.6, alpha=0.8)
        gain = gains.get(value.candidate)
        unclear = gain is not None and gain.low <= 0.0 <= gain.high and value.candidate != "logged"
        panel.plot([value.interval.low, value.interval.high], [row, row], color=color, linewidth=4.5, zorder=3)
        face = "white" if unclear else color
        style = {"color": color, "markersize": 9, "markerfacecolor": face, "markeredgewidth": 1.8, "zorder": 4}
        panel.plot([value.interval.value], [row], "o", **style)
        text = f"{mark}{number_text(value.interval.value, digits)}"
        style = {"ha": "center", "fontsize": 10.5, "color": color, "zorder": 5, "bbox": BOX | {"pad": 0.5}}
        beside(panel, text, (value.interval.value, row), (0, 8), **style)
    if not any(intervals) and evaluation.earned is None:
        panel.set_xticks([])
    about = "\n≈: rests on estimated propensities" if mark else ""
    kind = next(
        (f"{percent_text(interval.level)} intervals" for interval in intervals if interval is not None), "intervals"
    )
    panel.set_xlabel(
        f"reward per decision, {kind} (thick: all batches;\n"
        f"thin: each batch, the first on top;\nhollow: not distinguishable from the earned value){about}",
        fontsize=9.5,
    )
    panel.set_title("what it would have earned\n", loc="left", fontsize=11)


def _draw_reason(panel: Any, row: int, text: str) -> None:
    lines = wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), REASON)
    if len(lines) > 3:
        lines = [*lines[:2], f"{lines[2][: REASON - 1]}…"]
    place = {"transform": panel.get_yaxis_transform(), "va": "center", "fontsize": 10, "style": "italic", "bbox": BOX}
    panel.text(0.02, row + 0.12, "\n".join(lines), color=DARK_GREY, zorder=5, **place)


def _draw_weights(panel: Any, values: Sequence[Value]) -> None:
    """Shares of decisions by weight, and of the weight that they carry."""
    for row, value in enumerate(values):
        counts = np.array(value.overlap.weights, dtype=float)
        if not counts.any():
            continue
        places = np.arange(len(counts))
        ground, tall = row + 0.55, 0.78
        middles = 2.0 ** (places - 2 + LEAST_POWER) / np.log(2.0)
        middles[0] = 0.0
        middles[-1] = max(value.overlap.largest, middles[-1])
        carried = counts * middles
        shares = (counts / counts.sum(), carried / max(carried.sum(), 1e-300))
        top = max(share.max() for share in shares)
        for share, style in zip(shares, ({"color": LIGHT, "width": 0.9}, {"color": BLUE, "width": 0.45}), strict=True):
            panel.bar(places, -tall * share / top, bottom=ground, linewidth=0, **style)
        panel.plot([-0.5, len(counts) - 0.5], [ground, ground], color=GREY, linewidth=0.8)
    first = 2 - LEAST_POWER
    panel.axvline(first - 0.5, color=DARK_GREY, linewidth=0.8, linestyle=":", zorder=0)
    panel.set_xlim(-0.7, 16.7)
    panel.set_xticks([0, *(first - 0.5 + power for power in (-2, 0, 4, 8))], ["0", "¼", "1", "16", "256"])
    panel.set_xlabel("weight (light: decisions;\ndark: the weight they carry)", fontsize=9.5)
    panel.set_title("how it weighs the log\n", loc="left", fontsize=11)


def _draw_overlap(panel: Any, values: Sequence[Value], thick: float) -> None:
    """The share of decisions that counts, pooled and by batch, and the unsupported play."""
    for row, value in enumerate(values):
        has = value.overlap
        share = min(1.0, has.effective / max(has.decisions, 1))
        color = BLUE if value.answered else GREY
        for lane, batch in _in_lanes(value.batches):
            panel.plot([_counting(batch)], [row + lane], "o", color=color, markersize=2.6, alpha=0.8)
        panel.barh([row], [share], height=thick, color=color, linewidth=0)
        if has.effective >= 1.0:
            count = f"{has.effective:,.0f}"
            beside(panel, count, (share, row), (3, 0), va="center", **SMALL | {"color": color})
        if has.unsupported:
            style = {"facecolor": "none", "edgecolor": DARK_GREY, "hatch": "/////", "linewidth": 0.6}
            panel.barh([row], [-has.unsupported], left=1.0, height=thick, **style)
            label = f"{percent_text(has.unsupported)} unsupported"
            beside(panel, label, (1.0, row - thick / 2.0), (0, 3), ha="right", **SMALL)
    panel.set_xlim(0.0, 1.2)
    panel.set_xticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
    panel.set_xlabel("ESS, of all decisions (bar: all\nbatches; dots: each batch)", fontsize=9.5)
    panel.set_title("effective sample size\n", loc="left", fontsize=11)


def _limits(evaluation: Evaluation) -> tuple[float, float]:
    """All pooled intervals and the values in batches fit in; a batch's interval may leave the panel."""
    intervals = [evaluation.earned, *(value.interval for value in evaluation.values)]
    ends = [end for interval in intervals if interval is not None for end in (interval.low, interval.high)]
    batches = [batch for value in evaluation.values if value.answered for batch in value.batches]
    ends += [batch.value for batch in batches if batch.interval is not None]
    finite = [end for end in ends if np.isfinite(end)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = 0.12 * (high - low) or 0.1 * max(abs(high), 1e-9)
    return low - room, high + room


def _in_lanes(batches: Sequence[BatchValue]) -> list[tuple[float, BatchValue]]:
    """The last batches, each with its place below its candidate."""
    shown = batches[-MOST_LANES:]
    places = np.linspace(TOP, BOTTOM - 0.05, len(shown))  # a single one is at the top
    return list(zip(map(float, places), shown, strict=True))


def _counting(batch: BatchValue) -> float:
    """The share of a batch's decisions that counts."""
    shown = min(1.0, batch.spread) if batch.unsupported is None else 1.0 - batch.unsupported
    return shown / max(batch.spread, 1.0)


def _short(refusals: Sequence[str]) -> str:
    """The first reason, without its figures."""
    return re.split(r"[:;.] | \(|\.$", refusals[0])[0] if refusals else "the log does not support it"


def _title(evaluation: Evaluation) -> str:
    """What to see."""
    answered = {value.candidate: value.interval for value in evaluation.values if value.interval is not None}
    if not answered:
        return "the log cannot answer for any candidate"
    known = [gain for gain in evaluation.gains if gain.interval is not None and gain.name in answered]
    better = [gain for gain in known if gain.interval is not None and gain.interval.low > 0.0]
    if not better:
        return "no candidate is known to earn more than was earned" if known else "what candidates would have earned"
    best = max(better, key=lambda gain: answered[gain.name].value)
    return f"{shortened(best.name, NAME)} would have earned more than was earned"
