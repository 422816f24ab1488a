"""A progress line on a terminal; silent elsewhere."""

import sys
import time
from typing import Self, TextIO

__all__ = ["ProgressBar"]


class ProgressBar:
    """How much of the work is done, on one line that is rewritten a few times a second.

    It is called with what is done and with the total, as the library's functions call their ``progress``.
    """

    def __init__(self, label: str, *, stream: TextIO | None = None, quiet: bool = False) -> None:
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

    def __call__(self, done: int, total: int, detail: str = "") -> None:
        """Show that ``done`` of the total is done."""
        now = time.monotonic()
        if not self.shown or (now - self.last < 0.2 and done < total):
            return
        self.last = now
        share = done / max(1, total)
        filled = round(24 * share)
        spent = now - self.began
        left = f", {spent / share - spent:.0f} s left" if 0.02 < share < 1.0 else ""
        bar = "━" * filled + "╌" * (24 - filled)
        self.stream.write(f"\r\x1b[K{self.label} {bar} {share:4.0%}{left}  {detail}"[:160])
        self.stream.flush()
