"""Reports as text: sentences about schedules, their prices and what is proved.

``as_text(report)`` names Python's parameters, ``as_text(report, cli=True)`` the options of the command line.
"""

import textwrap
from collections.abc import Iterable
from functools import singledispatch

from rareswitch.core import Displayed
from rareswitch.errors import several
from rareswitch.planning import (
    Due,
    KnownRegret,
    MinPropensityPrice,
    Price,
    ScheduleTable,
    Wait,
    date_text,
    duration_text,
)

__all__ = ["as_text", "wrapped"]

#: Columns of a terminal.
WIDTH = 80


@singledispatch
def as_text(report: object, *, cli: bool = False) -> str:
    """A report as text; with ``cli``, options stand in place of Python's parameters."""
    return repr(report) if isinstance(report, Displayed) else str(report)


def parameter(name: str, value: str = "", *, cli: bool) -> str:
    """A parameter as it is written: ``force=True`` or ``--force``.

    >>> parameter("force", cli=True), parameter("forecast", "…", cli=False)
    ('--force', 'forecast=…')
    """
    if not cli:
        return f"{name}={value or True}"
    return f"--{name.replace('_', '-')}{value and f' {value}'}"


def sentences(texts: Iterable[str]) -> str:
    """Short statements, each with a full stop.

    >>> sentences(["Model: logistic", "", "Exploration scale: 0.5"])
    'Model: logistic. Exploration scale: 0.5.'
    """
    return " ".join(f"{text}." for text in texts if text)


def window_text(seconds: float) -> str:
    """An attribution window.

    >>> window_text(2 * 86_400.0), window_text(93_784.0)
    ('2-day window', '1 day 2 hours window')
    """
    length = duration_text(seconds)
    return f"{length.replace(' ', '-').removesuffix('s') if length.count(' ') == 1 else length} window"


@as_text.register
def wait_text(wait: Wait, *, cli: bool = False) -> str:
    """What an update waits for."""
    when = "" if wait.at is None else date_text(wait.at, wait.zone)
    if wait.kind == "date":
        return f"{when} (in {duration_text(wait.seconds or 0.0)})"
    if wait.kind == "decisions":
        return f"after {several(wait.more or 0, 'more decision')} ({wait.decisions:,} of {wait.needed:,})"
    if wait.kind == "no decisions":
        return "no decisions yet"
    if wait.kind == "no rewards":
        return f"no rewards yet ({several(wait.decisions, 'decision')})"
    if wait.kind == "window":
        return f"{when} (first rewards, {window_text(wait.seconds or 0.0)})"
    if wait.kind == "gate":
        return (
            f"after {several(wait.more or 0, 'more decision')} (the gate rejected a policy after {wait.decisions:,} "
            f"and looks again after {wait.needed:,})"
        )
    if wait.kind == "manual":
        return "manual"
    if wait.kind == "done":
        forecast = parameter("forecast", "N" if cli else "…", cli=cli)
        return f"none, no policy is planned after this one (to go on, advance with {forecast}, the decisions to come)"
    until = when or (f"{several(wait.more, 'decision')} in all" if wait.more is not None else "")
    last = f"none, policy {wait.policy} is the last of the schedule{until and f', until {until}'}"
    if wait.most is not None and wait.policy is not None and wait.policy < wait.most:
        last = f"none, another policy would not pay with the decisions expected{until and f' until {until}'} (policy "
        last += f"{wait.policy} of up to {wait.most})"
    return f"{last} (to make another, advance with {parameter('force', cli=cli)})"


@as_text.register
def due_text(due: Due, *, cli: bool = False) -> str:
    """Whether an update is due, or what it waits for."""
    return waits_text(() if due.now else due.waits, cli=cli)


def waits_text(waits: tuple[Wait, ...], *, cli: bool = False) -> str:
    """All conditions that the next update waits for; where there is none, it is due."""
    return f"Next update: {'; '.join(as_text(wait, cli=cli) for wait in waits) or 'due now'}."


@as_text.register
def forecast_text(forecast: ScheduleTable, *, cli: bool = False) -> str:
    """A table of the batches to come."""
    lines = [("policy", "until", "decisions in all")]
    for policy, end in enumerate(forecast.ends, start=forecast.first):
        when = "" if end.at is None else date_text(end.at, forecast.zone)
        lines.append((str(policy), when, "?" if end.decisions is None else f"{end.decisions:,}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(f"{a:>{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines)


@as_text.register
def price_text(price: Price, *, cli: bool = False) -> str:
    """What a schedule costs."""
    optimal = f"optimal for {price.policies} policies"
    if price.ratio >= 1.1 * price.best:
        optimal = f"{ratio_text(price.best)} is {optimal}"
    return f"Expected regret: {ratio_text(price.ratio)} × full adaptivity ({optimal})."


def ratio_text(ratio: float) -> str:
    """A regret in units of full adaptivity.

    >>> ratio_text(1.34), ratio_text(27.2)
    ('1.3', '27')
    """
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}" if ratio < 1e6 else f"{ratio:.0e}".replace("e+0", "e")


@as_text.register
def floor_text(price: MinPropensityPrice, *, cli: bool = False) -> str:
    """A least probability of arms, and what it costs."""
    arms = "every offered arm" if price.only is None else ", ".join(price.only)
    text = f"Minimum propensity: {price.least:g} for {arms}"
    if price.arms is None or price.share is None:
        return f"{text}."
    text += f", {100.0 * price.share:.3g} % of decisions ({price.arms:.4g} arm{'s' * (price.arms != 1.0)} per set)"
    if price.cost is None:
        return f"{text}."
    learning = "" if price.learning is None else f", beside {price.learning:,.0f} for learning"
    return f"{text}. Expected cost: {price.cost:,.0f} exploring decisions of the next {price.decisions:,}{learning}."


@as_text.register
def known_regret_text(known: KnownRegret, *, cli: bool = False) -> str:
    """What is known of the regret of a run."""
    text = f"regret {known.rate}" if known.rate != "none" else "no bound is known"
    if known.batches != known.planned:
        proved = f"the regret is {known.rate}" if known.rate != "none" else text
        text = (
            f"The batches were not those planned ({', '.join(map(str, known.batches))} decisions for "
            f"{', '.join(map(str, known.planned))}), for which {proved}. {_off_plan(known)}"
        )
    if known.min_propensity:
        text += (
            f" This is of the decisions that the minimum propensity of {known.min_propensity} leaves to the learner."
        )
    if known.warm is not None:
        text += f" It began with {known.warm:,} decisions of a log, and is known if their rewards are alike."
    return text


def _off_plan(known: KnownRegret) -> str:
    """What is known of batches that were not those planned."""
    if known.delta is None or known.made_for is None:
        return "No rate is proved for other batches."
    if known.needed is not None:
        return (
            f"The intervals were made for {known.made_for[0]} decisions in {known.made_for[1]} batches, and there are "
            f"{known.needed[0]} in {known.needed[1]}: they may fail with a larger probability than {known.delta:g}."
        )
    return (
        f"Each batch is judged by itself, so all intervals hold together with probability {1 - known.delta:g}; the "
        "rate of the regret is proved for the planned batches only."
    )


def wrapped(text: str) -> str:
    """In lines as wide as a terminal."""
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
