import math

import numpy as np
import pytest

from rareswitch.errors import ParameterError
from rareswitch.lab.worlds import make_world
from rareswitch.lab.worlds.clicks import LogisticBallWorld

WORLD = LogisticBallWorld()


def test_its_name_makes_the_setting_that_was_published() -> None:
    assert make_world("logistic-ball", dim=3, arms=2) == WORLD
    assert (WORLD.dim, WORLD.arms) == (5, 20)
    assert np.linalg.norm(WORLD.theta(3)) == pytest.approx(5.0)


def test_means_are_logistic_in_the_contexts() -> None:
    rounds = WORLD.draw(50, seed=2)
    odds = np.log(rounds.means / (1.0 - rounds.means))
    np.testing.assert_allclose(odds, rounds.contexts @ WORLD.theta(2), atol=1e-9)


def test_arms_are_uniform_in_the_ball() -> None:
    # ‖x‖^d is then uniform in [0, 1]: Dvoretzky-Kiefer-Wolfowitz, false alarm at most 1e-6
    powers = np.sort(np.linalg.norm(WORLD.draw(2000, seed=1).contexts, axis=2).ravel() ** 5)
    n = len(powers)
    assert np.abs(powers - np.arange(1, n + 1) / n).max() <= math.sqrt(math.log(2 / 1e-6) / (2 * n)) + 1 / n


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ParameterError, match="norm must be"):
        LogisticBallWorld(norm=math.inf)
    with pytest.raises(ParameterError, match="arms"):
        LogisticBallWorld(arms=0)
