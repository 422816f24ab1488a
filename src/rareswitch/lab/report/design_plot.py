"""Pictures of designs."""

from typing import Any

import numpy as np

from rareswitch.design import Design
from rareswitch.lab.report.design_table import VISIBLE_WEIGHT
from rareswitch.lab.report.exploration import Exploration
from rareswitch.report import BLUE, GREY, ORANGE, beside
from rareswitch.validation import BoolArray, FloatArray


def draw_design(
    panel: Any, context: FloatArray, available: BoolArray, design: Design, features: tuple[str, ...], title: str
) -> None:
    """One set: in two dimensions its points, weights and ellipse, otherwise the leverage of each arm."""
    panel.set_title(title)
    if design.failed.size:
        panel.text(0.5, 0.5, "not certified: there is no design to show", ha="center", transform=panel.transAxes)
    elif context.shape[1] == 2:
        _draw_plane(panel, context[available], design.weights[available], float(design.max_leverage), int(design.rank))
        panel.set(xlabel=features[0], ylabel=features[1])
    else:
        _draw_leverages(
            panel, np.flatnonzero(available), design.weights[available], design.leverages[available], int(design.rank)
        )


def _draw_plane(panel: Any, points: FloatArray, weights: FloatArray, max_leverage: float, rank: int) -> None:
    values, vectors = np.linalg.eigh((points * weights[:, None]).T @ points)
    if rank == 2 and values[0] > 0.0:
        angles = np.linspace(0.0, 2.0 * np.pi, 400)
        ring = np.sqrt(max_leverage) * np.stack([np.cos(angles), np.sin(angles)])
        ellipse = vectors @ (np.sqrt(values)[:, None] * ring)
        panel.plot(*ellipse, color=BLUE, linewidth=1.2, label=f"leverage {max_leverage:.3g}, the largest")
    idle = weights < VISIBLE_WEIGHT
    panel.scatter(*points[~idle].T, s=40 + 900 * weights[~idle], color=ORANGE, alpha=0.85, edgecolor="white")
    if idle.any():
        panel.scatter(*points[idle].T, s=14, color=GREY, label=f"weight below {VISIBLE_WEIGHT:g}")
    for k in np.flatnonzero(weights >= 0.01):
        beside(panel, f"{weights[k]:.2f}", points[k], (9, 7), fontsize=9)
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
    top = 1.3 * max(rank, float(leverages.max(initial=0.0)), 1e-9)
    panel.set(xlabel="arm", ylabel="leverage", ylim=(0.0, top))
    panel.locator_params(axis="x", integer=True)
    panel.legend(frameon=False, loc="upper left", fontsize=9)


def draw_exploration(panel: Any, found: list[Exploration], dim: int, title: str) -> None:
    """V/d of sampling policies as bars, against the floor of 1 that no policy can pass."""
    names, values = [e.name for e in found][::-1], [e.variation / dim for e in found][::-1]
    panel.barh(names, values, color=[ORANGE if value == min(values) else GREY for value in values], height=0.6)
    for row, value in enumerate(values):
        beside(panel, f"{value:.2f}", (value, row), (4, 0), va="center", fontsize=9)
    panel.axvline(1.0, color=BLUE, linewidth=1.2)
    beside(panel, "least possible as λ → 0", (1.0, len(names) - 0.45), (4, 0), color=BLUE, fontsize=9)
    panel.set(ylim=(-0.6, len(names) - 0.2), xlim=(0.0, 1.12 * max(values)), title=title)
    panel.set_xlabel("variation V / d on fresh context sets")
