"""Runs of many agents as readable tables."""

from collections.abc import Sequence

from rareswitch.report.tables import table
from rareswitch.sim import Collaboration, Run


def meetings_table(found: Collaboration) -> str:
    """The rounds of communication of one run."""
    rows = [
        [
            str(number),
            f"{meeting.start:,} to {meeting.stop - 1:,}",
            f"{meeting.longest:,}",
            f"{meeting.received:,}",
            f"{meeting.sent:,}",
            meeting.policy_id[:12],
        ]
        for number, meeting in enumerate(found.meetings, start=1)
    ]
    header = ["round", "decisions", "longest share", "bytes from all agents", "bytes to each", "policy"]
    return table(header, rows, left=2)


def collaborative_table(found: Sequence[Collaboration]) -> str:
    """One line for each number of agents."""
    rows = [
        [
            str(one.agents),
            f"{one.run.regret:,.1f}",
            str(len(one.meetings)),
            f"{one.parallel_time:,}",
            f"{sum(meeting.received for meeting in one.meetings):,}",
            one.decisions[:12],
            f"{one.run.seconds:.1f}",
        ]
        for one in found
    ]
    header = ["agents", "regret", "rounds", "time in decisions", "bytes from agents", "decisions", "seconds"]
    return table(header, rows)


def concurrent_table(runs: Sequence[tuple[int, Run]]) -> str:
    """One line for each number of agents, with what the reduction allows beside one agent's regret, if it is there."""
    alone = next((run.regret for agents, run in runs if agents == 1), None)
    rows = [
        [
            str(agents),
            f"{run.regret:,.1f}",
            str(run.updates),
            "" if alone is None else f"{alone + run.updates * agents:,.1f}",
            f"{-(-run.horizon // agents):,}",
            f"{run.seconds:.1f}",
        ]
        for agents, run in runs
    ]
    header = ["agents", "regret", "policies", "one agent's + M·A", "time in decisions", "seconds"]
    return table(header, rows)
