"""Runs of many agents as readable tables."""

from collections.abc import Sequence

from rareswitch.lab import Collaboration, Run
from rareswitch.tables import table


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
