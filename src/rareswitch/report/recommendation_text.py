"""A recommendation as sentences and tables, at most 80 columns wide."""

import textwrap

from rareswitch.core import table
from rareswitch.learner import LEARNERS
from rareswitch.plan import Recommendation
from rareswitch.report.text import as_text

WIDTH = 80


@as_text.register
def recommendation_text(found: Recommendation, *, cli: bool = False, min_propensity: str = "") -> str:
    """What to take, what a minimum propensity costs, what is proved, and how many policies are needed."""
    asked = found.problem
    limit = "" if asked.policies is None else f", at most {asked.policies:,} policies"
    size = f"{asked.dim:,} features, {asked.arms:,} arms, {asked.horizon:,} decisions"
    parts = [_wrapped(f"{size}, {asked.contexts} contexts{limit}."), _advice(found)]
    parts += [_wrapped(min_propensity)] if min_propensity else []
    parts.append(_options(found))
    if asked.policies is None:
        parts.append(_needs(found))
    return "\n\n".join([*parts, _adaptivity(found)])


def _advice(found: Recommendation) -> str:
    own = (one.regret for one in found.options if one.learner == found.learner)
    bound = next(own, LEARNERS[found.learner].regret)
    lines = [
        f"Take {found.learner} with {found.policies:,} policies: {found.reason} Proved for {found.learner}: {bound}."
    ]
    if any(one.order is not None for one in found.options):
        lines.append(f"For the best bound take {found.proven} with {found.proven_policies:,}: {found.proven_reason}")
    else:
        lines.append("With so few policies no learner has a bound below T; leave --policies out to see what is needed.")
    return "\n".join(map(_wrapped, lines))


def _options(found: Recommendation) -> str:
    rows = [
        [
            one.learner,
            f"{one.note or one.regret.rpartition(', ')[0]} ({one.source})",
            f"{one.policies:,}",
            "" if one.order is None else _short(one.order),
        ]
        for one in found.options
    ]
    rows.append(["any learner", f"no less than {found.minimax_rate}", "any", _short(found.minimax)])
    return table(["learner", "proved, up to constants and log T", "policies", "order"], rows, left=2)


def _needs(found: Recommendation) -> str:
    rows = [[need.rate, f"{need.policies:,}", f"{need.times:,.2f}"] for need in found.needs]
    return table([f"proved regret of {found.proven}", "policies", "times the best"], rows)


def _adaptivity(found: Recommendation) -> str:
    """Table 1 for such contexts."""
    rows = []
    for bound in found.adaptivity:
        says = f"{bound.text} {bound.model} {'suffice' if bound.upper else 'are needed'}"
        rows.append([f"{says}{f', {bound.condition}' if bound.condition else ''}", bound.source, _short(bound.order)])
    return table(["for the least regret (the paper's Table 1)", "source", "order"], rows, left=2)


def _short(order: float) -> str:
    return f"{order:,.0f}" if order < 1e6 else f"{order:.1e}".replace("e+0", "e").replace("e+", "e")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
