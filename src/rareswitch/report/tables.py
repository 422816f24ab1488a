"""Plain-text tables for the terminal."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned under their names; the first to the left, the others to the right.

    >>> print(table(["arm", "weight"], [["a", "0.5"], ["b", "0.25"]]))
    arm  weight
    ───  ──────
    a       0.5
    b      0.25
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = cells
        return "  ".join(
            [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(others, widths[1:], strict=True))]
        ).rstrip()

    return "\n".join([line(header), line(["─" * width for width in widths]), *map(line, rows)])
