"""Pictures of designs."""

from typing import Any

import numpy as np

from rareswitch.design import Design
from rareswitch.report.design_table import VISIBLE_WEIGHT
from rareswitch.report.exploration import Exploration
from rareswitch.report.figures import BLUE, GREY, ORANGE
from rareswitch.validation import BoolArray, FloatArray


def draw_design(
    panel: Any, context: FloatArray, alive: BoolArray, design: Design, features: tuple[str, ...], title: str
) -> None:
    """One set: in two dimensions its points, weights and ellipse, otherwise the leverage of each arm."""
    panel.set_title(title)
    if design.failed.size:
        panel.text(0.5, 0.5, "not certified: there is no design to show", ha="center", transform=panel.transAxes)
    elif context.shape[1] == 2:
        _draw_plane(panel, context[alive], design.weights[alive], float(design.max_leverage), int(design.rank))
        panel.set_xlabel(features[0])
        panel.set_ylabel(features[1])
    else:
        _draw_leverages(panel, np.flatnonzero(alive), design.weights[alive], design.leverages[alive], int(design.rank))


def _draw_plane(panel: Any, points: FloatArray, weights: FloatArray, max_leverage: float, rank: int) -> None:
    moment = (points * weights[:, None]).T @ points
    values, vectors = np.linalg.eigh(moment)
    if rank == 2 and values[0] > 0.0:
        angles = np.linspace(0.0, 2.0 * np.pi, 400)
        ring = np.sqrt(max_leverage) * np.stack([np.cos(angles), np.sin(angles)])
        ellipse = vectors @ (np.sqrt(values)[:, None] * ring)
        panel.plot(*ellipse, color=BLUE, linewidth=1.2, label=f"leverage {max_leverage:.3g}, the largest")
    idle = weights < VISIBLE_WEIGHT
    panel.scatter(*points[~idle].T, s=40 + 900 * weights[~idle], color=ORANGE, alpha=0.85, edgecolor="white")
    if idle.any():
        panel.scatter(*points[idle].T, s=14, color=GREY, label=f"weight below {VISIBLE_WEIGHT:g}")
    for point, weight in zip(points, weights, strict=True):
        if weight < 0.01:
            continue
        panel.annotate(f"{weight:.2f}", point, xytext=(9, 7), textcoords="offset points", fontsize=9)
    panel.axhline(0.0, color="#e4e7ea", zorder=0)
    panel.axvline(0.0, color="#e4e7ea", zorder=0)
    low, high = points.min(axis=0), points.max(axis=0)
    if (high - low).min() > 0.2 * (high - low).max():
        panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.15)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9)


def _draw_leverages(panel: Any, arms: Any, weights: FloatArray, leverages: FloatArray, rank: int) -> None:
    colors = np.where(weights >= VISIBLE_WEIGHT, ORANGE, GREY)
    panel.bar(arms, leverages, color=colors, width=0.8)
    panel.axhline(rank, color=BLUE, linewidth=1.2, label=f"rank = {rank}, the least possible maximum")
    panel.bar([0], [0.0], color=ORANGE, label="arms with weight")
    if (weights < VISIBLE_WEIGHT).any():
        panel.bar([0], [0.0], color=GREY, label=f"arms with weight below {VISIBLE_WEIGHT:g}")
    panel.set_xlabel("arm")
    panel.set_ylabel("leverage")
    panel.set_ylim(0.0, 1.3 * max(rank, float(leverages.max(initial=0.0)), 1e-9))
    panel.locator_params(axis="x", integer=True)
    panel.legend(frameon=False, loc="upper left", fontsize=9)


def draw_exploration(panel: Any, found: list[Exploration], dim: int, title: str) -> None:
    """V/d of sampling policies as bars, against the floor of 1 that no policy can pass."""
    names = [e.name for e in found][::-1]
    values = [e.variation / dim for e in found][::-1]
    best = min(values)
    panel.barh(names, values, color=[ORANGE if value == best else GREY for value in values], height=0.6)
    for row, value in enumerate(values):
        panel.annotate(f"{value:.2f}", (value, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    panel.axvline(1.0, color=BLUE, linewidth=1.2)
    panel.annotate(
        "least possible as λ → 0",
        (1.0, len(names) - 0.45),
        xytext=(4, 0),
        textcoords="offset points",
        color=BLUE,
        fontsize=9,
    )
    panel.set_ylim(-0.6, len(names) - 0.2)
    panel.set_xlim(0.0, 1.12 * max(values))
    panel.set_xlabel("variation V / d on fresh context sets")
    panel.set_title(title)
