"""A classification data set replayed as a bandit: the arms are the classes, and the right one pays 1."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rareswitch.env.world import Rounds
from rareswitch.errors import MissingExtraError, ParameterError, ShapeError
from rareswitch.rng import uniforms
from rareswitch.validation import FloatArray, IntArray, finite_array, frozen, whole


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ClassificationWorld:
    """Each round shows a random example; the context of arm c is its feature vector in the c-th of K blocks.

    Feature vectors are scaled to norm at most 1. Rewards carry no noise beyond the draw of the example, and regret is
    counted against the right class.

    Parameters
    ----------
    features
        (examples, features)
    labels
        (examples,) whole numbers from 0.
    """

    name: str
    features: FloatArray
    labels: IntArray
    #: σ of the rewards: that of any variable in [0, 1].
    noise_scale: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        features = finite_array("features", self.features)
        labels = np.asarray(self.labels)
        if features.ndim != 2 or labels.shape != (len(features),) or not len(features):
            raise ShapeError(f"features must be (n, p) beside labels (n,); got {features.shape} and {labels.shape}.")
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() < 1:
            raise ParameterError("labels must be whole numbers from 0, of at least two classes.")
        longest = float(np.linalg.norm(features, axis=1).max())
        vars(self).update(features=frozen(features / (longest or 1.0)), labels=labels.astype(np.int64))

    def __repr__(self) -> str:
        return f"ClassificationWorld({self.name}: {len(self.features)} examples, {self.arms} classes, d = {self.dim})"

    @classmethod
    def digits(cls, components: int = 8) -> Self:
        """scikit-learn's 1797 handwritten digits, reduced to their first singular vectors and a constant."""
        whole("components", components, high=64)
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise MissingExtraError(
                "the digits need scikit-learn. Install it with: pip install 'rareswitch[data]'"
            ) from error
        pixels, labels = load_digits(return_X_y=True)
        centred = pixels - pixels.mean(axis=0)
        _, _, directions = np.linalg.svd(centred, full_matrices=False)
        scores: Any = centred @ directions[:components].T
        scores = scores / np.linalg.norm(scores, axis=1).max()
        return cls(name="digits", features=np.column_stack([np.ones(len(scores)), scores]), labels=labels)

    @property
    def arms(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1

    @property
    def dim(self) -> int:
        """Features times classes."""
        return self.arms * int(self.features.shape[1])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        which = np.floor(uniforms(seed, "replay", first, count)[:, 0] * len(self.features)).astype(int)
        shown = self.features[which]
        contexts = np.zeros((count, self.arms, self.arms, shown.shape[1]))
        classes = np.arange(self.arms)
        contexts[:, classes, classes] = shown[:, None, :]
        means = (self.labels[which][:, None] == classes).astype(np.float64)
        return Rounds(contexts=contexts.reshape(count, self.arms, self.dim), means=means)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means
