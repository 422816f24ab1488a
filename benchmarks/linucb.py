"""The yardstick for decisions: LinUCB with Sherman-Morrison updates in plain NumPy, one step at a time."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class NumpyLinUCB:
    """Plays argmax xᵀθ̂ + α√(xᵀΛ⁻¹x) and learns after every step."""

    def __init__(self, dim: int, alpha: float = 1.0) -> None:
        self.alpha = alpha
        self.inverse = np.eye(dim)
        self.moment = np.zeros(dim)
        self.theta = np.zeros(dim)

    def decide(self, x: FloatArray) -> int:
        """The arm of largest upper confidence bound among x (K, d)."""
        widths = np.sqrt(((x @ self.inverse) * x).sum(axis=1))
        return int((x @ self.theta + self.alpha * widths).argmax())

    def update(self, x: FloatArray, reward: float) -> None:
        """Learn from the chosen vector x (d,)."""
        image = self.inverse @ x
        self.inverse -= np.outer(image, image) / (1.0 + x @ image)
        self.moment += reward * x
        self.theta = self.inverse @ self.moment
