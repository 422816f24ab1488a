"""Empty figures and how they are written; needs the extra ``rareswitch[plot]``."""

from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, MissingExtraError
from rareswitch.files import replacing

BLUE, ORANGE, GREY, DARK_GREY = "#1f5fa8", "#e07b1a", "#9aa4ad", "#5a646d"
PALETTE = [BLUE, ORANGE, "#2c8c5a", "#b0413e", "#6d4fa0", "#3aa6b9", "#8a6d3b", GREY]
PALETTE += ["#c2569b", "#d4a017", "#2b2b2b", "#7fb069"]


def check_target(path: str | Path | None) -> None:
    """Refuse, before any work is done, a picture that could not be written; None stands for no picture."""
    if path is None:
        return
    path = Path(path)
    _figure_class()
    if path.suffix.lower() not in (".png", ".pdf", ".svg", ".jpg"):
        raise FileFormatError(f"{path}: a picture's name must end in .png, .pdf, .svg or .jpg.")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: cannot be written; there is no folder {path.parent}.")


def figure(columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """A figure and its panels, (rows × columns) in reading order."""
    made = _figure_class()(figsize=(5.6 * columns, 4.8 * rows), layout="constrained")
    panels = made.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    return made, panels


def headline(panel: Any, text: str) -> None:
    """A title at the left."""
    panel.set_title(text, loc="left", fontweight="bold")


def beside(panel: Any, text: str, point: Any, offset: tuple[int, int], **style: Any) -> None:
    """A text at a distance, in points, from a point."""
    panel.annotate(text, point, xytext=offset, textcoords="offset points", **style)


def save(made: Any, path: str | Path) -> None:
    """Write a figure to a file; the ending names the format."""
    with replacing(path) as temporary:
        made.savefig(temporary, dpi=150, format=Path(path).suffix[1:].lower())


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need Matplotlib. Install it with: pip install 'rareswitch[plot]'") from error
    return Figure
