"""Tables and pictures of designs and of what they explore."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rareswitch.core import BoolArray, ContextSets, FloatArray, IntArray, table
from rareswitch.design import Design, Sampler, largest_forms
from rareswitch.errors import several
from rareswitch.lab.context_files import ContextFile
from rareswitch.report import BLUE, GREY, ORANGE, beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """What a sampling policy achieves on a sample of sets."""

    name: str
    variation: float
    deviation: float


def explore(samplers: Mapping[str, Sampler], sets: ContextSets, *, regularization: float) -> list[Exploration]:
    """λ-variation and λ-deviation of each policy on the given sets."""
    largest = {
        name: largest_forms(sampler, sets.contexts, sets.available, regularization)
        for name, sampler in samplers.items()
    }
    return [
        Exploration(name=name, variation=float(forms.mean()), deviation=float(np.sqrt(forms).mean()))
        for name, forms in largest.items()
    ]


def exploration_table(inside: list[Exploration], outside: list[Exploration], dim: int) -> str:
    """A row for each policy, on the sets it was learned from and on others; V/d is 1 for the best there can be."""
    rows = []
    for learned, fresh in zip(inside, outside, strict=True):
        values = learned.variation, fresh.variation, fresh.variation / dim, learned.deviation, fresh.deviation
        rows.append([learned.name, *(f"{value:.2f}" for value in values)])
    return table(["sampling policy", "V in", "V out", "V/d out", "Ṽ in", "Ṽ out"], rows)


#: Arms of smaller weight are counted, not listed.
VISIBLE_WEIGHT = 1e-3
_ARMS_SHOWN = 20


def design_text(file: ContextFile, design: Design, *, tol: float, sets_shown: int = 5) -> str:
    """Support, weights and certificate of the first sets, and a summary of all."""
    count = len(file.names)
    parts = [_one(file, design, s, tol) for s in range(min(sets_shown, count))]
    if count > len(parts):
        parts.append(f"… and {count - len(parts)} more sets; --show {count} prints them all, --json everything.")
    return "\n\n".join([*parts, _summary(design, tol)] if count > 1 else parts)


def design_data(file: ContextFile, design: Design) -> dict[str, list[dict[str, object]]]:
    """The content of ``rareswitch design --json``: sets in input order, weights in the order of the arms."""
    failed = set(design.failed.tolist())
    sets = []
    for s, name in enumerate(file.names):
        weights = None if s in failed else design.weights[s, : file.arm_counts[s]].tolist()
        facts = {"name": name, "weights": weights, "max_leverage": float(design.max_leverage[s])}
        facts |= {"rank": int(design.rank[s]), "residual": float(design.residual[s])}
        sets.append(facts | {"certified": s not in failed, "exact": _exact(design, s)})
    return {"sets": sets}


def _one(file: ContextFile, design: Design, s: int, tol: float) -> str:
    sets, weights = file.sets, design.weights[s]
    title = f"set {file.names[s]}: {several(int(sets.available[s].sum()), 'arm')} in {several(sets.dim, 'dimension')}"
    if s in design.failed:
        return f"{title}\nnot certified: max leverage {design.max_leverage[s]:.6g}"
    support = np.flatnonzero(weights >= VISIBLE_WEIGHT)
    shown = support[np.argsort(-weights[support].round(4), kind="stable")][:_ARMS_SHOWN]
    columns = min(sets.dim, 6)
    more = ["…"] if columns < sets.dim else []
    rows = []
    for i in shown:
        leverage = f"{'' if _exact(design, s) else '≤ '}{design.leverages[s, i]:.4f}"
        features = (f"{value:.4g}" for value in sets.contexts[s, i, :columns])
        rows.append([str(i), f"{weights[i]:.4f}", leverage, *features, *more])
    text = table(["arm", "weight", "leverage", *file.features[:columns], *more], rows)
    others = (weights > 0) & ~np.isin(np.arange(len(weights)), shown)
    if others.any():
        text += f"\n… and {several(int(others.sum()), 'arm')} of smaller weight, {weights[others].sum():.4f} together"
    return f"{title}\n{text}\ncertificate: {_certificate(design, s, tol)}"


def _certificate(design: Design, s: int, tol: float) -> str:
    rank, leverage = int(design.rank[s]), float(design.max_leverage[s])
    if design.passes[s]:
        factor = f"{leverage / rank:.4f} × rank {rank} (asked: at most {1 + tol:g})"
        return f"max leverage {leverage:.4f} = {factor}, residual outside the span {design.residual[s]:.1g}"
    if rank == 0:
        return "every arm is the zero vector; any weights are optimal"
    return f"max leverage at most {leverage:g}, the number of arms, so the uniform design is within tol"


def _summary(design: Design, tol: float) -> str:
    ranks, counts = np.unique(design.rank, return_counts=True)
    known = zip(ranks, counts, strict=True)
    spread = ", ".join(f"{r} ({several(c, 'set')})" for r, c in known) if len(ranks) > 1 else str(ranks[0])
    worst = float((design.max_leverage / np.maximum(design.rank, 1)).max())
    text = f"{len(design.rank) - len(design.failed)} of {len(design.rank)} sets certified\n"
    text += f"rank {spread}; largest max leverage {worst:.4f} × rank (asked: at most {1 + tol:g})"
    failed = ", ".join(map(str, design.failed.tolist()))
    return f"{text}\nNOT certified: sets {failed}" if failed else text


def _exact(design: Design, s: int) -> bool:
    """Whether the numbers of a set are exact, and not bounds."""
    return bool(design.passes[s] or not design.rank[s])


def draw_design(
    panel: "Axes", context: FloatArray, available: BoolArray, design: Design, features: tuple[str, ...], title: str
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


def _draw_plane(panel: "Axes", points: FloatArray, weights: FloatArray, max_leverage: float, rank: int) -> None:
    values, vectors = np.linalg.eigh((points * weights[:, None]).T @ points)
    if rank == 2 and values[0] > 0.0:
        angles = np.linspace(0.0, 2.0 * np.pi, 400)
        ring = np.sqrt(max_leverage) * np.stack([np.cos(angles), np.sin(angles)])
        ellipse = vectors @ (np.sqrt(values)[:, None] * ring)
        panel.plot(*ellipse, color=BLUE, linewidth=1.2, label=f"leverage {max_leverage:.3g}, the largest")
    idle = weights < VISIBLE_WEIGHT
    panel.scatter(
        points[~idle, 0], points[~idle, 1], s=40 + 900 * weights[~idle], color=ORANGE, alpha=0.85, edgecolor="white"
    )
    if idle.any():
        panel.scatter(points[idle, 0], points[idle, 1], s=14, color=GREY, label=f"weight below {VISIBLE_WEIGHT:g}")
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


def _draw_leverages(panel: "Axes", arms: IntArray, weights: FloatArray, leverages: FloatArray, rank: int) -> None:
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


def draw_exploration(panel: "Axes", explorations: list[Exploration], dim: int, title: str) -> None:
    """V/d of sampling policies as bars, against the floor of 1 that no policy can pass."""
    names, values = [e.name for e in explorations][::-1], [e.variation / dim for e in explorations][::-1]
    panel.barh(names, values, color=[ORANGE if value == min(values) else GREY for value in values], height=0.6)
    for row, value in enumerate(values):
        beside(panel, f"{value:.2f}", (value, row), (4, 0), va="center", fontsize=9)
    panel.axvline(1.0, color=BLUE, linewidth=1.2)
    beside(panel, "least possible as λ → 0", (1.0, len(names) - 0.45), (4, 0), color=BLUE, fontsize=9)
    panel.set(ylim=(-0.6, len(names) - 0.2), xlim=(0.0, 1.12 * max(values)), title=title)
    panel.set_xlabel("variation V / d on fresh context sets")
