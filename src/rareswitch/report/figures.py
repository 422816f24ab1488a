"""Empty figures and how they are written; needs the extra ``rareswitch[plot]``."""

from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, MissingExtraError

BLUE, ORANGE, GREY = "#1f5fa8", "#e07b1a", "#9aa4ad"
PALETTE = (BLUE, ORANGE, "#2c8c5a", "#b0413e", "#6d4fa0", "#3aa6b9", "#8a6d3b", GREY)


def figure(columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """A figure and its panels, (rows × columns) in reading order."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need Matplotlib. Install it with: pip install 'rareswitch[plot]'") from error
    made = Figure(figsize=(5.6 * columns, 4.8 * rows), layout="constrained")
    panels = made.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    return made, panels


def save(made: Any, path: str | Path) -> None:
    """Write a figure to a file; the ending names the format."""
    try:
        made.savefig(path, dpi=150)
    except ValueError as error:
        raise FileFormatError(f"{path}: not a picture format that can be written ({error}).") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error
