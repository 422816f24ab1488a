"""Runs as a readable table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rareswitch.report.tables import table
from rareswitch.sim import Run


@dataclass(frozen=True, kw_only=True)
class Group:
    """The runs of one learner in one world at one horizon."""

    learner: str
    world: str
    horizon: int
    runs: tuple[Run, ...]

    @property
    def regret(self) -> float:
        """Mean over the seeds."""
        return float(np.mean([run.regret for run in self.runs]))

    @property
    def standard_error(self) -> float:
        """Of the mean regret; NaN for a single seed."""
        regrets = [run.regret for run in self.runs]
        return float(np.std(regrets, ddof=1) / np.sqrt(len(regrets))) if len(regrets) > 1 else float("nan")

    @property
    def worst(self) -> float:
        """Largest regret over the seeds."""
        return max(run.regret for run in self.runs)

    @property
    def updates(self) -> float:
        """Mean number of policies deployed."""
        return float(np.mean([run.updates for run in self.runs]))

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


def run_table(runs: Sequence[Run]) -> str:
    """Mean regret with its standard error, updates and time, a row for each learner, world and horizon."""
    groups = grouped(runs)
    worlds, horizons = {g.world for g in groups}, {g.horizon for g in groups}
    header = ["learner"]
    header += ["world"] if len(worlds) > 1 else []
    header += ["horizon"] if len(horizons) > 1 else []
    header += ["seeds", "updates", "regret", "± s.e.", "worst seed", "regret/T", "seconds"]
    rows = []
    for g in groups:
        row = [g.learner]
        row += [g.world] if len(worlds) > 1 else []
        row += [f"{g.horizon:,}"] if len(horizons) > 1 else []
        error = "" if np.isnan(g.standard_error) else f"{g.standard_error:,.1f}"
        row += [str(len(g.runs)), f"{g.updates:g}", f"{g.regret:,.1f}", error, f"{g.worst:,.1f}"]
        row += [f"{g.regret / g.horizon:.4f}", f"{g.seconds:.2f}"]
        rows.append(row)
    return table(header, rows)
