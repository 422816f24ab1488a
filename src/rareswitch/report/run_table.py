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
    header = ["learner", "world", "horizon", "seeds", "updates"]
    header += ["regret", "± s.e.", "worst seed", "regret/T", "seconds"]
    rows = []
    for g in grouped(runs):
        numbers = f"{g.regret:,.1f}", g.error_text, f"{g.worst:,.1f}", f"{g.regret / g.horizon:.4f}", f"{g.seconds:.2f}"
        rows.append([g.learner, g.world, f"{g.horizon:,}", str(len(g.runs)), f"{g.updates:g}", *numbers])
    for k in (2, 1):  # what is the same everywhere is not shown
        if len({row[k] for row in rows}) < 2:
            header, rows = header[:k] + header[k + 1 :], [row[:k] + row[k + 1 :] for row in rows]
    return table(header, rows)
