"""How sampling policies compare on context sets that none of them was learned from."""

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
    largest = {name: largest_forms(one, sets.contexts, sets.alive, regularization) for name, one in samplers.items()}
    return [
        Exploration(name=name, variation=float(forms.mean()), deviation=float(np.sqrt(forms).mean()))
        for name, forms in largest.items()
    ]


def exploration_table(found: list[Exploration], dim: int) -> str:
    """A row for each policy; V/d is 1 for the best policy there can be."""
    rows = [[e.name, f"{e.variation:.2f}", f"{e.variation / dim:.2f}", f"{e.deviation:.2f}"] for e in found]
    return table(["sampling policy", "V", "V/d", "Ṽ"], rows)
