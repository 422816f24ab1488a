"""dsjson, the decision service JSON of Vowpal Wabbit: one decision a line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import BoolArray, reading
from rareswitch.decisions import ArmCodes, DecisionLog
from rareswitch.errors import FileFormatError
from rareswitch.features import Features, Record
from rareswitch.log.tables import (
    checked_log,
    estimate_propensities,
    estimating,
    id_texts,
    parse_ids,
    parse_time,
    writing,
)

__all__ = ["dsjson_records", "read_dsjson", "write_dsjson"]

#: What JSON holds.
DsjsonValue: TypeAlias = Any
#: The namespace of an action's vector in what we write.
_VECTOR = "rareswitch"


class _Line(msgspec.Struct):
    """A decision, as it stands in the file."""

    context: dict[str, DsjsonValue] | None = msgspec.field(name="c", default=None)
    order: list[int] | None = msgspec.field(name="a", default=None)
    probabilities: list[float] | None = msgspec.field(name="p", default=None)
    cost: float | None = msgspec.field(name="_label_cost", default=None)
    probability: float | None = msgspec.field(name="_label_probability", default=None)
    action: int | None = msgspec.field(name="_label_Action", default=None)
    index: int | None = msgspec.field(name="_labelIndex", default=None)
    skipped: bool = msgspec.field(name="_skipLearn", default=False)
    dropped: float | None = msgspec.field(name="pdrop", default=None)
    timestamp: str | None = msgspec.field(name="Timestamp", default=None)
    event: str | int = msgspec.field(name="EventId", default="")
    state: Record | None = msgspec.field(name="VWState", default=None)
    outcomes: DsjsonValue = msgspec.field(name="_outcomes", default=None)
    outcome: DsjsonValue = msgspec.field(name="RewardValue", default=None)
    #: How propensities were estimated, in what we write.
    estimated: str = msgspec.field(name="rareswitch.estimated", default="")
    #: Which of the actions would have been shown, in what we write.
    baseline: int | None = msgspec.field(name="rareswitch.baseline", default=None)


class Decision(NamedTuple):
    """A decision, checked."""

    #: In the file, from 1.
    number: int
    line: _Line
    #: What all actions share, and each of them.
    shared: Record
    actions: list[Record]
    #: Which of the actions was taken, from 0.
    chosen: int
    #: None where it is not given.
    propensity: float | None
    #: Of all actions, in their order; None where they are not given.
    probabilities: list[float] | None
    #: Seconds since 1970; NaN where it is not given.
    time: float


class Records(NamedTuple):
    """Contexts and the arms that were offered, as :meth:`rareswitch.Features.fit` takes them."""

    contexts: list[Record]
    arms: list[dict[str, Record]]


def read_dsjson(
    path: str | Path,
    *,
    features: Features | None = None,
    arm: str = "_tag",
    propensities: Literal["logged", "estimate"] = "logged",
) -> DecisionLog:
    """A log in dsjson: contextual bandits with one action a decision.

    Rewards are the negatives of ``_label_cost``; they are unknown where there is none, and where ``_skipLearn`` says
    that the action was not taken after all. ``VWState.m``, the model that decided, names the batches. Where every line
    has ``p``, the probabilities of all actions are known. A share ``pdrop`` of events that were left out must be the
    same in all lines: then the rest is like the whole.

    Parameters
    ----------
    path
        Of the file; compressed where it ends in ``.gz``.
    features
        By which records become vectors; see :func:`dsjson_records`. None: arms have none, but for what
        :func:`write_dsjson` wrote.
    arm
        The field of an action that is its id, such as ``item.id``. Where actions have no ``_tag``, arms have no ids.
    propensities
        ``"estimate"``: from how often arms were chosen, for logs without probabilities.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "log.dsjson")
    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.9], rewards=[1.0, None], arms=["red", "blue"])
    >>> write_dsjson(path, log)
    >>> again = read_dsjson(path)
    >>> again.chosen_names, again.propensities.tolist(), again.rewards.tolist()
    (['red', 'blue'], [0.5, 0.9], [1.0, nan])
    """
    estimate = estimating(propensities)
    decisions = [*read_decisions(path)]
    dropped = {decision.line.dropped or 0.0 for decision in decisions}
    if len(dropped) > 1:
        raise FileFormatError(
            f"{path}: events were left out at different rates (pdrop {min(dropped):g} to {max(dropped):g}), so that "
            "the rest is not like the whole. Split the file by pdrop."
        )
    sizes = np.array([len(decision.actions) for decision in decisions])
    available = np.arange(sizes.max()) < sizes[:, None]
    columns: dict[str, Any] = {
        "available": available,
        "arm_indices": np.array([decision.chosen for decision in decisions]),
        "rewards": np.array([_reward(decision.line) for decision in decisions]),
        "estimated": decisions[0].line.estimated,
    }
    models: dict[str, int] = {}
    named = [str((decision.line.state or {}).get("m", "")) or "log" for decision in decisions]
    columns |= {"batches": np.array([models.setdefault(model, len(models)) for model in named])}
    columns["batch_names"] = tuple(models)
    names = _names(path, decisions, arm)
    if names is not None:
        arms = ArmCodes()
        columns |= {"codes": _spread(arms.codes(names), available, -1), "arms": arms.names}
    if all(decision.probabilities is not None for decision in decisions):
        flat = [probability for decision in decisions for probability in decision.probabilities or ()]
        columns["behavior_probs"] = _spread(flat, available, 0.0)
    times = np.array([decision.time for decision in decisions])
    columns |= {} if np.isnan(times).all() else {"times": times}
    shown = np.array([-1 if decision.line.baseline is None else decision.line.baseline for decision in decisions])
    columns |= {"baselines": shown} if (shown >= 0).any() else {}
    columns |= _vectors(path, decisions, available, features, arm)
    if any(decision.line.event != "" for decision in decisions):
        texts = [str(decision.line.event) or f"line {decision.number}" for decision in decisions]
        columns["ids"] = parse_ids(texts)
    if estimate:
        columns |= {"behavior_probs": None, "estimated": ""}
        return estimate_propensities(checked_log(path, propensities=np.ones(len(sizes)), **columns))
    for decision in decisions:
        if decision.propensity is None:
            raise FileFormatError(
                f"{path}, line {decision.number}: it does not say how likely the action was (_label_probability or p). "
                "Where that is not known, pass propensities='estimate'; all that rests on it is marked then."
            )
    return checked_log(path, propensities=np.array([decision.propensity for decision in decisions]), **columns)


def write_dsjson(path: str | Path, log: DecisionLog) -> None:
    """Write a log as dsjson, which Vowpal Wabbit reads; :func:`read_dsjson` reads it, and estimates are equal.

    Vectors are written as dense arrays, ids of arms as ``_tag``, policies as ``VWState.m``. A decision whose reward is
    not known has ``_skipLearn``. What dsjson has no name for has one that begins with ``rareswitch.``.
    """
    log = log.with_behavior_probs().by_batch()
    order, texts, (names, codes) = np.cumsum(log.available, axis=1) - 1, id_texts(log.ids), log.arm_codes
    with writing(path) as file:
        for row in range(len(log)):
            offered = np.flatnonzero(log.available[row]).tolist()
            chosen = int(order[row, log.arm_indices[row]])
            ranked = [chosen, *(k for k in range(len(offered)) if k != chosen)]
            reward, known = float(log.rewards[row]), not np.isnan(log.rewards[row])
            line: dict[str, DsjsonValue] = {
                "_label_cost": -reward if known else 0.0,
                "_label_probability": float(log.propensities[row]),
                "_label_Action": chosen + 1,
                "_labelIndex": chosen,
            }
            if log.times is not None and not np.isnan(log.times[row]):
                line["Timestamp"] = _time_text(float(log.times[row]))
            line |= {"Version": "1", "EventId": texts[row]}
            actions: list[dict[str, DsjsonValue]] = [{} for _ in offered]
            for k, index in enumerate(offered):
                actions[k]["_tag"] = names[codes[row, index]]
                if log.contexts is not None:
                    actions[k][_VECTOR] = log.contexts[row, index].tolist()
            if log.contexts is None and log.features is not None:
                actions[chosen][_VECTOR] = log.features[row].tolist()
            line |= {"a": [k + 1 for k in ranked], "c": {"_multi": actions}}
            if log.behavior_probs is not None:
                line["p"] = [float(log.behavior_probs[row, offered[k]]) for k in ranked]
            line["VWState"] = {"m": log.batch_names[log.batches[row]]}
            line |= {} if known else {"_skipLearn": True}
            line |= {"rareswitch.estimated": log.estimated} if log.estimated and row == 0 else {}
            if log.baselines is not None and log.baselines[row] >= 0:
                line["rareswitch.baseline"] = int(order[row, log.baselines[row]])
            file.write(json.dumps(line, allow_nan=False) + "\n")


def dsjson_records(path: str | Path, *, arm: str = "_tag") -> Records:
    """The records of a file, to fit features of: what actions share, and the actions by their ids.

    Namespaces and fields are joined by a dot; those whose names begin with ``_`` are left out, as Vowpal Wabbit leaves
    them out.

    Parameters
    ----------
    path
        Of a file in dsjson; compressed where it ends in ``.gz``.
    arm
        The field of an action that is its id, such as ``item.id``; its number, from 1, where it has none.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "log.json").write_text('{"a": [1], "p": [1.0], "c": {"user": {"age": 31}, "_multi": [{}]}}')
    >>> dsjson_records(Path(folder, "log.json"))
    Records(contexts=[{'user.age': 31}], arms=[{'1': {}}])
    """
    return _records(path, [*read_decisions(path)], arm)


def read_decisions(path: str | Path) -> Iterator[Decision]:
    """The decisions of a file, one after the other; one at least."""
    decoder, number, empty = msgspec.json.Decoder(_Line), 0, True
    with reading(path) as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                empty = False
                try:
                    yield _decision(number, decoder.decode(text))
                except (msgspec.DecodeError, RecursionError) as error:
                    raise FileFormatError(f"{path}, line {number}: no decision in JSON ({error!s:.200}).") from error
                except ValueError as error:
                    raise FileFormatError(f"{path}, line {number}: {error}") from error
    if empty:
        raise FileFormatError(f"{path}: it holds no decision.")


def _decision(number: int, line: _Line) -> Decision:
    """A decision whose fields must agree; a contradiction is a ValueError."""
    if line.outcomes is not None or "_slots" in (line.context or ()):
        raise ValueError("several slots are decided at once (CCB or slates); only one action a decision is read.")
    if line.context is None:
        remedy = " It is an outcome whose decision is missing; leave it out." if line.outcome is not None else ""
        raise ValueError(f"a decision needs its context 'c'.{remedy}")
    actions = line.context.get("_multi")
    if not isinstance(actions, list) or not actions or not all(isinstance(action, dict) for action in actions):
        raise ValueError("a context needs its actions '_multi', objects, one at least.")
    count = len(actions)
    order = None if line.order is None else [action - 1 for action in line.order]
    if order is not None and (len({*order}) != len(order) or not order or min(order) < 0 or max(order) >= count):
        raise ValueError(f"'a' must be numbers of the {count} actions, from 1, each once; got {line.order!r:.60}.")
    told = {"a": order[0] if order else None, "_labelIndex": line.index}
    told["_label_Action"] = None if line.action is None else line.action - 1
    different = {name: index for name, index in told.items() if index is not None}
    for name, index in different.items():
        if not 0 <= index < count:
            raise ValueError(f"{name} must be that of one of the {count} actions.")
    if len({*different.values()}) > 1:
        raise ValueError(f"{', '.join(different)} tell of different actions.")
    if not different:
        raise ValueError("it does not say which action was taken (_label_Action, _labelIndex or a).")
    chosen = next(iter(different.values()))
    probabilities, propensity = _probabilities(line, order, count), line.probability
    if probabilities is not None and propensity is None:
        propensity = probabilities[chosen]
    if not 0.0 <= (line.dropped or 0.0) < 1.0:
        raise ValueError(f"pdrop must be from 0 to below 1; got {line.dropped:g}.")
    time = np.nan if line.timestamp is None else parse_time(line.timestamp)
    if time is None:
        raise ValueError(f"Timestamp must be such as 2026-11-16T05:00:00.0000000Z; got {line.timestamp!r:.60}.")
    shared = {name: value for name, value in line.context.items() if name != "_multi"}
    return Decision(number, line, shared, actions, chosen, propensity, probabilities, time)


def _probabilities(line: _Line, order: list[int] | None, count: int) -> list[float] | None:
    given = line.probabilities
    if given is None:
        return None
    if order is None or len(given) != len(order):
        raise ValueError(f"'p' must be probabilities, one for each action in 'a'; got {given!r:.60}.")
    found = np.zeros(count)
    found[order] = given
    return [*found.tolist()]


def _reward(line: _Line) -> float:
    return np.nan if line.cost is None or line.skipped else -line.cost


def _records(path: str | Path, decisions: Sequence[Decision], arm: str) -> Records:
    records = Records([], [])
    for decision in decisions:
        at = f"{path}, line {decision.number}"
        names = [_arm_name(action, arm) or str(number) for number, action in enumerate(decision.actions, 1)]
        if len(set(names)) < len(names):
            raise FileFormatError(f"{at}: actions must have different ids ({arm}); one is there twice.")
        records.contexts.append(flat(at, decision.shared))
        records.arms.append({name: flat(at, action) for name, action in zip(names, decision.actions, strict=True)})
    return records


def flat(at: str, record: Record) -> Record:
    """A record of fields whose names are joined by dots; of a list of records the second has a 1 in its name.

    >>> flat("here", {"user": {"age": 31, "_id": 7}, "urls": [{"host": "a"}, {"host": "b"}], "x": [0.5, 1]})
    {'user.age': 31, 'urls.host': 'a', 'urls.1.host': 'b', 'x': [0.5, 1]}
    """
    fields: dict[str, DsjsonValue] = {}

    def add(prefix: str, value: DsjsonValue) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if not name.startswith("_"):
                    add(f"{prefix}.{name}" if prefix else name, inner)
        elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            for k, inner in enumerate(value):
                add(f"{prefix}.{k}" if k else prefix, inner)
        elif prefix in fields:
            raise FileFormatError(f"{at}: the field {prefix!r:.60} is there twice. Rename one.")
        else:
            fields[prefix] = value

    add("", record)
    return fields


def _arm_name(action: Record, arm: str) -> str | None:
    """The id of an action: what it has under this name, parts of which are joined by dots."""
    value: DsjsonValue = action
    for part in arm.split("."):
        while isinstance(value, list) and value:
            value = value[0]
        value = value.get(part) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _names(path: str | Path, decisions: Sequence[Decision], arm: str) -> list[str] | None:
    """The ids of all actions, one line after the other; None where they have none."""
    names: list[str] = []
    for decision in decisions:
        for action in decision.actions:
            name = _arm_name(action, arm)
            if name is None and arm != "_tag":
                raise FileFormatError(f"{path}, line {decision.number}: an action has no id {arm!r:.60}.")
            if name is None:
                return None
            names.append(name)
    return names


def _spread(values: ArrayLike, available: BoolArray, gap: Any) -> Any:
    """Values of all actions, one line after the other, at their places."""
    found = np.full((*available.shape, *np.shape(values)[1:]), gap)
    found[available] = values
    return found


def _vectors(
    path: str | Path, decisions: Sequence[Decision], available: BoolArray, features: Features | None, arm: str
) -> dict[str, Any]:
    """Of all actions, by features or as :func:`write_dsjson` wrote them; or of the chosen ones."""
    if features is not None:
        encoded = features.encode_many(*_records(path, decisions, arm)).checked
        return {"contexts": _spread(encoded.contexts[encoded.available], available, 0.0)}
    chosen = [decision.actions[decision.chosen] for decision in decisions]
    if not all(_VECTOR in action for action in chosen):
        return {}
    actions = [action for decision in decisions for action in decision.actions]
    whole = all(_VECTOR in action for action in actions)
    try:
        vectors = np.array([action[_VECTOR] for action in (actions if whole else chosen)], dtype=np.float64)
        if vectors.ndim != 2:
            raise ValueError("vectors of different lengths")
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: the vectors {_VECTOR!r} of actions are damaged ({error!s:.60}).") from error
    return {"contexts": _spread(vectors, available, 0.0)} if whole else {"features": vectors}


def _time_text(seconds: float) -> str:
    """Seconds since 1970 in ISO 8601 with 7 digits.

    >>> _time_text(86400.25)
    '1970-01-02T00:00:00.2500000Z'
    """
    return f"{np.datetime64(round(seconds * 1e6), 'us')}0Z"
