"""CSV: one row a decision, under columns of any names."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.exchange.csv_cells import Table, joined, number_of, offers_of, time_of
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
    writing,
)
from rareswitch.features import Features
from rareswitch.log import DecisionLog
from rareswitch.validation import BoolArray

#: The names of columns by default, and those that only our own files have.
_COLUMNS = ("id", "time", "policy", "arm", "propensity", "reward", "offered", "baseline")
_OWN = ("arm_index", "behavior_probs", "contexts", "features", OURS)


def read_csv(
    path: str | Path,
    *,
    arm: str = "arm",
    reward: str = "reward",
    propensity: str = "propensity",
    id: str | None = "id",  # noqa: A002
    time: str | None = "time",
    policy: str | None = "policy",
    offered: str | None = "offered",
    baseline: str | None = "baseline",
    where: Mapping[str, Any] | None = None,
    features: Features | None = None,
    arms: Any = None,
    propensities: Literal["logged", "estimate"] = "logged",
    within: Sequence[str] = (),
) -> DecisionLog:
    r"""A log in CSV, a row a decision.

    Parameters
    ----------
    path
        Of the file, whose first line names its columns; compressed where it ends in ``.gz``.
    arm, reward, propensity
        The columns of the chosen arm's id, of what it earned (empty where that is not known), and of the probability
        with which it was chosen.
    id, time, policy, offered, baseline
        Columns that may be missing under these names; None: not used. A time is in seconds since 1970 or in ISO 8601;
        each policy is a batch, in the order in which they first come; ``offered`` are the ids of the arms that could be
        chosen, separated by ``|``, all that occur by default; ``baseline`` is the arm the caller would have shown.
    where
        Take rows alone that have these values: ``{"position": 1}``, or one of several: ``{"position": [1, 2]}``.
    features
        By which the other columns become vectors. Columns of numbers alone are numbers, of true and false flags.
    arms
        Records of the arms, for features: by id, or a list in which each holds its id under ``features.key``.
    propensities
        ``"estimate"``: from how often arms were chosen, for logs without them.
    within
        Columns within whose values they are estimated.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "clicks.csv")
    >>> _ = path.write_text("item,click,p,slot\n7,1,0.25,1\n12,0,0.5,2\n7,,0.25,2\n")
    >>> read_csv(path, arm="item", reward="click", propensity="p")
    <decision log: 3 decisions, 2 rewarded, 1 batch, at most 2 arms>
    >>> read_csv(path, arm="item", reward="click", propensity="p", where={"slot": 2}).chosen_names
    ['12', '7']
    """
    estimate = estimating(propensities)
    if within and not estimate:
        raise ParameterError(f"within is for propensities that are estimated; got {', '.join(map(str, within)):.60}.")
    if arms is not None and features is None:
        raise ParameterError("arms are records for features; give features=… as well.")
    table = Table.read(path)
    named = dict(zip(_COLUMNS, (id, time, policy, arm, propensity, reward, offered, baseline), strict=True))
    roles = table.roles(named, needed=("arm", "reward") if estimate else ("arm", "reward", "propensity"))
    facts = None
    if OURS in table.names:
        told = next((row for row, text in enumerate(table.column(OURS)) if text), 0)
        facts = checked_facts(path, table.json(OURS, [told])[0])
    everything = offers_of(table, roles, facts)
    if where is not None:
        kept = table.where(where)
        table, everything = table.select(kept), everything.select(kept)
    arm_indices = everything.arm_indices
    batches, batch_names = (
        ([0] * len(table), ("log",))
        if "policy" not in roles
        else numbered(table.column(roles["policy"]), None if facts is None else facts["batches"])
    )
    columns: dict[str, Any] = {
        "available": everything.available,
        "batches": np.array(batches),
        "batch_names": batch_names,
    }
    if everything.arms is not None:
        columns |= {"arms": everything.arms, "codes": everything.codes}
    if "id" in roles:
        texts = table.column(roles["id"])
        columns["ids"] = ids_of_texts(table.filled(roles["id"]))
        check_ids(path, columns["ids"], batches, table.lines, texts)
    if "time" in roles:
        columns["times"] = np.array(table.each(roles["time"], time_of))
    if everything.baselines is not None:
        columns["baselines"] = everything.baselines
    if facts is not None:
        columns |= _own_columns(table, everything.available, facts)
    if features is not None:
        used = {*roles.values(), *_OWN} if facts is not None else {*roles.values()}
        columns["contexts"] = _encoded(table, used, features, arms, everything.available, everything.names())
    if estimate:
        columns |= {"behavior_probs": None}
    made = DecisionLog(
        arm_indices=arm_indices,
        propensities=np.ones(len(table)) if estimate else np.array(table.each(roles["propensity"], number_of)),
        rewards=np.array(table.each(roles["reward"], number_of, empty=float("nan"))),
        estimated="" if facts is None else facts["estimated"],
        **columns,
    )
    if not estimate:
        return made
    strata = [*zip(*(table.column(table.known(name)) for name in within), strict=True)] if within else None
    codes = None if strata is None else np.array(numbered([json.dumps(stratum) for stratum in strata])[0])
    return estimate_propensities(made, within=codes, named=" and ".join(within))


def write_csv(path: str | Path, logged: DecisionLog) -> None:
    """Write a log as CSV, compressed where the name ends in ``.gz``; :func:`read_csv` gives the same log back.

    Vectors and probabilities of all offered arms are JSON in columns of their own, in the order of ``offered``. What
    CSV has no name for stands in the first row of the column ``rareswitch``. Vectors of places at which no arm was
    offered are not kept.
    """
    logged = with_probabilities(logged)
    held = facts_of(logged)
    count, width = logged.available.shape
    names = [*map(str, range(width))] if logged.arms is None else logged.arms
    codes = np.where(logged.available, np.arange(width), -1) if logged.codes is None else logged.codes
    columns: dict[str, Sequence[Any]] = {"id": id_texts(logged.ids)}
    if logged.times is not None:
        columns["time"] = ["" if np.isnan(time) else repr(time) for time in logged.times.tolist()]
    columns["policy"] = [logged.batch_names[batch] for batch in logged.batches.tolist()]
    columns["arm"] = [names[code] for code in codes[np.arange(count), logged.arm_indices].tolist()]
    columns["propensity"] = [*map(repr, logged.propensities.tolist())]
    columns["reward"] = ["" if np.isnan(reward) else repr(reward) for reward in logged.rewards.tolist()]
    columns["offered"] = [joined(["" if code < 0 else names[code] for code in row], row) for row in codes.tolist()]
    columns["arm_index"] = logged.arm_indices.tolist()
    if logged.baselines is not None:
        columns["baseline"] = ["" if arm_index < 0 else str(arm_index) for arm_index in logged.baselines.tolist()]
    if logged.behavior_probs is not None:
        columns["behavior_probs"] = [
            json.dumps(row[there].tolist()) for row, there in zip(logged.behavior_probs, logged.available, strict=True)
        ]
    if logged.contexts is not None:
        columns["contexts"] = [
            json.dumps(row[there].tolist()) for row, there in zip(logged.contexts, logged.available, strict=True)
        ]
    elif logged.features is not None:
        columns["features"] = [json.dumps(row.tolist()) for row in logged.features]
    columns[OURS] = [json.dumps(held), *[""] * (count - 1)]
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _own_columns(table: Table, available: BoolArray, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Probabilities and vectors as :func:`write_csv` wrote them."""
    found: dict[str, Any] = {}
    for name in ("behavior_probs", "contexts", "features"):
        if name not in facts["columns"] or name not in table.names:
            continue
        rows = table.json(name)
        try:
            if name == "features":
                found[name] = np.array(rows, dtype=np.float64)
                continue
            given = np.array([entry for row in rows for entry in row], dtype=np.float64)
            column = np.zeros((*available.shape, *given.shape[1:]))
            column[available] = given
            found[name] = column
        except (TypeError, ValueError, IndexError) as error:
            raise FileFormatError(f"{table.path}: the column {name!r} is damaged ({error!s:.60}).") from error
    return found


