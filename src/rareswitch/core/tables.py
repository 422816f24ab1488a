"""Plain-text tables for the terminal."""

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
