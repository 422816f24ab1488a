"""The value of one candidate: the batches that can answer for it, pooled; or why there is no number."""

from dataclasses import replace

from rareswitch.evaluation.estimators import ESTIMATORS
from rareswitch.evaluation.intervals import combined
from rareswitch.evaluation.questions import Question
from rareswitch.evaluation.refusals import DRIFTED, log_cautions
from rareswitch.evaluation.results import BatchValue, Value
from rareswitch.evaluation.support import overlap, weight_counts
from rareswitch.log import Source

#: How many times as wide as under ``pooling="stationary"`` an interval is before that is said.
_MUCH_WIDER = 1.5


def value_of(question: Question, log: Source) -> Value:
    """What is known of one candidate."""
    scored, settings = question.scores.candidates[question.name], question.settings
    if not question.known:
        reason = f"All decisions of this log {scored.otherwise}: none of them says anything about this candidate."
        return Value(
            candidate=question.name,
            interval=None,
            refusals=(reason,),
            estimator=settings.estimator,
            overlap=overlap([]),
        )
    answered = not question.reasons
    usable = question.able if answered else ()
    supports = [question.known[batch] for batch in question.able] if answered else [*question.known.values()]
    value = Value(
        candidate=question.name,
        interval=None,
        refusals=question.reasons,
        estimator=settings.estimator,
        overlap=replace(
            overlap(supports),
            effective=sum(question.known[batch].effective for batch in question.able),
            weights=tuple(weight_counts(scored.weights[scored.applies]).tolist()),
        ),
        batches=tuple(_batch_value(question, batch, batch in usable) for batch in question.known),
        cautions=_cautions(question, log),
    )
    if not answered:
        return value
    once = replace(question, settings=replace(settings, anytime=False))
    return replace(
        value,
        interval=question.value(settings.estimator),
        others={str(name): once.value(name) for name in ESTIMATORS},
        naive=question.naive(),
    )


def _batch_value(question: Question, batch: int, answers: bool) -> BatchValue:
    support, nothing = question.known[batch], float("nan")
    term = question.term(batch, question.settings.estimator) if answers else None
    return BatchValue(
        batch=batch,
        name=question.scores.batch_names[batch],
        decisions=len(question.columns[batch].rewards),
        value=nothing if term is None else term.value,
        error=nothing if term is None else term.variance**0.5,
        interval=None if term is None else combined([term], level=question.settings.level),
        spread=support.spread,
        unsupported=support.unsupported,
    )


def _cautions(question: Question, log: Source) -> tuple[str, ...]:
    """What to bear in mind beside the number."""
    scores, able = question.scores, question.able
    scored = scores.candidates[question.name]
    cautions = log_cautions(log, known=scores.known, rewarded=scores.rewarded, waiting=scores.waiting)
    applies = int(scored.applies.sum())
    if applies < scores.rewarded:
        others = f"{scores.rewarded - applies:,} of {scores.rewarded:,} decisions"
        cautions.append(f"{others} are left out: they {scored.otherwise}.")
    left = [str(batch + 1) for batch in question.known if batch not in able]
    if left and able:
        them = f"batch{'es' * (len(left) > 1)} {', '.join(left)}"
        cautions.append(f"{them} excluded: almost no overlap with this policy.")
    if scored.given:
        cautions.append("it was given as probabilities: if rewards of this log made them, they flatter it.")
    if question.reasons:
        return tuple(cautions)
    missed = max((question.known[batch].unsupported or 0.0) for batch in able)
    if missed > 0.0:
        cautions.append(
            f"up to {100.0 * missed:.2g} % of its play had probability 0 in the log: the interval is longer by that "
            "share of the range of rewards, which is that of the arms that were shown."
        )
    if (drift := question.drift()) < DRIFTED:
        cautions.append(
            f"the value drifted between batches (p = {drift:.2g}): contexts or rewards changed over time, and the "
            "pooled value speaks of no single time. Look at the batches."
        )
    elif question.settings.pooling == "traffic" and (ratio := question.narrower()) > _MUCH_WIDER:
        cautions.append(
            f"batches that hardly ever show this policy make the interval about {ratio:.1f} times as wide, as each "
            'batch counts with its traffic. If nothing drifts, pooling="stationary" weighs batches by their precision.'
        )
    return tuple(cautions)
