"""Decisions that nothing is learned from for a while, so that what was learned can be tested on them."""

from dataclasses import dataclass

import numpy as np

from rareswitch.ids import KeyArray
from rareswitch.learner import sampled
from rareswitch.rng import uniforms_at
from rareswitch.validation import BoolArray


@dataclass(frozen=True)
class HeldOut:
    """A share of the decisions whose context sets were kept, told by a hash of their ids alone.

    The hash is none of those by which arms are chosen, samples are taken or batches are halved, so that what is held
    out is like the rest. Decisions of which only the chosen arm was kept could not be tested on, and are never held
    out.

    Examples
    --------
    >>> from rareswitch.ids import id_keys
    >>> int(HeldOut(share=0.3).among(id_keys(range(1000))).sum())
    264
    >>> int(HeldOut(share=0.3, context_sample_rate=0.1).among(id_keys(range(1000))).sum())
    30
    """

    share: float
    #: Share of the decisions whose context sets are kept.
    context_sample_rate: float = 1.0

    def among(self, keys: KeyArray) -> BoolArray:
        """(n,) which decisions are held out, by their keys (n, 2)."""
        return np.asarray((uniforms_at(0, "gate", keys) < self.share) & sampled(keys, self.context_sample_rate))
