"""Plans as text: how many policies, when, at what cost; and as a page that needs nothing else."""

import html
import textwrap
from typing import TYPE_CHECKING

from rareswitch.core import percent_text, table
from rareswitch.errors import several
from rareswitch.learner import LEARNERS
from rareswitch.planning import (
    DAY,
    Bounds,
    Detection,
    End,
    Option,
    Plan,
    PlannedRegret,
    ScheduleTable,
    duration_text,
    short_date_text,
)
from rareswitch.report.figures import (
    BLUE,
    DARK_GREY,
    GREY,
    ORANGE,
    WIDTH,
    as_svg,
    beside,
    draw,
    figure,
    headline,
    plain_ticks,
)
from rareswitch.report.html import as_html, plain_page
from rareswitch.report.text import as_text, ratio_text, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_plan"]

#: How times without a plan are called.
HABITS = {"equal": "{} equal batches", "week": "weekly ({} policies)", "day": "daily ({} policies)", "never": "never"}
HABITS |= {"meeting": "every meeting ({} policies)"}
WHY = {
    "foresight": "it plans its exploration, needs no tuning, and leads those with so few policies in the contest.",
    "oful": "it changes when the data have grown, so that no order of the contexts can hide what matters. The regret "
    "above is simulated for contexts that keep their distribution.",
}


@as_text.register
def plan_text(plan: Plan, *, cli: bool = False) -> str:
    """The answer in a few sentences, then a table by number of policies, and what it rests on."""
    times = ScheduleTable(first=1, ends=plan.best.ends, zone=plan.zone)
    parts = [wrapped(headline_text(plan)), as_text(times, cli=cli), _options(plan), _times(plan)]
    parts += map(wrapped, facts_text(plan, cli=cli))
    parts += [as_text(plan.bounds, cli=cli)]
    return "\n\n".join(parts)


def headline_text(plan: Plan) -> str:
    """How many policies, and what fewer and other times lose.

    >>> from rareswitch.planning import plan
    >>> print(headline_text(plan(20_000, dim=5, arms=8, policies=8)))
    8 policies at these times lose 1.5 × what updating after every decision loses; 4 lose 2.7 ×; 8 equal batches 34 ×; \
never 268 ×. Recommended: 8 of at most 8.
    """
    best = plan.best
    at = "at these times " if best.policies > 1 else ""
    text = f"{several(best.policies, 'policy')} {at}lose{'s' * (best.policies == 1)} {ratio_text(best.ratio)} × what "
    text += "updating after every decision loses"
    fewer = [option for option in plan.options if 1 < option.policies <= best.policies / 2]
    lost = [f"{option.policies} lose {ratio_text(option.ratio)} ×" for option in fewer[-1:]]
    lost += [f"{HABITS[other.kind].format(other.policies)} {ratio_text(other.ratio)} ×" for other in plan.others]
    recommended = f"Recommended: {best.policies}" + ("." if plan.most is None else f" of at most {plan.most:,}.")
    return f"{'; '.join([text, *lost])}. {recommended}"


def _options(plan: Plan) -> str:
    """A row for each number of policies."""
    header = ["policies", "× adaptive", "floor", "regret (90 %)"]
    header += ["in the metric (90 %)"] if plan.mean is not None else []
    rows = []
    for option in plan.options:
        row = [str(option.policies), ratio_text(option.ratio), ratio_text(option.floor), as_text(option.regret)]
        rows.append([*row, *([as_text(option.metric)] if option.metric is not None else []), _order(option.bound)])
    return table([*header, "proved"], rows, left=0)


def _order(order: float | None) -> str:
    return "vacuous" if order is None else _short(order)


def _times(plan: Plan) -> str:
    """Best times of every number of policies."""
    lines = ["Updates at these times, with the decisions by then:" if plan.rate else "Updates after these decisions:"]
    for option in plan.options[1:]:
        times = ", ".join(_time(end, plan).replace(" ", "\N{NO-BREAK SPACE}") for end in option.ends[:-1])
        lines += textwrap.wrap(f"{option.policies:2}  {times}", 80, subsequent_indent="    ", drop_whitespace=True)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _time(end: End, plan: Plan) -> str:
    """When a batch ends, to the minute where there are dates."""
    if end.at is None or plan.start is None or plan.end is None:
        return f"{end.decisions:,}"
    return f"{short_date_text(end.at, plan.zone, year=plan.end - plan.start > 300 * DAY)} ({end.decisions:,})"


