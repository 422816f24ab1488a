"""One line of dsjson, the decision service JSON of Vowpal Wabbit: what was offered and chosen, how likely, its cost."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.exchange.texts import OURS, seconds_of
from rareswitch.files import reading

#: How far from 1 the sum of probabilities may be: they are written as floats of 32 bits.
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """A decision."""

    #: In the file, from 1.
    number: int
    #: Of the event; empty where there is none.
    event: str
    #: Which of the actions was taken, from 0.
    chosen: int
    #: None where it is not told.
    propensity: float | None
    #: NaN where it is not known, or not to be learned from.
    reward: float
    #: The probabilities of all actions, in their order; None where they are not told.
    probabilities: list[float] | None
    #: Seconds since 1970; NaN where it is not told.
    time: float
    #: Of the model that decided; empty where it is not told.
    model: str
    #: The share of such events that were left out of the file.
    dropped: float
    #: What all actions share, and each of them, as they are in the file.
    shared: Mapping[str, Any]
    actions: list[Mapping[str, Any]]
    #: What rareswitch wrote beside.
    ours: Mapping[str, Any]


class Records(NamedTuple):
    """Contexts and the arms that were offered, as :meth:`rareswitch.Features.fit` takes them."""

    contexts: list[dict[str, Any]]
    arms: list[dict[str, dict[str, Any]]]


def lines_of(path: str | Path) -> Iterator[Line]:
    """The decisions of a file, one after the other."""
    with reading(path) as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                yield _line(f"{path}, line {number}", number, text)


def dsjson_records(path: str | Path, *, arm: str = "_tag") -> Records:
    """The records of a file, to fit features of: what actions share, and the actions by their ids.

    Namespaces and fields are joined by a dot; those whose names begin with ``_`` are left out, as Vowpal Wabbit leaves
    them out.

    Parameters
    ----------
    path
        Of a file in dsjson; compressed where it ends in ``.gz``.
    arm
        The field of an action that is its id, such as ``item.id``; its place, from 1, where it has none.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "log.json").write_text('{"a": [1], "p": [1.0], "c": {"user": {"age": 31}, "_multi": [{}]}}')
    >>> dsjson_records(Path(folder, "log.json"))
    Records(contexts=[{'user.age': 31}], arms=[{'1': {}}])
    """
    found = Records([], [])
    for line in lines_of(path):
        add_records(found, path, line, arm)
    if not found.contexts:
        raise FileFormatError(f"{path}: it holds no decision.")
    return found


def add_records(found: Records, path: str | Path, line: Line, arm: str) -> None:
    """Add those of one decision."""
    at = f"{path}, line {line.number}"
    names = [arm_name(action, arm) or str(arm_index) for arm_index, action in enumerate(line.actions, 1)]
    if len(set(names)) < len(names):
        raise FileFormatError(f"{at}: actions must have different ids ({arm}); one is there twice.")
    found.contexts.append(flat(at, line.shared))
    found.arms.append({name: flat(at, action) for name, action in zip(names, line.actions, strict=True)})


def flat(at: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of fields whose names are joined by dots; of a list of records the second has a 1 in its name.

    >>> flat("here", {"user": {"age": 31, "_id": 7}, "urls": [{"host": "a"}, {"host": "b"}], "x": [0.5, 1]})
    {'user.age': 31, 'urls.host': 'a', 'urls.1.host': 'b', 'x': [0.5, 1]}
    """
    found: dict[str, Any] = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if not name.startswith("_"):
                    add(f"{prefix}.{name}" if prefix else name, inner)
        elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            for k, inner in enumerate(value):
                add(f"{prefix}.{k}" if k else prefix, inner)
        elif prefix in found:
            raise FileFormatError(f"{at}: the field {prefix!r:.60} is there twice. Rename one.")
        else:
            found[prefix] = value

    add("", record)
    return found


def arm_name(action: Mapping[str, Any], arm: str) -> str | None:
    """The id of an action: what it has under this name, parts of which are joined by dots."""
    found: Any = action
    for part in arm.split("."):
        while isinstance(found, list) and found:
            found = found[0]
        found = found.get(part) if isinstance(found, Mapping) else None
    return str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) and found != "" else None


