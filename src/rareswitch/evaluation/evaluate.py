"""What another policy would have earned: a value with an interval that holds, or the reason why there is none."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rareswitch.errors import ParameterError
from rareswitch.evaluation.anytime import anytime as anytime_interval
from rareswitch.evaluation.anytime import bounded
from rareswitch.evaluation.candidates import named_candidates
from rareswitch.evaluation.differences import difference, earned, lift
from rareswitch.evaluation.estimators import ESTIMATORS, SWITCH, Columns, Estimate, Estimator, estimate
from rareswitch.evaluation.intervals import iid, moved, pooled
from rareswitch.evaluation.results import BatchValue, Difference, Evaluation, Interval, Overlap, Value
from rareswitch.evaluation.scoring import Progress, Scores, score
from rareswitch.evaluation.support import Support, overlap, refusals
from rareswitch.exchange import read
from rareswitch.log import Source
from rareswitch.validation import FloatArray, number

#: Below this the value is said to have moved between batches.
_MOVED = 0.001
#: A share of missing rewards above which it is mentioned.
_MISSING = 0.01


def evaluate(
    source: Any,
    candidates: Any = "uniform",
    *,
    estimator: Estimator = "dr",
    level: float = 0.95,
    anytime: bool = False,
    bounds: tuple[float, float] | None = None,
    model: Any = None,
    switch: float = SWITCH,
    progress: Progress | None = None,
) -> Evaluation:
    """What candidates would have earned on logged traffic, a decision.

    Decisions of one frozen policy are independent given what came before, so each of these batches is studentised by
    itself and they are pooled: the interval holds although what was learned from one batch made the policy of the next.
    Batches that hardly ever show what a candidate would are left out; where too little is left there is no number, but
    the reason, and how to explore so that there will be one.

    Parameters
    ----------
    source
        An experiment; a :class:`~rareswitch.log.Source` such as :class:`~rareswitch.log.Logged`; or files of a log, as
        :func:`rareswitch.exchange.read` takes them.
    candidates
        One, a list, or a dict by name. A policy; ``"uniform"``; ``"baseline"``, what the caller would have shown;
        ``"logged"``, what was done; :class:`Always` of an arm; a function of contexts (n, K, d) and alive (n, K) to
        probabilities (n, K); for a log in memory also these themselves.
    estimator
        ``dr``, doubly robust: a model's predictions, corrected by weighted rewards. ``ips`` and ``snips`` do without a
        model; ``switch-dr`` trusts it alone where weights are above ``switch``, and may be biased.
    level
        Of the intervals.
    anytime
        Whether intervals shall hold for one who looks after every batch, and may stop when he likes.
    bounds
        Where all rewards are known to lie. Anytime intervals then need no approximation, however small batches are.
    model
        Predictions of rewards (n, K) for a log in memory, or a function of contexts and alive to them. By default a
        ridge regression of the log itself, of other decisions than those it is used for.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> places, clicks = rng.integers(2, size=4000), rng.random(4000)
    >>> log = {"places": places, "propensities": np.full(4000, 0.5), "arms": ["red", "blue"]}
    >>> from rareswitch.log import Logged
    >>> found = evaluate(Logged(rewards=clicks < 0.1 + 0.1 * places, **log), [Always("red"), Always("blue")])
    >>> print(found["always blue"].interval)
    0.2054 (0.1878 to 0.223)
    >>> evaluate(Logged(rewards=clicks, places=np.zeros(4000, int), propensities=np.ones(4000), arms=["red", "blue"]),
    ...          Always("blue"))["always blue"].answered
    False
    """
    if estimator not in ESTIMATORS:
        raise ParameterError(f"estimator must be one of {', '.join(ESTIMATORS)}; got {estimator!r:.60}.")
    level = number("level", level, low=0.5, high=1.0)
    if level >= 1.0:
        raise ParameterError("level must be below 1: no interval but the whole line holds always.")
    bounds = _bounds(bounds)
    named, log = named_candidates(candidates), source_of(source)
    everything = named if "baseline" in named.values() else {**named, _BASELINE: "baseline"}
    scores = score(log, everything, model=model, progress=progress)
    if bounds is not None:
        _check_within(scores.rewards, bounds)
    how = {"estimator": estimator, "level": level, "switch": number("switch", switch, low=0.0)}
    answers = [
        _value(scores, name, log, anytime=anytime, bounds=bounds, model=model is not None, **how) for name in named
    ]
    baseline = next(name for name, one in everything.items() if isinstance(one, str) and one == "baseline")
    return Evaluation(
        values=tuple(answers),
        earned=earned(scores, level=level),
        lift=lift(scores, baseline, level=level),
        gains=tuple(difference(scores, name, **how) for name in named),
        calibration=scores.tally.calibration(),
        decisions=scores.decisions,
        known=scores.known,
        rewarded=scores.rewarded,
        batch_names=scores.batch_names,
        estimated=log.estimated,
    )


#: What the baseline is called among candidates where nobody asked for it; no caller's name has a line break.
_BASELINE = "\n"


def source_of(given: Any) -> Source:
    """What decisions are read from: of an experiment, of a source itself, or of files."""
    if hasattr(given, "chunks") and hasattr(given, "batch_names"):
        found: Source = given
        return found
    if hasattr(given, "logged"):
        experiment: Source = given.logged()
        return experiment
    return read(given)


def _bounds(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        low, high = (float(one) for one in given)
    except (TypeError, ValueError):
        raise ParameterError(f"bounds must be two numbers, the least and the greatest reward; got {given!r:.60}.") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ParameterError(f"bounds must be finite, the lower one first; got {low} and {high}.")
    return low, high


def _check_within(rewards: FloatArray, bounds: tuple[float, float]) -> None:
    odd = (rewards < bounds[0]) | (rewards > bounds[1])
    if odd.any():
        raise ParameterError(
            f"bounds must hold for all rewards; {int(odd.sum())} of {len(rewards)} are outside of {bounds[0]:g} to "
            f"{bounds[1]:g}, such as {rewards[odd][0]:g}."
        )


def _value(
    scores: Scores,
    name: str,
    log: Source,
    *,
    estimator: Estimator,
    level: float,
    switch: float,
    anytime: bool,
    bounds: tuple[float, float] | None,
    model: bool,
) -> Value:
    """What is known of one candidate."""
    scored = scores.candidates[name]
    present = [batch for batch, support in enumerate(scored.supports) if support is not None]
    supports = [support for support in scored.supports if support is not None]
    if not supports:
        return Value(
            candidate=name, interval=None, refusals=(_inapplicable(name),), estimator=estimator, overlap=_nothing()
        )
    kept, reasons = refusals(supports)
    reasons = (*((scores.mismatch,) if scores.mismatch else ()), *reasons)
    every = {
        batch: scores.columns(name, scored.applies & (scores.batches == batch)) for batch in present
    }
    made = {batch: estimate(estimator, every[batch], switch=switch) for batch in present}
    usable = [] if reasons else [present[at] for at in kept]
    batches = tuple(
        _batch_value(scores, batch, support, made[batch], level=level, answers=batch in usable)
        for batch, support in zip(present, supports, strict=True)
    )
    cautions = _cautions(scores, name, log, batches, left=[batch for batch in present if batch not in usable])
    common = {"candidate": name, "estimator": estimator, "overlap": overlap(supports), "batches": batches}
    if reasons:
        return Value(interval=None, refusals=reasons, cautions=cautions, **common)
    pool = _Pool([made[batch] for batch in usable], [scored.supports[batch] for batch in usable], level)
    interval = pool.anytime([every[batch] for batch in usable], bounds) if anytime else pool.interval()
    moving = pool.moved()
    if moving < _MOVED:
        cautions = (
            *cautions,
            f"the value moved between batches (p = {moving:.2g}): contexts or rewards changed over time, and the pooled "
            "value speaks of no single time. Look at the batches.",
        )
    others = {}
    for other in ESTIMATORS:
        pool_of = replace(pool, terms=[estimate(other, every[batch], switch=switch) for batch in usable])
        others[other] = pool_of.interval()
    return Value(
        interval=interval,
        refusals=(),
        others=others,
        naive=pool.naive(),
        cautions=cautions,
        **common,
    )


@dataclass(frozen=True, eq=False)
class _Pool:
    """Estimates of the batches that can answer."""

    terms: list[Estimate]
    supports: list[Support]
    level: float

    @property
    def _columns(self) -> dict[str, FloatArray]:
        return {
            "values": np.array([one.value for one in self.terms]),
            "errors": np.array([one.error for one in self.terms]),
            "counts": np.array([float(len(one.pulls)) for one in self.terms]),
            "spreads": np.array([one.spread for one in self.supports]),
        }

    def interval(self) -> Interval:
        return pooled(**self._columns, level=self.level)

    def moved(self) -> float:
        return moved(**self._columns)

    def naive(self) -> Interval:
        columns = self._columns
        del columns["spreads"]
        return iid(**columns, level=self.level)

    def anytime(self, rows: list[Columns], bounds: tuple[float, float] | None) -> Interval:
        if bounds is None:
            return anytime_interval(**self._columns, level=self.level)
        weights, rewards = (np.concatenate([getattr(one, part) for one in rows]) for part in ("weights", "rewards"))
        return bounded(weights, rewards, low=bounds[0], high=bounds[1], level=self.level)


def _batch_value(
    scores: Scores, batch: int, support: Support, made: Estimate, *, level: float, answers: bool
) -> BatchValue:
    return BatchValue(
        batch=batch,
        name=scores.batch_names[batch],
        decisions=len(made.pulls),
        value=made.value if answers else float("nan"),
        error=made.error if answers else float("nan"),
        interval=_Pool([made], [support], level).interval() if answers else None,
        spread=support.spread,
        uncovered=support.uncovered,
    )


def _cautions(
    scores: Scores, name: str, log: Source, batches: tuple[BatchValue, ...], *, left: list[int]
) -> tuple[str, ...]:
    """What to bear in mind beside the number."""
    found = []
    if log.estimated:
        found.append(f"propensities were estimated ({log.estimated}): the value rests on that they are right.")
    missing = scores.known - scores.rewarded
    if missing > _MISSING * scores.known:
        found.append(
            f"{missing:,} of {scores.known:,} decisions have no reward and are left out: the value speaks of those that "
            "have one, and is wrong if rewards are missing because of what was shown."
        )
    applies = int(scores.candidates[name].applies.sum())
    if applies < scores.rewarded:
        found.append(f"{scores.rewarded - applies:,} of {scores.rewarded:,} decisions are not for it, and are left out.")
    if left and len(left) < len(batches):
        numbers = ", ".join(str(batch + 1) for batch in left)
        found.append(f"batch{'es' * (len(left) > 1)} {numbers} hardly ever showed what it would, and {'are' if len(left) > 1 else 'is'} left out.")
    return tuple(found)


def _inapplicable(name: str) -> str:
    return (
        f"no decision of this log is for {name!r:.60}: no baseline was named with any, or its arm was never offered. "
        "Create the experiment with a baseline, or name an arm that is offered."
    )


def _nothing() -> Overlap:
    nan = float("nan")
    return Overlap(
        decisions=0, mean_weight=nan, mean_weight_error=nan, uncovered=None, effective=0.0, largest=nan, largest_share=nan
    )


def lift_of(source: Any, *, level: float = 0.95, progress: Progress | None = None) -> tuple[Difference, ...]:
    """What was earned more than the baseline would have: so far, then by week; empty where no baseline was named."""
    return lift(score(source_of(source), {_BASELINE: "baseline"}, progress=progress), _BASELINE, level=level)
