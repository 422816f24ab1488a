"""What an update read and used, as a readable table."""

from rareswitch.log import Report
from rareswitch.report.tables import table


def update_table(report: Report) -> str:
    """One line for each thing that is counted."""
    rows = [
        ("parts read", report.parts),
        ("  of these, without a row", report.empty_parts),
        ("rows", report.rows),
        ("  of earlier policies of this deployment: not used", sum(report.earlier.values())),
        ("  of policies this deployment never had: not used", sum(report.foreign.values())),
        ("  of this policy, for decisions outside of the batch: not used", report.outside),
        ("  that repeat another row in every field: counted once", report.surplus),
        ("  that contradict another row of their decision: left out", report.conflicting_rows),
        ("decisions of the batch", report.stop - report.start),
        ("  learned from", report.used),
        ("  whose reward is not known: left out", report.unrewarded),
        ("  whose rows contradict each other: left out", report.conflicting),
        ("  that are not in the log", report.absent),
        ("context sets that were wanted", report.sets + report.absent_sets),
        ("  that are not in the log, or contradicted", report.absent_sets),
    ]
    return table(["what", "count"], [[what, f"{count:,}"] for what, count in rows])
