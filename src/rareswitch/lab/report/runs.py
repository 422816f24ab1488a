"""Runs as tables: mean regrets, how learners compare, and how well the seeds tell it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from rareswitch.core import FloatArray, percent_text, table, uniforms
from rareswitch.lab.collaborate import Collaboration
from rareswitch.lab.simulate import Run
from rareswitch.lab.worlds import TableWorld

#: What ``--json`` prints.
SummaryFacts = dict[str, Any]
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
    def ends(self) -> list[float] | None:
        """Of the interval, if they are known."""
        return None if math.isnan(self.low) else [self.low, self.high]

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

    def summary(self) -> SummaryFacts:
        """What ``--json`` prints."""
        facts = {"ratio": self.value, "interval": self.ends, "resolved": self.resolved, "median": self.median}
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
    """The notes below a table of ratios: the number that is not resolved, and what would help."""
    ratios = list(ratios)
    if any(math.isnan(ratio.low) for ratio in ratios):
        fewest = min(ratio.seeds for ratio in ratios)
        there = "there is one" if fewest == 1 else f"there are {fewest}"
        return f"No ratio is resolved (?): intervals need at least {FEWEST} seeds, and {there}."
    open_ones = [ratio for ratio in ratios if not ratio.resolved]
    if not open_ones:
        return ""
    needed = float(f"{max(ratio.seeds_needed or 0 for ratio in open_ones):.1e}")
    return (
        f"? marks {len(open_ones)} of {len(ratios)} ratios as not resolved, their intervals being wider than a factor "
        f"{FACTOR:g}; about {needed:,.0f} seeds would resolve all."
    )


def lifted(regret: float | FloatArray) -> FloatArray:
    """What ratios are taken of: regret + 10, and at least that.

    >>> float(lifted(30.0)), float(lifted(-2.0))
    (40.0, 10.0)
    """
    return np.maximum(regret, 0.0) + OFFSET


def short(value: float) -> str:
    """A ratio with the digits that are worth reading.

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


def meetings_table(collaboration: Collaboration) -> str:
    """The rounds of communication of one run."""
    rows = []
    for k, meeting in enumerate(collaboration.meetings, start=1):
        sizes = (f"{size:,}" for size in (meeting.longest, meeting.received, meeting.sent))
        rows.append([str(k), f"{meeting.start:,} to {meeting.stop - 1:,}", *sizes, meeting.policy_id[:12]])
    header = ["round", "decisions", "longest share", "bytes from all agents", "bytes to each", "policy"]
    return table(header, rows, left=2)


def collaborative_table(collaborations: Sequence[Collaboration]) -> str:
    """One line for each number of agents."""
    header = ["agents", "regret", "rounds", "time in decisions", "bytes from agents", "decisions", "seconds"]
    rows = []
    for team in collaborations:
        sizes = str(len(team.meetings)), f"{team.parallel_time:,}", f"{sum(m.received for m in team.meetings):,}"
        rows.append(
            [str(team.agents), f"{team.run.regret:,.1f}", *sizes, team.decisions[:12], f"{team.run.seconds:.1f}"]
        )
    return table(header, rows)


