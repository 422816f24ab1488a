"""What to bear in mind beside every number that a log gives."""

from rareswitch.log import Source

#: Below this p-value it is said that batches disagree.
MOVED = 0.001
#: A share of missing rewards above which it is mentioned.
_MISSING = 0.01


def log_cautions(log: Source, *, known: int, rewarded: int) -> list[str]:
    """That propensities were estimated, and that rewards are missing of decisions whose arms are known."""
    found = []
    if log.estimated:
        found.append(f"propensities were estimated ({log.estimated}): what is said is right only as far as these are.")
    missing = known - rewarded
    if missing > _MISSING * known:
        found.append(
            f"{missing:,} of {known:,} decisions have no reward and are left out: what is said is about those that "
            "have one, and is wrong if rewards are missing because of what was shown."
        )
    return found
