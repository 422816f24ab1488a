"""Empty figures and how they are written; needs the extra ``rareswitch[plot]``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError, MissingExtraError

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


def plain_ticks(axis: Any) -> None:
    """Numbers as people write them on a logarithmic axis, and few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200.0 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if x < 1.0 else f"{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def name_points(panel: Any, points: Mapping[str, tuple[float, float]], colors: Mapping[str, str]) -> None:
    """Each point's name at its right in its colour, moved up or down where names would cover each other.

    Scales and limits of the panel must be set before.
    """
    from scipy.optimize import isotonic_regression

    size, gap, away = 8.0, 10.0, 7.0
    at = {name: panel.transData.transform(point) * 72.0 / panel.figure.dpi for name, point in points.items()}
    ends = {name: x + away + 0.6 * size * len(name) for name, (x, _) in at.items()}
    groups: list[list[str]] = []  # of names that stand above each other
    for name in sorted(at, key=lambda name: at[name][0]):
        if groups and at[name][0] < max(ends[other] for other in groups[-1]):
            groups[-1].append(name)
        else:
            groups.append([name])
    for group in groups:
        group.sort(key=lambda name: at[name][1])
        steps = gap * np.arange(len(group))
        heights = isotonic_regression([at[name][1] for name in group] - steps).x + steps
        for name, height in zip(group, heights, strict=True):
            moved = height - at[name][1]
            line = {"arrowstyle": "-", "color": colors[name], "linewidth": 0.6} if abs(moved) > gap / 2 else None
            style = {"fontsize": size, "color": colors[name], "arrowprops": line, "annotation_clip": False}
            beside(panel, name, points[name], (away, moved), va="center", **style)


def beside(panel: Any, text: str, point: Any, offset: tuple[float, float], **style: Any) -> None:
    """A text at a distance, in points, from a point."""
    panel.annotate(text, point, xytext=offset, textcoords="offset points", **style)


def save(made: Any, path: str | Path) -> None:
    """Write a figure to a file; the ending names the format."""
    try:
        made.savefig(path, dpi=150)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need Matplotlib. Install it with: pip install 'rareswitch[plot]'") from error
    return Figure
