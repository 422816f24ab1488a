"""Parameters of a linear model from adaptive batches: least squares in each batch, studentised by itself, then pooled.

Where policies learn, least squares of all rows at once mislead: how often an arm was shown depends on what it had
earned, and the usual intervals need not hold, however long the log. Given the past, a batch of one frozen policy is an
ordinary sample with an error of its own, and sums over batches of estimates less the truth, weighted without a look at
rewards and divided by their joint error, are about standard normal (Zhang, Janson and Murphy 2020, *Inference for
Batched Bandits*; for the weights see :mod:`rareswitch.evaluation.intervals`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rareswitch.errors import EmptySetError, ParameterError, did_you_mean
from rareswitch.evaluation.batch_answers import answer
from rareswitch.evaluation.effect_results import BatchPart, Parameter, Parameters
from rareswitch.evaluation.evaluate import source_of
from rareswitch.evaluation.least_squares import POWERS, BatchFit, Told, Variance
from rareswitch.evaluation.multiplicity import CORRECTIONS, Correction, corrected, each_level
from rareswitch.features import Features
from rareswitch.log import Logged, Source
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, number, vector

#: Why batches may disagree.
_CHANGES = "rewards changed over time, or are not linear in these features"
#: Rows that batches must be worth together, of equal weight for what is asked.
LEAST_TOGETHER = 20.0
#: The column of the level, where one is asked for.
INTERCEPT = "intercept"


def parameters(
    source: Any,
    contrasts: Mapping[str, Any] | None = None,
    *,
    intercept: bool = False,
    level: float = 0.95,
    variance: Variance = "hc2",
    correction: Correction = "holm",
) -> Parameters:
    """Coefficients of the reward on the vectors of chosen arms, or contrasts of them, with intervals that hold.

    A batch whose rows do not determine what is asked, or by fewer than three of them, is left out and named. Where
    fewer than twenty rows' worth of data are left, there is no number but the reason. Columns that vary only together,
    such as those of all levels of a field beside those of all arms, have no coefficients of their own; contrasts may.

    Parameters
    ----------
    source
        An experiment, a log, or files of one, as :func:`rareswitch.evaluate` takes them.
    contrasts
        By name, what is asked for: the weights of columns by their names, or a weight for each column (d,). By default
        every coefficient. Where the features are known, columns go by their names there, and count as they are before
        vectors are divided by the square root of the number of their terms: the coefficient of a level is what it adds
        to the reward. Arrays are of the columns as they are in the vectors.
    intercept
        Whether rewards have a level that no feature stands for; that is the last column, ``intercept``.
    level
        Of the intervals; with a correction, that of all of them together.
    variance
        ``hc2`` or ``hc3``: both let the noise differ from row to row; the second is the wider one.
    correction
        For looking at several: ``bonferroni``; ``holm``, with smaller p-values and the same intervals; or ``none``,
        each by itself.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(400, 2))
    >>> rewards = x @ [0.5, 0.0] + rng.normal(size=400)
    >>> found = parameters(Logged(places=[0] * 400, propensities=[1.0] * 400, features=x, rewards=rewards))
    >>> [(one.name, one.interval.low > 0.0) for one in found]
    [('feature 0', True), ('feature 1', False)]
    """
    number("level", level, low=0.5, high=0.9999)
    for name, given, known in (("variance", variance, POWERS), ("correction", correction, CORRECTIONS)):
        if given not in known:
            meant = did_you_mean(given, known)
            raise ParameterError(f"{name} must be one of {', '.join(known)}; got {given!r:.60}.{meant}")
    log = source_of(source)
    if log.dim is None:
        raise ParameterError("source has no vectors, so there are no parameters. Ask for effects of arms instead.")
    features = features_of(log)
    asked = _asked(contrasts, log.dim, features, intercept=intercept)
    sums, decisions = _sums(log, intercept=intercept)
    rewarded = sum(one.count for one in sums)
    if not rewarded:
        raise EmptySetError(f"none of the {decisions} decisions of this log has a reward: there is nothing to fit.")
    fits = _fits(log, sums, np.stack(list(asked.values())), variance, intercept=intercept)
    each = each_level(level, len(asked), correction)
    found = []
    for k, name in enumerate(asked):
        parts = _parts({log.batch_names[at]: (at, fit.told(k)) for at, fit in enumerate(fits) if fit is not None})
        got = answer(parts, level=each, what="the parameter", changes=_CHANGES, least=LEAST_TOGETHER)
        found.append(
            Parameter(
                name=name,
                interval=got.interval,
                p_value=got.p_value,
                refusals=got.refusals,
                batches=parts,
                cautions=got.cautions,
            )
        )
    return Parameters(
        parameters=_corrected(found, correction),
        level=level,
        correction=correction,
        variance=variance,
        unit="" if features is None else "a column at 1, before vectors are divided by √(number of terms)",
        decisions=decisions,
        rewarded=rewarded,
    )


def features_of(source: Source) -> Features | None:
    """How records became the vectors of a log, where one of its policies tells; the last one, if several do."""
    told = [source.policies[name].features for name in source.batch_names if name in source.policies]
    found = [one for one in told if one is not None and one.dim == source.dim]
    return found[-1] if found else None


def _asked(
    contrasts: Mapping[str, Any] | None, dim: int, features: Features | None, *, intercept: bool
) -> dict[str, FloatArray]:
    """By name, a direction (d,), and one more entry for the level where there is one."""
    names = [f"feature {k}" for k in range(dim)] if features is None else [*features.columns]
    units = [1.0 if features is None else 1.0 / math.sqrt(len(features.terms))] * dim
    if intercept:
        names.append(INTERCEPT)
        units.append(1.0)
    rows = dict(zip(names, np.diag(units), strict=True))
    if contrasts is None:
        return rows
    if not isinstance(contrasts, Mapping) or not contrasts:
        raise ParameterError(
            "contrasts must be a dict of what is asked for by name, each the weights of columns, such as "
            f"{{'gap': {{{names[0]!r}: 1.0, {names[-1]!r}: -1.0}}}}; got {contrasts!r:.60}."
        )
    found = {}
    for name, given in contrasts.items():
        if isinstance(given, Mapping):
            for column in given:
                if column not in rows:
                    raise ParameterError(
                        f"contrasts: {name!r:.60} has the column {column!r:.60}; there are {', '.join(names):.300}."
                    )
            made = sum(
                (
                    number(f"contrasts: the weight of {column!r:.60}", weight, low=-math.inf) * rows[column]
                    for column, weight in given.items()
                ),
                np.zeros(len(names)),
            )
        else:
            made = vector(f"contrasts: {name!r:.60}", given, len(names))
        if not np.any(made):
            raise ParameterError(f"contrasts: {name!r:.60} must have a weight that is not 0.")
        found[str(name)] = np.asarray(made)
    return found


def _rows(log: Logged, *, intercept: bool) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """By batch, features (n, d) and rewards (n,) of the decisions that have a reward."""
    assert log.features is not None
    known = ~np.isnan(log.rewards)
    for batch in np.unique(log.batches[known]).tolist():
        at = known & (log.batches == batch)
        x = log.features[at]
        yield batch, np.column_stack([x, np.ones(len(x))]) if intercept else x, log.rewards[at]


def _sums(source: Source, *, intercept: bool) -> tuple[list[Stats], int]:
    """By batch, and how many decisions there are in all."""
    assert source.dim is not None
    sums, decisions = [Stats.zero(source.dim + intercept) for _ in source.batch_names], 0
    for log in source.chunks(contexts=False):
        decisions += len(log)
        for batch, x, rewards in _rows(log, intercept=intercept):
            # a high level would cost the digits of all the rest
            sums[batch] += Stats.of(x, rewards, shift=float(np.median(rewards)) if intercept else 0.0)
    return sums, decisions


def _fits(
    source: Source, sums: Sequence[Stats], directions: FloatArray, variance: Variance, *, intercept: bool
) -> list[BatchFit | None]:
    """By batch; None where it has no reward."""
    fits = [BatchFit(one, directions, variance) if one.count else None for one in sums]
    for log in source.chunks(contexts=False):
        for batch, x, rewards in _rows(log, intercept=intercept):
            fit = fits[batch]
            assert fit is not None, "the same decisions come in every pass"
            fit.add(x, rewards)
    return fits


def _parts(told: Mapping[str, tuple[int, Told]]) -> tuple[BatchPart, ...]:
    """By the name of the batch, its number and what it says."""
    # precisions are compared in rows: as many as the least favourable batch says that a unit of precision is worth
    unit = min((one.effective * one.squares for _, one in told.values() if not one.reason), default=0.0)
    return tuple(
        BatchPart(
            batch=batch,
            name=name,
            decisions=one.rows,
            value=None if one.reason else one.value,
            error=None if one.reason else one.error,
            effective=0.0 if one.reason else unit / one.squares,
            left_out=one.reason,
        )
        for name, (batch, one) in told.items()
    )


def _corrected(found: Sequence[Parameter], correction: Correction) -> tuple[Parameter, ...]:
    answered = [one.p_value for one in found if one.p_value is not None]
    p_values = iter(corrected(answered, len(found), correction))
    return tuple(one if one.p_value is None else replace(one, p_value=next(p_values)) for one in found)
