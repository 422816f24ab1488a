"""Gates: a policy is deployed only if decisions it was not learned from say that it is no worse than the incumbent."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rareswitch.belief import posterior
from rareswitch.core import FloatArray, Result, number
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.evaluation import Settings, few_rewards, judged, question_of, score
from rareswitch.learner import Learner, State
from rareswitch.log import HeldOut, Source
from rareswitch.policy import Policy

__all__ = ["Gate", "GateReport"]

#: By how much a batch must have grown since a policy was refused, before the gate looks again.
GROWTH = 1.5


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a new policy must show before it is deployed.

    A share of the batch is held out when the policy is learned, and is learned from in the update after it. On these
    decisions the policy is compared with the incumbent, which made them. It is deployed if it gains more than
    ``-loss`` a decision, by a lower bound that is wrong in a share ``level`` of all updates at the most, however often
    one tries: the k-th try on one batch is made at the level ``level/(k(k + 1))``, and these add up to ``level``.

    Examples
    --------
    >>> Gate(loss=0.01)
    Gate(level=0.05, loss=0.01, holdout=0.3)
    >>> Gate().level_of(1), Gate().level_of(2)
    (0.025, 0.008333333333333333)
    """

    #: Share of updates in which a policy that is worse, by more than ``loss``, may be deployed.
    level: float = 0.05
    #: What the new policy may lose a decision, in units of rewards.
    loss: float = 0.0
    #: Share of the batch's decisions, of those whose context sets were kept, that is held out.
    holdout: float = 0.3

    def __post_init__(self) -> None:
        level = number("level of a gate", self.level, low=1e-6, high=0.5)
        holdout = number("holdout, the share of decisions that a gate holds out,", self.holdout, low=0.01, high=0.9)
        vars(self).update(
            level=level, loss=number("loss, what a policy may lose,", self.loss, low=0.0), holdout=holdout
        )

    def level_of(self, look: int) -> float:
        """The level at which a try is made, the first being 1."""
        return self.level / (look * (look + 1))

    def held_out(self, context_sample_rate: float) -> HeldOut:
        """The decisions that are held out, where a share ``context_sample_rate`` of all context sets was kept."""
        return HeldOut(share=self.holdout, context_sample_rate=context_sample_rate)


def gate_of(gate: Gate | bool, learner: Learner) -> Gate:
    """A gate from what people write: True, or the gate itself; refused where held-out decisions would be lost.

    >>> from rareswitch.learner import Foresight
    >>> gate_of(True, Foresight(dim=2)) == Gate()
    True
    """
    if gate is not True and not isinstance(gate, Gate):
        raise ParameterError(f"gate must be True, or Gate(level=…, loss=…, holdout=…); got {gate!r:.60}.")
    if not learner.parts.statistics.pooled:
        raise UnsuitableError(
            f"gate: {learner.name} learns from each batch once, for which its proof needs fresh decisions: those that "
            "a gate holds out would be lost. Use a learner that pools all decisions, such as foresight, or no gate."
        )
    return Gate() if gate is True else gate


class GateReport(Result, frozen=True, kw_only=True):
    """What a gate says about a policy. Prints as text."""

    promoted: bool
    #: Id of the policy.
    candidate: str
    #: Decisions that were held out, and of these with a reward.
    held_out: int
    tested: int
    #: Which try on this batch it was; those that no reward was looked at for do not count.
    look: int
    #: At which it was made.
    level: float
    #: What the policy may lose a decision.
    loss: float
    #: What it earns more than the incumbent a decision, its standard error, and its lower bound; None where the
    #: decisions cannot tell.
    gain: float | None = None
    error: float | None = None
    bound: float | None = None
    #: Why they cannot.
    reasons: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether there is a gain."""
        return self.gain is not None


def judge(
    gate: Gate,
    log: Source,
    *,
    candidate: Policy,
    incumbent: Policy,
    predict: Callable[[FloatArray], FloatArray],
    look: int,
) -> GateReport:
    """Whether a policy may take the place of the incumbent, by decisions that it was not learned from.

    With π the candidate, μ the incumbent, q̂ a model and w = π(a | x)/μ(a | x), the mean of
    Σ (π − μ)(b | x) q̂(x, b) + (w − 1)(r − q̂(x, a)) over decisions of μ is what π gains, whatever the model says: the
    difference of the two as candidates, as :func:`rareswitch.evaluate` scores them.

    Parameters
    ----------
    log
        The held-out decisions, all of the incumbent, with all arms that were offered.
    predict
        The model, of vectors (…, d) to rewards (…); made of other decisions.
    look
        Which try it is.
    """
    held_out, level = 0, gate.level_of(look)
    residuals = [np.zeros(0)]
    for chunk in log.chunks(contexts=True):
        assert chunk.features is not None
        held_out += len(chunk)
        residuals.append((chunk.rewards - predict(chunk.features))[~np.isnan(chunk.rewards)])
    known = np.concatenate(residuals)
    report = partial(
        GateReport,
        promoted=False,
        candidate=candidate.id,
        held_out=held_out,
        tested=len(known),
        look=look,
        level=level,
        loss=gate.loss,
    )
    if not len(known):
        return report(reasons=judged([], left_out=held_out).reasons)
    # w - 1 has the mean 0, so that the level of rewards says nothing, and the model is moved to it
    model = lambda contexts, _: predict(contexts) + known.mean()  # noqa: E731
    scores = score(log, {"candidate": candidate, "incumbent": incumbent}, model=model)
    if scores.mismatch:
        raise ParameterError(f"{scores.mismatch} No gate can rest on it: advance without a gate until then.")
    question = question_of(scores, "candidate", "incumbent", settings=Settings(level=1.0 - 2.0 * level))
    support, weights = question.known[0][0], scores.candidates["candidate"].weights
    reasons = judged([support], left_out=held_out - len(known)).reasons
    if not reasons and support.missed > 0.0:
        share = 100.0 * support.missed / support.count
        reasons = (
            f"{share:.2g} % of what this policy would show had probability 0: of that a gate knows nothing, and the "
            "rest may gain less. Keep every arm possible, as with min_propensity=0.01.",
        )
    if reasons := reasons or few_rewards(scores.rewards, weights):
        return report(reasons=reasons)
    (term,), gain = question.pooled("dr"), question.value("dr")
    bound = gain.low if term.variance > 0.0 else gain.value  # without any spread it plays as the incumbent
    return report(promoted=bound > -gate.loss, gain=gain.value, error=math.sqrt(term.variance), bound=bound)


def linear_model(learner: Learner, state: State) -> Callable[[FloatArray], FloatArray]:
    """What a state says arms earn: a function of vectors (…, d) to rewards (…)."""
    (stats,) = state.sums
    estimate, level = posterior(stats).estimate, 0.0
    if learner.parts.statistics.intercept:
        estimate, level = estimate[:-1], float(estimate[-1]) + stats.shift
    return lambda vectors: np.asarray(vectors @ estimate + level)
