"""What an update read and used, as a readable table."""

from rareswitch.log import LogReport
from rareswitch.report.tables import table


def update_table(report: LogReport) -> str:
    """One line for each thing that is counted."""
    rows = [
        ("decisions of the batch, as planned", report.planned),
        ("decisions that came", report.decided),
        ("parts read", report.parts),
        ("  of these, without a row", report.empty_parts),
        ("rows", report.rows),
        ("  learned from", report.used),
        ("  whose reward is not known", report.unrewarded),
        ("  whose attribution window is open", report.waiting),
        ("  whose reward came after it", report.expired),
        ("  further rows of the same decisions", report.copies),
        (f"  that contradict each other, of {report.conflicting:,} decisions: left out", report.conflicting_rows),
        ("  of earlier batches, used", report.late_used),
        ("  of earlier batches, not used", report.late_unused),
        ("  of policies this deployment never had: not used", sum(report.foreign.values())),
        ("context sets, of those asked for", report.sets),
    ]
    return table(["what", "count"], [[what, f"{count:,}"] for what, count in rows])
