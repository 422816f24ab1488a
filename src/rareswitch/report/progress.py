"""A progress line on a terminal or in a notebook; silent elsewhere."""

import sys
import time
from html import escape
from typing import Any, Self, TextIO

__all__ = ["ProgressBar"]


class ProgressBar:
    """How much of the work is done, on one line that is rewritten a few times a second.

    It is called with what is done and with the total, as the library's functions call their ``progress``:
    ``rareswitch.evaluate(trial, "uniform", progress=ProgressBar("evaluating"))``.
    """

    def __init__(self, label: str, *, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.display = None if quiet or stream is not None else notebook_display()
        self.shown = not quiet and (self.display is not None or self.stream.isatty())
        self.began = self.last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self._show("")

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
        self._show(f"{self.label} {bar} {share:4.0%}{left}  {detail}"[:150])

    def _show(self, line: str) -> None:
        """Write it in place of the line before."""
        if self.display is None:
            self.stream.write(f"\r\x1b[K{line}")
            self.stream.flush()
        else:
            self.display.update({"text/html": f"<pre>{escape(line)}</pre>", "text/plain": line}, raw=True)


def notebook_display() -> Any:
    """A place below the cell that runs, which can be written anew; None outside of notebooks."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return sys.modules["IPython"].display.display({"text/plain": ""}, raw=True, display_id=True)