def facts_text(plan: Plan, *, cli: bool) -> list[str]:
    """What the numbers rest on, and what else is asked before an experiment, a paragraph each."""
    size = f"{plan.decisions:,} decisions, {several(plan.dim, 'feature')} and up to {several(plan.arms, 'arm')}"
    when = ""
    if plan.rate is not None and plan.start is not None and plan.end is not None:
        days = duration_text(round((plan.end - plan.start) / DAY) * DAY or plan.end - plan.start)
        when = f": {plan.rate:,.6g} a day for {days}"
    rests = {
        "sizes": "random contexts, as there is no sample",
        "sample": "the contexts of the sample",
        "log": "the contexts of the log, and rewards as its own let expect",
    }[plan.source]
    model = "logistic model" if plan.clicks else "linear model"
    if plan.fits is None:
        rests += f", as if a {model} described the rewards: where none does, policies lose more"
    elif plan.fits:
        rests += f"; a {model} describes these as well as one that says more"
    else:
        rests += f". No {model} describes these, and regret is against the best policy that one has"
    low, high = plan.gain
    gain = f"{low:.2g}" if high < 1.02 * low else f"{low:.2g} to {high:.2g}"
    rests += f". The best arms earn {gain} standard deviations of a reward more than uniform choice"
    if plan.mean is not None and plan.spread is not None:
        shares = [percent_text(abs(g * plan.spread / plan.mean)) for g in (low, high)]
        rests += f", {' to '.join(dict.fromkeys(shares))} of the mean"
    assumed = "" if plan.source == "log" or high < 1.02 * low else ", as is assumed where nothing is said"
    texts = [
        f"Simulated on {rests}{assumed}. {size}{when}. A decision of regret is what one of uniform choice loses; full "
        f"adaptivity loses {plan.adaptive:,.0f}. Floor: the best times of this number of batches without meetings and "
        "gaps between updates."
    ]
    texts.append(as_text(plan.min_propensity, cli=cli))
    texts += [_detection(detection, plan) for detection in plan.detections]
    bound = LEARNERS[plan.learner].regret
    texts.append(f"Learner: {plan.learner}, as {WHY[plan.learner]} Proved for it: {bound}.")
    written = "rareswitch experiment create … --plan FILE" if cli else "create(…, schedule=plan.schedule)"
    texts.append(f"To follow this plan: {written}{', with the output of --json as FILE' if cli else ''}.")
    return texts


def _detection(detection: Detection, plan: Plan) -> str:
    """How long until the lift is seen."""
    if detection.holdout is not None:
        against = f"against a holdout of {percent_text(detection.holdout)}"
    else:
        against = f"against uniform choice, with a minimum propensity of {detection.min_propensity:g}"
    lift = f"{detection.gain:.2g} standard deviation{'s' * (f'{detection.gain:.2g}' != '1')}"
    if plan.mean is not None and plan.spread is not None:
        lift = percent_text(abs(detection.gain * plan.spread / plan.mean))
    sure = f"{percent_text(detection.level)} intervals see it in {percent_text(detection.power)} of experiments"
    if detection.decisions is None or detection.share is None:
        return f"A lift of {lift} {against}: never seen with as few decisions as can be planned."
    text = f"A lift of {lift} {against}: {sure} after {several(detection.decisions, 'decision')}"
    if plan.rate is not None:
        text += f", {duration_text(detection.decisions / plan.rate * DAY)}"
    beyond = f", which is beyond the {plan.decisions:,} planned" if detection.decisions > plan.decisions else ""
    return (
        f"{text}{beyond}. Until then {percent_text(detection.share)} of it is earned, as policies are still learning."
    )


@as_text.register
def regret_text(regret: PlannedRegret, *, cli: bool = False) -> str:
    """An expected regret with its interval."""
    return f"{_short(regret.expected)} ({_short(regret.low)} to {_short(regret.high)})"


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if value >= 99.5 or value == round(value) else f"{value:.3g}"


@as_text.register
def option_text(option: Option, *, cli: bool = False) -> str:
    """A number of policies in a line."""
    policies = several(option.policies, "policy")
    return f"{policies}: {ratio_text(option.ratio)} × full adaptivity, {as_text(option.regret)} decisions of regret."


