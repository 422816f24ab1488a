"""Numbers and names as people read them, beside each other in a table or a picture."""

import math
from collections.abc import Iterable
from statistics import median

from rareswitch.evaluation import Interval

#: Characters of a name, at most.
LONGEST = 40


def decimals(intervals: Iterable[Interval | None]) -> int:
    """Digits after the point with which numbers are shown beside each other: two of the smallest margin of error.

    >>> decimals([Interval(value=0.16, low=0.155, high=0.169, level=0.95, kind="anytime")])
    4
    """
    margins = [(interval.high - interval.low) / 2.0 for interval in intervals if interval is not None]
    margins = [margin for margin in margins if 0.0 < margin < math.inf]
    if not margins:
        return 4
    least = max(min(margins), median(margins) / 10.0)  # one that is far narrower does not make all numbers long
    return min(8, max(0, 1 - math.floor(math.log10(least))))


def number_text(value: float, digits: int, *, sign: bool = False) -> str:
    """A number as people write it.

    >>> number_text(-0.01234, 3), number_text(1234.5, 0), number_text(0.5, 2, sign=True)
    ('−0.012', '1,234', '+0.50')
    """
    if not math.isfinite(value):
        return "unbounded" if math.isinf(value) else "unknown"
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    if float(text.replace(",", "")) == 0.0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def bounds_text(interval: Interval, digits: int, *, sign: bool = False) -> str:
    """Both bounds of an interval.

    >>> bounds_text(Interval(value=0.16, low=0.155, high=0.169, level=0.95, kind="anytime"), 4)
    '0.1550 to 0.1690'
    """
    return f"{number_text(interval.low, digits, sign=sign)} to {number_text(interval.high, digits, sign=sign)}"


def shortened(name: str, width: int = LONGEST) -> str:
    """A name that fits into a column; of a longer one its middle is left out.

    >>> shortened("candidates/of week 46.policy", 20), shortened("short")
    ('candidate..46.policy', 'short')
    """
    name = " ".join(name.split())
    end = (width - 2) // 2
    return name if len(name) <= width else f"{name[: width - 2 - end]}..{name[-end:]}"