def _encoded(
    table: Table, used: set[str], features: Features, arms: Any, available: BoolArray, names: list[tuple[str, ...]]
) -> Any:
    """(n, K, d) by features of the columns that have no other role."""
    records = table.records([name for name in table.names if name not in used])
    by_id = _by_id(arms, features.key)
    if len(set(names)) == 1:  # all have the same
        offers: Any = [*names[0]] if by_id is None else {name: _record(by_id, name) for name in names[0]}
    else:
        offers = [[*row] if by_id is None else {name: _record(by_id, name) for name in row} for row in names]
    encoded = features.encode_many(records, offers)
    found = np.zeros((*available.shape, features.dim))
    found[available] = encoded.checked.contexts[encoded.checked.available]
    return found


def _by_id(arms: Any, key: str) -> dict[str, Any] | None:
    if arms is None:
        return None
    if isinstance(arms, Mapping):
        return {str(name): record for name, record in arms.items()}
    try:
        return {str(record[key]): {k: v for k, v in record.items() if k != key} for record in arms}
    except (TypeError, KeyError, AttributeError):
        raise ParameterError(
            f"arms must be records by id, or a list of records that hold {key!r}; got {arms!r:.60}."
        ) from None


def _record(by_id: Mapping[str, Any], name: str) -> Any:
    if name not in by_id:
        raise ParameterError(f"arms must have a record of each arm that is offered; there is none of {name!r:.60}.")
    return by_id[name]
