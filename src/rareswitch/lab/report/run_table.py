"""Runs as a readable table."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rareswitch.lab import Collaboration, Run
from rareswitch.lab.report.resampling import HEADER, OFFSET, Ratio, regret_ratio, resolution
from rareswitch.tables import table
from rareswitch.validation import FloatArray


def meetings_table(found: Collaboration) -> str:
    """The rounds of communication of one run."""
    rows = []
    for k, meeting in enumerate(found.meetings, start=1):
        sizes = (f"{size:,}" for size in (meeting.longest, meeting.received, meeting.sent))
        rows.append([str(k), f"{meeting.start:,} to {meeting.stop - 1:,}", *sizes, meeting.policy_id[:12]])
    header = ["round", "decisions", "longest share", "bytes from all agents", "bytes to each", "policy"]
    return table(header, rows, left=2)


def collaborative_table(found: Sequence[Collaboration]) -> str:
    """One line for each number of agents."""
    header = ["agents", "regret", "rounds", "time in decisions", "bytes from agents", "decisions", "seconds"]
    rows = []
    for one in found:
        sizes = str(len(one.meetings)), f"{one.parallel_time:,}", f"{sum(m.received for m in one.meetings):,}"
        rows.append([str(one.agents), f"{one.run.regret:,.1f}", *sizes, one.decisions[:12], f"{one.run.seconds:.1f}"])
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
        """Mean regret against the best linear policy in hindsight; NaN where it is not known."""
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


def grouped(runs: Sequence[Run]) -> list[Group]:
    """Runs by learner, world and horizon, in the order in which they come."""
    found: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        found.setdefault((run.learner, run.world, run.horizon), []).append(run)
    return [Group(learner=k[0], world=k[1], horizon=k[2], runs=tuple(v)) for k, v in found.items()]


def ratios(groups: Sequence[Group]) -> tuple[dict[tuple[str, int], str], dict[Group, Ratio]]:
    """The best learner of each world and horizon, and the ratio of each group to it; none where there is one learner.

    Groups that lack a seed which others have there are not compared.
    """
    best: dict[tuple[str, int], str] = {}
    found: dict[Group, Ratio] = {}
    for place in dict.fromkeys((g.world, g.horizon) for g in groups):
        here = [g for g in groups if (g.world, g.horizon) == place]
        seeds = sorted({seed for g in here for seed in g.seeds})
        paired = [g for g in here if g.seeds == seeds]
        if len(paired) > 1:
            least = min(paired, key=lambda g: g.regret)
            best[place] = least.learner
            found |= {g: regret_ratio(g.regrets, least.regrets) for g in paired}
            found[least] = Ratio(seeds=len(seeds))
    return best, found


def linear_differs(runs: Iterable[Run]) -> bool:
    """Whether regret against the best linear policy is known of all runs and another than against the best arm."""
    pairs = np.array([(run.regret, run.linear_regret) for run in runs]).reshape(-1, 2)
    return bool(np.isfinite(pairs).all() and (pairs[:, 0] != pairs[:, 1]).any())


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
    for k, text in ((3, "{} seeds"), (2, "T = {}"), (1, "{}")):  # what is the same everywhere is said once
        values = {row[k] for row in rows}
        if len(values) == 1:
            shared.insert(0, "one seed" if (k, values) == (3, {"1"}) else text.format(*values))
            header, rows = header[:k] + header[k + 1 :], [row[:k] + row[k + 1 :] for row in rows]
    notes = [", ".join(shared), "worst 5 %: mean regret of a learner's worst twentieth of the seeds, at least one."]
    if linear:
        notes.append("beyond linear: regret against the best linear policy in hindsight; the rest nobody can learn.")
    if compared:
        winners = set(best.values())
        named = f"that of {winners.pop()}, the best," if len(winners) == 1 else "that of the best there"
        notes.append(f"ratio: (regret + {OFFSET:g})/({named} + {OFFSET:g}); interval: over the seeds, by resampling.")
        notes.append(resolution(ratio for g, ratio in compared.items() if g.learner != best[g.world, g.horizon]))
    return "\n".join([table(header, rows), "", *filter(None, notes)])
