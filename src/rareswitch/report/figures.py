"""Figures: how they are begun, labelled and written, and that of an experiment; needs ``rareswitch[plot]``."""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import singledispatch
from io import StringIO
from itertools import cycle
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rareswitch.core import FloatArray, replacing
from rareswitch.errors import FileFormatError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["BLUE", "DARK_GREY", "GREY", "ORANGE", "WIDTH", "as_svg", "beside", "check_file_name", "check_page"]
__all__ += ["check_target", "draw", "draw_experiment", "figure", "headline", "name_points", "plain_ticks", "save"]
__all__ += ["series_colors"]

#: A point in the coordinates of a panel.
Point: TypeAlias = tuple[float, float]
BLUE, ORANGE, GREY, DARK_GREY = "#1f5fa8", "#e07b1a", "#9aa4ad", "#5a646d"
PALETTE = [BLUE, ORANGE, "#2c8c5a", "#b0413e", "#6d4fa0", "#3aa6b9", "#8a6d3b", GREY]
PALETTE += ["#c2569b", "#d4a017", "#2b2b2b", "#7fb069"]
#: For series that are neither foresight, which is orange, nor fully adaptive, which is grey.
OTHERS = [color for color in PALETTE if color not in (ORANGE, GREY)]
#: Characters of a caption for each inch.
CAPTION_COLUMNS = 13
#: Inches; a picture of this width can be read at 600 pixels.
WIDTH = 8.0


def series_colors(names: Iterable[str], adaptive: Container[str] = ()) -> dict[str, str]:
    """One palette for all pictures: foresight is orange, what changes at every step grey, the others in turn.

    >>> series_colors(["oful", "foresight", "linucb"], adaptive={"linucb"})
    {'oful': '#1f5fa8', 'foresight': '#e07b1a', 'linucb': '#5a646d'}
    """
    others = cycle(OTHERS)
    return {
        name: ORANGE if name == "foresight" else DARK_GREY if name in adaptive else next(others)
        for name in dict.fromkeys(names)
    }


def check_target(path: str | Path | None) -> None:
    """Refuse, before any work is done, a picture that could not be written; None stands for no picture."""
    if path is None:
        return
    _figure_class()
    pictures = (".png", ".pdf", ".svg", ".jpg")
    check_file_name(Path(path), "a picture's name must end in .png, .pdf, .svg or .jpg", pictures)


def check_page(path: str | Path | None) -> None:
    """Refuse, before any work is done, a page of HTML that could not be written; None stands for no page."""
    if path is not None:
        check_file_name(Path(path), "a page's name must end in .html", (".html", ".htm"))


def check_file_name(path: Path, rule: str, endings: tuple[str, ...]) -> None:
    """Refuse, before any work is done, a file that could not be written, or has another ending."""
    if path.suffix.lower() not in endings:
        raise FileFormatError(f"{path}: {rule}.")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: cannot be written; there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise FileFormatError(f"{path}: cannot be written; it is no plain file. Name another.")


def figure(columns: int = 1, rows: int = 1) -> "tuple[Figure, Sequence[Any]]":
    """A figure and its panels, (rows × columns) in reading order."""
    drawing = _figure_class()(figsize=(5.6 * columns, 4.8 * rows), layout="constrained")
    panels = drawing.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    return drawing, [*panels]


def headline(panel: "Axes", text: str) -> None:
    """A title at the left."""
    panel.set_title(text, loc="left", fontweight="bold")


