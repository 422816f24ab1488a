"""What a plan is made from: the sizes of a problem, a sample of its contexts, or a log with rewards."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rareswitch.belief import Posterior, Search, expanded, logistic_posterior, next_point, posterior
from rareswitch.core import ContextSets, FloatArray, Stats, context_sets, normals, number, set_size, whole
from rareswitch.errors import ParameterError
from rareswitch.features import Features
from rareswitch.planning.misfit import discrepancies
from rareswitch.planning.simulation import Truth, gain_of, posterior_truths, prior_truths

#: Context sets of a sample or a log that are looked at, those that are made of sizes, and rewards of a log.
SETS, DRAWN, REWARDS = 4000, 1000, 200_000
#: Beyond these a simulation takes hours.
MOST_FEATURES = 1000
#: How much the best arms may gain where nothing is said, as shares of the metric's mean, or in standard deviations.
USUAL_LIFT, USUAL_GAIN = (0.1, 1.0), (0.5, 2.0)


class Evidence(NamedTuple):
    """The context sets of a problem, and what is possible of its rewards."""

    sets: ContextSets
    truths: tuple[Truth, ...]
    #: How much more the best arms earn than uniform choice, in standard deviations of a reward: from, to.
    gains: tuple[float, float]
    #: Of a reward; 1 where it is not known.
    spread: float
    #: What uniform choice earns; None where it is not known.
    mean: float | None = None
    clicks: bool = False

    @property
    def fits(self) -> bool:
        """Whether parameters say all of the rewards."""
        return self.truths[0].misfit is None


class Metric(NamedTuple):
    """What is said of the rewards beforehand."""

    mean: float | None
    spread: float
    click_rate: float | None
    #: How much more the best arms earn than uniform choice: the least and the most.
    gains: tuple[float, float]


def metric_of(mean: float | None, spread: float | None, click_rate: float | None, lift: float | None) -> Metric:
    """What people say of a metric, checked."""
    if click_rate is not None:
        if mean is not None or spread is not None:
            raise ParameterError("click_rate says the mean and the spread of clicks: leave mean and spread out.")
        mean = click_rate = number("click_rate", click_rate, low=1e-6, high=1.0 - 1e-6)
        spread = math.sqrt(click_rate * (1.0 - click_rate))
    if lift is not None:
        lift = number("lift, a share of the mean,", lift, low=1e-6, high=1e6)
    if mean is None or spread is None:
        if mean is not None or spread is not None or lift is not None:
            raise ParameterError(
                "mean and spread of the metric belong together, and lift is a share of the mean: give mean and "
                "spread, such as mean=20, spread=15; or click_rate where rewards are clicks."
            )
        return Metric(None, 1.0, None, USUAL_GAIN)
    spread = number("spread", spread, low=0.0, high=1e100, open_low=True)
    if mean == 0.0:
        raise ParameterError("mean must not be 0, as lifts are shares of it; got 0. Leave mean and spread out.")
    size = abs(number("mean", mean, low=-1e100, high=1e100))
    low, high = USUAL_LIFT if lift is None else (lift, lift)
    return Metric(mean, spread, click_rate, (size * low, size * high))


def evidence_of(
    *,
    dim: int | None,
    arms: int | Sequence[Any] | None,
    sample: Any,
    features: Features | None,
    log: Any,
    metric: Metric,
    seed: int,
) -> Evidence:
    """The context sets and the truths of a plan."""
    if log is not None:
        for name, value in (("dim", dim), ("arms", arms), ("sample", sample), ("features", features)):
            if value is not None:
                raise ParameterError(f"{name} is what a log says: give the log alone.", parameter=name)
        if metric.mean is not None:
            raise ParameterError("mean, spread, click_rate and lift are what a log says: give the log alone.")
        return _of_log(log, seed)
    if sample is None:
        if features is not None:
            raise ParameterError("features encode a sample of records: give sample=… too.")
        if dim is None or arms is None:
            name = "dim" if dim is None else "arms"
            raise ParameterError(
                f"{name} must be given: dim, the features of an arm, and arms, those in a set; or a sample."
            )
        arms = whole("arms, the arms in a set,", arms, low=2)
        set_size(whole("dim", dim, high=MOST_FEATURES), arms)
        drawn = normals(seed, "plan contexts", 0, DRAWN, arms * dim).reshape(DRAWN, arms, dim)
        sets = ContextSets(drawn / np.linalg.norm(drawn, axis=2, keepdims=True), np.ones((DRAWN, arms), dtype=np.bool_))
    else:
        if dim is not None:
            raise ParameterError("dim is what a sample says: leave it out.", parameter="dim", given=dim)
        sets = _of_sample(sample, features, arms)
    spread = None if metric.mean is None else metric.spread
    truths = prior_truths(
        sets, metric.gains, noise=metric.spread, spread=spread, click_rate=metric.click_rate, seed=seed
    )
    low, high = metric.gains
    gains = low / metric.spread, high / metric.spread
    return Evidence(sets, truths, gains, metric.spread, metric.mean, metric.click_rate is not None)


def _of_sample(sample: Any, features: Features | None, arms: Any) -> ContextSets:
    """Some of the context sets of a sample, evenly spread."""
    if features is None:
        checked = (
            context_sets(sample.contexts, sample.available) if hasattr(sample, "available") else context_sets(sample)
        )
        if checked.single:
            raise ParameterError(
                "sample must be context sets (n, K, d), or records beside features=…; got a single set. "
                "Pass sample[None]."
            )
        if arms is not None:
            raise ParameterError("arms are what a sample of context sets says: leave them out.", parameter="arms")
        every = max(1, -(-len(checked.contexts) // SETS))
        return ContextSets(checked.contexts[::every], checked.available[::every])
    records = sample.to_dict("records") if hasattr(sample, "to_dict") else [*sample]
    if not records:
        raise ParameterError("sample must hold a record at least; got none.")
    return features.encode_many(records[:: max(1, -(-len(records) // SETS))], arms).sets


def _of_log(log: Any, seed: int) -> Evidence:
    """The sets of a log, and what its rewards leave possible of θ."""
    from rareswitch.evaluation import source_of  # which takes time to load, and most plans have no log

    rows, rewards, sets = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    seen = 0
    for chunk in source_of(log).chunks():
        if chunk.contexts is None or chunk.features is None:
            raise ParameterError(
                "log must have the vectors of all offered arms, on which a plan is simulated; it has none. Give a log "
                "with contexts, or a sample of requests."
            )
        if seen < REWARDS:
            known = np.isfinite(chunk.rewards)
            rows.append(chunk.features[known])
            rewards.append(chunk.rewards[known])
            seen += int(known.sum())
        if sum(map(len, sets)) < SETS:
            sets += [x[a] for x, a in zip(chunk.contexts, chunk.available, strict=True)][:SETS]
    if not seen:
        raise ParameterError("log has no reward, and without rewards it is a sample: give sample=… in its place.")
    features, paid = np.concatenate(rows), np.concatenate(rewards)
    if np.ptp(paid) == 0.0:
        raise ParameterError(f"log has equal rewards only, all {paid[0]:g}, so there is nothing to learn from it.")
    clicks = bool(np.isin(paid, (0.0, 1.0)).all())
    belief = _clicks_belief(features, paid) if clicks else None
    if belief is None:
        belief = posterior(Stats.of(features - features.mean(axis=0), paid - paid.mean()))
    offered = ContextSets.from_ragged(sets[:SETS])
    truths, spread = posterior_truths(belief, seed=seed), float(paid.std())
    if misfits := discrepancies(features, paid, belief, offered, count=len(truths), seed=seed):
        possible = zip(truths, misfits, strict=True)
        truths = tuple(t._replace(noise=m.noise, misfit=m, best=m.best()) for t, m in possible)
    values = (truth.values(offered.contexts) if truth.misfit is None else truth.misfit.payoffs for truth in truths)
    gained = [gain_of(v, offered.available, t.best) / spread for v, t in zip(values, truths, strict=True)]
    low, high = np.quantile(gained, (0.05, 0.95)).tolist()
    return Evidence(offered, truths, (low, high), spread, float(paid.mean()), belief.link is not None)


def _clicks_belief(features: FloatArray, clicks: FloatArray) -> Posterior | None:
    """The Laplace posterior of a logistic model with a level."""
    rows, search = np.column_stack([features, np.ones(len(features))]), Search()
    point = np.zeros(rows.shape[1])
    while True:
        batch = replace(Stats.of(rows, clicks), expansion=expanded(rows, clicks, point))
        step = next_point([], batch, search, intercept=True)
        if step is None:
            return logistic_posterior([batch], intercept=True)
        point, search = step
