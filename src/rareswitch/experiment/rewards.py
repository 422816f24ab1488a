"""What counts as the reward of a decision, and rewards as stores keep them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from rareswitch.core import LARGEST_SCALE, Displayed, id_keys, key_bytes, number
from rareswitch.decisions import clip_bounds
from rareswitch.errors import ConflictError, ParameterError, ShapeError
from rareswitch.experiment.requests import Id, check_text, id_text, listed
from rareswitch.planning import duration_of
from rareswitch.store import RewardRow

__all__ = ["Rewards"]

#: What a decision earned, as callers give it; Decimals are of databases.
RewardValue: TypeAlias = float | Decimal | np.generic
#: Bytes of an event's name.
LONGEST_EVENT = 128


@dataclass(frozen=True, kw_only=True)
class Rewards(Displayed):
    """How rewards that come late, several times or never are counted.

    Examples
    --------
    Clicks, of which only those within a day are heard of; no click is a reward of 0:

    >>> from datetime import timedelta
    >>> Rewards(window=timedelta(days=1), default=0)
    Rewards(window=86400.0, default=0.0, several='one', kind=None, clip=None)

    Amounts of which a few may be very large: what is learned from lies between 0 and 200.

    >>> print(Rewards(clip=(0, 200)))
    Rewards: one per decision, clipped at 0 and 200, missing = not learned from.
    """

    durations: ClassVar[tuple[str, ...]] = ("window",)
    #: An attribution window, such as "2d" or a timedelta; kept in seconds. A decision younger than that waits, even if
    #: its reward is known, and a reward that comes later does not count, so that fast rewards are not over-represented.
    #: None: all count.
    window: Any = None
    #: What a decision earned whose reward did not come within the window; None: such decisions are not learned from.
    default: float | None = None
    #: "one" reward a decision, or the "sum" of several, each told apart by its event.
    several: Literal["one", "sum"] = "one"
    #: What the learner is to take them for, "binary" or "linear", where it can be told; by default it looks. Others
    #: than 0 and 1 are refused when they come if they are to be binary: no update could learn from them.
    kind: Literal["binary", "linear"] | None = None
    #: The least and the largest reward to learn from, or one number c for (-c, c). Others are stored as they came,
    #: learned from as if they were these bounds, and counted. The sum is clipped where several rewards are summed.
    clip: Any = None

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", duration_of("window", self.window))
        if self.default is not None:
            default = float(self.default) if isinstance(self.default, bool) else self.default
            object.__setattr__(self, "default", number("default", default, low=-LARGEST_SCALE, high=LARGEST_SCALE))
        if self.several not in ("one", "sum"):
            raise ParameterError(f"several must be 'one' or 'sum'; got {self.several!r:.60}.")
        if self.kind not in (None, "binary", "linear"):
            raise ParameterError(f"kind must be 'binary' or 'linear'; got {self.kind!r:.60}.")
        if self.kind == "binary" and (self.sums or self.default not in (None, 0.0, 1.0)):
            cause = 'several="sum"' if self.sums else f"default={self.default:g}"
            raise ParameterError(f'kind="binary" is for rewards of 0 and 1, and others come of {cause}. Leave one out.')
        if self.clip is not None:
            low, high = clip_bounds(self.clip)
            if self.kind == "binary":
                raise ParameterError('kind="binary" is for rewards of 0 and 1, which need no clip. Leave one out.')
            if self.default is not None and not low <= self.default <= high:
                raise ParameterError(f"default={self.default:g} is outside of clip, {low:g} to {high:g}. Widen clip.")
            object.__setattr__(self, "clip", (low, high))

    @property
    def sums(self) -> bool:
        """Whether several rewards of a decision are added up."""
        return self.several == "sum"


def reward_rows(
    rewards: Rewards, ids: Sequence[Id], values: Sequence[RewardValue], events: Sequence[str] | None, time: float
) -> list[RewardRow]:
    """What is kept of rewards, checked."""
    ids, values = listed("ids", ids), listed("values", values)
    events = None if events is None else listed("events", events)
    for name, column in (("values", values), ("events", events)):
        if column is not None and len(column) != len(ids):
            raise ShapeError(f"{name} must be one for each of the {len(ids)} ids; got {len(column)}.")
    if rewards.sums and events is None:
        raise ParameterError(
            "event must be given: rewards of this experiment are summed, and each is identified by its event, such as "
            "an order number."
        )
    if not rewards.sums and events is not None:
        raise ParameterError("event was given, and a decision of this experiment has one reward. Leave it out.")
    keys = key_bytes(id_keys(ids))
    return [
        RewardRow(
            key=keys[at],
            id=id_text(name),
            event="" if events is None else _event(events[at]),
            value=_value(name, values[at], binary=rewards.kind == "binary"),
            time=time,
        )
        for at, name in enumerate(ids)
    ]


def refuse_other_values(rows: Sequence[RewardRow], before: Sequence[RewardRow | None]) -> None:
    """Raise if a decision had another reward before."""
    pairs = zip(rows, before, strict=True)
    clashes = {at: (row, old) for at, (row, old) in enumerate(pairs) if old is not None and old.value != row.value}
    if clashes:
        others = f"{len(rows) - len(clashes)} others of this call were kept"
        rest = f"; {len(clashes)} of {len(rows)} rewards differ so. {others}"
        error = _other_value(*next(iter(clashes.values())), rest if len(rows) > 1 else "")
        error.each = [_other_value(*clashes[at]) if at in clashes else None for at in range(len(rows))]
        raise error


def _other_value(row: RewardRow, old: RewardRow, rest: str = "") -> ConflictError:
    event = f" for {row.event}" if row.event else ""
    return ConflictError(
        f"decision {row.id} has the reward {old.value:g}{event} already, and {row.value:g} was given{rest}. Give "
        "overwrite=True (--overwrite) to replace them."
    )


def _value(id: Id, value: RewardValue, *, binary: bool) -> float:  # noqa: A002
    value = float(value) if isinstance(value, Decimal) else value
    kinds = (bool, int, float, np.bool_, np.integer, np.floating)
    if not isinstance(value, kinds) or not -LARGEST_SCALE <= value <= LARGEST_SCALE:
        raise ParameterError(
            f"value must be a number up to {LARGEST_SCALE:g}, or True or False; got {value!r:.60} for decision "
            f"{id!r:.60}. A reward that is not known is simply not given."
        )
    if binary and value not in (0, 1):
        raise ParameterError(
            f"value must be 0 or 1, False or True: rewards of this experiment are binary; got {value!r:.60} for "
            f"decision {id!r:.60}."
        )
    return float(value)


def _event(event: str) -> str:
    if not isinstance(event, str) or not 0 < len(event.encode(errors="replace")) <= LONGEST_EVENT:
        raise ParameterError(f"event must be a text of 1 to {LONGEST_EVENT} bytes; got {event!r:.60}.")
    check_text("event", event)
    return event
