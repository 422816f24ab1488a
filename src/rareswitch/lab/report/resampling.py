"""How many times as much one learner pays as another, and how well the seeds tell it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from rareswitch.rng import uniforms
from rareswitch.validation import FloatArray

#: Added to every mean regret before ratios are taken, so that a world with hardly any does not rule the mean.
OFFSET = 10.0
#: Of the intervals.
LEVEL = 0.9
#: A ratio is resolved if its interval spans at most this factor.
FACTOR = 1.5
#: Resampled means stay within the sample, and all of n seeds fall to the same side of the truth with a chance of about
#: 2^(1-n). That must be at most 1 - LEVEL.
FEWEST = 5
RESAMPLES = 2000
#: Over the cells of a ratio.
HEADER = ["ratio", f"{LEVEL:.0%} interval".replace("%", " %"), "median"]
UNKNOWN = float("nan")


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """(mean regret + 10)/(another's + 10) over the same seeds; by default that of a learner to itself.

    Over several worlds it is the geometric mean of theirs. A mean regret below 0, of a learner that beats what it is
    held against, counts as 0.
    """

    seeds: int
    value: float = 1.0
    #: Ends of the interval; NaN where there are too few seeds for one.
    low: float = 1.0
    high: float = 1.0
    #: Of the ratios seed by seed. Far from the value, it says that a few runs decide the means.
    median: float = 1.0

    @property
    def resolved(self) -> bool:
        """Whether there is an interval and it spans at most a factor 1.5."""
        return self.high <= FACTOR * self.low

    @property
    def seeds_needed(self) -> int | None:
        """About how many seeds would resolve it, by the width of the interval, which shrinks as their root.

        >>> Ratio(seeds=20, value=1.5, low=1.0, high=2.25).seeds_needed
        80
        """
        if math.isnan(self.low):
            return None
        wider = math.log(self.high / self.low) / math.log(FACTOR)
        return math.ceil(round(self.seeds * max(1.0, wider) ** 2, 6))

    @property
    def interval(self) -> str:
        """Its ends as tables show them; empty if they are not known, and for a learner against itself."""
        return f"{short(self.low)} to {short(self.high)}" if self.low < self.high else ""

    @property
    def cells(self) -> list[str]:
        """As tables show it: the value, the interval with a question mark where it is too wide, and the median."""
        return [short(self.value), f"{self.interval} {self.mark}", short(self.median)]

    @property
    def marked(self) -> str:
        """The value, with a question mark where it is not resolved."""
        return f"{short(self.value)}{self.mark}"

    @property
    def mark(self) -> str:
        """A question mark where it is not resolved."""
        return " " if self.resolved else "?"

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        ends = None if math.isnan(self.low) else [self.low, self.high]
        facts = {"ratio": self.value, "interval": ends, "resolved": self.resolved, "median": self.median}
        return facts | {"seeds_needed": self.seeds_needed}


def regret_ratio(own: FloatArray, other: FloatArray) -> Ratio:
    """The ratio of mean regrets with a bootstrap interval over the seeds.

    The interval is the percentile interval of 2000 resamples, at a level widened for small samples as Student's t is
    against the normal distribution (Hesterberg 2015, *What teachers should know about the bootstrap*). A resample takes
    the same seeds for both learners, which meet the same contexts and noise, and in all worlds. A failure so rare that
    none of the seeds shows it is beyond any interval. The numbers are the same at every call.

    Parameters
    ----------
    own, other
        (n,) or (n, worlds) regrets of the two learners, a row for each seed.

    Examples
    --------
    >>> found = regret_ratio(np.array([90.0, 40.0, 60.0, 80.0, 70.0]), np.array([30.0, 20.0, 10.0, 40.0, 25.0]))
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2), found.resolved
    (2.23, 1.76, 2.89, False)
    """
    own, other = (np.atleast_2d(np.asarray(regrets, dtype=float).T).T for regrets in (own, other))
    seeds = len(own)
    whole = float(_log_ratio(own.mean(axis=0), other.mean(axis=0)))
    facts = {"value": math.exp(whole), "median": float(np.median(np.exp(_log_ratio(own, other))))}
    if seeds < FEWEST:
        return Ratio(seeds=seeds, low=UNKNOWN, high=UNKNOWN, **facts)
    counts = _resamples(seeds)
    drawn = _log_ratio(counts @ own / seeds, counts @ other / seeds)
    tail = _tail(seeds)
    low, high = (math.exp(end) for end in np.quantile(drawn, (tail, 1.0 - tail)))
    return Ratio(seeds=seeds, low=low, high=high, **facts)


def resolution(ratios: Iterable[Ratio]) -> str:
    """What is said below a table of ratios, as a sentence or two: how many are not resolved, and what would help."""
    ratios = list(ratios)
    if any(math.isnan(ratio.low) for ratio in ratios):
        given = min(ratio.seeds for ratio in ratios)
        there = "there is one" if given == 1 else f"there are {given}"
        return f"No ratio is resolved (?): intervals need at least {FEWEST} seeds, and {there}."
    open_ones = [ratio for ratio in ratios if not ratio.resolved]
    if not open_ones:
        return ""
    needed = float(f"{max(ratio.seeds_needed or 0 for ratio in open_ones):.1e}")
    return (
        f"? marks {len(open_ones)} of {len(ratios)} ratios as not resolved, their intervals being wider than a factor "
        f"{FACTOR:g}; about {needed:,.0f} seeds would resolve all."
    )


def lifted(regret: Any) -> Any:
    """What ratios are taken of: regret + 10, and at least that.

    >>> float(lifted(30.0)), float(lifted(-2.0))
    (40.0, 10.0)
    """
    return np.maximum(regret, 0.0) + OFFSET


def short(value: float) -> str:
    """A ratio with as many digits as one reads.

    >>> short(1.2345), short(1234.5)
    ('1.23', '1,234')
    """
    return f"{value:.2f}" if value < 100.0 else f"{value:,.0f}"


def _log_ratio(own: FloatArray, other: FloatArray) -> FloatArray:
    """Logarithm of the geometric mean over worlds, the last axis."""
    mean: FloatArray = np.mean(np.log(lifted(own)) - np.log(lifted(other)), axis=-1)
    return mean


@lru_cache(maxsize=1)
def _resamples(seeds: int) -> FloatArray:
    """(resamples, seeds) how often each seed is drawn; fewer resamples where they would fill the memory."""
    size = min(RESAMPLES, max(200, 20_000_000 // seeds))
    chosen = (uniforms(0, "resampling", 0, size, seeds) * seeds).astype(np.int64) + seeds * np.arange(size)[:, None]
    return np.bincount(chosen.ravel(), minlength=size * seeds).reshape(size, seeds).astype(float)


def _tail(seeds: int) -> float:
    """The share of resamples beyond each end."""
    from scipy.special import stdtrit  # here, as commands that compare nothing start without SciPy

    wider = math.sqrt(seeds / (seeds - 1.0)) * float(stdtrit(seeds - 1, (1.0 - LEVEL) / 2.0))
    return NormalDist().cdf(wider)
