"""The picture of schedules: the same eight policies weekly and at the best times, between full adaptivity and none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from measure import FloatArray
from rareswitch.report import figure, save
from rareswitch.validation import IntArray

#: Foresight has one colour in all pictures, full adaptivity is grey.
FORESIGHT, ADAPTIVE, NOTHING, TEXT = "#e07b1a", "#9aa4ad", "#2b2b2b", "#5a646d"
COMMAND = "python benchmarks/schedules.py --picture docs/schedules.png"


def draw(
    path: Path,
    marks: IntArray,
    curves: Mapping[str, FloatArray],
    *,
    ends: Mapping[str, tuple[int, ...]],
    times: Mapping[str, float],
) -> None:
    """Draw regret so far at ``marks`` (m,), in decisions of blind play: curves (m,) by what they are.

    ``ends`` has the decisions at which each schedule's batches end, ``times`` how many times full adaptivity it costs.
    """
    made, (panel,) = figure()
    made.set_size_inches(7.2, 4.7)
    last = {name: curve[-1] for name, curve in curves.items()}
    lines: dict[str, tuple[str, str, dict[str, Any]]] = {
        "never": ("never updated", NOTHING, {"linewidth": 1.4, "linestyle": ":"}),
        "weekly": ("8 policies,\none a week", FORESIGHT, {"linewidth": 2.0, "linestyle": (0, (4, 1.5))}),
        "best": ("8 policies,\nat the library's times", FORESIGHT, {"linewidth": 2.6}),
        "every step": ("a new policy at\nevery decision", ADAPTIVE, {"linewidth": 2.6}),
    }
    nudges = {"best": 8.0, "every step": -12.0}
    for name, (text, color, style) in lines.items():
        panel.plot(marks, curves[name], color=color, zorder=2 if name == "every step" else 3, **style)
        shown = color if name != "every step" else TEXT
        panel.annotate(
            text,
            (marks[-1], last[name]),
            xytext=(8, nudges.get(name, 0.0)),
            textcoords="offset points",
            color=shown,
            fontsize=11,
            va="center",
            annotation_clip=False,
        )
        updates = ends.get(name, ())[:-1]
        if updates:
            panel.plot(updates, np.interp(updates, marks, curves[name]), "o", color=color, markersize=6, zorder=4)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(10, marks[-1])
    panel.set_ylim(10, 1.3 * marks[-1])
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.grid(color="#e4e8eb", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=11)
    panel.set_xlabel("decisions so far (10,000 in eight weeks; dots: updates)", fontsize=11)
    panel.set_ylabel("regret so far, in decisions of blind play", fontsize=11)
    panel.set_title(
        f"8 policies cost {times['weekly']:.1f} times full adaptivity if they come\n"
        f"weekly, and {times['best']:.1f} times at the times the library finds",
        loc="left",
        fontweight="bold",
        fontsize=12.5,
    )
    caption = f"Mean of six worlds, see docs/schedules.md.  {COMMAND}"
    made.supxlabel(caption, x=0.01, ha="left", fontsize=7.5, color=TEXT)
    save(made, path)
