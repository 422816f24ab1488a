"""How what is linear becomes a probability."""

from dataclasses import dataclass

import numpy as np

from rareswitch.validation import FloatArray


def logistic(values: FloatArray) -> FloatArray:
    """1/(1 + exp(-u)), without overflow.

    >>> logistic(np.array([-1000.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


@dataclass(frozen=True, eq=False, kw_only=True)
class Link:
    """A reward is 1 with the probability 1/(1 + exp(-u)), u = xᵀθ or xᵀθ and a level, and else 0.

    It is what a belief about θ is part of: N(point, precision⁻¹), of θ alone or of θ and the level.
    """

    #: (d,) or (d + 1,)
    point: FloatArray
    #: (d, d) or (d + 1, d + 1)
    precision: FloatArray

    def rates(self, contexts: FloatArray, truths: FloatArray) -> FloatArray:
        """(n, K, J) how often arms (n, K, d) pay if each of the truths (J, d) holds, with the likeliest level for it.

        >>> link = Link(point=np.zeros(1), precision=np.eye(1))
        >>> link.rates(np.array([[[1.0], [-1.0]]]), np.array([[2.0]])).round(2).tolist()
        [[[0.88], [0.12]]]
        """
        dim = truths.shape[1]
        values = contexts @ truths.T
        if len(self.point) > dim:
            slopes = self.precision[-1, :dim] / self.precision[-1, -1]
            values += self.point[-1] - (truths - self.point[:dim]) @ slopes
        return logistic(values)
