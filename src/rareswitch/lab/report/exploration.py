"""How sampling policies compare on context sets: those that one was learned from, and others."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.design import Sampler, largest_forms
from rareswitch.tables import table


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """What a sampling policy achieves on a sample of sets."""

    name: str
    variation: float
    deviation: float


def explore(samplers: Mapping[str, Sampler], sets: ContextSets, *, regularization: float) -> list[Exploration]:
    """λ-variation and λ-deviation of each policy on the given sets."""
    largest = {
        name: largest_forms(one, sets.contexts, sets.available, regularization) for name, one in samplers.items()
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
