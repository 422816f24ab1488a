"""A picture of one experiment: its regret against that of full adaptivity and of never updating."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rareswitch.core import FloatArray
from rareswitch.report.figures import (
    BLUE,
    DARK_GREY,
    GREY,
    ORANGE,
    WIDTH,
    figure,
    headline,
    name_points,
    plain_ticks,
)

#: Decisions before these are not shown: there is nothing to see.
FIRST = 100


def draw_experiment(
    regrets: Mapping[str, FloatArray], updates: Mapping[str, Sequence[int]], *, adaptive: str, never: str, title: str
) -> Any:
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
    made, (panel,) = figure()
    made.set_size_inches(WIDTH, 5.0)
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
    return made
