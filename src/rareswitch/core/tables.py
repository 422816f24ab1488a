"""Plain text for the terminal: tables and shares."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Columns aligned under their names; the first ``left`` of them to the left, the others to the right.

    >>> print(table(["arm", "weight"], [["a", "0.5"], ["b", "0.25"]]))
    arm  weight
    ───  ──────
    a       0.5
    b      0.25
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        placed = [c.ljust(w) if k < left else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return "  ".join(placed).rstrip()

    return "\n".join([line(header), line(["─" * width for width in widths]), *map(line, rows)])


def percent_text(share: float) -> str:
    """A share, or a level, in percent.

    >>> percent_text(0.95), percent_text(0.0004), percent_text(1e-9), percent_text(0.0)
    ('95 %', '0.04 %', '< 0.01 %', '0 %')
    """
    if 0.0 < share < 1e-4:
        return "< 0.01 %"
    return f"{100.0 * share:.{2 if 0.0 < share < 0.001 else 1}f}".rstrip("0").rstrip(".") + " %"
