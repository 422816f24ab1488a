"""Gates: a policy is deployed only if decisions it was not learned from say that it is no worse than the incumbent."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.core import BoolArray, FloatArray, Result, number
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.evaluation import Support, halves, policy_probabilities, refusals
from rareswitch.learner import Learner, State, posterior
from rareswitch.log import DecisionLog, HeldOut
from rareswitch.policy import Policy

#: By how much a batch must have grown since a policy was refused, before the gate looks again.
GROWTH = 1.5
#: How far recorded propensities may be from those of the policy, by rounding.
_ROUNDING = 1e-9


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


def gate_of(given: Any, learner: Learner) -> Gate | None:
    """A gate from what people write: True, or the gate itself; refused where held-out decisions would be lost.

    >>> from rareswitch.learner import Foresight
    >>> gate_of(True, Foresight(dim=2)) == Gate()
    True
    """
    if given is None or given is False:
        return None
    if given is not True and not isinstance(given, Gate):
        raise ParameterError(f"gate must be True, or Gate(level=…, loss=…, holdout=…); got {given!r:.60}.")
    if not learner.parts.statistics.pooled:
        raise UnsuitableError(
            f"gate: {learner.name} learns from each batch once, for which its proof needs fresh decisions: those that "
            "a gate holds out would be lost. Use a learner that pools all decisions, such as foresight, or no gate."
        )
    return Gate() if given is True else given


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
    #: What it earns more than the incumbent a decision, its standard error, and its lower bound; None where no reward
    #: was looked at. Where all rewards are the same there is a gain, and no bound.
    gain: float | None = None
    error: float | None = None
    bound: float | None = None
    #: Why they cannot.
    reasons: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether rewards were looked at: whether they should be is told by the probabilities of arms alone."""
        return self.gain is not None


def judge(
    gate: Gate,
    chunks: Iterable[DecisionLog],
    *,
    candidate: Policy,
    incumbent: Policy,
    predict: Callable[[FloatArray], FloatArray],
    look: int,
) -> GateReport:
    """Whether a policy may take the place of the incumbent, by decisions that it was not learned from.

    With π the candidate, μ the incumbent, q̂ a model and w = π(a | x)/μ(a | x), the mean of
    Σ (π − μ)(b | x) q̂(x, b) + (w − 1)(r − q̂(x, a)) over decisions of μ is what π gains, whatever the model says.

    Parameters
    ----------
    chunks
        The held-out decisions, all of the incumbent, with all arms that were offered.
    predict
        The model, of contexts (n, K, d) to rewards (n, K); made of other decisions.
    look
        Which try it is.
    """
    support, held_out, smallest, largest = Support.zero(), 0, math.inf, -math.inf
    known, slopes, residuals, first = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=np.bool_)]
    for chunk in chunks:
        held_out += len(chunk)
        rewarded = ~np.isnan(chunk.rewards)
        if not rewarded.any():
            continue
        log = chunk if rewarded.all() else chunk.select(rewarded)
        assert log.contexts is not None
        rows = np.arange(len(log))
        new, old = (policy_probabilities(policy, log) for policy in (candidate, incumbent))
        own = old[rows, log.arm_indices]
        if np.abs(own - log.propensities).max() > _ROUNDING:
            raise ParameterError(
                "recorded propensities are not those of the policy that decided: the log was changed, or another "
                "policy decided. No gate can rest on it; find out which, and advance without a gate until then."
            )
        weights, model = new[rows, log.arm_indices] / log.propensities, predict(log.contexts)
        support += Support.of(weights, candidate=new, logging=old, available=log.available)
        known.append(np.einsum("nk,nk->n", new - old, np.where(log.available, model, 0.0)))
        slopes.append(weights - 1.0)
        residuals.append(log.rewards - model[rows, log.arm_indices])
        first.append(halves(log) == 1)
        smallest, largest = min(smallest, float(log.rewards.min())), max(largest, float(log.rewards.max()))
    told: dict[str, Any] = {"candidate": candidate.id, "held_out": held_out, "tested": support.count, "look": look}
    told |= {"level": gate.level_of(look), "loss": gate.loss}
    _, reasons = refusals([support], left_out=held_out - support.count)
    if not reasons and support.missed > 0.0:
        share = 100.0 * support.missed / support.count
        reasons = (
            f"{share:.2g} % of what this policy would show had probability 0: of that a gate knows nothing, and the "
            "rest may gain less. Keep every arm possible, as with min_propensity=0.01.",
        )
    if reasons:
        return GateReport(promoted=False, reasons=reasons, **told)
    columns: tuple[list[Any], ...] = (known, slopes, residuals, first)
    gain, error, bound = lower_bound(*map(np.concatenate, columns), level=gate.level_of(look))
    if smallest == largest:  # no spread from which a bound could be had, whatever the arms earn
        reasons = (
            f"All {support.count:,} have the same reward, {smallest:g}: nothing tells one arm from another. Wait for "
            "other rewards, or advance without a gate.",
        )
        return GateReport(promoted=False, gain=gain, error=error, reasons=reasons, **told)
    return GateReport(promoted=bound > -gate.loss, gain=gain, error=error, bound=bound, **told)


