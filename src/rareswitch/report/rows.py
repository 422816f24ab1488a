"""Results as rows: what frames hold, and what notebooks show, with a drawing in each row."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rareswitch.core import Result, percent_text
from rareswitch.errors import ParameterError
from rareswitch.evaluation import Effects, Evaluation, Interval
from rareswitch.experiment import Advance, Lift, Status, Verification
from rareswitch.features import Features
from rareswitch.planning import Plan, ScheduleTable, minute_text
from rareswitch.policy import Decisions, Policy, PosteriorDraws, samplers_in
from rareswitch.report.charts import bar_mark, interval_mark
from rareswitch.report.features_text import treatment_text
from rareswitch.report.figures import BLUE, DARK_GREY, ORANGE, WIDTH, draw, figure, headline
from rareswitch.report.numerals import bounds_text, decimals, number_text, shortened
from rareswitch.report.text import as_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ResultRows", "as_part", "rows_of"]

Cell: TypeAlias = str | int | float | bool | datetime | None
#: ResultRows that a notebook shows, at the most, and characters of a text in them.
MOST_ROWS, LONGEST_TEXT = 20, 90
#: From this ratio of the largest to the smallest on, intervals are drawn on a logarithmic scale.
WIDE = 30.0
#: Of coefficients: the share of draws between the ends.
LEVEL = 0.9


@dataclass(frozen=True, kw_only=True)
class ResultRows:
    """What a result has beside its text."""

    rows: Sequence[Mapping[str, Cell]] = ()
    #: The column that is drawn: as an interval, if NAME_low and NAME_high are columns too, else as a bar.
    drawn: str = ""
    #: Where a line is drawn: at a value, or in each row at that of another column.
    line: float | str | None = None
    #: What is said above the rows; without it, the first paragraph of the text.
    lead: str = ""


@singledispatch
def rows_of(result: object) -> ResultRows:
    """A result as rows of plain values; a result without any is shown by its text."""
    return ResultRows()


@rows_of.register
def status_rows(status: Status) -> ResultRows:
    """A row for each policy."""
    rows: list[dict[str, Cell]] = [
        {
            "policy": batch.version,
            "published": datetime.fromtimestamp(batch.published, UTC),
            "decisions": batch.decisions,
            "rewarded": batch.rewarded,
        }
        for batch in status.batches
    ]
    return ResultRows(rows=rows, drawn="decisions")


@rows_of.register
def advance_rows(advance: Advance) -> ResultRows:
    """The shares of arms, as they were and would be; without them the decisions that are planned for each policy."""
    if advance.changes is not None:
        shares = advance.changes.arms.items()
        rows: list[dict[str, Cell]] = [
            {"arm": arm, "before": before, "after": after} for arm, (before, after) in shares
        ]
        return ResultRows(rows=rows, drawn="after", line="before")
    sizes = enumerate(advance.batch_sizes, advance.version)
    return ResultRows(rows=[{"policy": policy, "planned": size} for policy, size in sizes], drawn="planned")


@rows_of.register
def verification_rows(verification: Verification) -> ResultRows:
    """A row for each policy."""
    policies = enumerate(verification.policies, 1)
    return ResultRows(
        rows=[
            {"policy": k, "id": entry.policy_id[:12], "verdict": entry.verdict, "reason": entry.reason}
            for k, entry in policies
        ]
    )


@rows_of.register
def lift_rows(lift: Lift) -> ResultRows:
    """So far, then a row for each week."""
    rows = [
        {"when": part.name, **interval_cells("lift", part.interval), "decisions": part.decisions} for part in lift.parts
    ]
    return ResultRows(rows=rows, drawn="lift", line=0.0)


@rows_of.register
def evaluation_rows(evaluation: Evaluation) -> ResultRows:
    """A row for each candidate."""
    gains = {gain.name: gain.interval for gain in evaluation.gains}
    rows = [
        {
            "candidate": value.candidate,
            **interval_cells("value", value.interval),
            **interval_cells("gain", gains[value.candidate]),
            "level": None if value.interval is None else value.interval.level,
            "decisions": value.overlap.decisions,
            "ess": value.overlap.effective,
            "unsupported": value.overlap.unsupported,
            "refusals": " ".join(value.refusals),
        }
        for value in evaluation.values
    ]
    earned = None if evaluation.earned is None else evaluation.earned.value
    return ResultRows(rows=rows, drawn="value", line=earned)


@rows_of.register
def effects_rows(effects: Effects) -> ResultRows:
    """A row for each arm, or for each group."""
    rows = [
        {
            "arm": effect.arm,
            "against": effect.against,
            "group": effect.group,
            **interval_cells("effect", effect.interval),
            "level": effects.level,
            "p_value": effect.p_value,
            "decisions": effect.decisions,
            "shown": effect.shown,
            "shown_against": effect.shown_against,
            "refusals": " ".join(effect.refusals),
        }
        for effect in effects.effects
    ]
    return ResultRows(rows=rows, drawn="effect", line=0.0)


@rows_of.register
def plan_rows(plan: Plan) -> ResultRows:
    """A row for each number of policies."""
    rows = [
        {
            "policies": option.policies,
            "ratio": option.ratio,
            "floor": option.floor,
            "regret": option.regret.expected,
            "regret_low": option.regret.low,
            "regret_high": option.regret.high,
        }
        for option in plan.options
    ]
    return ResultRows(rows=rows, drawn="regret", line=plan.adaptive)


@rows_of.register
def schedule_rows(schedule: ScheduleTable) -> ResultRows:
    """A row for each batch to come."""
    ends = enumerate(schedule.ends, schedule.first)
    rows: list[dict[str, Cell]] = [
        {
            "policy": k,
            "until": None if end.at is None else datetime.fromtimestamp(end.at, UTC),
            "decisions": end.decisions,
        }
        for k, end in ends
    ]
    return ResultRows(rows=rows, drawn="decisions")


@rows_of.register
def features_rows(features: Features) -> ResultRows:
    """A row for each field."""
    rows: list[dict[str, Cell]] = [
        {
            "field": field.name,
            "of": field.of,
            "kind": field.kind,
            "columns": field.layout.columns,
            "treatment": treatment_text(field),
            "in the sample": features.seen.get(field.name, ""),
        }
        for field in features.fields
    ]
    return ResultRows(rows=rows, drawn="columns", lead=f"{features.dim} columns of {len(features.fields)} fields.")


@rows_of.register
def policy_rows(policy: Policy) -> ResultRows:
    """A row for each column that the policy weighs, the largest weight first, with what nine of ten of its draws say.

    >>> from rareswitch.design import Uniform
    >>> rows_of(Policy(dim=2, sampler=Uniform())).lead.partition(",")[0]
    'Policy 34aa1d5a635c…: Uniform'
    """
    samplers = [*samplers_in(policy.sampler)]
    kinds = " and ".join(type(sampler).__name__ for sampler in samplers[-2:])
    facts = [f"Policy {policy.id[:12]}…: {kinds}", f"{policy.dim} columns"]
    facts += [] if policy.min_propensity is None else [f"minimum propensity {policy.min_propensity}"]
    facts += [] if policy.holdout is None else [f"holdout {percent_text(policy.holdout)}"]
    lead = f"{', '.join(facts)}."
    draws = next((sampler.draws for sampler in samplers if isinstance(sampler, PosteriorDraws)), None)
    if draws is None:
        return ResultRows(lead=lead)
    names = [f"x{k + 1}" for k in range(policy.dim)] if policy.features is None else policy.features.columns
    low, high = np.quantile(draws, ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0), axis=0)
    means = draws.mean(axis=0)
    rows: list[dict[str, Cell]] = [
        {"column": names[k], "weight": float(means[k]), "weight_low": float(low[k]), "weight_high": float(high[k])}
        for k in np.argsort(-np.abs(means), kind="stable").tolist()
    ]
    return ResultRows(rows=rows, drawn="weight", line=0.0, lead=lead)


@rows_of.register
def decisions_rows(decisions: Decisions) -> ResultRows:
    """A row for each decision."""
    columns = (np.atleast_1d(column).tolist() for column in (decisions.arms, decisions.propensities))
    rows = [{"arm": arm, "propensity": propensity} for arm, propensity in zip(*columns, strict=True)]
    return ResultRows(rows=rows, drawn="propensity", lead=f"Decided by policy {decisions.policy_id[:12]}….")


def interval_cells(name: str, interval: Interval | None) -> dict[str, Cell]:
    """A value and both ends of its interval, as columns."""
    ends = (None, None, None) if interval is None else (interval.value, interval.low, interval.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def as_part(result: object) -> str:
    """A result as a part of a page: what is said first, its rows with a drawing in each, and all of its text to unfold.

    >>> print(as_part(Lift(reason="no decision names a baseline")))
    <div class="rareswitch"><pre>Lift over the baseline: not identifiable: no decision names a baseline.</pre></div>
    """
    shown, text = rows_of(result), as_text(result)
    if not shown.rows:
        return f'<div class="rareswitch"><pre>{escape(shown.lead or text, quote=False)}</pre></div>'
    lead = escape(shown.lead or text.partition("\n\n")[0], quote=False).replace("\n", "<br>\n")
    whole = f"<details><summary>as text</summary><pre>{escape(text, quote=False)}</pre></details>"
    return f'<div class="rareswitch"><p>{lead}</p>\n{_table(shown)}\n{whole if len(text) > len(lead) else ""}</div>'


def _table(shown: ResultRows) -> str:
    """The first rows as a table; columns that say nothing are left out, and the ends of an interval are one column."""
    rows = shown.rows[:MOST_ROWS]
    names = [name for name in rows[0] if any(row[name] not in (None, "") for row in rows) and name != "level"]
    texts = {name: _column(name, rows) for name in names if not _is_end(name, names)}
    marks = _marks(shown) if shown.drawn in names else [""] * len(rows)
    lines = [[f"<th>{escape(name.replace('_', ' '))}</th>" for name in texts]]
    lines += [[_cell(row[name], texts[name][at]) for name in texts] for at, row in enumerate(rows)]
    if any(marks):  # beside the first column
        for line, mark in zip(lines, ["<th></th>", *(f"<td>{mark}</td>" for mark in marks)], strict=True):
            line.insert(1, mark)
    body = "\n".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    more = len(shown.rows) - len(rows)
    note = f"<p>and {more:,} more rows, which <code>to_frame()</code> has</p>" if more else ""
    return f"<table>\n{body}\n</table>{note}"


def _is_end(name: str, names: Sequence[str]) -> bool:
    return name.endswith(("_low", "_high")) and name.rpartition("_")[0] in names


def _cell(value: Cell, text: str) -> str:
    style = "text-align: left" if isinstance(value, str) else "text-align: right; white-space: nowrap"
    return f'<td style="{style}">{text}</td>'


def _column(name: str, rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    """The values of a column as texts; of an interval also its ends, all with equally many digits."""
    if f"{name}_low" not in rows[0]:
        return [_text(row[name]) for row in rows]
    intervals = [_interval(name, row) for row in rows]
    digits = decimals(intervals)
    return ["" if i is None else _interval_text(i, digits) for i in intervals]


def _interval_text(interval: Interval, digits: int) -> str:
    value = number_text(interval.value, digits)
    return value if interval.low == interval.high else f"{value} ({bounds_text(interval, digits)})"


def _text(value: Cell) -> str:
    """A value in a table, numbers with three digits that count.

    >>> _text(0.012345), _text(298.7), _text(20_000), _text(True)
    ('0.0123', '299', '20,000', 'yes')
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            size = abs(value) if math.isfinite(value) and value else 1.0
            return f"{value:.1e}" if size < 1e-4 else number_text(value, max(0, 2 - math.floor(math.log10(size))))
        case datetime():
            return minute_text(value.timestamp())
    return escape(value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…", quote=False)


def _interval(name: str, row: Mapping[str, Cell]) -> Interval | None:
    """An interval of three columns of numbers; None where they are empty."""
    value, low, high = (row[column] for column in (name, f"{name}_low", f"{name}_high"))
    if not (isinstance(value, float) and isinstance(low, float) and isinstance(high, float)):
        return None
    return Interval(value=value, low=low, high=high, level=0.0, kind="")


def _marks(shown: ResultRows) -> list[str]:
    """A drawing for each row, on one scale."""
    rows, name = shown.rows[:MOST_ROWS], shown.drawn
    if f"{name}_low" not in rows[0]:
        most = max(abs(_number(row[name])) for row in rows) or 1.0
        before = [_number(row[shown.line]) / most if isinstance(shown.line, str) else None for row in rows]
        return [bar_mark(abs(_number(row[name])) / most, before=was) for row, was in zip(rows, before, strict=True)]
    intervals = [_interval(name, row) for row in rows]
    line = shown.line if isinstance(shown.line, float) else None
    ends = [end for i in intervals if i is not None for end in (i.low, i.high)] + ([] if line is None else [line])
    low, high = min(ends), max(ends)
    if low > 0.0 and high > WIDE * low:
        logs = [None if i is None else _logarithm(i) for i in intervals]
        return _drawn(logs, math.log(low), math.log(high), None if line is None else math.log(line))
    return _drawn(intervals, low, high, line)


def _drawn(intervals: Sequence[Interval | None], low: float, high: float, line: float | None) -> list[str]:
    return ["" if i is None else interval_mark(i, low, high, reference=line) for i in intervals]


def _logarithm(interval: Interval) -> Interval:
    value, low, high = (math.log(end) for end in (interval.value, interval.low, interval.high))
    return Interval(value=value, low=low, high=high, level=interval.level, kind=interval.kind)


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


@draw.register(Result)
@draw.register(Features)
@draw.register(Policy)
@draw.register(Decisions)
def draw_rows(result: object) -> "Figure":
    """The column that notebooks draw, a line for each row, the first on top."""
    shown = rows_of(result)
    rows, name = shown.rows[:MOST_ROWS], shown.drawn
    if not rows or not name:
        raise ParameterError(f"there is no picture of this {type(result).__name__}: it has no rows to draw.")
    drawing, (panel,) = figure()
    drawing.set_size_inches(WIDTH, 1.4 + 0.32 * len(rows))
    first = next(iter(rows[0]))
    for at, row in enumerate(rows):
        interval = _interval(name, row) if f"{name}_low" in row else None
        if interval is not None:
            panel.plot([interval.low, interval.high], [at, at], color=BLUE, linewidth=3.0)
            panel.plot([interval.value], [at], "o", color=BLUE)
        elif f"{name}_low" not in row:
            panel.barh([at], [_number(row[name])], color=BLUE, height=0.6)
        if isinstance(shown.line, str):
            panel.plot([_number(row[shown.line])], [at], "|", color=ORANGE, markersize=16, markeredgewidth=2.5)
    if isinstance(shown.line, float):
        panel.axvline(shown.line, color=DARK_GREY, linestyle="--", linewidth=1.0, zorder=0)
    panel.set_yticks(range(len(rows)), [shortened(str(row[first])) for row in rows])
    panel.set(ylim=(len(rows) - 0.4, -0.6), xlabel=name.replace("_", " "), ylabel=first)
    headline(panel, f"{type(result).__name__.lower()}: {name.replace('_', ' ')} by {first}")
    return drawing