def plain_ticks(axis: "Axis") -> None:
    """Numbers as people write them on a logarithmic axis, and few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200.0 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if x < 1.0 else f"{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def name_points(panel: "Axes", points: Mapping[str, Point], colors: Mapping[str, str]) -> None:
    """Each point's name at its right in its colour, moved up or down where names would cover each other.

    Scales and limits of the panel must be set before.
    """
    from scipy.optimize import isotonic_regression

    size, gap, away, scale = 9.0, 11.0, 7.0, 72.0 / panel.figure.dpi
    at = {name: panel.transData.transform(point) * scale for name, point in points.items()}
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
        heights = np.minimum(heights, panel.bbox.y1 * scale - steps[::-1])  # below the title
        for name, height in zip(group, heights, strict=True):
            moved = height - at[name][1]
            line = {"arrowstyle": "-", "color": colors[name], "linewidth": 0.6} if abs(moved) > gap / 2 else None
            style = {"fontsize": size, "color": colors[name], "arrowprops": line, "annotation_clip": False}
            beside(panel, name, points[name], (away, moved), va="center", **style)


def beside(panel: "Axes", text: str, point: Point, offset: Point, **style: Any) -> None:
    """A text at a distance, in points, from a point."""
    panel.annotate(text, point, xytext=offset, textcoords="offset points", **style)


@singledispatch
def draw(result: object) -> "Figure":
    """The figure of a result."""
    raise ParameterError(f"there is no picture of a {type(result).__name__}.")


def save(drawing: "Figure", path: str | Path, caption: str = "") -> None:
    """Write a figure to a file; the ending names the format. The caption is the command that draws it again."""
    if caption:
        width = int(drawing.get_size_inches()[0] * CAPTION_COLUMNS)
        lines = wrap(caption, width, break_long_words=False, break_on_hyphens=False)
        drawing.supxlabel(" \\\n  ".join(lines), x=0.01, ha="left", fontsize=8, family="monospace", color=DARK_GREY)
    with replacing(path) as temporary:
        drawing.savefig(temporary, dpi=150, format=Path(path).suffix[1:].lower())


def as_svg(drawing: "Figure") -> str:
    """A figure as a part of a page."""
    picture = StringIO()
    drawing.savefig(picture, format="svg", metadata={"Date": None})
    text = picture.getvalue()
    return text[text.index("<svg") :]


def _figure_class() -> "type[Figure]":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need Matplotlib. Install it with: pip install 'rareswitch[plot]'") from error
    return Figure


#: Decisions before these are not shown: there is nothing to see.
FIRST = 100


def draw_experiment(
    regrets: Mapping[str, FloatArray], updates: Mapping[str, Sequence[int]], *, adaptive: str, never: str, title: str
) -> "Figure":
    """Cumulative regret by decision on logarithmic axes, named at the lines.

    Parameters
    ----------
    regrets
        By name, what each decision lost; the first is the experiment that matters most.
    updates
        By name, the decisions after which the policy changed.
    adaptive, never
        Whose lines are grey: full adaptivity, and never updating.
    """
    drawing, (panel,) = figure()
    drawing.set_size_inches(WIDTH, 5.0)
    others = iter((ORANGE, BLUE))
    colors = {name: DARK_GREY if name == adaptive else GREY if name == never else next(others) for name in regrets}
    totals = {name: np.maximum(np.cumsum(lost), 1e-9) for name, lost in regrets.items()}
    count = max(len(total) for total in totals.values())
    low = min(total[min(FIRST, len(total)) - 1] for total in totals.values())
    top = max(total[-1] for total in totals.values())
    panel.set(xscale="log", yscale="log", xlim=(min(FIRST, count), count), ylim=(max(0.7 * low, 1e-3 * top), 1.5 * top))
    for name, total in totals.items():
        style = {"linestyle": "--"} if name in (adaptive, never) else {"linewidth": 2.2}
        panel.plot(np.arange(1, len(total) + 1), total, color=colors[name], label=name, **style)
        marks = [place for place in updates.get(name, ()) if place <= len(total)]
        panel.plot(marks, [total[place - 1] for place in marks], "o", color=colors[name], markersize=6)
    name_points(panel, {name: (count, total[-1]) for name, total in totals.items()}, colors)
    for axis in (panel.xaxis, panel.yaxis):
        plain_ticks(axis)
    panel.set(xlabel="decisions (dots: policy updates)", ylabel="expected clicks lost so far")
    headline(panel, title)
    return drawing
