"""A classification data set replayed as a bandit: the arms are the classes, and the right one pays 1."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from rareswitch.core import BoolArray, FloatArray, IntArray, finite_array, frozen, uniforms, vector, whole
from rareswitch.errors import MissingExtraError, ParameterError, ShapeError
from rareswitch.lab.distributions import in_blocks
from rareswitch.lab.worlds.world import Rounds
from rareswitch.planning import Payoffs, choice_probabilities, climb, softmax

__all__ = ["ClassificationWorld", "TableWorld", "greedy_value"]

#: Temperatures of the softmax that stands for the greedy policy, in units of the spread of its scores.
TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01)
#: Steps of L-BFGS at each temperature.
STEPS = 100
#: Weight of |θ|²/2 beside the logistic loss: where classes can be separated, that alone has no largest value.
RIDGE = 1e-6


class Yardsticks(NamedTuple):
    """What policies without learning earn in a set of a table, on average over the table."""

    uniform: float
    #: The one arm that earns most, of those that every set offers: of classes the largest. None where there is none.
    single: float | None
    #: The best linear policy that is known.
    linear: float
    #: The best arm of each set.
    best: float


class TableWorld(ABC):
    """A world made of a table of n sets of up to K arms: each round shows a random one, and pays without noise."""

    #: What whoever runs it should know, as of columns that were left out.
    remarks: str
    #: (n, K) rewards of the arms.
    payoffs: FloatArray
    #: (n, K) which arms there are.
    offered: BoolArray

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of features of an arm, d."""

    @property
    def arms(self) -> int:
        """Most arms in a set, K."""
        return int(self.payoffs.shape[1])

    @cached_property
    def content(self) -> str:
        """A hash of the table, by which runs that were kept are known to be of it."""
        arrays = (value for name, value in vars(self).items() if isinstance(value, np.ndarray) and name[0] != "_")
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        sets = np.floor(uniforms(seed, "replay", first, count)[:, 0] * len(self.payoffs)).astype(np.int64)
        return Rounds(contexts=self.vectors(sets), means=self.payoffs[sets], available=self.offered[sets])

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means

    @abstractmethod
    def vectors(self, sets: IntArray) -> FloatArray:
        """(m, K, d) the contexts of these sets (m,)."""

    @abstractmethod
    def scores(self, theta: FloatArray) -> FloatArray:
        """(n, K) xᵀθ of all arms of all sets."""

    @abstractmethod
    def pulled_back(self, weights: FloatArray) -> FloatArray:
        """(d,) the sum of the vectors of all arms of all sets, with weights (n, K)."""

    @abstractmethod
    def least_squares(self) -> FloatArray:
        """(d,) the least-squares fit to the rewards of all arms of all sets."""

    def best_linear(self) -> FloatArray:
        """(d,) the best linear policy that :func:`best_linear` finds, looked for when it is first asked for."""
        return self._best_linear

    @cached_property
    def labelled(self) -> bool:
        """Whether one arm of each set is right and pays 1, and the others pay nothing."""
        return bool(np.isin(self.payoffs, (0.0, 1.0)).all() and (self.payoffs.sum(axis=1) == 1.0).all())

    def yardsticks(self) -> Yardsticks:
        """What runs can be held against."""
        everywhere = self.offered.all(axis=0)
        return Yardsticks(
            uniform=float((self.payoffs.sum(axis=1) / self.offered.sum(axis=1)).mean()),
            single=float(self.payoffs[:, everywhere].mean(axis=0).max()) if everywhere.any() else None,
            linear=greedy_value(self, self.best_linear()),
            best=float(np.where(self.offered, self.payoffs, -np.inf).max(axis=1).mean()),
        )

    @cached_property
    def _best_linear(self) -> FloatArray:
        return frozen(best_linear(self))


def greedy_value(table: TableWorld, theta: npt.ArrayLike) -> float:
    """What the policy that takes the first of the largest xᵀθ earns in a set, on average over the table; θ is (d,)."""
    theta = vector("theta", theta, table.dim)
    arms = np.where(table.offered, table.scores(theta), -np.inf).argmax(axis=1)
    return float(table.payoffs[np.arange(len(arms)), arms].mean())


def best_linear(table: TableWorld) -> FloatArray:
    """The θ (d,) of length 1 whose greedy policy earns most over a table, of those that are looked at.

    The problem is hard in general; no claim of optimality is made. Looked at are θ along each axis, both ways (where
    arms have levels of their own, single arms are among them); the least-squares fit to all rewards; the fit of a
    logistic choice model; and from each of the latter two an ascent of the expected reward of softmax policies, whose
    temperature falls until they are nearly greedy. The same table gives the same θ.
    """
    best = (-np.inf, np.zeros(table.dim))
    for axis in np.eye(table.dim):
        for theta in (axis, -axis):
            best = _better(table, best, theta)
    start = table.least_squares()
    for theta in (start, climb(_logistic, table, start, steps=STEPS)):
        best = _better(table, best, theta)
        for temperature in TEMPERATURES:
            theta = climb(softmax(temperature), table, theta, steps=STEPS)
            best = _better(table, best, theta)
    return best[1]


def _better(table: TableWorld, best: tuple[float, FloatArray], theta: FloatArray) -> tuple[float, FloatArray]:
    length = float(np.linalg.norm(theta))
    if not 0.0 < length < np.inf:
        return best
    value = greedy_value(table, theta / length)
    return (value, theta / length) if value > best[0] else best


