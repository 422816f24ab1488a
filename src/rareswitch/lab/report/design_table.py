"""A design as readable text and as plain data."""

from typing import Any

import numpy as np

from rareswitch.context_files import ContextFile
from rareswitch.design import Design
from rareswitch.tables import table

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


def design_data(file: ContextFile, design: Design) -> dict[str, Any]:
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
    title = f"set {file.names[s]}: {_count(int(sets.available[s].sum()), 'arm')} in {_count(sets.dim, 'dimension')}"
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
        text += f"\n… and {_count(int(others.sum()), 'arm')} of smaller weight, {weights[others].sum():.4f} together"
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
    spread = ", ".join(f"{r} ({_count(c, 'set')})" for r, c in known) if len(ranks) > 1 else str(ranks[0])
    worst = float((design.max_leverage / np.maximum(design.rank, 1)).max())
    text = f"{len(design.rank) - len(design.failed)} of {len(design.rank)} sets certified\n"
    text += f"rank {spread}; largest max leverage {worst:.4f} × rank (asked: at most {1 + tol:g})"
    failed = ", ".join(map(str, design.failed.tolist()))
    return f"{text}\nNOT certified: sets {failed}" if failed else text


def _exact(design: Design, s: int) -> bool:
    """Whether the numbers of a set are exact, and not bounds."""
    return bool(design.passes[s] or not design.rank[s])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
