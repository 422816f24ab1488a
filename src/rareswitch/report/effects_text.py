"""Effects and parameters as people read them in a terminal."""

from collections.abc import Sequence

from rareswitch.core import percent_text, table
from rareswitch.errors import several
from rareswitch.evaluation import BASELINE, REST, BatchValue, Effect, Effects, Interval
from rareswitch.report.evaluation_text import ABOUT, bulleted, filled
from rareswitch.report.numerals import bounds_text, decimals, number_text, shortened
from rareswitch.report.text import as_text

__all__ = ["effects_text"]

LEGEND = "decisions: those that offered both; shown, against: how often each was shown in these; batches: those used"
#: What stands for all decisions, above groups.
ALL = "all"


def effects_title(effects: Effects) -> str:
    """What is asked, in one line.

    >>> effects_title(Effects(effects=(), level=0.95, correction="none", by="", differ=None, decisions=0, known=0,
    ...                       rewarded=0))
    'There is no arm to compare.'
    """
    if not effects.effects:
        return "There is no arm to compare."
    against = {BASELINE: "what would otherwise have been shown", REST: "one of the others at random"}.get(
        effects.effects[0].against, effects.effects[0].against
    )
    arm = (
        effects.effects[0].arm
        if len({effect.arm for effect in effects.effects}) == 1 and not _every(effects)
        else "an arm"
    )
    return f"What showing {shortened(arm)} in place of {shortened(against, 60)} adds to the reward of a decision"


def _every(effects: Effects) -> bool:
    """Whether every arm was asked for."""
    return not effects.by and len(effects.effects) > 1


@as_text.register
def effects_text(effects: Effects, *, cli: bool = False) -> str:
    """A table, cautions, and the reason where an effect is not identifiable."""
    mark, digits = ABOUT if effects.estimated else "", decimals(effect.interval for effect in effects.effects)
    rows = [
        [
            shortened(label_of(effect, effects)),
            *_cells(effect.interval, effect.p_value, digits, mark),
            _verdict(effect.interval),
            f"{effect.decisions:,}",
            f"{effect.shown:,}",
            f"{effect.shown_against:,}",
            _used(effect.batches),
        ]
        for effect in effects.effects
    ]
    first = "for" if effects.by else "arm"
    head = [
        first,
        "effect",
        f"{percent_text(effects.level)} interval",
        "p",
        "is",
        "decisions",
        "shown",
        "against",
        "batches",
    ]
    lines = [filled(f"{effects_title(effects)}."), "", table(head, rows)]
    lines.append(filled(f"{_counts(effects)}; {LEGEND}"))
    groups = len(effects.effects) - bool(effects.by)
    if groups > 1 and effects.correction == "bonferroni":
        lines.append(filled(f"these {groups} intervals hold together; p-values are corrected (Bonferroni)"))
    if effects.differ is not None:
        lines.append(filled(_differ_text(effects)))
    lines += _notes(
        [(label_of(effect, effects), effect.refusals, effect.cautions) for effect in effects.effects], effects.cautions
    )
    return "\n".join(lines)


def label_of(effect: Effect, effects: Effects) -> str:
    """What a row is called: the group, or the arm."""
    return (effect.group or ALL) if effects.by else effect.arm


def _counts(effects: Effects) -> str:
    text = several(effects.decisions, "decision")
    if effects.known < effects.decisions:
        text += f", all offered arms known of {effects.known:,}"
    return text + (f", {effects.rewarded:,} of these with a reward" if effects.rewarded < effects.known else "")


def _differ_text(effects: Effects) -> str:
    assert effects.differ is not None
    said = "differs" if effects.differ.p_value < 1.0 - effects.level else "does not clearly differ"
    return f"The effect {said} between groups (p = {effects.differ.p_value:.2g}, Cochran's Q)."


def _cells(interval: Interval | None, p_value: float | None, digits: int, mark: str) -> list[str]:
    if interval is None or p_value is None:
        return ["not identifiable", "", ""]
    value = f"{mark}{number_text(interval.value, digits, sign=True)}"
    return [value, bounds_text(interval, digits, sign=True), "< 0.0001" if p_value < 1e-4 else f"{p_value:.4f}"]


def _verdict(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return "better" if interval.low > 0.0 else "worse" if interval.high < 0.0 else "unclear"


def _used(batches: Sequence[BatchValue]) -> str:
    """How many batches it rests on."""
    return f"{sum(not part.left_out for part in batches)} of {len(batches)}"


def _notes(notes: Sequence[tuple[str, Sequence[str], Sequence[str]]], common: Sequence[str]) -> list[str]:
    """Refusals and cautions, each once with the names it is about."""
    lines: list[str] = []
    for title, which in (("Not identifiable", 1), ("Bear in mind", 2)):
        about: dict[str, list[str]] = {}
        for note in notes:
            for text in note[which]:
                about.setdefault(text, []).append(note[0])
        items = [*common] if which == 2 else []
        items += [text if len(notes) == 1 else f"{_some(names)}: {text}" for text, names in about.items()]
        if items:
            lines += ["", bulleted(f"{title}:", items)]
    return lines


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(shortened, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
