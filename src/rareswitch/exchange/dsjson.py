"""dsjson, the decision service JSON of Vowpal Wabbit: one decision a line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.exchange.dsjson_lines import Line, Records, add_records, arm_name, lines_of
from rareswitch.exchange.estimated import estimate_propensities, estimating
from rareswitch.exchange.probabilities import with_probabilities
from rareswitch.exchange.texts import (
    OURS,
    check_ids,
    checked_facts,
    facts_of,
    id_texts,
    ids_of_texts,
    numbered,
    seconds_of,
    time_text,
    writing,
)
from rareswitch.features import Features
from rareswitch.log import DecisionLog
from rareswitch.validation import BoolArray, FloatArray

#: The namespace of an action's vector in what we write.
_VECTOR = "x"


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
    lines = [*lines_of(path)]
    if not lines:
        raise FileFormatError(f"{path}: it holds no decision.")
    dropped = {line.dropped for line in lines}
    if len(dropped) > 1:
        raise FileFormatError(
            f"{path}: events were left out at different rates (pdrop {min(dropped):g} to {max(dropped):g}), so that "
            "the rest is not like the whole. Split the file by pdrop."
        )
    told = next((line.ours["log"] for line in lines if "log" in line.ours), None)
    facts = None if told is None else checked_facts(path, told)
    width = max(max(len(line.actions) for line in lines), 0 if facts is None else facts["width"])
    available = _available(path, lines, width)
    names = _names(path, lines, arm, facts)
    models = [line.model or ("log" if facts is None else "") for line in lines]
    batches, batch_names = numbered(models, None if facts is None else facts["batches"])
    columns: dict[str, Any] = {"available": available, "batches": np.array(batches), "batch_names": batch_names}
    if names is not None:
        codes, arms = numbered(names, None if facts is None else facts["arms"])
        columns |= {"arms": arms, "codes": _spread(codes, available, -1)}
    if all(line.probabilities is not None for line in lines):
        given = [probability for line in lines for probability in line.probabilities or ()]
        columns["behavior_probs"] = _spread(given, available, 0.0)
    columns |= _times_and_baselines(lines, facts)
    columns |= _vectors(path, lines, available, features, arm, facts)
    if any(line.event for line in lines):
        texts = [line.event or f"line {line.number}" for line in lines]
        columns["ids"] = ids_of_texts(texts)
        check_ids(path, columns["ids"], batches, [line.number for line in lines], texts)
    made = DecisionLog(
        arm_indices=_places(lines, available),
        propensities=_propensities(path, lines, estimate=estimate),
        rewards=np.array([line.reward for line in lines]),
        estimated="" if facts is None else facts["estimated"],
        **columns,
    )
    return estimate_propensities(made) if estimate else made


def write_dsjson(path: str | Path, logged: DecisionLog) -> None:
    """Write a log as dsjson, which Vowpal Wabbit reads; :func:`read_dsjson` gives the same log back.

    Vectors are written as dense arrays, ids of arms as ``_tag``, policies as ``VWState.m``. A decision whose reward is
    not known has ``_skipLearn``. What dsjson has no name for stands under ``rareswitch``. Vectors of places at which no
    arm was offered are not kept.
    """
    logged = with_probabilities(logged)
    vectors = logged.contexts is not None
    with writing(path) as file:
        for row in range(len(logged)):
            there = np.flatnonzero(logged.available[row]).tolist()
            chosen = there.index(int(logged.arm_indices[row]))
            order = [chosen, *(k for k in range(len(there)) if k != chosen)]
            reward, known = float(logged.rewards[row]), not np.isnan(logged.rewards[row])
            line: dict[str, Any] = {
                "_label_cost": -reward if known else 0.0,
                "_label_probability": float(logged.propensities[row]),
                "_label_Action": chosen + 1,
                "_labelIndex": chosen,
            }
            ours: dict[str, Any] = {"log": facts_of(logged)} if row == 0 else {}
            if there != [*range(len(there))]:
                ours["arm_indices"] = there
            if logged.times is not None and not np.isnan(logged.times[row]):
                seconds = float(logged.times[row])
                text = time_text(seconds)
                line |= {} if text is None else {"Timestamp": text}
                ours |= {} if text is not None and seconds_of(text) == seconds else {"time": seconds.hex()}
            if logged.baselines is not None:
                ours["baseline"] = int(logged.baselines[row])
            line |= {"Version": "1", "EventId": id_texts(logged.ids[row : row + 1])[0]}
            actions: list[dict[str, Any]] = [{} for _ in there]
            for k, arm_index in enumerate(there):
                if logged.arms is not None and logged.codes is not None:
                    actions[k]["_tag"] = logged.arms[logged.codes[row, arm_index]]
                if vectors and logged.contexts is not None:
                    actions[k][_VECTOR] = logged.contexts[row, arm_index].tolist()
            if not vectors and logged.features is not None:
                actions[chosen][_VECTOR] = logged.features[row].tolist()
            line |= {"a": [k + 1 for k in order], "c": {"_multi": actions}}
            if logged.behavior_probs is not None:
                line["p"] = [float(logged.behavior_probs[row, there[k]]) for k in order]
            line["VWState"] = {"m": logged.batch_names[logged.batches[row]]}
            line |= {} if known else {"_skipLearn": True}
            line |= {OURS: ours} if ours else {}
            file.write(json.dumps(line, allow_nan=False) + "\n")


def _available(path: str | Path, lines: Sequence[Line], width: int) -> BoolArray:
    available = np.zeros((len(lines), width), dtype=np.bool_)
    for row, line in enumerate(lines):
        there = line.ours.get("arm_indices", [*range(len(line.actions))])
        right = isinstance(there, list) and len(there) == len(line.actions) and there == sorted({*there})
        if not right or not all(type(arm_index) is int and 0 <= arm_index < width for arm_index in there):
            raise FileFormatError(f"{path}, line {line.number}: what rareswitch wrote of places is damaged.")
        available[row, there] = True
    return available


def _spread(values: Sequence[Any], available: BoolArray, gap: Any) -> Any:
    """Values of all actions, one line after the other, at their places."""
    found = np.full(available.shape, gap)
    found[available] = values
    return found


def _places(lines: Sequence[Line], available: BoolArray) -> Any:
    return np.array([np.flatnonzero(there)[line.chosen] for line, there in zip(lines, available, strict=True)])


def _names(path: str | Path, lines: Sequence[Line], arm: str, facts: Any) -> list[str] | None:
    """The ids of all actions, one line after the other; None where they have none."""
    if facts is not None and facts["arms"] is None:
        return None
    found: list[str] = []
    for line in lines:
        for action in line.actions:
            # what we write may have any text as id
            name = action.get("_tag") if facts is not None else arm_name(action, arm)
            if not isinstance(name, str):
                if arm != "_tag" or facts is not None:
                    raise FileFormatError(f"{path}, line {line.number}: an action has no id {arm!r:.60}.")
                return None
            found.append(name)
    return found


def _propensities(path: str | Path, lines: Sequence[Line], *, estimate: bool) -> FloatArray:
    for line in lines:
        if line.propensity is None and not estimate:
            raise FileFormatError(
                f"{path}, line {line.number}: it does not say how likely the action was (_label_probability or p). "
                "Where that is not known, pass propensities='estimate'; all that rests on it is marked then."
            )
    if estimate and any(line.probabilities is None for line in lines):
        return np.ones(len(lines))
    return np.array([line.propensity for line in lines])


def _times_and_baselines(lines: Sequence[Line], facts: Any) -> dict[str, Any]:
    try:
        times = np.array([float.fromhex(line.ours["time"]) if "time" in line.ours else line.time for line in lines])
        baselines = np.array([int(line.ours.get("baseline", -1)) for line in lines])
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"what rareswitch wrote of times or baselines is damaged ({error!s:.60}).") from error
    held = () if facts is None else facts["columns"]
    found: dict[str, Any] = {"times": times} if not np.isnan(times).all() or "times" in held else {}
    return found | ({"baselines": baselines} if (baselines >= 0).any() or "baselines" in held else {})


def _vectors(
    path: str | Path, lines: Sequence[Line], available: BoolArray, features: Features | None, arm: str, facts: Any
) -> dict[str, Any]:
    if features is not None:
        records = Records([], [])
        for line in lines:
            add_records(records, path, line, arm)
        encoded = features.encode_many(*records)
        found = np.zeros((*available.shape, features.dim))
        found[available] = encoded.checked.contexts[encoded.checked.available]
        return {"contexts": found}
    if facts is None or "features" not in facts["columns"]:
        return {}
    whole = "contexts" in facts["columns"]
    try:
        taken = [line.actions if whole else [line.actions[line.chosen]] for line in lines]
        given = np.array([action[_VECTOR] for actions in taken for action in actions], dtype=np.float64)
        if given.ndim != 2:
            raise ValueError("vectors of different lengths")
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: the vectors that rareswitch wrote are damaged ({error!s:.60}).") from error
    if not whole:
        return {"features": given}
    found = np.zeros((*available.shape, given.shape[1]))
    found[available] = given
    return {"contexts": found}
