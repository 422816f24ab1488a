"""A design as readable text and as plain data."""

from typing import Any

import numpy as np

from rareswitch.context_files import ContextFile
from rareswitch.design import Design
from rareswitch.report.tables import table

VISIBLE_WEIGHT = 1e-3
"""Arms of smaller weight are counted, not listed."""
_ARMS_SHOWN = 20


def design_text(file: ContextFile, design: Design, *, tol: float, sets_shown: int = 5) -> str:
    """Support, weights and certificate of the first sets, and a summary of all."""
    parts = [_one(file, design, s, tol) for s in range(min(sets_shown, len(file.names)))]
    hidden = len(file.names) - len(parts)
    if hidden > 0:
        parts.append(f"… and {hidden} more sets; --show {len(file.names)} prints them all, --json everything.")
    if len(file.names) > 1:
        parts.append(_summary(design, tol))
    return "\n\n".join(parts)


def design_data(file: ContextFile, design: Design) -> dict[str, Any]:
    """The content of ``rareswitch design --json``: sets in input order, weights in the order of the arms."""
    failed = set(design.failed.tolist())
    return {
        "sets": [
            {
                "name": name,
                "weights": None if s in failed else design.weights[s, : file.arm_counts[s]].tolist(),
                "max_leverage": float(design.max_leverage[s]),
                "rank": int(design.rank[s]),
                "residual": float(design.residual[s]),
                "certified": s not in failed,
                "exact": bool(design.passes[s] or not design.rank[s]),
            }
            for s, name in enumerate(file.names)
        ]
    }


def _one(file: ContextFile, design: Design, s: int, tol: float) -> str:
    title = (
        f"set {file.names[s]}: {_count(int(file.sets.alive[s].sum()), 'arm')} in {_count(file.sets.dim, 'dimension')}"
    )
    if s in design.failed:
        return f"{title}\nnot certified: max leverage {design.max_leverage[s]:.6g}"
    weights = design.weights[s]
    support = np.flatnonzero(weights >= VISIBLE_WEIGHT)
    support = support[np.argsort(-weights[support].round(4), kind="stable")]
    shown = support[:_ARMS_SHOWN]
    columns = min(file.sets.dim, 6)
    exact = bool(design.passes[s] or not design.rank[s])
    rows = [
        [
            str(i),
            f"{weights[i]:.4f}",
            f"{'' if exact else '≤ '}{design.leverages[s, i]:.4f}",
            *(f"{value:.4g}" for value in file.sets.contexts[s, i, :columns]),
        ]
        for i in shown
    ]
    more = ["…"] if columns < file.sets.dim else []
    text = table(["arm", "weight", "leverage", *file.features[:columns], *more], [row + more for row in rows])
    others = (weights > 0) & ~np.isin(np.arange(len(weights)), shown)
    if others.any():
        text += f"\n… and {_count(int(others.sum()), 'arm')} of smaller weight, {weights[others].sum():.4f} together"
    return f"{title}\n{text}\n{_certificate(design, s, tol)}"


def _certificate(design: Design, s: int, tol: float) -> str:
    rank, leverage = int(design.rank[s]), float(design.max_leverage[s])
    if not design.passes[s]:
        if rank == 0:
            return "certificate: every arm is the zero vector; any weights are optimal"
        return (
            f"certificate: max leverage at most {leverage:g}, the number of arms, so the uniform design is within tol"
        )
    factor = leverage / rank
    return (
        f"certificate: max leverage {leverage:.4f} = {factor:.4f} × rank {rank} (asked: at most {1 + tol:g}), "
        f"residual outside the span {design.residual[s]:.1g}"
    )


def _summary(design: Design, tol: float) -> str:
    ranks, counts = np.unique(design.rank, return_counts=True)
    spread = ", ".join(
        f"{r} ({_count(c, 'set')})" if len(ranks) > 1 else str(r) for r, c in zip(ranks, counts, strict=True)
    )
    worst = float((design.max_leverage / np.maximum(design.rank, 1)).max())
    certified = len(design.rank) - len(design.failed)
    lines = [
        f"{certified} of {len(design.rank)} sets certified",
        f"rank {spread}; largest max leverage {worst:.4f} × rank (asked: at most {1 + tol:g})",
    ]
    if len(design.failed):
        lines.append(f"NOT certified: sets {', '.join(map(str, design.failed.tolist()))}")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