def lower_bound(
    known: FloatArray, slopes: FloatArray, residuals: FloatArray, half: BoolArray, *, level: float
) -> tuple[float, float, float]:
    """The mean of known + slopes·residuals, its standard error, and a bound above the truth in a share ``level`` only.

    A decision that weighs much and failed, where failures are rare, may be missing by chance: the mean is then too high
    and the spread of what came does not tell. Weights and residuals tell it by themselves, as both are seen often.
    So the variance is the larger, and the third moment the lower, of those of the sum and of those that follow where a
    residual does not depend on its weight; and Student's quantile t becomes t + |γ|(2t² + 1)/(6√n), with γ the
    skewness where it is below 0 (Johnson 1978).

    Parameters
    ----------
    known
        (n,) what a model says.
    slopes
        (n,) weights less 1, of mean 0.
    residuals
        (n,) rewards less what the model says of them. Their level is taken off: it explains nothing, and that of one
        half comes from the other.
    half
        (n,) which are in the first half.

    Examples
    --------
    >>> values, half = np.arange(100.0), np.arange(100) % 2 < 1
    >>> gain, _, bound = lower_bound(values, np.zeros(100), np.zeros(100), half, level=0.05)
    >>> gain, round(bound, 2)
    (49.5, 44.68)
    """
    from scipy.special import stdtrit

    levels = np.zeros(len(known))
    for side in (half, ~half):
        if side.any():
            levels[~side] = residuals[side].mean()
    centred = residuals - levels
    values = known + slopes * centred
    count, mean = len(values), float(values.mean())
    pulls, model = values - mean, known - known.mean()
    variance = float(pulls @ pulls) / (count - 1)
    if variance == 0.0:
        return mean, 0.0, mean
    variance = max(variance, float((model**2).mean() + (slopes**2).mean() * (centred**2).mean()))
    third = min(0.0, float((pulls**3).mean()), float((slopes**3).mean() * (centred**3).mean()))
    error, quantile = math.sqrt(variance / count), float(stdtrit(count - 1, 1.0 - level))
    quantile += abs(third) / variance**1.5 * (2.0 * quantile**2 + 1.0) / (6.0 * math.sqrt(count))
    return mean, error, mean - quantile * error


def linear_model(learner: Learner, state: State) -> Callable[[FloatArray], FloatArray]:
    """What a state says arms earn: a function of contexts (n, K, d) to rewards (n, K)."""
    (stats,) = state.sums
    estimate, level = posterior(stats).estimate, 0.0
    if learner.parts.statistics.intercept:
        estimate, level = estimate[:-1], float(estimate[-1]) + stats.shift
    return lambda contexts: np.asarray(contexts @ estimate + level)
