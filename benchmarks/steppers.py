"""The yardsticks for simulated rounds: rarely switching learners in plain NumPy, one step at a time.

As one would write them with care: inverses and determinants run along by rank-one updates, decisions use frozen copies.
"""

from collections.abc import Callable

import numpy as np

from measure import FloatArray

Multiplier = Callable[[float], float]
"""α of the widths, as a function of ln(det Λ/λ^d) when the statistics were frozen."""


class NumpyModel:
    """Λ⁻¹, ξ and ln det Λ of one layer as they run, and Λ⁻¹, θ̂ and α as they were when last frozen."""

    def __init__(self, dim: int, *, ridge: float, growth: float, multiplier: Multiplier) -> None:
        self.running = np.eye(dim) / ridge
        self.moment = np.zeros(dim)
        self.log_growth = 0.0
        self.log_factor = float(np.log(growth * (1.0 - 1e-9)))
        self.multiplier = multiplier
        self.freeze()

    def freeze(self) -> None:
        self.inverse = self.running.copy()
        self.theta = self.inverse @ self.moment
        self.alpha = self.multiplier(self.log_growth)
        self.bar = self.log_growth + self.log_factor

    def widths(self, x: FloatArray) -> FloatArray:
        """(K,) α√(xᵀΛ⁻¹x) of x (K, d)."""
        return np.asarray(self.alpha * np.sqrt(((x @ self.inverse) * x).sum(axis=1)))

    def update(self, x: FloatArray, reward: float) -> bool:
        """Learn from the chosen vector x (d,); whether that froze the statistics anew."""
        image = self.running @ x
        square = x @ image
        self.running -= np.outer(image, image) / (1.0 + square)
        self.moment += reward * x
        self.log_growth += float(np.log1p(square))
        if self.log_growth < self.bar:
            return False
        self.freeze()
        return True


class NumpyOFUL:
    """Plays argmax xᵀθ̂ + α√(xᵀΛ⁻¹x) and is frozen anew when det Λ has grown by C."""

    def __init__(self, dim: int, *, ridge: float, growth: float, multiplier: Multiplier) -> None:
        self.model = NumpyModel(dim, ridge=ridge, growth=growth, multiplier=multiplier)
        self.policies = 1

    def decide(self, x: FloatArray) -> int:
        return int((x @ self.model.theta + self.model.widths(x)).argmax())

    def update(self, x: FloatArray, reward: float) -> None:
        self.policies += self.model.update(x, reward)


class NumpyRarelySwitch:
    """RarelySwitch-SupLinUCB: ``accuracies`` are the ϖ of its layers, ``first`` is α_0 and ``other`` α_κ."""

    def __init__(self, dim: int, *, accuracies: FloatArray, growth: float, first: Multiplier, other: float) -> None:
        self.accuracies = accuracies.tolist()
        rules = [first, *[lambda _: other] * (len(accuracies) - 1)]
        self.layers = [NumpyModel(dim, ridge=1.0, growth=growth, multiplier=rule) for rule in rules]
        self.taught = self.layers[0]
        self.policies = 1

    def decide(self, x: FloatArray) -> int:
        self.taught = layer = self.layers[0]
        estimates, widths = x @ layer.theta, layer.widths(x)
        arms = np.flatnonzero(estimates + widths >= (estimates - widths).max())
        estimates, widths = estimates[arms], widths[arms]
        for layer, accuracy in zip(self.layers[1:], self.accuracies, strict=False):
            if widths.max() > accuracy:
                return int(arms[widths.argmax()])
            arms = arms[estimates >= estimates.max() - 2.0 * accuracy]
            self.taught = layer
            left = x[arms]
            estimates = left @ layer.theta
            if layer is not self.layers[-1]:
                widths = layer.widths(left)
        return int(arms[estimates.argmax()])

    def update(self, x: FloatArray, reward: float) -> None:
        self.policies += self.taught.update(x, reward)
