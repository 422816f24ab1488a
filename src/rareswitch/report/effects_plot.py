"""Pictures of effects: dots with intervals, beside the line of no effect."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from rareswitch.core import percent_text
from rareswitch.evaluation import Effects, Interval
from rareswitch.report.effects_text import effects_title, label_of
from rareswitch.report.figures import BLUE, DARK_GREY, GREY, WIDTH, beside, draw, figure
from rareswitch.report.numerals import decimals, number_text, shortened

__all__ = ["draw_effects"]

#: Inches of a row, and of head and foot together; rows of room at least.
ROW, ENDS, LEAST = 0.36, 1.9, 3
#: Characters of a name, and of a line of the reason why it is not identifiable, or of what is shown.
NAME, REASON, WHAT = 28, 84, 96
#: Behind texts that may lie on lines.
BOX: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
#: The most rows that can be read; of more the first are shown.
MOST_ROWS = 60


class EffectRow(NamedTuple):
    """A row of the picture."""

    name: str
    interval: Interval | None
    reason: str


@draw.register
def draw_effects(effects: Effects) -> Any:
    """A row for each arm, the best on top; or for all and for each group."""
    lines = [_line(shortened(label_of(effect, effects), NAME), effect) for effect in effects.effects]
    what = "\n".join(wrap(effects_title(effects), WHAT)) + f"\n{percent_text(effects.level)} intervals"
    if effects.correction != "none":
        what += ", those of the groups hold together" if effects.by else ", which hold together"
    if effects.differ is not None:
        said = "differs" if effects.differ.p_value < 1.0 - effects.level else "does not clearly differ"
        what += f"; the effect {said} between groups (p = {effects.differ.p_value:.2g})"
    return _drawn(lines[:MOST_ROWS], _effects_headline(effects), what, estimated=bool(effects.estimated))


def _line(name: str, effect: Any) -> EffectRow:
    reason = effect.refusals[0].partition(". ")[0].rstrip(".") if effect.refusals else ""
    return EffectRow(name, effect.interval, reason)


def _drawn(lines: Sequence[EffectRow], title: str, what: str, *, estimated: bool) -> Any:
    picture, (panel,) = figure()
    picture.set_size_inches(WIDTH, ENDS + ROW * max(LEAST, len(lines)))
    digits, mark = decimals(line.interval for line in lines), "≈" if estimated else ""
    panel.axvline(0.0, color=DARK_GREY, linewidth=1.0, linestyle="--", zorder=1)
    for row, (_, interval, reason) in enumerate(lines):
        if interval is None:
            reason_lines = wrap(f"not identifiable: {reason}".replace(" %", "\N{NO-BREAK SPACE}%"), REASON)
            reason_lines = (
                reason_lines if len(reason_lines) <= 2 else [reason_lines[0], f"{reason_lines[1][: REASON - 1]}…"]
            )
            place = {"transform": panel.get_yaxis_transform(), "va": "center", "fontsize": 8.5, "style": "italic"}
            panel.text(0.02, row, "\n".join(reason_lines), color=DARK_GREY, bbox=BOX, zorder=4, **place)
            continue
        color = GREY if interval.low <= 0.0 <= interval.high else BLUE
        panel.plot([interval.low, interval.high], [row, row], color=color, linewidth=3.0, zorder=2)
        panel.plot([interval.value], [row], "o", color=color, markersize=7, zorder=3)
        text = f"{mark}{number_text(interval.value, digits, sign=True)}"
        style = {"ha": "center", "fontsize": 8.5, "color": DARK_GREY if color == GREY else BLUE}
        beside(panel, text, (interval.value, row), (0, 6), **style)
    panel.set_yticks(range(len(lines)), [line.name for line in lines], fontsize=10)
    panel.set_ylim(len(lines) - 0.4, -0.8)
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    panel.grid(axis="x", color="#e4e8eb", linewidth=0.8)
    panel.set_axisbelow(True)
    if not any(line.interval for line in lines):
        panel.set_xlim(-1.0, 1.0)
        panel.set_xticks([0.0])
    about = "\n≈: rests on estimated propensities" if estimated else ""
    panel.set_xlabel(f"{what}\n(grey: may be nothing){about}", fontsize=9)
    picture.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=12)
    return picture


def _effects_headline(effects: Effects) -> str:
    """What to see."""
    answered = [(effect, effect.interval) for effect in effects.effects if effect.interval is not None]
    if not answered:
        return "no effect is identifiable from this log"
    clear = [(effect, interval) for effect, interval in answered if not interval.low <= 0.0 <= interval.high]
    if not clear:
        return "no effect is known to be other than nothing"
    effect, interval = clear[0]
    other = {"baseline": "the baseline", "rest": "the others"}.get(effect.against, shortened(effect.against, NAME))
    whom = f" for {shortened(effect.group, NAME)}" if effect.group else ""
    alike = sum((another.low > 0.0) == (interval.low > 0.0) for _, another in clear) - 1
    more = f", and so {'is' if alike == 1 else 'are'} {alike} more" if alike and not effects.by else ""
    return f"{shortened(effect.arm, NAME)} is {'better' if interval.low > 0.0 else 'worse'} than {other}{whom}{more}"
