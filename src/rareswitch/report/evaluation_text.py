"""An evaluation as people read it in a terminal: the lift over the baseline first, at most 100 columns wide."""

from collections.abc import Sequence
from textwrap import fill

from rareswitch.core import percent_text, table
from rareswitch.errors import several
from rareswitch.evaluation import Calibration, Difference, Evaluation, Interval, Value
from rareswitch.report.numerals import LONGEST, bounds_text, decimals, number_text, shortened
from rareswitch.report.text import as_text

__all__ = ["evaluation_text"]

WIDTH = 100
#: Characters of a candidate's name in a table, at least.
SHORTEST = 12
#: Before every number that rests on estimated propensities.
ABOUT = "≈"
#: The name of what was done, as a candidate.
LOGGED = "logged"
KINDS = {
    "by batch": "intervals hold although each policy was learned from the decisions before it",
    "anytime": "intervals hold whenever, and however often, they are looked at",
}


@as_text.register
def evaluation_text(evaluation: Evaluation, *, batches: bool = False, cli: bool = False) -> str:
    r"""What is known, and why the rest is not.

    Parameters
    ----------
    batches
        Whether the values in every batch, and those by the other estimators, follow.

    Examples
    --------
    >>> from rareswitch.evaluation import Overlap
    >>> rests = Overlap(decisions=4000, mean_weight=0.0, mean_weight_error=0.0, unsupported=1.0, effective=0.0,
    ...                 largest=0.0, largest_share=0.0)
    >>> refused = Value(candidate="red", interval=None, refusals=("The log never shows red.",), estimator="ips",
    ...                 overlap=rests)
    >>> evaluation = Evaluation(values=(refused,), earned=None, lift=(), gains=(), calibration=None, decisions=4000,
    ...                   known=4000, rewarded=0, batch_names=("log",))
    >>> print(evaluation_text(evaluation).split("\n\n")[-1])
    Not identifiable, red:
      - The log never shows red.
    """
    parts = [_lift(evaluation), _earned(evaluation), _answers(evaluation), _grounds(evaluation.values)]
    refused = [value for value in evaluation.values if not value.answered]
    parts += [bulleted(f"Not identifiable, {value.candidate}:", value.refusals) for value in refused]
    parts += [_mind(evaluation), _calibration(evaluation.calibration)]
    if batches:
        parts += [_by_batch(value, mark_of(evaluation)) for value in evaluation.values]
    return "\n\n".join(part for part in parts if part)


def mark_of(evaluation: Evaluation) -> str:
    """What stands before numbers that rest on propensities: a mark where these were estimated."""
    return ABOUT if evaluation.estimated else ""