@as_text.register
def proofs_text(bounds: Bounds, *, cli: bool = False) -> str:
    """What is proved: learners and their bounds, and Table 1 of the paper."""
    rows = [
        [
            bound.learner,
            f"{bound.note or bound.regret.rpartition(', ')[0]} ({bound.source})",
            f"{bound.policies:,}",
            _order(bound.order),
        ]
        for bound in bounds.learners
    ]
    rows.append(["any learner", f"no less than {bounds.minimax_rate}", "any", _order(bounds.minimax)])
    learners = table(["learner", "proved, up to constants and log T", "policies", "order"], rows, left=2)
    lines = []
    for bound in bounds.adaptivity:
        text = f"{bound.text} {bound.model} {'suffice' if bound.upper else 'are needed'}"
        lines.append([f"{text}{f', {bound.condition}' if bound.condition else ''}", bound.source, _order(bound.order)])
    paper = table(["for the least regret (the paper's Table 1)", "source", "order"], lines, left=2)
    if bounds.vacuous:
        advice = (
            "All bounds are vacuous here: none is below the number of decisions. They compare learners, and predict no "
            "regret."
        )
    else:
        advice = (
            f"The best bound is that of {bounds.proven} with {several(bounds.proven_policies, 'policy')}: "
            f"{bounds.proven_reason} Bounds compare learners, and predict no regret."
        )
    return "\n\n".join([wrapped(advice), learners, paper])


@draw.register(Plan)
def draw_plan(plan: Plan) -> "Figure":
    """Regret by number of policies with its interval, beside full adaptivity and times without a plan."""
    drawing, (panel,) = figure()
    drawing.set_size_inches(WIDTH, 4.6)
    options = [option for option in plan.options if option.policies > 1] or [*plan.options]
    counts = [option.policies for option in options]
    panel.set(xscale="log", yscale="log")
    panel.fill_between(
        counts, [o.regret.low for o in options], [o.regret.high for o in options], color=ORANGE, alpha=0.2, linewidth=0
    )
    expected = [option.regret.expected for option in options]
    panel.plot(counts, expected, "o-", color=ORANGE, linewidth=2.2)
    panel.plot([plan.best.policies], [plan.best.regret.expected], "o", color=ORANGE, markersize=11)
    panel.axhline(plan.adaptive, color=DARK_GREY, linestyle="--")
    lowest = min(plan.adaptive, *(o.regret.low for o in options))
    panel.set_ylim(0.6 * lowest, 1.6 * max(plan.options[0].regret.high, expected[0]))
    beside(
        panel, "a new policy after every decision", (counts[0], plan.adaptive), (0, -12), color=DARK_GREY, fontsize=9
    )
    for other, color in zip(plan.others, (BLUE, GREY), strict=False):
        panel.axhline(other.ratio * plan.adaptive, color=color, linestyle=":")
        name = HABITS[other.kind].format(other.policies)
        beside(panel, name, (counts[0], other.ratio * plan.adaptive), (0, 4), color=DARK_GREY, fontsize=9)
    panel.set(xlabel="policies at the best times", ylabel="regret, in decisions of uniform choice")
    beside(panel, "90 % of runs", (counts[-1], options[-1].regret.high), (-2, 4), color=ORANGE, fontsize=9, ha="right")
    plain_ticks(panel.yaxis)
    panel.set_xticks(counts, [str(count) for count in counts])
    panel.minorticks_off()
    best = plan.best
    headline(panel, f"{several(best.policies, 'policy')} lose {ratio_text(best.ratio)} × what full adaptivity loses")
    return drawing


@as_html.register
def plan_page(plan: Plan) -> str:
    """One page with the picture in it; nothing is loaded from elsewhere."""
    best = as_text(ScheduleTable(first=1, ends=plan.best.ends, zone=plan.zone))
    tables = [("Times", best), ("By number of policies", f"{_options(plan)}\n\n{_times(plan)}")]
    body = [f"<h1>{html.escape(headline_text(plan))}</h1>", as_svg(draw_plan(plan))]
    body += [f"<h2>{title}</h2><pre>{html.escape(text)}</pre>" for title, text in tables]
    body += [f"<p>{html.escape(text)}</p>" for text in facts_text(plan, cli=True)]
    body += [f"<h2>What is proved</h2><pre>{html.escape(as_text(plan.bounds))}</pre>"]
    return plain_page("Plan of updates", body)
