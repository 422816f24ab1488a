"""Is one arm better than another, for whom, and by how much: effects from adaptive batches, or why they are not known.

The effect of showing arm A in place of B is the mean, over the decisions that offered both, of

    q̂(A) − q̂(B) + (1[a = A] − 1[a = B])/p · (r − q̂(a)),

where a was chosen with probability p and earned r: the difference of the candidates that always show A and B, on the
same scored rows as in :func:`rareswitch.evaluate`, pooled in the same way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rareswitch.core import FloatArray, number
from rareswitch.decisions import DecisionLog
from rareswitch.errors import ParameterError, did_you_mean
from rareswitch.evaluation.candidates import Always, Playable, Played, played
from rareswitch.evaluation.evaluate import source_of
from rareswitch.evaluation.groups import MOST_GROUPS, By, Groups, groups_of
from rareswitch.evaluation.intervals import p_value_of, summed
from rareswitch.evaluation.questions import Settings, question_of
from rareswitch.evaluation.refusals import log_cautions
from rareswitch.evaluation.results import Effect, Effects, Heterogeneity
from rareswitch.evaluation.scoring import Scores, Texts, score
from rareswitch.features import Features
from rareswitch.log import Source

__all__ = ["BASELINE", "REST", "effects"]

#: What an arm may be compared with besides another arm: what the caller would have shown, and the mean of the others.
BASELINE, REST = "baseline", "rest"


def effects(
    source: Any,
    arm: str | int | None = None,
    against: str | int | None = None,
    *,
    by: By | None = None,
    level: float = 0.95,
) -> Effects:
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
    log, asked = source_of(source), None if arm is None else str(arm)
    if asked is None and by is not None:
        raise ParameterError("by says for whom one arm is better, and no arm was named. Give arm=….")
    arms, baseline = _arms_of(log)
    other = _against(against, baseline=baseline)
    if asked == other:
        raise ParameterError(f"against must be another arm than {asked!r:.60}, which it is compared with.")
    _check_offered(asked, other, arms)
    groups = None if by is None else groups_of(by, features_of(log), _count(log), lambda: log.chunks(contexts=True))
    compared = [name for name in (arms if asked is None else [asked]) if name != other]
    sides: dict[str, Playable] = {}
    for name in compared:
        sides |= {f"+{name}": _Side(name, other, 0), f"-{name}": _Side(name, other, 1)}
    scores = score(log, sides, groups=None if groups is None else _Labels(groups, asked or ""))
    if groups is None:
        able = [name for name in compared if asked is not None or scores.candidates[f"+{name}"].supports]
        share = 1.0 - (1.0 - level) / max(1, len(able))
        answers, differ = _corrected([_effect(scores, name, other, None, share) for name in able]), None
        answers.sort(key=lambda effect: -math.inf if effect.interval is None else effect.interval.value, reverse=True)
    else:
        assert asked is not None  # as groups are refused without an arm
        names = sorted({label for _, label in scores.candidates[f"+{asked}"].supports}, key=groups.order)
        share = 1.0 - (1.0 - level) / max(1, len(names))
        parts = [_effect(scores, asked, other, name, share) for name in names]
        answers, differ = [_effect(scores, asked, other, None, level), *_corrected(parts)], _differ(parts)
    cautions = log_cautions(log, scores)
    if apart := [name for name in compared if name not in {effect.arm for effect in answers}]:
        beside = "a baseline" if other == BASELINE else _words(other)
        cautions.insert(
            0, f"not compared: {', '.join(apart):.100}; no decision with a reward offered {beside} beside it."
        )
    return Effects(
        effects=tuple(answers),
        level=level,
        correction="bonferroni" if len(answers) > (1 if groups is None else 2) else "none",
        by="" if groups is None else groups.name,
        differ=differ,
        decisions=scores.decisions,
        known=scores.known,
        rewarded=scores.rewarded,
        cautions=tuple(cautions),
        estimated=log.estimated,
    )


@dataclass(frozen=True)
class _Side(Playable):
    """Always an arm, or always what it is compared with, in the decisions that offered both."""

    arm: str
    against: str
    #: 0: the arm; 1: the other.
    side: int

    def played(self, log: DecisionLog) -> Played:
        own = played(self.arm, Always(self.arm), log).probabilities
        if self.against == REST:
            others = log.available & (own == 0.0)
            other: FloatArray = others / np.maximum(others.sum(axis=1, keepdims=True), 1)
        else:
            candidate = BASELINE if self.against == BASELINE else Always(self.against)
            other = played(self.against, candidate, log).probabilities
        applies = own.any(axis=1) & other.any(axis=1)
        applies &= np.einsum("nk,nk->n", own, other) == 0.0  # a baseline may be this very arm
        return Played(np.where(applies[:, None], (own, other)[self.side], 0.0), applies, "do not offer both")


class _Labels:
    """The group of each decision; refused where they are too many."""

    def __init__(self, groups: Groups, arm: str) -> None:
        self._groups, self._arm = groups, Always(arm)
        self._seen: set[str] = set()

    def __call__(self, log: DecisionLog) -> Texts:
        labels = self._groups.labels(log, played("arm", self._arm, log).probabilities.argmax(axis=1))
        self._seen |= {*labels.tolist()}
        if len(self._seen) > MOST_GROUPS:
            raise ParameterError(
                f"by must have at most {MOST_GROUPS} groups, or none has enough decisions; got {len(self._seen)} and "
                "more. Join some: give a function to labels."
            )
        return labels


def _arms_of(log: Source) -> tuple[list[str], bool]:
    """The arms by name, and whether some decision names a baseline."""
    arms, baseline = dict[str, None](), False
    for chunk in log.chunks(contexts=True):
        arms |= dict.fromkeys(map(str, range(chunk.available.shape[1])) if chunk.arms is None else chunk.arms)
        baseline |= chunk.baselines is not None and bool((chunk.baselines >= 0).any())
    return [*arms], baseline


def _against(against: str | int | None, *, baseline: bool) -> str:
    if against is not None and against != BASELINE:
        return str(against)
    if against is not None and not baseline:
        raise ParameterError(
            "against cannot be the baseline: no decision of this log names the arm that the caller would have shown. "
            f"Compare with another arm, or with {REST!r}."
        )
    return BASELINE if baseline else REST


def _check_offered(arm: str | None, against: str, arms: Sequence[str]) -> None:
    for name, asked in (("arm", arm), ("against", against)):
        if asked is not None and arms and asked not in arms and not (name == "against" and asked in (BASELINE, REST)):
            shown = ", ".join(arms[:10]) + (f" and {len(arms) - 10} more" if len(arms) > 10 else "")
            more = f"; {BASELINE!r} or {REST!r}" if name == "against" else ""
            raise ParameterError(
                f"{name} must be one of the arms that were offered, {shown}{more}; got {asked!r:.60}."
                f"{did_you_mean(asked, arms)}"
            )


def features_of(source: Source) -> Features | None:
    """How records became the vectors of a log, where one of its policies tells; the last one, if several do."""
    policies = [source.policies[name] for name in source.batch_names if name in source.policies]
    fitting = [policy.features for policy in policies if policy.features and policy.features.dim == source.dim]
    return fitting[-1] if fitting else None


def _count(log: Source) -> int | None:
    """Decisions of a log in memory."""
    return len(log) if isinstance(log, DecisionLog) else None


def _corrected(effects: Sequence[Effect]) -> list[Effect]:
    """Bonferroni: p-values of one of several questions."""
    return [
        effect if effect.p_value is None else replace(effect, p_value=min(1.0, len(effects) * effect.p_value))
        for effect in effects
    ]


def _effect(scores: Scores, arm: str, against: str, group: str | None, level: float) -> Effect:
    """The effect of an arm, in a group or for all, with its p-value not yet corrected."""
    other, settings = f"showing {_words(against)}: ", Settings(level=level)
    question = question_of(scores, f"+{arm}", f"-{arm}", settings=settings, group=group, other=other)
    shown, shown_against = (
        int((scores.candidates[name].weights[question.which] > 0.0).sum()) for name in question.names
    )
    effect = Effect(
        arm=arm,
        against=against,
        group=group or "",
        decisions=int(question.which.sum()),
        shown=shown,
        shown_against=shown_against,
        interval=None,
        p_value=None,
        error=None,
        refusals=(f"no decision with a reward offered both {arm!r:.60} and {_words(against)}.",),
        batches=(),
    )
    if not effect.decisions:
        return effect
    effect = replace(effect, refusals=question.reasons, batches=question.batch_values())
    if question.reasons:
        return effect
    total = summed(question.pooled("dr"))
    if not 0.0 < total.variance < math.inf:
        reason = "rewards do not vary, which leaves no measure of how sure the effect is. Wait for other rewards."
        return replace(effect, refusals=(reason,))
    return replace(
        effect,
        interval=question.value("dr"),
        p_value=p_value_of(total),
        error=math.sqrt(total.variance),
        cautions=tuple(question.cautions()),
    )


def _words(against: str) -> str:
    return {BASELINE: "the baseline", REST: "another arm"}.get(against, repr(against))


def _differ(effects: Sequence[Effect]) -> Heterogeneity | None:
    """Cochran's Q of the groups that have an answer, whose decisions are different ones."""
    answers = [(effect.interval.value, effect.error) for effect in effects if effect.interval is not None]
    if len(answers) < 2:
        return None
    from scipy.special import chdtrc

    values, errors = np.array(answers, dtype=np.float64).T
    precision = errors**-2.0
    statistic = float(precision @ np.square(values - precision @ values / precision.sum()))
    freedom = len(answers) - 1
    return Heterogeneity(statistic=statistic, freedom=freedom, p_value=float(chdtrc(freedom, statistic)))
