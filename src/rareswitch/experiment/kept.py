"""Rewards as stores keep them, and what is refused of those that were there before."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from rareswitch.errors import ConflictError, ParameterError, ShapeError
from rareswitch.experiment.requests import check_text, id_text
from rareswitch.experiment.results import Choice
from rareswitch.experiment.rewards import Rewards
from rareswitch.ids import id_keys, key_bytes
from rareswitch.store import RewardRow
from rareswitch.validation import LARGEST_SCALE

#: Bytes of an event's name.
LONGEST_EVENT = 128


def listed(name: str, given: Any) -> list[Any]:
    """One for each request, by place: also of an array, or of a column of a table, whose index says nothing.

    >>> listed("values", np.array([0.5, 1.0]))
    [0.5, 1.0]
    """
    found = given
    for how in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, Arrow
        if hasattr(given, how):
            found = getattr(given, how)()
            break
    if not isinstance(found, (list, tuple, range)):
        raise ShapeError(
            f"{name} must be a list, one for each decision; got a {type(given).__name__}, {given!r:.60}. For a single "
            "decision call decide or reward."
        )
    return list(found)


def other_request(id: int | str, rest: str = "") -> ConflictError:  # noqa: A002
    """What is said of an id that was used before, for another request."""
    return ConflictError(
        f"id {id!r:.100} was used before, for another request: other arms, other features or another baseline.{rest} "
        "Give each decision an id of its own."
    )


def refuse_other_requests(found: Sequence[Choice | ConflictError], ids: Sequence[Any]) -> list[Choice]:
    """Raise if an id was used before, for another request; the choices otherwise."""
    made = [one for one in found if isinstance(one, Choice)]
    if len(made) == len(found):
        return made
    wrong = next(at for at, one in enumerate(found) if not isinstance(one, Choice))
    error = other_request(ids[wrong], f" The other {len(made)} of this call were decided." if made else "")
    error.each = found
    raise error


def reward_rows(told: Rewards, ids: Any, values: Any, events: Sequence[str] | None, time: float) -> list[RewardRow]:
    """What is kept of rewards, checked."""
    ids, values = listed("ids", ids), listed("values", values)
    events = None if events is None else listed("events", events)
    for name, given in (("values", values), ("events", events)):
        if given is not None and len(given) != len(ids):
            raise ShapeError(f"{name} must be one for each of the {len(ids)} ids; got {len(given)}.")
    if told.sums and events is None:
        raise ParameterError(
            "event must be given: rewards of this experiment are summed, and each is told apart by its event, such as "
            "an order number."
        )
    if not told.sums and events is not None:
        raise ParameterError("event was given, and a decision of this experiment has one reward. Leave it out.")
    keys = key_bytes(id_keys(ids))
    return [
        RewardRow(
            key=keys[at],
            id=id_text(one),
            event="" if events is None else _event(events[at]),
            value=_value(one, values[at], binary=told.kind == "binary"),
            time=time,
        )
        for at, one in enumerate(ids)
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


def _value(id: Any, given: Any, *, binary: bool) -> float:  # noqa: A002
    given = float(given) if isinstance(given, Decimal) else given
    kinds = (bool, int, float, np.bool_, np.integer, np.floating)
    if not isinstance(given, kinds) or not -LARGEST_SCALE <= given <= LARGEST_SCALE:
        raise ParameterError(
            f"value must be a number up to {LARGEST_SCALE:g}, or True or False; got {given!r:.60} for decision "
            f"{id!r:.60}. A reward that is not known is simply not given."
        )
    if binary and given not in (0, 1):
        raise ParameterError(
            f"value must be 0 or 1, False or True: rewards of this experiment are binary; got {given!r:.60} for "
            f"decision {id!r:.60}."
        )
    return float(given)


def _event(given: Any) -> str:
    if not isinstance(given, str) or not 0 < len(given.encode(errors="replace")) <= LONGEST_EVENT:
        raise ParameterError(f"event must be a text of 1 to {LONGEST_EVENT} bytes; got {given!r:.60}.")
    check_text("event", given)
    return given