def _line(at: str, number: int, text: str) -> Line:
    try:
        told = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{at}: not JSON ({error!s:.100}). The file may be cut short.") from error
    if not isinstance(told, dict):
        raise FileFormatError(f"{at}: a decision must be an object; got {text.strip()!r:.60}.")
    shared, actions = _context(at, told)
    order = _order(at, told, len(actions))
    chosen = _chosen(at, told, order, len(actions))
    probabilities = _probabilities(at, told, order, len(actions))
    propensity = _number(at, told, "_label_probability")
    if propensity is None and probabilities is not None:
        propensity = probabilities[chosen]
    if propensity is not None and not 0.0 < propensity <= 1.0:
        raise FileFormatError(
            f"{at}: the probability of the chosen action must be above 0 and at most 1; got {propensity:g}."
        )
    if probabilities is not None and abs(probabilities[chosen] - (propensity or 0.0)) > 1e-6 * probabilities[chosen]:
        raise FileFormatError(
            f"{at}: _label_probability is {propensity:g}, and p says {probabilities[chosen]:g} of the same action."
        )
    cost = _number(at, told, "_label_cost")
    skipped = told.get("_skipLearn", False)
    dropped = _number(at, told, "pdrop") or 0.0
    if type(skipped) is not bool or not 0.0 <= dropped < 1.0:
        raise FileFormatError(f"{at}: _skipLearn must be true or false, and pdrop from 0 to below 1.")
    stamp = told.get("Timestamp")
    time = float("nan") if stamp is None else seconds_of(str(stamp))
    if time is None:
        raise FileFormatError(f"{at}: Timestamp must be such as 2026-11-16T05:00:00.0000000Z; got {stamp!r:.60}.")
    state, ours = told.get("VWState"), told.get(OURS, {})
    if not isinstance(ours, dict):
        raise FileFormatError(f"{at}: what rareswitch wrote there is damaged.")
    return Line(
        number=number,
        event=str(told.get("EventId", "")),
        chosen=chosen,
        propensity=propensity,
        reward=float("nan") if cost is None or skipped else -cost,
        probabilities=probabilities,
        time=time,
        model=str(state.get("m", "")) if isinstance(state, dict) else "",
        dropped=dropped,
        shared=shared,
        actions=actions,
        ours=ours,
    )


def _context(at: str, told: dict[str, Any]) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    context = told.get("c")
    if "_outcomes" in told or (isinstance(context, dict) and "_slots" in context):
        raise FileFormatError(
            f"{at}: several slots are decided at once (CCB or slates); only one action a decision is read."
        )
    if not isinstance(context, dict):
        remedy = " It is an outcome whose decision is missing; leave it out." if "RewardValue" in told else ""
        raise FileFormatError(f"{at}: a decision needs its context 'c'; it has {', '.join(told):.100}.{remedy}")
    actions = context.get("_multi")
    if not isinstance(actions, list) or not actions or not all(isinstance(one, dict) for one in actions):
        raise FileFormatError(f"{at}: a context needs its actions '_multi', objects, one at least.")
    return {name: value for name, value in context.items() if name != "_multi"}, actions


def _order(at: str, told: dict[str, Any], count: int) -> list[int] | None:
    """The actions in the order of their probabilities ``p``, the taken one first; from 0."""
    order = told.get("a")
    if order is None:
        return None
    if not isinstance(order, list) or not all(type(one) is int for one in order) or len({*order}) != len(order):
        raise FileFormatError(f"{at}: 'a' must be numbers of actions, each once; got {order!r:.60}.")
    if not order or min(order) < 1 or max(order) > count:
        raise FileFormatError(f"{at}: 'a' must be numbers of the {count} actions, from 1; got {order!r:.60}.")
    return [one - 1 for one in order]


def _chosen(at: str, told: dict[str, Any], order: list[int] | None, count: int) -> int:
    """Which action was taken, from 0: all that is told of it must agree."""
    found = {"a": order[0]} if order else {}
    for name, first in (("_label_Action", 1), ("_labelIndex", 0)):
        if name in told:
            if type(told[name]) is not int or not 0 <= told[name] - first < count:
                raise FileFormatError(
                    f"{at}: {name} must be that of one of the {count} actions, from {first}; got {told[name]!r:.60}."
                )
            found[name] = told[name] - first
    if len({*found.values()}) != 1:
        if not found:
            raise FileFormatError(f"{at}: it does not say which action was taken (_label_Action, _labelIndex or a).")
        raise FileFormatError(f"{at}: {', '.join(found)} tell of different actions.")
    return next(iter(found.values()))


def _probabilities(at: str, told: dict[str, Any], order: list[int] | None, count: int) -> list[float] | None:
    given = told.get("p")
    if given is None:
        return None
    right = isinstance(given, list) and all(type(p) in (int, float) and 0.0 <= p <= 1.0 for p in given)
    if not right or order is None or len(given) != len(order):
        raise FileFormatError(f"{at}: 'p' must be probabilities, one for each action in 'a'; got {given!r:.60}.")
    if abs(sum(given) - 1.0) > _TOLERANCE:
        raise FileFormatError(f"{at}: the probabilities 'p' must sum to 1; they sum to {sum(given):g}.")
    found = np.zeros(count)
    found[order] = given
    return [*found.tolist()]


def _number(at: str, told: dict[str, Any], name: str) -> float | None:
    value = told.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not np.isfinite(value):
        raise FileFormatError(f"{at}: {name} must be a finite number; got {value!r:.60}.")
    return float(value)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
