"""Reports of experiments as HTML: the parts of a page, which the service shows as it is and a file keeps.

Numbers become texts and charts here, templates only place them. ``as_html(report)`` is a page that needs no other file.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, singledispatch
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rareswitch.core import percent_text
from rareswitch.errors import MissingExtraError, ParameterError, several
from rareswitch.evaluation import Difference, Interval
from rareswitch.experiment import Advance, Audit, ExperimentReport, Lift, PolicyChanges
from rareswitch.planning import duration_text, minute_text
from rareswitch.report.charts import (
    DIRECTIONS,
    PHONE,
    SCREEN,
    Mark,
    Segment,
    bar_mark,
    interval_mark,
    line_chart,
    stacked_chart,
    timeline_chart,
)
from rareswitch.report.experiment_text import caution_text
from rareswitch.report.numerals import bounds_text, decimals, number_text, shortened
from rareswitch.report.text import as_text, waits_text

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["PARTS", "as_html", "audit_part", "changes_part", "part_of", "plain_page", "templates"]

#: The parts of a report in their order.
PARTS = ("summary", "proposal", "timeline", "shares", "values", "rewards", "health")
#: Rows of tables that are shown, at the most.
MOST_ROWS = 12


class TableRow(NamedTuple):
    """A line of a table: texts, and a mark that is drawn."""

    name: str
    cells: Sequence[str]
    mark: str = ""
    #: Such as clear, unclear or unknown.
    kind: str = ""


class Fact(NamedTuple):
    """A number and what it is."""

    name: str
    text: str


@cache
def templates(*packages: str) -> "Environment":
    """The templates of this package and of others, which escape whatever they are given."""
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("HTML needs Jinja2. Install it with: pip install 'rareswitch[experiment]'") from error
    loaders = [PackageLoader(name) for name in (*packages, "rareswitch.report")]
    environment = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value.translate(DIRECTIONS) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = unbroken
    return environment


def unbroken(text: str) -> str:
    r"""A sentence whose numbers stay on one line with what they count in, and dates with their times.

    >>> unbroken("by 5 %, 0.3 × as much, on 2026-03-05 06:00").replace("\u00a0", "_")
    'by 5_%, 0.3_×_as much, on 2026-03-05_06:00'
    """
    return re.sub(r"(?<=\d) (?=[%×]|\d\d:\d\d)|(?<=×) ", "\u00a0", text)


@singledispatch
def as_html(report: object) -> str:
    """A report as a page that needs no other file."""
    raise ParameterError(f"there is no page of a {type(report).__name__}.")


def plain_page(title: str, body: Sequence[str]) -> str:
    """A page with parts that are HTML already; nothing is loaded from elsewhere."""
    style = "body{max-width:60em;margin:2em auto;padding:0 1em;font:16px/1.5 system-ui,sans-serif}"
    style += "h1{font-size:1.4em}pre{overflow-x:auto;font-size:13px}svg{max-width:100%;height:auto}"
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style>\n{chr(10).join(body)}\n</html>\n"
    )


@as_html.register
def report_page(report: ExperimentReport) -> str:
    """All parts, with the style sheet in the page."""
    parts = [(name, part_of(report, name)) for name in PARTS]
    when = f"{minute_text(report.at)} UTC"
    return templates().get_template("document.html").render(name=report.status.name, when=when, parts=parts)


def part_of(report: ExperimentReport, name: str, *, pending: bool = False, csrf: str = "", link: str = "") -> str:
    """A part of a report as HTML.

    Parameters
    ----------
    name
        One of :data:`PARTS`.
    pending
        Whether its values are being estimated.
    csrf, link
        The token of forms, and where they are sent to; without them the part only says what there is.
    """
    view = {
        "summary": _summary,
        "proposal": _proposal,
        "timeline": _timeline,
        "shares": _shares,
        "values": _values,
        "rewards": _rewards,
        "health": _health,
    }[name](report)
    return templates().get_template(f"{name}.html").render(view | {"pending": pending, "csrf": csrf, "link": link})


def changes_part(advance: Advance) -> str:
    """What a policy that is previewed or proposed would change, as HTML."""
    return templates().get_template("changes.html").render(_changes_view(advance))


def audit_part(audit: Audit) -> str:
    """A decision with its audit, as HTML."""
    rewards = ", ".join(f"{value:g}{f' ({event})' if event else ''}" for event, value in audit.rewards.items())
    facts = [
        Fact("arm", audit.arm),
        Fact("propensity", f"{audit.propensity:.6g}"),
        Fact("policy", f"{audit.version}"),
        Fact("decided", f"{minute_text(audit.time)} UTC"),
        Fact("reward", rewards or "unknown"),
    ]
    verdict = as_text(audit).splitlines()[-1]
    view = {
        "id": str(audit.id),
        "facts": facts,
        "verdict": verdict,
        "matches": audit.matches,
        "policy_id": audit.policy_id,
    }
    return templates().get_template("audit.html").render(view)


# the parts: what templates show


View = dict[str, str | int | bool | Sequence[TableRow] | Sequence[Fact] | Sequence[str]]


def _summary(report: ExperimentReport) -> View:
    status = report.status
    figure, sentence, kind = _headline(report)
    policies = f"{len(status.batches)}"
    if status.price is not None:
        policies += f" of {status.price.policies}"
    rewarded = sum(batch.rewarded for batch in status.batches)
    share = percent_text(round(rewarded / status.decisions, 3)) if status.decisions else "none yet"
    facts = [
        Fact("decisions", f"{status.decisions:,}"),
        Fact("policies", policies),
        Fact("with a reward", share),
        Fact("learner", status.learner),
    ]
    about = f"Updated {status.schedule}."
    if status.ended is not None:
        about = f"Ended on {minute_text(status.ended)} UTC: no more decisions."
    return {
        "name": status.name,
        "about": about,
        "figure": figure,
        "sentence": sentence,
        "kind": kind,
        "facts": facts,
        "lift": status.lift is not None,
    }


def _headline(report: ExperimentReport) -> tuple[str, str, str]:
    """The lift as a number and as a sentence, and whether it is clear."""
    status, values = report.status, report.values
    if status.lift is not None:
        lift = status.lift if values is None or not values.lift else Lift(parts=values.lift)
        whole = lift.parts[0] if lift.parts else None
        if whole is None or whole.interval is None:
            return "Cannot tell yet", as_text(lift), "unknown"
        share, kind = whole.relative, _clear(whole.interval)
        figure = _signed(whole.interval) if share is None else f"{number_text(100.0 * share.value, 1, sign=True)} %"
        doubt = " It may be nothing: the interval has 0 in it." if kind == "unclear" else ""
        return figure, f"{as_text(lift)}{doubt}", kind
    if values is None:
        text = "Whether the policies earn more is not estimated yet." if status.decisions else "No decisions yet."
        return "Cannot tell yet", text, "unknown"
    # values may be older than the newest policy
    policies = [value for value in values.values if value.candidate.startswith("policy ")]
    first, current = policies[0], policies[-1]
    subject = current.candidate.capitalize()
    if current.interval is None:
        return "Cannot tell yet", f"{subject}: not identifiable: {' '.join(current.refusals)}", "unknown"
    digits = decimals([current.interval])
    text = f"{subject} earns {_with_bounds(current.interval)} per decision"
    kind = "unclear"
    if first is not current and first.interval is not None:
        text += f", the first policy {_with_bounds(first.interval)}"
        kind = _clear(
            replace(
                current.interval,
                low=current.interval.low - first.interval.high,
                high=current.interval.high - first.interval.low,
            )
        )
    return (
        number_text(current.interval.value, digits),
        f"{text}. No baseline was named to measure a lift against.",
        kind,
    )


def _clear(gain: Interval) -> str:
    return "better" if gain.low > 0.0 else "worse" if gain.high < 0.0 else "unclear"


def _signed(gain: Interval) -> str:
    return number_text(gain.value, decimals([gain]), sign=True)


def _with_bounds(value: Interval, *, sign: bool = False) -> str:
    digits = decimals([value])
    bounds = bounds_text(value, digits, sign=sign)
    return f"{number_text(value.value, digits, sign=sign)} ({percent_text(value.level)}: {bounds})"


def _timeline(report: ExperimentReport) -> View:
    status, ends = report.status, () if report.status.planned is None else report.status.planned.ends
    ends = () if status.ended is not None else ends
    dates = all(end.at is not None for end in ends) or any(end.decisions is None for end in ends)
    zone = "UTC" if status.planned is None else status.planned.zone
    segments, rows, decided = list[Segment](), list[TableRow](), 0
    last = len(status.batches) - 1
    stop = report.at if status.ended is None else status.ended
    for at, batch in enumerate(status.batches):
        following = status.batches[at + 1].published if at < last else max(stop, batch.published)
        start, end = (batch.published, following) if dates else (float(decided), float(decided + batch.decisions))
        planned = (ends[0].at if dates else ends[0].decisions) if ends and at == last else None
        state = "done" if at < last or status.ended is not None else "running"
        segments.append(Segment(f"{batch.version}", start, max(end, planned or end), state))
        decided += batch.decisions
        what = "decides now" if state == "running" else "done"
        cells = [minute_text(batch.published), f"{batch.decisions:,}", f"{batch.rewarded:,}", what]
        rows.append(TableRow(f"{batch.version}", cells, kind=state))
    total = decided if not ends or ends[0].decisions is None else ends[0].decisions
    for at, (begins, ends_at) in enumerate(pairwise(ends), len(status.batches) + 1):
        begin, stops = (begins.at, ends_at.at) if dates else (begins.decisions, ends_at.decisions)
        if begin is None or stops is None:
            break
        if stops > segments[-1].end:  # else it is overdue
            segments.append(Segment(f"{at}", max(begin, segments[-1].end), stops, "due"))
        more = "" if ends_at.decisions is None else f"≈ {max(0, ends_at.decisions - total):,}"
        total = ends_at.decisions or total
        rows.append(
            TableRow(f"{at}", ["" if begins.at is None else minute_text(begins.at), more, "", "due"], kind="due")
        )
    now = stop if dates else float(decided)
    label = f"Policies: {last} done, policy {last + 1} decides now, {len(segments) - last - 1} to come."
    charts = [timeline_chart(segments, now, dates=dates, width=width, label=label) for width in (SCREEN, PHONE)]
    price = "" if status.price is None else as_text(status.price)
    axis = f"Dates ({zone})" if dates else "Decisions"
    return {"charts": charts, "rows": rows, "price": price, "axis": axis}


def _shares(report: ExperimentReport) -> View:
    history = report.history
    if not history.arms:
        return {"charts": [], "rows": [], "more": "", "arms": 0}
    updates = [Mark(batch.published, f"policy {batch.version}") for batch in report.status.batches[1:]]
    total = sum(map(sum, history.arms.values()))
    shares = {arm: sum(counts) / total for arm, counts in history.arms.items()}
    words = [f"{arm} {percent_text(round(share, 3))}" for arm, share in [*shares.items()][:5]]
    label = f"Shares of {several(len(shares), 'arm')} over time. In all: {', '.join(words)}."
    charts = [
        stacked_chart(history.arms, start=history.start, step=history.width, marks=updates, width=width, label=label)
        for width in (SCREEN, PHONE)
    ]
    most = max(shares.values())
    rows = [
        TableRow(arm, [f"{sum(history.arms[arm]):,}", percent_text(round(share, 3))], bar_mark(share / most))
        for arm, share in [*shares.items()][:MOST_ROWS]
    ]
    left = len(shares) - len(rows)
    more = f"and {several(left, 'more arm')}" if left else ""
    return {"charts": charts, "rows": rows, "more": more, "arms": len(shares)}


def _values(report: ExperimentReport) -> View:
    values = report.values
    lift = () if report.status.lift is None else report.status.lift.parts[1:]
    view: View = {
        "policies": [],
        "arms": [],
        "unknown": [],
        "reason": "",
        "earned": "",
        "note": "",
        "weeks": _weeks(lift),
    }
    if values is None:
        return view
    intervals = [value.interval for value in values.values if value.interval is not None]
    reference = None if values.earned is None else values.earned.value
    bounds = [bound for interval in intervals for bound in (interval.low, interval.high)]
    bounds += [] if reference is None else [reference]
    gains = {gain.name: gain.interval for gain in values.gains}
    unknown: dict[str, str] = {}
    rows: dict[str, list[TableRow]] = {"policies": [], "arms": []}
    digits = decimals(intervals)
    for value in values.values:
        arm = value.candidate.startswith("always ")
        name = value.candidate.removeprefix("always ") if arm else value.candidate
        if value.interval is None:
            unknown[shortened(name)] = " ".join(value.refusals)
            continue
        gain = gains[value.candidate]
        kind = "unclear" if gain is None else _clear(gain)
        text = {"better": "earns more", "worse": "earns less", "unclear": "cannot tell"}[kind]
        cells = [number_text(value.interval.value, digits), bounds_text(value.interval, digits), text]
        mark = interval_mark(value.interval, min(bounds), max(bounds), reference=reference)
        rows["arms" if arm else "policies"].append(TableRow(name, cells, mark, kind))
    rows["arms"].sort(key=lambda row: -float(row.cells[0].replace(",", "").replace("−", "-")))
    earned = ""
    if values.earned is not None:
        earned = f"So far {_with_bounds(values.earned)} per decision was earned, the upright line below."
    level = percent_text(intervals[0].level) if intervals else ""
    return (
        view
        | rows
        | {
            "unknown": [*unknown],
            "reason": f"{next(iter(unknown.values()), '').partition('. ')[0].rstrip('.')}.",
            "earned": earned,
            "note": f"{level} intervals, which hold together, although each policy was learned from those before it."
            if intervals
            else "",
        }
    )


def _weeks(lift: Sequence[Difference]) -> Sequence[str]:
    """The lift by week as a chart, where there is one."""
    points = [
        (datetime.fromisoformat(week.name.removeprefix("week of ")).replace(tzinfo=UTC).timestamp(), week.interval)
        for week in lift
        if week.interval is not None
    ]
    if len(points) < 2:
        return []
    label = "Lift by week: " + "; ".join(
        f"{minute_text(at)[:10]} {_with_bounds(gain, sign=True)}" for at, gain in points
    )
    return [line_chart(points, width=width, label=label) for width in (SCREEN, PHONE)]


def _rewards(report: ExperimentReport) -> View:
    ages, total = report.history.ages, report.history.decisions
    window, rows = report.status.rewards.window, list[TableRow]()
    last = max((at for at, count in enumerate(ages.decisions) if count), default=-1)
    first = min((at for at, count in enumerate(ages.decisions) if count), default=0)
    counts = [
        (_age_text(ages.bounds, at), ages.decisions[at], _late(ages.bounds, at, window))
        for at in range(first, last + 1)
    ]
    counts += (
        [("window still open", ages.waiting, "waiting")]
        if window is not None
        else [("none so far", ages.waiting, "waiting")]
    )
    counts += [("missing", ages.missing, "missing")] if window is not None else []
    most = max((count for _, count, _ in counts), default=0)
    for name, count, kind in counts:
        share = percent_text(round(count / total, 3)) if total else ""
        note = {"late": "late", "waiting": "", "missing": "", "": "in the window" if window is not None else ""}[kind]
        rows.append(TableRow(name, [f"{count:,}", share, note], bar_mark(count / most if most else 0.0, kind), kind))
    return {"rows": rows, "about": as_text(report.status.rewards)}


def _age_text(bounds: Sequence[float], at: int) -> str:
    if at == 0:
        return f"within {duration_text(bounds[0])}"
    if at == len(bounds):
        return f"after {duration_text(bounds[-1])}"
    low, high = duration_text(bounds[at - 1]), duration_text(bounds[at])
    return f"{low} to {high}"


def _late(bounds: Sequence[float], at: int, window: float | None) -> str:
    return "late" if window is not None and (at == len(bounds) or bounds[at] > window) else ""


def _health(report: ExperimentReport) -> View:
    status, values = report.status, report.values
    rows = list[TableRow]()
    if values is not None and values.calibration is not None:
        rows.append(
            TableRow("Sample ratio", [values.calibration.words], kind="bad" if values.calibration.alarm else "good")
        )
    else:
        rows.append(
            TableRow("Sample ratio", ["Not checked yet: it is checked when values are estimated."], kind="unknown")
        )
    if status.novelty is not None:
        rows.append(TableRow("Novelty", [as_text(status.novelty)], kind="bad" if status.novelty.unlike else "good"))
    else:
        rows.append(TableRow("Novelty", ["Known after the first update."], kind="unknown"))
    fields = sorted(
        ((count, field, what) for field, kinds in status.fields.items() for what, count in kinds.items()), reverse=True
    )
    texts = [f"{several(count, 'decision')} {caution_text(field, what)}." for count, field, what in fields[:MOST_ROWS]]
    rows.append(
        TableRow("Fields", texts or ["All records are as the features describe them."], kind="bad" if texts else "good")
    )
    counts = (
        (status.unmatched, "reward", "without a decision"),
        (status.repeated_rewards, "reward", "sent again, counted once"),
        (status.overwritten, "reward", "overwritten"),
        (status.clipped, "reward", "clipped by updates"),
        (status.repeated_decisions, "decision", "requested again, answered as before"),
        (status.deferred, "decision", "deferred and not activated"),
    )
    texts = [f"{several(count, noun)} {what}." for count, noun, what in counts if count]
    rows.append(TableRow("Traffic", texts or ["Nothing is unmatched, repeated or clipped."], kind="good"))
    rows += [TableRow("Gate", [as_text(gate)], kind="bad") for gate in status.rejected]
    return {"rows": rows}


def _proposal(report: ExperimentReport) -> View:
    status, proposal = report.status, report.proposal
    view: View = {
        "proposed": proposal is not None,
        "due": status.due and status.ended is None,
        "version": 0,
        "changes": "",
    }
    waits = waits_text(() if status.due else status.waits).partition(": ")[2].partition(" (to ")[0].rstrip(".") + "."
    view["waits"] = "None: the experiment was ended." if status.ended is not None else waits[:1].upper() + waits[1:]
    if proposal is None:
        return view
    return view | {"version": proposal.version, "policy_id": proposal.policy_id, "changes": changes_part(proposal)}


def _changes_view(advance: Advance) -> View:
    """What would change: for whom, by how much, and why."""
    changes = advance.changes
    lines = [line for line in as_text(advance).splitlines() if line]
    if changes is not None:  # which have tables
        lines = [line for line in lines if not line.startswith("Changes: ")]
    view: View = {"lines": lines, "facts": [], "arms": [], "groups": [], "coefficients": [], "notes": [], "gate": ""}
    if advance.gate is not None:
        view["gate"] = as_text(advance.gate)
    if changes is None:
        return view
    facts = [Fact("of requests would see something else", percent_text(round(changes.share, 3)))]
    if changes.gain is not None:
        facts.append(Fact("reward per decision, expected by its own estimate", number_text(changes.gain, 4, sign=True)))
    facts.append(Fact("requests compared", f"{changes.requests:,}"))
    return view | {
        "facts": facts,
        "arms": _arm_rows(changes),
        "notes": _arm_notes(changes),
        "groups": [
            TableRow(entry.group, [f"{entry.requests:,}", percent_text(round(entry.share, 3))], bar_mark(entry.share))
            for entry in changes.groups
        ],
        "coefficients": [
            TableRow(
                entry.name,
                [number_text(entry.before, 4, sign=True), number_text(entry.after, 4, sign=True)],
                kind="better" if entry.after > entry.before else "worse",
            )
            for entry in changes.coefficients[:MOST_ROWS]
        ],
    }


def _arm_rows(changes: PolicyChanges) -> list[TableRow]:
    moved = [(arm, old, new) for arm, (old, new) in changes.arms.items() if old != new][:MOST_ROWS]
    return [
        TableRow(
            arm,
            [percent_text(round(old, 3)), percent_text(round(new, 3))],
            bar_mark(new, before=old),
            "better" if new > old else "worse",
        )
        for arm, old, new in moved
    ]


def _arm_notes(changes: PolicyChanges) -> list[str]:
    appear = [arm for arm, (old, new) in changes.arms.items() if old == 0.0 < new]
    vanish = [arm for arm, (old, new) in changes.arms.items() if new == 0.0 < old]
    texts = (("Appear", appear), ("Vanish", vanish))
    return [f"{what}: {', '.join(map(shortened, names))}." for what, names in texts if names]
