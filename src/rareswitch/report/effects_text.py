"""Effects and parameters as people read them in a terminal."""

from collections.abc import Sequence
from textwrap import fill

from rareswitch.core import percent_text, table
from rareswitch.errors import several
from rareswitch.evaluation import BASELINE, REST, BatchPart, Effect, Effects, Interval
from rareswitch.report.numerals import bounds_text, decimals, number_text, shortened
from rareswitch.report.text import as_text

WIDTH = 100
#: Before numbers that rest on estimated propensities.
ABOUT = "≈"
LEGEND = "decisions: those that offered both; shown, against: how often each was shown in these; batches: those used"
#: What stands for all decisions, above groups.
ALL = "all"


def effects_title(found: Effects) -> str:
    """What is asked, in one line.

    >>> effects_title(Effects(effects=(), level=0.95, correction="none", by="", differ=None, decisions=0, known=0,
    ...                       rewarded=0))
    'There is no arm to compare.'
    """
    if not found.effects:
        return "There is no arm to compare."
    against = {BASELINE: "what would otherwise have been shown", REST: "one of the others at random"}.get(
        found.effects[0].against, found.effects[0].against
    )
    arm = found.effects[0].arm if len({one.arm for one in found.effects}) == 1 and not _every(found) else "an arm"
    return f"What showing {shortened(arm)} in place of {shortened(against, 60)} adds to the reward of a decision"


def _every(found: Effects) -> bool:
    """Whether every arm was asked for."""
    return not found.by and len(found.effects) > 1


@as_text.register
def effects_text(found: Effects, *, cli: bool = False) -> str:
    """A table, what is to be borne in mind, and why there is no answer where there is none."""
    mark, digits = ABOUT if found.estimated else "", decimals(one.interval for one in found.effects)
    rows = [
        [
            shortened(label_of(one, found)),
            *_cells(one.interval, one.p_value, digits, mark),
            _verdict(one.interval),
            f"{one.decisions:,}",
            f"{one.shown:,}",
            f"{one.shown_against:,}",
            _used(one.batches),
        ]
        for one in found.effects
    ]
    first = "for" if found.by else "arm"
    head = [
        first,
        "effect",
        f"{percent_text(found.level)} interval",
        "p",
        "is",
        "decisions",
        "shown",
        "against",
        "batches",
    ]
    lines = [fill(f"{effects_title(found)}.", WIDTH, break_on_hyphens=False), "", table(head, rows)]
    lines.append(_filled(f"{_counts(found)}; {LEGEND}"))
    groups = len(found.effects) - bool(found.by)
    if groups > 1 and found.correction == "bonferroni":
        lines.append(_filled(f"these {groups} intervals hold together; p-values are corrected (Bonferroni)"))
    if found.differ is not None:
        lines.append(_filled(_differ_text(found)))
    lines += _notes([(label_of(one, found), one.refusals, one.cautions) for one in found.effects], found.cautions)
    return "\n".join(lines)


def label_of(one: Effect, found: Effects) -> str:
    """What a row is called: the group, or the arm."""
    return (one.group or ALL) if found.by else one.arm


def _counts(found: Effects) -> str:
    text = several(found.decisions, "decision")
    if found.known < found.decisions:
        text += f", all offered arms known of {found.known:,}"
    return text + (f", {found.rewarded:,} of these with a reward" if found.rewarded < found.known else "")


def _differ_text(found: Effects) -> str:
    assert found.differ is not None
    said = "differs" if found.differ.p_value < 1.0 - found.level else "is not seen to differ"
    return f"The effect {said} between groups (p = {found.differ.p_value:.2g}, Cochran's Q)."


def _cells(interval: Interval | None, p_value: float | None, digits: int, mark: str) -> list[str]:
    if interval is None or p_value is None:
        return ["not identifiable", "", ""]
    value = f"{mark}{number_text(interval.value, digits, sign=True)}"
    return [value, bounds_text(interval, digits, sign=True), "< 0.0001" if p_value < 1e-4 else f"{p_value:.4f}"]


def _verdict(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return "better" if interval.low > 0.0 else "worse" if interval.high < 0.0 else "unclear"


def _used(batches: Sequence[BatchPart]) -> str:
    """How many batches it rests on."""
    return f"{sum(not part.left_out for part in batches)} of {len(batches)}"


def _notes(told: Sequence[tuple[str, Sequence[str], Sequence[str]]], common: Sequence[str]) -> list[str]:
    """Refusals and cautions, each said once with the names it is about."""
    lines: list[str] = []
    for title, which in (("Not identifiable", 1), ("Bear in mind", 2)):
        about: dict[str, list[str]] = {}
        for one in told:
            for text in one[which]:
                about.setdefault(text, []).append(one[0])
        items = [*common] if which == 2 else []
        items += [text if len(told) == 1 else f"{_some(names)}: {text}" for text, names in about.items()]
        if items:
            lines += ["", f"{title}:", *(_item(item) for item in items)]
    return lines


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(shortened, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _item(text: str) -> str:
    return fill(text, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)


def _filled(text: str) -> str:
    return fill(text, WIDTH, break_on_hyphens=False)
