"""What is said where a log cannot answer: what was seen, the rule, and what would help. Sentences without a capital."""

from rareswitch.core import percent_text
from rareswitch.errors import several


def unsupported_text(unsupported: float, mean_weight: float, most: float) -> str:
    """Of play that had probability 0."""
    seen = f" (mean weight {mean_weight:.2f}, should be 1)" if mean_weight < 1.0 else ""
    return (
        f"{percent_text(unsupported)} of what this policy would show had probability 0 in the log{seen}; at most "
        f"{percent_text(most)} may be missing."
    )


def mean_weight_text(mean_weight: float, error: float, unsupported: float) -> str:
    """Of a mean weight that is not 1, less what is known to be unsupported."""
    right = 1.0 - unsupported
    missing = right - mean_weight
    shown = f"{percent_text(missing)} of what this policy would show was unsupported, or " if missing > 0.0 else ""
    return (
        f"the mean weight is {mean_weight:.2f} and should be {right:.3g}, give or take {error:.2f}: {shown}"
        "propensities are wrong."
    )


def uneven_text(count: int, carried: float, least: float) -> str:
    """Of weights so uneven that few decisions carry everything, or of few decisions."""
    if carried > 0.5 * count or count < least:
        need = f"{least:.0f}" if count < least else "more"
        return f"{count:,} decision{'s are' if count != 1 else ' is'} too few: {need} are needed."
    many = f"about {carried:.0f}" if carried >= 1.0 else "less than 1"
    return (
        f"this policy would often show what the log showed rarely: weights are so uneven that {many} of {count:,} "
        f"decisions carry the answer; {least:.0f} are needed."
    )


def effective_text(count: int, effective: float, least: float, *, kept: int, batches: int) -> str:
    """Of too few decisions in the batches that are used, ``kept`` of them."""
    if kept == 0:
        return (
            f"none of the {several(batches, 'batch')} can answer ({several(count, 'decision')})." if batches > 1 else ""
        )
    where = "" if kept == batches else f"in the {kept} of {batches} batches that can answer, "
    rest = f"tell as much as {effective:.0f} of this policy itself; {least:.0f} are needed."
    return f"{where}{several(count, 'decision')} {rest}"


def nothing_text(left_out: int) -> str:
    """Of no decisions at all."""
    missing = f" ({several(left_out, 'decision')} without one of them)" if left_out else ""
    return (
        f"no decision has both a reward and all the arms that were offered{missing}. Keep the context sets of all "
        "decisions, or of a sample of them, and wait for rewards."
    )


def remedy_text(options: tuple[tuple[float, int], ...], as_it_is: int | None) -> str:
    """Of (floor, decisions), and of the decisions that would do with the latest policy, where any number would."""
    also = "" if as_it_is is None else f"about {as_it_is:,} more decisions of the latest policy would answer"
    if not options:
        return also + "." if also else "decisions with more than one arm on offer would help."
    (floor, decisions), *others = options
    text = f"{also}; or e" if also else "e"
    text += (
        f"xploration would make it answerable: with min_propensity={floor:g} (the least probability of every offered "
        f"arm) about {decisions:,} more decisions"
    )
    return text + "".join(f", with min_propensity={floor:g} about {decisions:,}" for floor, decisions in others) + "."


def sentence(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]


def within(some: int, batches: int) -> str:
    """In which batches, where there are several."""
    if batches == 1:
        return ""
    return f"in all {batches} batches, " if some == batches else f"in {some} of {batches} batches, "
