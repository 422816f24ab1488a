"""obp's ``bandit_feedback``: a dictionary of arrays, one entry a round."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import FloatArray, IntArray, whole
from rareswitch.decisions import DecisionLog
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.log.tables import estimate_propensities, estimating

__all__ = ["from_obp", "to_obp"]

#: Arrays, numbers and None by the names that obp gives them.
Feedback: TypeAlias = Mapping[str, Any]


def from_obp(
    feedback: Feedback,
    *,
    position: int | None = None,
    vectors: Literal["cross"] | None = None,
    propensities: Literal["logged", "estimate"] = "logged",
) -> DecisionLog:
    """A log of obp's.

    A round is one decision. Where lists of several positions were shown, each position is a round of its own, with the
    probability that the arm was shown in that position; ``pi_b``, where it is there, is taken at the round's position.

    Parameters
    ----------
    feedback
        With ``n_rounds``, ``n_actions``, ``action``, ``reward`` and ``pscore`` (or ``pi_b``), all (n_rounds,) but
        ``pi_b`` (n_rounds, n_actions, positions); ``context`` and ``action_context`` for vectors.
    position
        Take the rounds of this position alone, from 0; all by default.
    vectors
        ``"cross"``: each arm's vector is the product of ``action_context`` (a column for each arm, where it is None)
        with (1, context), all divided by the length of the longest. By default arms have none.
    propensities
        ``"estimate"``: from how often arms were chosen, for feedback without ``pscore``, within positions.

    Examples
    --------
    >>> feedback = {"n_rounds": 2, "n_actions": 3, "action": np.array([2, 0]), "position": None,
    ...             "reward": np.array([1, 0]), "pscore": np.array([0.5, 0.25])}
    >>> from_obp(feedback)
    <decision log: 2 decisions, 2 rewarded, 1 batch, at most 3 arms>
    """
    estimate = estimating(propensities)
    rounds, arms = (whole(f"feedback['{name}']", _needed(feedback, name)) for name in ("n_rounds", "n_actions"))
    action = _column(feedback, "action", rounds)
    if ((action < 0) | (action >= arms)).any():
        at = int(np.flatnonzero((action < 0) | (action >= arms))[0])
        raise ParameterError(f"action must be from 0 to {arms - 1}; round {at} (the first is 0) has {action[at]}.")
    where = _column(feedback, "position", rounds) if feedback.get("position") is not None else None
    columns: dict[str, Any] = {"arm_indices": action, "arms": tuple(map(str, range(arms)))}
    if feedback.get("pi_b") is not None:
        columns["behavior_probs"] = _probabilities(feedback["pi_b"], rounds, arms, where)
    if vectors is not None:
        if vectors != "cross":
            raise ParameterError(f"vectors must be 'cross', or None for no vectors; got {vectors!r:.60}.")
        columns["contexts"] = _crossed(feedback, rounds, arms)
    columns["estimated"] = str(feedback.get("estimated") or "")
    score = _score(feedback, rounds, action, columns.get("behavior_probs"), estimate=estimate)
    made = DecisionLog(propensities=score, rewards=_needed(feedback, "reward"), **columns)
    if estimate:
        made = estimate_propensities(made, within=where, named="position")
    if position is None:
        return made
    if where is None or not (where == position).any():
        found = "none" if where is None else ", ".join(map(str, np.unique(where)))
        raise ParameterError(f"position must be one of the feedback's, {found}; got {position!r:.60}.")
    return made.select(where == position)


def to_obp(log: DecisionLog) -> dict[str, Any]:
    """A log for obp, which knows neither batches nor changing offers: all arms are actions of every round.

    ``pi_b`` is 0 for arms that were not offered. The ``context`` of a round is the vectors of its arms, one after the
    other.

    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.9], rewards=[1.0, 0.0], arms=["red", "blue"])
    >>> feedback = to_obp(log)
    >>> feedback["action"].tolist(), feedback["pscore"].tolist(), feedback["n_actions"]
    ([0, 1], [0.5, 0.9], 2)
    """
    log = log.with_behavior_probs()
    unknown = int(np.isnan(log.rewards).sum())
    if unknown:
        raise ParameterError(
            f"rewards must all be known, as obp's are; {unknown} of {len(log)} are not. Leave these decisions out: "
            "to_obp(log.select(~np.isnan(log.rewards)))."
        )
    count, (names, codes) = len(log), log.arm_codes
    feedback: dict[str, Any] = {
        "n_rounds": count,
        "n_actions": len(names),
        "context": np.ones((count, 1)) if log.contexts is None else log.contexts.reshape(count, -1),
        "action_context": np.eye(len(names)),
        "action": codes[np.arange(count), log.arm_indices],
        "position": None,
        "reward": log.rewards,
        "pscore": log.propensities,
        "estimated": log.estimated,
    }
    if log.behavior_probs is not None:
        rows, indices = np.nonzero(log.available)
        spread = np.zeros((count, len(names)))
        spread[rows, codes[rows, indices]] = log.behavior_probs[rows, indices]
        feedback["pi_b"] = spread[:, :, None]
    return feedback


def _needed(feedback: Feedback, name: str) -> Any:
    if not isinstance(feedback, Mapping) or feedback.get(name) is None:
        held = ", ".join(map(str, feedback)) if isinstance(feedback, Mapping) else type(feedback).__name__
        raise ParameterError(f"feedback must be a dictionary of obp's, with {name!r}; got {held:.200}.")
    return feedback[name]


def _column(feedback: Feedback, name: str, rounds: int) -> IntArray:
    found = np.asarray(_needed(feedback, name))
    if found.shape != (rounds,) or found.dtype.kind not in "iu":
        raise ShapeError(
            f"feedback['{name}'] must be {rounds} whole numbers, one for each round; got {found.dtype} of shape "
            f"{found.shape}."
        )
    return found


def _probabilities(given: ArrayLike, rounds: int, arms: int, where: IntArray | None) -> FloatArray:
    """(n, arms) those of the round's position."""
    found = np.asarray(given)
    at = np.zeros(rounds, dtype=np.int64) if where is None else where
    if found.ndim != 3 or found.shape[:2] != (rounds, arms) or found.dtype.kind != "f" or at.max() >= found.shape[2]:
        raise ShapeError(
            f"feedback['pi_b'] must be probabilities of shape ({rounds}, {arms}, {int(at.max()) + 1} positions); got "
            f"{found.dtype} of shape {found.shape}."
        )
    return np.asarray(found[np.arange(rounds), :, at], dtype=np.float64)


