"""What another policy would have earned: a value with an interval that holds, or the reason why there is none."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from rareswitch.core import FloatArray, number
from rareswitch.errors import ParameterError, did_you_mean
from rareswitch.evaluation.candidates import Candidate, named_candidates
from rareswitch.evaluation.questions import Pooling, Settings, earned, lift, question_of, value_of
from rareswitch.evaluation.results import Difference, Evaluation
from rareswitch.evaluation.scoring import ESTIMATORS, Estimator, ReadProgress, RewardModel, score
from rareswitch.log import Source, read

__all__ = ["evaluate", "lift_of", "source_of"]

#: What the baseline is called among candidates where nobody asked for it; no caller's name has a line break.
_BASELINE = "\n"


def evaluate(
    source: Any,
    candidates: Any = "uniform",
    *,
    estimator: Estimator = "dr",
    level: float = 0.95,
    anytime: bool = False,
    bounds: tuple[float, float] | None = None,
    pooling: Pooling = "traffic",
    simultaneous: bool = True,
    model: RewardModel | None = None,
    records: Mapping[Any, Any] | None = None,
    progress: ReadProgress | None = None,
) -> Evaluation:
    """What candidates would have earned on logged traffic, a decision.

    Decisions of one frozen policy are independent given what came before, so each of these batches brings an error
    of its own, and they are pooled: the interval holds although what was learned from one batch made the policy of the
    next. Batches count with their traffic, so that a value is what was earned plus the candidate's gain. Batches that
    hardly ever show what a candidate would are left out; where too little is left, or fewer than 20 rewards other than
    0, there is no number, but the reason, and what would help.

    Parameters
    ----------
    source
        An experiment; a :class:`~rareswitch.log.Source` such as :class:`~rareswitch.log.DecisionLog`; or files of a
        log, as :func:`rareswitch.log.read` takes them.
    candidates
        One, a list, or a dict by name. A policy; ``"uniform"``; ``"baseline"``, what the caller would have shown;
        ``"logged"``, what was done; :class:`Always` of an arm; a function of contexts (n, K, d) and available (n, K) to
        probabilities (n, K); a table of ids of decisions to arms, or to probabilities by arm; for a log in memory also
        probabilities (n, K).
    estimator
        ``dr``, doubly robust: a model's predictions, corrected by weighted rewards. ``ips`` and ``snips`` do without a
        model.
    level
        Of the intervals.
    anytime
        Whether intervals shall hold for one who looks after every batch, and may stop when he likes.
    bounds
        Where all rewards are known to lie; 0 and 1 where there are no others. Intervals of values end there. Anytime
        intervals of values then need no approximation, however small batches are.
    pooling
        ``traffic``: every batch counts with its decisions. ``stationary``: with its precision, for logs in which
        neither contexts nor rewards drift; much narrower where an experiment explored first.
    simultaneous
        Whether the intervals of several candidates hold together (Bonferroni).
    model
        Predictions of rewards (n, K) for a log in memory, or a function of contexts and available to them. By default a
        ridge regression of the log itself, of other decisions than those it is used for.

    records
        The record of each request by the id of its decision. Functions among the candidates are then rules of a record
        and the ids of the offered arms, to the one to show or to probabilities by arm. By default those that an
        experiment kept (``keep_records=True``); arms then are as they were offered, ids or records by id.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> places, clicks = rng.integers(2, size=4000), rng.random(4000)
    >>> log = {"arm_indices": places, "propensities": np.full(4000, 0.5), "arms": ["red", "blue"]}
    >>> from rareswitch import Always, DecisionLog
    >>> evaluation = evaluate(DecisionLog(rewards=clicks < 0.1 + 0.1 * places, **log), [Always("red"), Always("blue")])
    >>> print(evaluation["always blue"].interval)
    0.2059 (0.1855 to 0.2267)
    >>> certain = {"arm_indices": np.zeros(4000, int), "propensities": np.ones(4000), "arms": ["red", "blue"]}
    >>> evaluate(DecisionLog(rewards=clicks, **certain), Always("blue"))["always blue"].answered
    False
    """
    for name, choice, choices in (("estimator", estimator, ESTIMATORS), ("pooling", pooling, get_args(Pooling))):
        if choice not in choices:
            meant = did_you_mean(choice, choices)
            raise ParameterError(f"{name} must be one of {', '.join(choices)}; got {choice!r:.60}.{meant}")
    level = number("level", level, low=0.5, high=1.0)
    if level >= 1.0:
        raise ParameterError("level must be below 1: no interval but the whole line holds always.")
    log = source_of(source)
    if records is None and getattr(log, "keeps_records", False):
        records = log.records  # type: ignore[attr-defined]
    named = named_candidates(candidates, records)
    everything: dict[str, Candidate] = {**named, _BASELINE: "baseline"}
    scores = score(log, everything, model=model, progress=progress)
    if bounds is not None:
        bounds = _bounds(bounds, scores.rewards)
    elif bool(((scores.rewards == 0.0) | (scores.rewards == 1.0)).all()):
        bounds = (0.0, 1.0)
    asked_for = [name for name, candidate in named.items() if not isinstance(candidate, str) or candidate != "logged"]
    settings = Settings(
        estimator=estimator,
        level=level,
        anytime=bool(anytime),
        bounds=bounds,
        pooling=pooling,
        questions=max(1, len(asked_for)) if simultaneous else 1,
    )
    asked = {name: question_of(scores, name, settings=settings) for name in named}
    return Evaluation(
        values=tuple(value_of(question, log) for question in asked.values()),
        earned=earned(scores, settings),
        lift=lift(scores, _BASELINE, settings, holdout=_holdout_of(log)),
        gains=tuple(question.difference(name, "logged") for name, question in asked.items()),
        calibration=scores.calibration,
        decisions=scores.decisions,
        known=scores.known,
        rewarded=scores.rewarded,
        batch_names=scores.batch_names,
        estimated=log.estimated,
        questions=settings.questions,
    )


def source_of(source: Any) -> Source:
    """What decisions are read from: of an experiment, of a source itself, or of files."""
    if hasattr(source, "chunks") and hasattr(source, "batch_names"):
        log: Source = source
        return log
    if hasattr(source, "logged"):
        experiment: Source = source.logged()
        return experiment
    if not isinstance(source, (str, Path)) and not (isinstance(source, Sequence) and source):
        raise ParameterError(
            f"source must be an experiment, logged decisions, or the path of a log; got {type(source).__name__}."
        )
    return read(source)


def _bounds(bounds: tuple[float, float], rewards: FloatArray) -> tuple[float, float]:
    """Bounds that hold for these rewards."""
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        raise ParameterError(
            f"bounds must be two numbers, the least and the greatest reward; got {bounds!r:.60}."
        ) from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ParameterError(f"bounds must be finite, the lower one first; got {low} and {high}.")
    outside = rewards[(rewards < low) | (rewards > high)]
    if len(outside):
        raise ParameterError(
            f"bounds must hold for all rewards; {len(outside)} of {len(rewards)} are outside of {low:g} to {high:g}, "
            f"such as {outside[0]:g}."
        )
    return low, high


def lift_of(source: Any, *, level: float = 0.95, progress: ReadProgress | None = None) -> tuple[Difference, ...]:
    """What was earned more than the baseline would have: so far, then by week; empty where no baseline was named."""
    log = source_of(source)
    scores = score(log, {_BASELINE: "baseline"}, progress=progress)
    return lift(scores, _BASELINE, Settings(level=level), holdout=_holdout_of(log))


def _holdout_of(log: Source) -> float | None:
    """The share of ids that keeps the baseline, as the policies of a log have it."""
    return next((policy.holdout for policy in log.policies.values()), None)
