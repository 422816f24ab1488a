"""Is one arm better than another, for whom, and by how much: effects from adaptive batches, or why they are not known.

The effect of showing arm A in place of B is the mean, over the decisions that offered both, of

    q̂(A) − q̂(B) + (1[a = A] − 1[a = B])/p · (r − q̂(a)),

where a was chosen with probability p and earned r. The predictions q̂ are made of other decisions, and whatever they
are, the mean is right, since p is exact. Batches are pooled as in :func:`rareswitch.evaluate`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rareswitch.core import number
from rareswitch.errors import ParameterError
from rareswitch.evaluation.batch_answers import Answer, answer
from rareswitch.evaluation.effect_results import BatchPart, Effect, Effects, Heterogeneity
from rareswitch.evaluation.effect_scores import BASELINE, EVERYBODY, REST, Cell, Cells, EffectScores
from rareswitch.evaluation.effects_groups import groups_of
from rareswitch.evaluation.evaluate import source_of
from rareswitch.evaluation.refusals import batch_reasons, few_rewards, log_cautions, refusals
from rareswitch.features import Features
from rareswitch.log import DecisionLog, Source

#: Why batches may disagree.
_CHANGES = "requests or rewards changed over time"


def effects(source: Any, arm: Any = None, against: Any = None, *, by: Any = None, level: float = 0.95) -> Effects:
    """What showing one arm in place of another does to the reward, on average over decisions that offered both.

    Parameters
    ----------
    source
        An experiment, a log, or files of one, as :func:`rareswitch.evaluate` takes them.
    arm
        The id of an arm, or its place where arms have no ids. By default every arm, the best first, with intervals
        that hold together.
    against
        Another arm; ``"baseline"``, what the caller would have shown, over decisions in which that is another arm; or
        ``"rest"``, the mean of the other arms that were offered. By default the baseline where decisions name one,
        otherwise the rest.
    by
        For whom, of one arm: the name of a field of the context (its levels, or the halves of a number);
        ``"position"``, the place of the arm among those offered; a function of :class:`~rareswitch.log.DecisionLog` to
        labels (n,); for a log in memory also labels. The intervals of groups hold together, and it is tested whether
        the effect differs between them.
    level
        Of the intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> places, clicks = rng.integers(2, size=4000), rng.random(4000)
    >>> facts = {"arm_indices": places, "propensities": np.full(4000, 0.5), "arms": ["red", "blue"]}
    >>> print(effects(DecisionLog(rewards=clicks < 0.1 + 0.1 * places, **facts), "blue", "red")["blue"].interval)
    0.1049 (0.0828 to 0.1271)
    """
    number("level", level, low=0.5, high=0.9999)
    log, one = source_of(source), None if arm is None else str(arm)
    if one is None and by is not None:
        raise ParameterError("by says for whom one arm is better, and no arm was named. Give arm=….")
    other = _against(log, against)
    if one == other:
        raise ParameterError(f"against must be another arm than {one!r:.60}, which it is compared with.")
    groups = None if by is None else groups_of(by, features_of(log), _count(log), lambda: log.chunks(contexts=True))
    scores = EffectScores(log, one, other, groups)
    if one is None:
        found, differ = _every_arm(scores, level), None
    else:
        found, differ = _one_arm(scores, one, level)
    several = len(found) > (1 if groups is None else 2)
    return Effects(
        effects=tuple(found),
        level=level,
        correction="bonferroni" if several else "none",
        by="" if groups is None else groups.name,
        differ=differ,
        decisions=scores.decisions,
        known=scores.known,
        rewarded=scores.rewarded,
        cautions=_cautions(scores, log),
        estimated=log.estimated,
    )


def _against(log: Source, given: Any) -> str:
    if given is not None and given != BASELINE:
        return str(given)
    named = any(chunk.baselines is not None and (chunk.baselines >= 0).any() for chunk in log.chunks(contexts=True))
    if given is not None and not named:
        raise ParameterError(
            "against cannot be the baseline: no decision of this log names the arm that the caller would have shown. "
            f"Compare with another arm, or with {REST!r}."
        )
    return BASELINE if named else REST


def features_of(source: Source) -> Features | None:
    """How records became the vectors of a log, where one of its policies tells; the last one, if several do."""
    policies = [source.policies[name] for name in source.batch_names if name in source.policies]
    fitting = [policy.features for policy in policies if policy.features and policy.features.dim == source.dim]
    return fitting[-1] if fitting else None


def _count(log: Source) -> int | None:
    """Decisions of a log in memory."""
    return len(log) if isinstance(log, DecisionLog) else None


def _every_arm(scores: EffectScores, level: float) -> list[Effect]:
    """All that can be compared, the best first, those without an answer last."""
    arms = [arm for arm in scores.arms if (arm, EVERYBODY) in scores.cells]
    each = 1.0 - (1.0 - level) / max(1, len(arms))
    found = _corrected([_effect(scores, arm, EVERYBODY, each)[0] for arm in arms])
    return sorted(found, key=lambda one: -np.inf if one.interval is None else one.interval.value, reverse=True)


def _one_arm(scores: EffectScores, arm: str, level: float) -> tuple[list[Effect], Heterogeneity | None]:
    """For all, and for each group."""
    whole, _ = _effect(scores, arm, EVERYBODY, level)
    if scores.groups is None:
        return [whole], None
    names = scores.groups.ordered({group for _, group in scores.cells} - {EVERYBODY})
    each = 1.0 - (1.0 - level) / max(1, len(names))
    found = [_effect(scores, arm, group, each) for group in names]
    return [whole, *_corrected([effect for effect, _ in found])], _differ([told for _, told in found])


def _corrected(found: Sequence[Effect]) -> list[Effect]:
    """Bonferroni: p-values of one of several questions."""
    return [
        effect if effect.p_value is None else replace(effect, p_value=min(1.0, len(found) * effect.p_value))
        for effect in found
    ]


def _effect(scores: EffectScores, arm: str, group: str, level: float) -> tuple[Effect, Answer]:
    """The effect of an arm in a group, with its p-value not yet corrected."""
    cells = scores.cells.get((arm, group), {})
    parts, reasons = _parts(scores, arm, cells)
    got = Answer.refused(*reasons) if reasons else answer(parts, level=level, what="the effect", changes=_CHANGES)
    effect = Effect(
        arm=arm,
        against=scores.against,
        group=group,
        decisions=sum(cell.count for cell in cells.values()),
        shown=sum(cell.shown for cell in cells.values()),
        shown_against=sum(cell.shown_other for cell in cells.values()),
        interval=got.interval,
        p_value=got.p_value,
        refusals=got.refusals,
        batches=tuple(parts),
        cautions=got.cautions,
    )
    return effect, got


def _parts(scores: EffectScores, arm: str, cells: Cells) -> tuple[list[BatchPart], tuple[str, ...]]:
    """What batches say, and why they cannot answer; both sides must be supported."""
    if not cells:
        return [], (f"no decision with a reward offered both {arm!r:.60} and {_words(scores.against)}.",)
    order = sorted(cells)
    sides = {arm: [cells[at].support for at in order], _words(scores.against): [cells[at].other for at in order]}
    reasons = [scores.mismatch] if scores.mismatch else []
    for name, supports in sides.items():
        reasons += [f"showing {name}: {reason}" for reason in refusals(supports)[1]]
    parts = []
    for place, at in enumerate(order):
        faults = {name: batch_reasons(supports[place]) for name, supports in sides.items()}
        why = "; ".join(f"showing {name}: {told[0]}" for name, told in faults.items() if told)
        parts.append(_part(at, scores, cells[at], why))
    if not reasons and (used := [cells[part.batch].columns for part in parts if not part.left_out]):
        rewards, weights = (np.concatenate([columns[at] for columns in used]) for at in (0, 1))
        reasons += few_rewards(rewards, np.abs(weights))
    if not reasons and all(part.left_out for part in parts):
        reasons.append(
            f"no batch showed both {arm!r:.60} and {_words(scores.against)} often enough, though some showed the one "
            "and some the other."
        )
    return parts, tuple(reasons)


def _part(batch: int, scores: EffectScores, cell: Cell, why: str) -> BatchPart:
    return BatchPart(
        batch=batch,
        name=scores.batch_names[batch],
        decisions=cell.count,
        value=None if why else cell.term.value,
        error=None if why else cell.term.variance**0.5,
        third=0.0 if why else cell.term.third,
        freedom=0.0 if why else cell.term.freedom,
        effective=0.0 if why else cell.count / cell.spread,
        left_out=why,
    )


def _words(against: str) -> str:
    return {BASELINE: "the baseline", REST: "another arm"}.get(against, against)


def _differ(found: Sequence[Answer]) -> Heterogeneity | None:
    """Cochran's Q of the groups that have an answer, whose decisions are different ones."""
    told = [(one.interval.value, one.error) for one in found if one.interval is not None]
    if len(told) < 2:
        return None
    from scipy.special import chdtrc

    values, errors = np.array(told).T
    precision = errors**-2.0
    statistic = float(precision @ np.square(values - precision @ values / precision.sum()))
    freedom = len(told) - 1
    return Heterogeneity(statistic=statistic, freedom=freedom, p_value=float(chdtrc(freedom, statistic)))


def _cautions(scores: EffectScores, log: Source) -> tuple[str, ...]:
    found = []
    apart = [arm for arm in scores.arms if arm != scores.against and (arm, EVERYBODY) not in scores.cells]
    if scores.arm is None and apart:
        other = "a baseline" if scores.against == BASELINE else _words(scores.against)
        found.append(f"not compared: {', '.join(apart):.100}; no decision with a reward offered {other} beside it.")
    found += log_cautions(log, known=scores.known, rewarded=scores.rewarded)
    return tuple(found)
