"""The lift over the baseline: what an experiment has earned more than the caller would have."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from rareswitch.errors import RareswitchError, StoreError, several
from rareswitch.evaluation import Difference, Interval, bounds_text, decimals, lift_of, number_text, percent_text
from rareswitch.experiment.moments import minute_text
from rareswitch.log import Source


@dataclass(frozen=True, kw_only=True)
class Lift:
    """Over the baseline, so far and by week, of the decisions that name one. Prints as a line.

    >>> print(Lift(reason="no decision names an arm that would have been shown"))
    Lift over the baseline: not known: no decision names an arm that would have been shown.
    """

    #: So far, then by week; empty where nothing is known.
    parts: tuple[Difference, ...] = ()
    #: Why nothing is.
    reason: str = ""
    #: As of when, in seconds since 1970.
    at: float | None = None

    def to_plain(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return asdict(self) | {"parts": [asdict(one) | {"refusals": list(one.refusals)} for one in self.parts]}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """What :meth:`to_plain` was called on."""
        return cls(reason=data["reason"], at=data["at"], parts=tuple(map(_difference, data["parts"])))

    def __str__(self) -> str:
        title = "Lift over the baseline"
        when = "" if self.at is None else f", as of {minute_text(self.at)}"
        if not self.parts:
            return f"{title}{when}: not known: {self.reason.rstrip('.')}."
        whole, *weeks = self.parts
        if whole.interval is None:
            return f"{title}{when}: not known: {' '.join(whole.refusals)}"
        text = _moved(whole.interval)
        if whole.other is not None and whole.other > 0.0:
            text = f"{number_text(100.0 * whole.interval.value / whole.other, 1, sign=True)} %, {text}"
        text += f", on {several(whole.decisions, 'decision')} with a named one"
        text += f", {whole.assumes}" if whole.assumes else ""
        if weeks and weeks[-1].interval is not None and len(weeks) > 1:
            text += f"; {weeks[-1].name} {_moved(weeks[-1].interval)}"
        return f"{title}{when}: {text}."


def kept_lift(report: Mapping[str, Any], *, baseline: bool) -> Lift:
    """The lift as an update has measured it, of what is kept of the update; or why it is not known."""
    if not baseline:
        return Lift(reason="the experiment was created without baseline=…")
    return Lift.from_plain(report["lift"]) if "lift" in report else Lift(reason="no update has measured it yet")


def measured_lift(log: Source, at: float) -> Lift:
    """The lift in a log; where it cannot be told, why not."""
    try:
        parts = lift_of(log)
    except StoreError:
        raise
    except RareswitchError as error:
        return Lift(reason=str(error), at=at)
    return Lift(parts=parts, reason="" if parts else "no decision names the arm that would have been shown", at=at)


def _moved(gain: Interval) -> str:
    digits = decimals([gain])
    bounds = bounds_text(gain, digits, sign=True)
    return f"{number_text(gain.value, digits, sign=True)} a decision ({percent_text(gain.level)}: {bounds})"


def _difference(data: Mapping[str, Any]) -> Difference:
    interval = None if data["interval"] is None else Interval(**data["interval"])
    return Difference(**{**data, "interval": interval, "refusals": tuple(data["refusals"])})
