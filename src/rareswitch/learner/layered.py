"""The layered learners of the SupLin family: several linear models, of which each decision teaches at most one."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from rareswitch.learner.clocks import TOLERANCE
from rareswitch.learner.rule import Ended, Made, SumsRule
from rareswitch.learner.statistics import LayerModels
from rareswitch.policy import Layered, Policy
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Layers(SumsRule):
    """A policy rests on the frozen statistics of its layers; a layer is frozen anew when its determinant has grown.

    ``growth`` is C, by which the determinant must grow; at 1 each decision that teaches a layer brings a new policy.
    """

    statistics: LayerModels
    growth: float = 1.0

    @abstractmethod
    def model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        """What a policy needs of a layer with these statistics: its estimate (d,), the root (d, d) of its widths."""

    @abstractmethod
    def policy(self, *models: FloatArray) -> Policy:
        """The policy of the layers' estimates (S, d), roots (S, d, d) and what else a model has, stacked."""

    def resumed(self, sums: tuple[Stats, ...], start: int) -> Made:
        models = zip(*(self.model(k, stats) for k, stats in enumerate(sums)), strict=True)
        grams, counts = np.array([stats.gram for stats in sums]), np.array([float(stats.count) for stats in sums])
        return Made(self.policy(*map(np.array, models)), kept={"frozen_gram": grams, "frozen_count": counts})

    def next(self, ended: Ended) -> Made:
        sampler = ended.state.policy.sampler
        assert isinstance(sampler, Layered)
        held = [sampler.estimates, sampler.roots, *([] if sampler.tails is None else [sampler.tails])]
        models = [part.copy() for part in held]
        kept = {name: part.copy() for name, part in ended.state.kept.items()}
        for k in np.flatnonzero(self.grown(ended)).tolist():
            for part, made in zip(models, self.model(k, ended.sums[k]), strict=True):
                part[k] = made
            kept["frozen_gram"][k] = ended.sums[k].gram
            kept["frozen_count"][k] = ended.sums[k].count
        return Made(self.policy(*models), kept=kept)

    def grown(self, ended: Ended) -> BoolArray:
        """(S,) which layers are frozen anew."""
        if self.growth == 1.0:
            return np.array([stats.count for stats in ended.sums]) > ended.state.kept["frozen_count"]
        growths = self.statistics.progress(ended.sums, ended.state.kept, None).growths
        return np.asarray(growths >= self.growth * (1.0 - 2.0 * TOLERANCE))
