"""A classification data set replayed as a bandit: the arms are the classes, and the right one pays 1."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from rareswitch.errors import MissingExtraError, ParameterError, ShapeError
from rareswitch.lab.worlds.hindsight import InHindsight
from rareswitch.lab.worlds.world import Rounds, in_blocks
from rareswitch.rng import uniforms
from rareswitch.validation import BoolArray, FloatArray, IntArray, finite_array, frozen, whole

#: Principal components that are kept of a table's columns.
COMPONENTS = 8
#: scikit-learn's data sets beside the digits, and its functions that load them.
LOADERS = {"iris": "load_iris", "wine": "load_wine", "breast-cancer": "load_breast_cancer"}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ClassificationWorld(InHindsight):
    """Each round shows a random example; the context of arm c is its feature vector in the c-th of K blocks.

    Feature vectors are scaled to norm at most 1. Rewards carry no noise beyond the draw of the example, and regret is
    counted against the right class.

    Parameters
    ----------
    features
        (examples, features)
    labels
        (examples,) whole numbers from 0.
    remarks
        What whoever runs it should know, as of columns that were left out.

    Examples
    --------
    >>> world = ClassificationWorld(name="toy", features=[[1.0, 3.0], [1.0, -2.0]], labels=[0, 1])
    >>> world.draw(1, seed=1).contexts.shape
    (1, 2, 4)
    >>> theta = world.best_linear()
    >>> [(world.scores(theta)[row].argmax(), world.labels[row]) for row in range(2)] == [(0, 0), (1, 1)]
    True
    """

    name: str
    features: FloatArray
    labels: IntArray
    remarks: str = ""
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
    def of_columns(
        cls, name: str, columns: Any, labels: Any, *, components: int = COMPONENTS, remarks: str = ""
    ) -> Self:
        """The world of columns (examples, p): standardised, at most so many principal components, and a constant.

        Columns without spread are left out.

        >>> ClassificationWorld.of_columns("toy", [[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [0, 0, 1]).dim
        4
        """
        numbers = finite_array("columns", columns)
        whole("components", components)
        numbers = numbers - numbers.mean(axis=0)
        spread = numbers.std(axis=0)
        kept = spread > 1e-9 * np.abs(numbers).max(axis=0, initial=0.0)
        if not kept.any():
            raise ParameterError("columns must tell examples apart; all of them are the same in every row.")
        scores = principal_scores(numbers[:, kept] / spread[kept], components)
        return cls(name=name, features=np.column_stack([np.ones(len(scores)), scores]), labels=labels, remarks=remarks)

    @classmethod
    def scikit(cls, name: str) -> Self:
        """scikit-learn's data set ``iris``, ``wine`` or ``breast-cancer``, as :meth:`of_columns` makes it a world."""
        numbers, labels = _load(name, LOADERS[name])
        return cls.of_columns(name, numbers, labels)

    @classmethod
    def digits(cls, components: int = COMPONENTS) -> Self:
        """scikit-learn's 1797 handwritten digits, reduced to their first singular vectors and a constant."""
        whole("components", components, high=64)
        pixels, labels = _load("digits", "load_digits")
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

    @cached_property
    def content(self) -> str:
        """A hash of all examples, by which runs that were kept are known to be of this table."""
        return hashlib.sha256(self.features.tobytes() + self.labels.tobytes()).hexdigest()

    def describe(self) -> str:
        """A line on what it is made of."""
        most = np.bincount(self.labels).max() / len(self.labels)
        text = f"{len(self.labels)} examples of {self.arms} classes, the largest with {most:.0%} of them."
        return f"{text} {self.remarks}".rstrip()

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        which = random_rows(len(self.features), count, seed=seed, first=first)
        return Rounds(
            contexts=in_blocks(self.features[which], self.arms), means=right_pays(self.labels[which], self.arms)
        )

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means

    @cached_property
    def payoffs(self) -> FloatArray:
        """(examples, K) 1 where the class is right."""
        return frozen(right_pays(self.labels, self.arms))

    @property
    def offered(self) -> BoolArray:
        """(examples, K) all true."""
        return np.ones((len(self.labels), self.arms), dtype=np.bool_)

    def scores(self, theta: FloatArray) -> FloatArray:
        """(examples, K) xᵀθ of all arms of all examples."""
        return np.asarray(self.features @ theta.reshape(self.arms, -1).T)

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        """(d,) the sum of the vectors of all arms of all examples, with weights (examples, K)."""
        return np.asarray(weights.T @ self.features).ravel()

    def least_squares(self) -> FloatArray:
        """(d,) the least-squares fit to the rewards of all arms of all examples."""
        fitted, *_ = np.linalg.lstsq(self.features, self.payoffs, rcond=None)
        return np.asarray(fitted.T).ravel()


def random_rows(rows: int, count: int, *, seed: int, first: int) -> IntArray:
    """Which of the rows of a table rounds ``first`` and following show, drawn with replacement."""
    return np.floor(uniforms(seed, "replay", first, count)[:, 0] * rows).astype(np.int64)


def principal_scores(centred: FloatArray, components: int) -> FloatArray:
    """Centred rows (n, p) on their first principal axes, at most so many; signs are those of the largest loadings."""
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[: min(components, int((values > 1e-9 * values[0]).sum()))]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return np.asarray(centred @ (axes * signs[:, None]).T)


def right_pays(labels: IntArray, arms: int) -> FloatArray:
    """(n, K) 1 where the class is that of the label, of labels (n,)."""
    paid: FloatArray = (labels[:, None] == np.arange(arms)).astype(np.float64)
    return paid


def _load(name: str, loader: str) -> Sequence[Any]:
    try:
        import sklearn.datasets
    except ImportError as error:
        raise MissingExtraError(
            f"the world {name!r} needs scikit-learn. Install it with: pip install 'rareswitch[data]'"
        ) from error
    loaded: Sequence[Any] = getattr(sklearn.datasets, loader)(return_X_y=True)
    return loaded
