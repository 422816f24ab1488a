"""A progress line on a terminal; silent elsewhere."""

import sys
import time
from typing import Self, TextIO


class Progress:
    """How much of the work is done, on one line that is rewritten a few times a second."""

    def __init__(self, total: int, label: str, *, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.total = total
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.shown = not quiet and self.stream.isatty()
        self.began = self.last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def update(self, done: int, detail: str = "") -> None:
        """Show that ``done`` of the total is done."""
        now = time.monotonic()
        if not self.shown or (now - self.last < 0.2 and done < self.total):
            return
        self.last = now
        share = done / max(1, self.total)
        filled = round(24 * share)
        spent = now - self.began
        left = f", {spent / share - spent:.0f} s left" if 0.02 < share < 1.0 else ""
        bar = "━" * filled + "╌" * (24 - filled)
        self.stream.write(f"\r\x1b[K{self.label} {bar} {share:4.0%}{left}  {detail}"[:160])
        self.stream.flush()
