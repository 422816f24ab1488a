"""Candidates: ways to choose that are to be evaluated, as probabilities of the arms of logged decisions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from rareswitch.core import BoolArray, FloatArray, KeyArray, id_keys
from rareswitch.decisions import DecisionLog
from rareswitch.errors import ParameterError, ShapeError, did_you_mean
from rareswitch.log import KeptRecord, Source
from rareswitch.policy import Policy

__all__ = ["RULES", "Always", "Candidate"]

#: Rules that have names.
RULES = ("uniform", "baseline", "logged")
#: How far probabilities may be from 1 in sum.
_OFF = 1e-6


@dataclass(frozen=True)
class Always:
    """The rule that shows one arm wherever it is offered; other decisions say nothing about it."""

    arm: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "arm", str(self.arm))


#: What is known of decisions by their keys (n, 2); None where nothing is.
RecordLookup: TypeAlias = Callable[[KeyArray], Sequence[Any]]


class Playable(Protocol):
    """Says itself what it would have done in logged decisions."""

    def played(self, log: DecisionLog) -> "Played":
        """What it would have done."""


class ByDecision(Playable):
    """What is shown for each decision: the id of an arm, or probabilities by the ids of arms.

    Decisions that it does not name say nothing about it. With a rule, what is given for each id is a record, and
    ``rule(record, arms)`` says what is shown; in place of a table it takes a function to the records of keys (n, 2).

    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.5], rewards=[1.0, 0.0], arms=["red", "blue"])
    >>> ByDecision("mine", {0: "blue", 1: {"red": 0.25, "blue": 0.75}}).played(log).probabilities.tolist()
    [[0.0, 1.0], [0.25, 0.75]]
    >>> records = {0: {"age": 20}, 1: {"age": 60}}
    >>> ByDecision("mine", records, lambda record, arms: arms[record["age"] > 40]).played(log).probabilities.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self, name: str, table: Mapping[Any, Any] | RecordLookup, rule: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self.name, self._rule = name, rule
        self._entries = _entries_of(table) if isinstance(table, Mapping) else table

    def played(self, log: DecisionLog) -> "Played":
        """What it would have done."""
        names = [*map(str, range(log.available.shape[1]))] if log.arms is None else [*log.arms]
        codes = np.arange(log.available.shape[1])[None, :] if log.codes is None else log.codes
        codes = np.broadcast_to(codes, log.available.shape)
        probabilities, applies = np.zeros(log.available.shape), np.zeros(len(log), dtype=np.bool_)
        for row, entry in enumerate(self._entries(log.ids)):
            if entry is None:
                continue
            places = {names[codes[row, k]]: k for k in np.flatnonzero(log.available[row]).tolist()}
            shown: Any = entry
            if self._rule is not None and isinstance(entry, KeptRecord):
                shown = self._rule(entry.context, entry.arms)
            elif self._rule is not None:
                shown = self._rule(entry, [*places])
            for arm, share in (shown if isinstance(shown, Mapping) else {shown: 1.0}).items():
                if str(arm) not in places:
                    raise ParameterError(
                        f"candidate {self.name!r:.60} shows {arm!r:.60} in row {row} (the first is 0), which offers "
                        f"{', '.join(places)[:100]}."
                    )
                probabilities[row, places[str(arm)]] = share
            applies[row] = True
        _check_probabilities(self.name, probabilities, probabilities, np.where(applies, 1.0, 0.0), "they")
        return Played(probabilities, None if applies.all() else applies, "are not named by it")


def _entries_of(table: Mapping[Any, Any]) -> "RecordLookup":
    """The entries of a table by the ids of decisions, looked up by their keys."""
    by_key = dict(zip(map(bytes, id_keys([*table])), table.values(), strict=True)) if table else {}
    return lambda keys: [by_key.get(key) for key in map(bytes, keys)]


#: A policy; a rule by name; one arm; a function of contexts (n, K, d) and available (n, K) to probabilities (n, K), or
#: with records of a record and the ids of the offered arms to one of these or to probabilities by arm; a table of ids
#: of decisions to arms or probabilities; for a log in memory also probabilities (n, K).
Candidate = Policy | str | Always | Playable | Callable[[Any, Any], Any] | FloatArray


class Played(NamedTuple):
    """What a candidate would have done."""

    #: π (n, K), rows that are not for it are 0.
    probabilities: FloatArray
    #: (n,) the decisions that are for it; None: all.
    applies: BoolArray | None
    #: What the others do that makes them say nothing about it.
    otherwise: str = ""