def _score(
    feedback: Feedback, rounds: int, action: IntArray, logging: FloatArray | None, *, estimate: bool
) -> FloatArray:
    if estimate:
        return np.ones(rounds) if logging is None else logging[np.arange(rounds), action]
    if feedback.get("pscore") is not None:
        return np.asarray(feedback["pscore"])
    if logging is None:
        raise ParameterError(
            "feedback must have 'pscore' or 'pi_b', the probabilities with which its policy chose. Where they are not "
            "known, pass propensities='estimate'; all that rests on them is marked then."
        )
    return np.asarray(logging[np.arange(rounds), action])


def _crossed(feedback: Feedback, rounds: int, arms: int) -> FloatArray:
    context = np.asarray(_needed(feedback, "context"), dtype=np.float64)
    given = feedback.get("action_context")
    action_context = np.eye(arms) if given is None else np.asarray(given, dtype=np.float64)
    if context.ndim != 2 or len(context) != rounds or action_context.ndim != 2 or len(action_context) != arms:
        raise ShapeError(
            f"feedback['context'] must be ({rounds}, any) and feedback['action_context'] ({arms}, any); got "
            f"{context.shape} and {action_context.shape}."
        )
    user = np.concatenate([np.ones((rounds, 1)), context], axis=1)
    found = np.einsum("ae,nc->naec", action_context, user).reshape(rounds, arms, -1)
    longest = np.sqrt(np.einsum("nad,nad->na", found, found).max())
    return np.asarray(found / longest if longest > 0.0 else found)