def concurrent_table(runs: Sequence[tuple[int, Run]]) -> str:
    """One line for each number of agents, with what the reduction allows beside one agent's regret, if it is there."""
    alone = next((run.regret for agents, run in runs if agents == 1), None)
    header = ["agents", "regret", "policies", "one agent's + M·A", "time in decisions", "seconds"]
    rows = []
    for agents, run in runs:
        bound = "" if alone is None else f"{alone + run.policies * agents:,.1f}"
        time = f"{-(-run.horizon // agents):,}"
        rows.append([str(agents), f"{run.regret:,.1f}", str(run.policies), bound, time, f"{run.seconds:.1f}"])
    return table(header, rows)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The runs of one learner in one world at one horizon."""

    learner: str
    world: str
    horizon: int
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> list[int]:
        """From small to large."""
        return sorted(run.seed for run in self.runs)

    @property
    def regrets(self) -> FloatArray:
        """(n,) in the order of the seeds, so that learners can be held against each other seed by seed."""
        return np.array([run.regret for run in sorted(self.runs, key=lambda run: run.seed)])

    @property
    def regret(self) -> float:
        """Mean over the seeds."""
        return float(np.mean([run.regret for run in self.runs]))

    @property
    def linear_regret(self) -> float:
        """Mean regret against the best linear policy in hindsight."""
        return float(np.mean([run.linear_regret for run in self.runs]))

    @property
    def standard_error(self) -> float:
        """Of the mean regret; NaN for a single seed."""
        regrets = [run.regret for run in self.runs]
        return float(np.std(regrets, ddof=1) / np.sqrt(len(regrets))) if len(regrets) > 1 else float("nan")

    @property
    def bar(self) -> float:
        """The standard error, and 0 where it is not known."""
        return 0.0 if np.isnan(self.standard_error) else self.standard_error

    @property
    def error_text(self) -> str:
        """The standard error as tables show it."""
        return "" if np.isnan(self.standard_error) else f"{self.standard_error:,.1f}"

    @property
    def worst(self) -> float:
        """Largest regret over the seeds."""
        return max(run.regret for run in self.runs)

    @property
    def tail(self) -> float:
        """Mean regret of its worst 5 % of seeds, at least one."""
        return float(np.sort(self.regrets)[-math.ceil(len(self.runs) / 20) :].mean())

    @property
    def policies(self) -> float:
        """Mean number of policies deployed."""
        return float(np.mean([run.policies for run in self.runs]))

    @property
    def seconds(self) -> float:
        """Mean time of a run."""
        return float(np.mean([run.seconds for run in self.runs]))

    def summary(self) -> SummaryFacts:
        """What ``--json`` prints."""
        error = None if np.isnan(self.standard_error) else self.standard_error
        facts = {"regret": self.regret, "standard_error": error, "worst_seed": self.worst, "worst_5_percent": self.tail}
        return facts | {"policies": self.policies, "seconds": self.seconds, "linear_regret": self.linear_regret}


def grouped(runs: Sequence[Run]) -> list[Group]:
    """Runs by learner, world and horizon, in the order in which they come."""
    by_group: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        by_group.setdefault((run.learner, run.world, run.horizon), []).append(run)
    return [Group(learner=k[0], world=k[1], horizon=k[2], runs=tuple(v)) for k, v in by_group.items()]


def ratios(groups: Sequence[Group]) -> tuple[dict[tuple[str, int], str], dict[Group, Ratio]]:
    """The best learner of each world and horizon, and the ratio of each group to it; none where there is one learner.

    Groups that lack a seed which others have there are not compared.
    """
    best: dict[tuple[str, int], str] = {}
    compared: dict[Group, Ratio] = {}
    for place in dict.fromkeys((g.world, g.horizon) for g in groups):
        together = [g for g in groups if (g.world, g.horizon) == place]
        seeds = sorted({seed for g in together for seed in g.seeds})
        paired = [g for g in together if g.seeds == seeds]
        if len(paired) > 1:
            least = min(paired, key=lambda g: g.regret)
            best[place] = least.learner
            compared |= {g: regret_ratio(g.regrets, least.regrets) for g in paired}
            compared[least] = Ratio(seeds=len(seeds))
    return best, compared


def linear_differs(runs: Iterable[Run]) -> bool:
    """Whether regret against the best linear policy is another than against the best arm."""
    return any(run.linear_regret != run.regret for run in runs)


def earned_text(runs: Sequence[Run], world: TableWorld) -> str:
    """What the runs of each learner earned in the world of a table, beside policies that learn nothing."""
    known, lines = world.yardsticks(), list[str]()
    what, single = ("right in", "largest class") if world.labelled else ("earned", "best single arm")

    def shown(value: float) -> str:
        return percent_text(round(value, 3)) if world.labelled else f"{value:.3g}"

    for group in grouped(runs):
        regrets = np.array(
            [[run.regret, *np.interp([0.9 * run.horizon], run.times, run.regrets)] for run in group.runs]
        )
        total, early = regrets.mean(axis=0)
        whole, late = (known.best - lost / group.horizon for lost in (total, 10.0 * (total - early)))
        lines.append(f"{group.learner}, T = {group.horizon:,}: {what} {shown(whole)}, {shown(late)} in the last tenth.")
    others = [("best linear policy", known.linear), (single, known.single), ("uniform choice", known.uniform)]
    lines.append("; ".join(f"{name} {shown(value)}" for name, value in others if value is not None).capitalize() + ".")
    return "\n".join(lines)


def run_table(runs: Sequence[Run]) -> str:
    """Mean regrets, a row for each learner, world by world and horizon by horizon, and how they compare."""
    groups = grouped(runs)
    places = list(dict.fromkeys((g.world, g.horizon) for g in groups))
    groups.sort(key=lambda g: places.index((g.world, g.horizon)))
    best, compared = ratios(groups)
    header = ["learner", "world", "horizon", "seeds", "policies", "regret", "worst 5 %"]
    linear = linear_differs(runs)
    header += [*(["beyond linear"] if linear else []), *(HEADER if compared else ["± s.e.", "regret/T"]), "seconds"]
    rows = []
    for g in groups:
        names = [g.learner, g.world, f"{g.horizon:,}", str(len(g.runs)), f"{g.policies:,.6g}"]
        numbers = [f"{g.regret:,.1f}", f"{g.tail:,.1f}"]
        if linear:
            numbers.append(f"{g.linear_regret:,.1f}")
        if not compared:
            numbers += [g.error_text, f"{g.regret / g.horizon:.4f}"]
        else:
            numbers += compared[g].cells if g in compared else [""] * len(HEADER)
        rows.append([*names, *numbers, f"{g.seconds:.2f}"])
    shared: list[str] = []
    for k, text in ((3, "{} seeds"), (2, "T = {}"), (1, "{}")):  # what is the same everywhere is shown once
        values = {row[k] for row in rows}
        if len(values) == 1:
            shared.insert(0, "one seed" if (k, values) == (3, {"1"}) else text.format(*values))
            header, rows = header[:k] + header[k + 1 :], [row[:k] + row[k + 1 :] for row in rows]
    notes = [", ".join(shared), "worst 5 %: mean regret of a learner's worst twentieth of the seeds, at least one."]
    if linear:
        notes.append(
            "beyond linear: regret against the best linear policy in hindsight; no linear policy can avoid the rest."
        )
    if compared:
        winners = set(best.values())
        named = f"that of {winners.pop()}, the best," if len(winners) == 1 else "that of the best there"
        notes.append(f"ratio: (regret + {OFFSET:g})/({named} + {OFFSET:g}); interval: over the seeds, by resampling.")
        notes.append(resolution(ratio for g, ratio in compared.items() if g.learner != best[g.world, g.horizon]))
    return "\n".join([table(header, rows), "", *filter(None, notes)])