def named_candidates(candidates: Any, records: Mapping[Any, Any] | RecordLookup | None = None) -> dict[str, Candidate]:
    """Candidates by name: of a dict as they are, of a single one or a list by what they are.

    With records by the ids of decisions, functions are rules of a record and the ids of the offered arms.
    """
    if records is not None and not isinstance(records, Mapping) and not callable(records):
        raise ParameterError(
            f"records must be a dict of ids of decisions to records; got a {type(records).__name__}, {records!r:.60}."
        )
    if isinstance(candidates, Mapping):
        named = {str(name): candidate for name, candidate in candidates.items()}
    elif isinstance(candidates, (list, tuple)):
        named = {}
        for candidate in candidates:
            name = _name(candidate)
            if name in named:
                name = f"{name} ({sum(other.split(' (')[0] == name for other in named) + 1})"
            named[name] = candidate
    else:
        named = {_name(candidates): candidates}
    if not named:
        raise ParameterError("candidates must be one at least; got none. Give a policy, or a rule such as 'uniform'.")
    for name, candidate in named.items():
        _check(name, candidate)
        if isinstance(candidate, Mapping):
            named[name] = ByDecision(name, candidate)
        elif records is not None and callable(candidate):
            named[name] = ByDecision(name, records, candidate)
    return named


def _name(candidate: Any) -> str:
    if isinstance(candidate, str):
        return candidate
    if isinstance(candidate, Policy):
        return f"policy {candidate.id[:12]}"
    if isinstance(candidate, Always):
        return f"always {candidate.arm}"
    return str(getattr(candidate, "__name__", "candidate")).replace("<lambda>", "candidate")


def _check(name: str, candidate: Any) -> None:
    if isinstance(candidate, str):
        if candidate not in RULES:
            raise ParameterError(
                f"candidate must be a policy, Always('arm'), a function, probabilities (n, K), or one of the rules "
                f"{', '.join(RULES)}; got {candidate!r:.60}.{did_you_mean(candidate, RULES)}"
            )
    elif not isinstance(candidate, (Policy, Always, Mapping, np.ndarray, list)) and not callable(candidate):
        raise ParameterError(
            f"candidate {name!r:.60} must be a policy, a rule, a function, a table of ids to arms, or probabilities "
            f"(n, K); got a {type(candidate).__name__}."
        )