def _logistic(table: Payoffs, theta: FloatArray) -> tuple[float, FloatArray]:
    """The loss of a logistic choice model in which an arm weighs what it earns above the worst of its set."""
    there, payoffs = table.offered, table.payoffs
    worst = np.where(there, payoffs, np.inf).min(axis=1, keepdims=True)
    weights = np.where(there, payoffs - worst, 0.0)
    weights = weights / (weights.sum(axis=1).mean() or 1.0)
    chosen = choice_probabilities(table, table.scores(theta))
    logs = np.log(np.where(there & (chosen > 0.0), chosen, 1e-300))
    slopes = (chosen * weights.sum(axis=1, keepdims=True) - weights) / len(weights)
    loss = -float((weights * logs).sum()) / len(weights) + 0.5 * RIDGE * float(theta @ theta)
    return loss, table.pulled_back(slopes) + RIDGE * theta


#: Principal components that are kept of a table's columns.
COMPONENTS = 8
#: scikit-learn's data sets beside the digits, and its functions that load them.
LOADERS = {"iris": "load_iris", "wine": "load_wine", "breast-cancer": "load_breast_cancer"}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ClassificationWorld(TableWorld):
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
        payoffs = right_pays(labels, int(labels.max()) + 1)
        vars(self).update(features=frozen(features / (longest or 1.0)), labels=labels.astype(np.int64))
        vars(self).update(payoffs=frozen(payoffs), offered=np.ones(payoffs.shape, dtype=np.bool_))

    def __repr__(self) -> str:
        return f"ClassificationWorld({self.name}: {len(self.features)} examples, {self.arms} classes, d = {self.dim})"

    @classmethod
    def of_columns(
        cls, name: str, columns: npt.ArrayLike, labels: IntArray, *, components: int = COMPONENTS, remarks: str = ""
    ) -> Self:
        """The world of columns (examples, p): standardised, ``components`` principal components or fewer, a constant.

        Columns without spread are left out.

        >>> ClassificationWorld.of_columns("toy", [[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [0, 0, 1]).dim
        4
        """
        numbers = finite_array("columns", columns)
        whole("components", components)
        numbers = numbers - numbers.mean(axis=0)
        spread = numbers.std(axis=0)
        varying = spread > 1e-9 * np.abs(numbers).max(axis=0, initial=0.0)
        if not varying.any():
            raise ParameterError("columns must tell examples apart; all of them are the same in every row.")
        scores = principal_scores(numbers[:, varying] / spread[varying], components)
        return cls(name=name, features=np.column_stack([np.ones(len(scores)), scores]), labels=labels, remarks=remarks)

    @classmethod
    def scikit(cls, name: str) -> Self:
        """scikit-learn's data set ``iris``, ``wine`` or ``breast-cancer``, as :meth:`of_columns` makes it a world."""
        numbers, labels = _load(name, LOADERS[name])
        return cls.of_columns(name, numbers, labels)

    @classmethod
    def digits(cls) -> Self:
        """scikit-learn's 1797 handwritten digits, reduced to their first singular vectors and a constant."""
        pixels, labels = _load("digits", "load_digits")
        centred = pixels - pixels.mean(axis=0)
        _, _, directions = np.linalg.svd(centred, full_matrices=False)
        scores: FloatArray = centred @ directions[:COMPONENTS].T
        scores /= np.linalg.norm(scores, axis=1).max()
        return cls(name="digits", features=np.column_stack([np.ones(len(scores)), scores]), labels=labels)

    @property
    def dim(self) -> int:
        """Features times classes."""
        return self.arms * int(self.features.shape[1])

    def describe(self) -> str:
        """A line on what it is made of."""
        most = np.bincount(self.labels).max() / len(self.labels)
        text = f"{len(self.labels)} examples of {self.arms} classes, the largest with {most:.0%} of them."
        return f"{text} {self.remarks}".rstrip()

    def vectors(self, sets: IntArray) -> FloatArray:
        return in_blocks(self.features[sets], self.arms)

    def scores(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.features @ theta.reshape(self.arms, -1).T)

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights.T @ self.features).ravel()

    def least_squares(self) -> FloatArray:
        fitted, *_ = np.linalg.lstsq(self.features, self.payoffs, rcond=None)
        return np.asarray(fitted.T).ravel()


def principal_scores(centred: FloatArray, components: int) -> FloatArray:
    """Centred rows (n, p) on their first principal axes; signs are those of the largest loadings."""
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[: min(components, int((values > 1e-9 * values[0]).sum()))]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return np.asarray(centred @ (axes * signs[:, None]).T)


def right_pays(labels: IntArray, arms: int) -> FloatArray:
    """(n, K) 1 where the class is that of the label, of labels (n,)."""
    paid: FloatArray = (labels[:, None] == np.arange(arms)).astype(np.float64)
    return paid


def _load(name: str, loader: str) -> tuple[FloatArray, IntArray]:
    try:
        import sklearn.datasets
    except ImportError as error:
        raise MissingExtraError(
            f"the world {name!r} needs scikit-learn. Install it with: pip install 'rareswitch[data]'"
        ) from error
    loaded: tuple[FloatArray, IntArray] = getattr(sklearn.datasets, loader)(return_X_y=True)
    return loaded