def _lift(evaluation: Evaluation) -> str:
    if not evaluation.lift:
        return ""
    whole = next((lift for lift in evaluation.lift if lift.name == "so far"), evaluation.lift[0])
    weeks = [lift for lift in evaluation.lift if lift is not whole]
    digits, mark = decimals(lift.interval for lift in weeks), mark_of(evaluation)
    lines = [_whole_lift(whole, mark)]
    if weeks:
        rows = [[lift.name, *_moved(lift, digits, mark), several(lift.decisions, "decision")] for lift in weeks]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *cells in rows:
            placed = [f"{name:{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(cells, widths[1:], strict=True))]
            lines.append("  " + "  ".join(placed))
        reasons = dict.fromkeys(
            reason for lift in weeks for reason in lift.refusals[:1] if reason not in whole.refusals
        )
        lines += [_item(f"not identifiable: {reason}") for reason in reasons]
    return "\n".join(lines)


def _whole_lift(whole: Difference, mark: str) -> str:
    """The first line of all, or why there is no number in it."""
    title = f"Lift over the {whole.over} {whole.name}"
    if whole.interval is None:
        return bulleted(f"{title}: not identifiable.", whole.refusals)
    gain, digits = whole.interval, decimals([whole.interval])
    text = f"{title}: {relative_text(whole, mark)}{mark}{number_text(gain.value, digits, sign=True)} per decision"
    text += f" ({percent_text(gain.level)}: {bounds_text(gain, digits, sign=True)})"
    text += f", {whole.assumes}" if whole.assumes else ""
    return filled(f"{text}.", later="  ")


def relative_text(lift: Difference, mark: str = "") -> str:
    """A lift as a share of what it is over, with a comma behind it; empty where that may be 0 or less."""
    if lift.relative is None:
        return ""
    value, low, high = (
        f"{number_text(100.0 * end, 1, sign=True)} %"
        for end in (lift.relative.value, lift.relative.low, lift.relative.high)
    )
    return f"{mark}{value} ({low} to {high}), "


def _earned(evaluation: Evaluation) -> str:
    if evaluation.earned is None:
        text = "Earned: not identifiable."
    else:
        digits = decimals([evaluation.earned])
        text = f"Earned: {number_text(evaluation.earned.value, digits)} per decision"
        text += f" ({percent_text(evaluation.earned.level)}: {bounds_text(evaluation.earned, digits)})."
    policies = len(evaluation.batch_names)
    text += f" The log has {several(evaluation.decisions, 'decision')} of {several(policies, 'policy')}; "
    if evaluation.known < evaluation.decisions:
        text += f"all offered arms are known of {evaluation.known:,}, the reward of {evaluation.rewarded:,} of these."
    elif evaluation.rewarded < evaluation.decisions:
        text += f"rewards are known of {evaluation.rewarded:,}."
    else:
        text += "all rewards are known."
    return filled(text)


def _answers(evaluation: Evaluation) -> str:
    """Values and gains, a row for each candidate."""
    answered = [value.interval for value in evaluation.values if value.interval is not None]
    gains = {gain.name: gain for gain in evaluation.gains}
    digits = decimals(answered)
    moved = min(digits + 1, decimals(gain.interval for gain in evaluation.gains))
    mark = mark_of(evaluation)
    rows = []
    for value in evaluation.values:
        cells = ["not identifiable", ""]
        if value.interval is not None:
            cells = [f"{mark}{number_text(value.interval.value, digits)}", bounds_text(value.interval, digits)]
        gain = gains.get(value.candidate)
        known = gain is not None and value.candidate != LOGGED and value.interval is not None
        more = [*_moved(gain, moved, mark), _verdict(gain.interval, moved)] if gain and known else ["", "", ""]
        rows.append([value.candidate, *cells, *more])
    interval = f"{percent_text(answered[0].level)} interval" if answered else "interval"
    head = ["candidate", "value", interval, "over logged", interval, "earns"]
    shown = head if any(row[3] for row in rows) else head[:3]
    text = _table(shown, [row[: len(shown)] for row in rows])
    if kinds := {interval.kind for interval in answered}:
        explanation = "; ".join(KINDS.get(kind, kind) for kind in sorted(kinds))
        if evaluation.questions > 1:
            explanation += f"; those of the {evaluation.questions} candidates hold together (Bonferroni)"
        text += "\n" + filled(f"value: reward per decision; {explanation}")
    if parts := [
        f"{value.candidate} {percent_text(value.traffic)}" for value in evaluation.values if value.traffic < 1.0
    ]:
        text += "\n" + filled(f"values of a part of the traffic, without batches that cannot tell: {', '.join(parts)}")
    return text


def _grounds(values: Sequence[Value]) -> str:
    """What the answers rest on."""
    rows = []
    for value in values:
        has = value.overlap
        cells = [f"{has.decisions:,}", _large(has.effective, 0), _large(has.mean_weight, 3), _large(has.largest, 1)]
        unsupported = "unknown" if has.unsupported is None else percent_text(has.unsupported)
        rows.append([value.candidate, value.estimator, *cells, unsupported])
    head = ["rests on", "estimator", "decisions", "ESS", "mean weight", "largest", "unsupported"]
    notes = (
        "ESS: effective sample size; mean weight: 1, up to chance, where propensities are right; unsupported: share of "
        "its play that the log could not have shown"
    )
    return f"{_table(head, rows, left=2)}\n{filled(notes)}"


def _mind(evaluation: Evaluation) -> str:
    """Cautions; those of all candidates are printed once."""
    items = []
    if evaluation.estimated:
        items.append(
            f"{ABOUT}: rests on estimated propensities ({evaluation.estimated}); its interval holds only as far as "
            "these are right."
        )
    about_whom: dict[str, list[str]] = {}
    for gain in evaluation.gains:
        if gain.assumes and gain.interval is not None:
            about_whom.setdefault(f"its gain is {gain.assumes}.", []).append(gain.name)
    for value in evaluation.values:
        for caution in (
            text for text in value.cautions if not evaluation.estimated or evaluation.estimated not in text
        ):
            about_whom.setdefault(caution, []).append(value.candidate)
    for caution, names in about_whom.items():
        everyone = len(names) == len(evaluation.values)
        items.append(caution if everyone else f"{', '.join(names)}: {caution}")
    return bulleted("Bear in mind:", items) if items else ""


def _calibration(calibration: Calibration | None) -> str:
    if calibration is None:
        return ""
    return filled(calibration.words)


def _by_batch(value: Value, mark: str) -> str:
    """The values of a candidate in every batch, and by every estimator."""
    text = f"{shortened(value.candidate)}, by batch (the decisions of one policy)"
    digits = decimals(batch.interval for batch in value.batches)
    rows = []
    for batch in value.batches:
        cells = ["not identifiable", "", ""]
        if batch.interval is not None:
            cells = [
                f"{mark}{number_text(batch.value, digits)}",
                bounds_text(batch.interval, digits),
                number_text(batch.error, digits),
            ]
        unsupported = "unknown" if batch.unsupported is None else percent_text(batch.unsupported)
        cells += [f"{batch.decisions:,}", _large(batch.spread, 2), unsupported]
        rows.append([str(batch.batch + 1), batch.name[:8], *cells])
    if rows:
        head = ["batch", "policy", "value", "interval", "error", "decisions", "spread", "unsupported"]
        text += f"\n{table(head, rows, left=2)}"
    others = {name: interval for name, interval in value.others.items() if name != value.estimator}
    digits = decimals(others.values())
    shown = [f"{name} {mark}{number_text(i.value, digits)} ({bounds_text(i, digits)})" for name, i in others.items()]
    return "\n".join([text, filled("for comparison: " + "; ".join(shown))] if shown else [text])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table whose first column, of names, takes the room that the others leave."""
    others = [max(map(len, column)) for column in zip(header[1:], *(row[1:] for row in rows), strict=True)]
    width = max(SHORTEST, min(LONGEST, WIDTH - sum(others) - 2 * len(others)))
    return table(header, [[shortened(row[0], width), *row[1:]] for row in rows], left=left)


def _moved(difference: Difference, digits: int, mark: str) -> list[str]:
    """A difference and its bounds, as cells."""
    if difference.interval is None:
        return ["not identifiable", ""]
    return [
        f"{mark}{number_text(difference.interval.value, digits, sign=True)}",
        bounds_text(difference.interval, digits, sign=True),
    ]


def _verdict(interval: Interval | None, digits: int) -> str:
    if interval is None:
        return ""
    if float(f"{max(abs(interval.low), abs(interval.high)):.{digits}f}") == 0.0:  # as good as none, and shown as 0
        return "same"
    return "more" if interval.low > 0.0 else "less" if interval.high < 0.0 else "unclear"


def bulleted(title: str, items: Sequence[str]) -> str:
    """A title, and items below it."""
    return "\n".join([title, *map(_item, items)])


def _item(text: str) -> str:
    return filled(text, first="  - ", later="    ")


def filled(text: str, *, first: str = "", later: str = "") -> str:
    """Lines of a paragraph; a number and its percent sign stay together."""
    joined = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = fill(joined, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def _large(value: float, digits: int) -> str:
    """A number of a diagnostic, which may be very large."""
    return number_text(value, digits if abs(value) < 1000.0 else 0)