def played(name: str, candidate: Candidate, log: DecisionLog) -> Played:
    """What a candidate would have done in some logged decisions, of which all offered arms are known.

    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.5], rewards=[1.0, 0.0], arms=["red", "blue"])
    >>> played("uniform", "uniform", log).probabilities.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> played("blue", Always("blue"), log).probabilities.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    if isinstance(candidate, Policy):
        return _played_by_policy(name, candidate, log)
    if isinstance(candidate, Always):
        return _always(candidate.arm, log)
    if isinstance(candidate, str):
        return _by_rule(candidate, log)
    if callable(candidate):
        try:
            chances = np.asarray(candidate(log.contexts, log.available), dtype=np.float64)
        except Exception as error:  # a rule of records does anything with arrays
            raise ParameterError(
                f"candidate {name!r:.60}: without records a function is given the vectors (n, K, d) of all decisions "
                f"and which arms they offered (n, K), and gives probabilities (n, K); got {error!r:.100}. A rule of a "
                "record and arms needs the records: records=…, or create(…, keep_records=True)."
            ) from error
        return Played(_probabilities(name, chances, log, "the function"), None)
    if not isinstance(candidate, (np.ndarray, list)):
        return candidate.played(log)
    return Played(_probabilities(name, candidate, log, "they"), None)


def _played_by_policy(name: str, policy: Policy, log: DecisionLog) -> Played:
    if log.contexts is None:
        raise ParameterError(
            f"candidate {name!r:.60} is a policy, which decides about vectors, and this log has none. Give its "
            "probabilities (n, K), or read the log with features=…."
        )
    if policy.dim != log.contexts.shape[2]:
        raise ShapeError(
            f"candidate {name!r:.60} is a policy for vectors of {policy.dim} features; those of the log have "
            f"{log.contexts.shape[2]}."
        )
    known = {own.features.id for own in log.policies.values() if own.features is not None}
    if policy.features is not None and known and policy.features.id not in known:
        raise ParameterError(
            f"candidate {name!r:.60} has other features than the policies of the log, so that its vectors mean "
            "something else. Give a policy with the features of the log."
        )
    since = since_of(policy, log) or 0
    if not policy.needs_baseline and not since:
        return Played(log.probabilities_of(policy), None)
    applies, otherwise = log.batches >= since, "come before it was made, and would flatter it"
    if policy.needs_baseline:
        applies, otherwise = applies & _with_baseline(log), "name no baseline, or come before it was made"
    probabilities = np.zeros(log.available.shape)
    if applies.any():
        probabilities[applies] = log.select(applies).probabilities_of(policy)
    return Played(probabilities, applies, otherwise)


def since_of(policy: Policy, log: Source) -> int | None:
    """The first batch that a policy was not learned from; None where the log does not know it.

    One that the log knows may not have decided in it yet.
    """
    if policy.id in log.batch_names:
        return log.batch_names.index(policy.id)
    plain = replace(policy, edition=0).id
    before: set[str] = set()
    for name, known in log.policies.items():
        if replace(known, edition=0).id == plain:  # whatever edition it is called
            return sum(batch in before for batch in log.batch_names)
        before.add(name)
    return None


def _always(arm: str, log: DecisionLog) -> Played:
    known = ""
    if log.arms is None or log.codes is None:
        if not arm.isdecimal() or int(arm) >= log.available.shape[1]:
            raise ParameterError(
                f"Always({arm!r:.60}): arms of this log have no ids but places, 0 to {log.available.shape[1] - 1}."
            )
        shown = np.arange(log.available.shape[1])[None, :] == int(arm)
    elif arm in log.arms:
        shown = log.codes == log.arms.index(arm)
    else:
        shown, known = np.zeros((1, 1), dtype=np.bool_), f" (but {', '.join(log.arms):.100})"
    probabilities = np.asarray(shown & log.available, dtype=np.float64)
    applies: BoolArray = np.asarray(probabilities.any(axis=1))
    return Played(probabilities, None if applies.all() else applies, f"do not offer {arm!r:.60}{known}")


def _by_rule(rule: str, log: DecisionLog) -> Played:
    if rule == "uniform":
        return Played(log.available / log.available.sum(axis=1, keepdims=True), None)
    probabilities = np.zeros(log.available.shape)
    rows = np.arange(len(probabilities))
    if rule == "logged":  # given what was done, it is what would have been done
        probabilities[rows, log.arm_indices] = 1.0
        return Played(probabilities, None)
    applies = _with_baseline(log)
    if log.baselines is not None:
        probabilities[rows[applies], log.baselines[applies]] = 1.0
    return Played(probabilities, applies, "name no baseline")


def _with_baseline(log: DecisionLog) -> BoolArray:
    if log.baselines is None:
        return np.zeros(len(log), dtype=np.bool_)
    return np.asarray(log.baselines >= 0)


def _probabilities(name: str, chances: Any, log: DecisionLog, who: str) -> FloatArray:
    """Probabilities that somebody else computed, checked."""
    numbers = arm_numbers(f"candidate {name!r:.60}: {who}", chances, log)
    inside = np.where(log.available, numbers, 0.0)
    _check_probabilities(name, inside, numbers, np.ones(len(log)), who)
    return inside


def _check_probabilities(name: str, inside: FloatArray, numbers: FloatArray, sums: FloatArray, who: str) -> None:
    bad = ~np.isfinite(inside).all(axis=1) | (inside < 0.0).any(axis=1) | (np.abs(inside.sum(axis=1) - sums) > _OFF)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ParameterError(
            f"candidate {name!r:.60}: probabilities of the offered arms must be at least 0 and sum to 1; in row {at} "
            f"(the first is 0) {who} give{'s' if who == 'the function' else ''} {numbers[at].tolist()!s:.100}, of sum "
            f"{inside[at].sum():.6g} over the offered arms."
        )


def arm_numbers(who: str, array: Any, log: DecisionLog) -> FloatArray:
    """(n, K) one for each arm of each decision.

    >>> log = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[1.0], arms=["a", "b"])
    >>> arm_numbers("model", [[0.1, 0.2]], log)
    array([[0.1, 0.2]])
    """
    try:
        numbers = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{who} must give numbers; got {array!r:.60}.") from None
    if numbers.shape != log.available.shape:
        raise ShapeError(
            f"{who} must give a number for each arm, shape {log.available.shape}; got shape {numbers.shape}."
        )
    return numbers
