import sys
from pathlib import Path

import numpy as np
import pytest

from rareswitch.errors import InputError, MissingExtraError, ParameterError, ShapeError
from rareswitch.lab.distributions import Gaussian, Segments, VaryingArms, Zipf
from rareswitch.lab.worlds import ClassificationWorld, ClickWorld, make_world
from reference.refusals import raises


def test_segments_do_not_share_features() -> None:
    sets = Segments(dim=6, arms=4, segments=3).draw(300, seed=1)
    used = (sets.contexts != 0).any(axis=1)
    assert {tuple(row) for row in used.astype(int).tolist()} == {
        (1, 0, 0, 1, 0, 0),
        (0, 1, 0, 0, 1, 0),
        (0, 0, 1, 0, 0, 1),
    }
    shares = used[:, :3].mean(axis=0)
    assert shares[0] > shares[1] > shares[2] > 0


def test_zipf_axes_are_ever_rarer() -> None:
    x = Zipf(dim=4, arms=5).draw(4000, seed=1).contexts
    counts = np.bincount(np.abs(x).argmax(axis=2).ravel(), minlength=4)
    assert counts[0] > counts[1] > counts[2] > counts[3] > 0


def test_varying_arms_keep_at_least_the_least() -> None:
    sets = VaryingArms(source=Gaussian(dim=2, arms=6), least=2).draw(2000, seed=1)
    assert set(sets.available.sum(axis=1).tolist()) == {2, 3, 4, 5, 6}
    assert sets.available.mean(axis=0).min() > 0.5


def test_regret_of_a_replay_is_counted_against_the_right_class() -> None:
    world = ClassificationWorld(name="toy", features=np.array([[2.0, 0.0], [0.0, 1.0]]), labels=np.array([0, 2]))
    assert (world.arms, world.dim) == (3, 6)
    rounds = world.draw(50, seed=1)
    for x, means in zip(rounds.contexts, rounds.means, strict=True):
        label = int(means.argmax())
        block = x[label].reshape(3, 2)
        np.testing.assert_array_equal(block[label], [1.0, 0.0] if label == 0 else [0.0, 0.5])
        assert not np.delete(block, label, axis=0).any()
    np.testing.assert_array_equal(world.rewards(np.array([1.0, 0.0]), seed=1), [1.0, 0.0])


def test_bad_data_sets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ShapeError, match="features must be"):
        ClassificationWorld(name="x", features=np.ones((2, 2)), labels=np.array([0]))
    raises(ParameterError, "labels", ClassificationWorld, name="x", features=np.ones((2, 2)), labels=np.array([-1, 0]))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    raises(MissingExtraError, r"rareswitch\[data\]", ClassificationWorld.digits)


OWN = """
import numpy as np
from rareswitch.lab.worlds import Rounds
from rareswitch.core import uniforms
class Own:
    dim, arms = 2, 3
    def draw(self, count, *, seed, first=0):
        x = uniforms(seed, "x", first, count, 6).reshape(count, 3, 2) / 2
        return Rounds(contexts=x, means=x.sum(axis=2))
    def rewards(self, means, *, seed, first=0):
        return means
class Half:
    dim = 2
class Broken:
    def __init__(self):
        raise RuntimeError("no luck")
"""


def test_worlds_from_files(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    world = make_world(f"{path}:Own", dim=9, arms=9, noise=1.0)
    assert world.draw(4, seed=1).contexts.shape == (4, 3, 2)
    for name, words in [
        (f"{path}:Half", "has no 'arms'"),
        (f"{path}:Other", "no class Other"),
        (f"{path}:Broken", "RuntimeError: no luck"),
        (f"{tmp_path / 'none.py'}:Own", "no file"),
        ("marsian", "no world 'marsian'; the worlds are gaussian"),
    ]:
        raises(InputError, words, make_world, name, dim=2, arms=2, noise=1.0)


def test_clicks_come_with_the_stated_probability() -> None:
    world = ClickWorld(source=Gaussian(dim=3, arms=4))
    rounds = world.draw(20, seed=2)
    theta = world.theta(2)[1:] * np.sqrt(2.0)
    x = Gaussian(dim=3, arms=4).draw(20, seed=2).contexts
    np.testing.assert_allclose(rounds.means, (1 + x @ theta) / 2, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(theta), 1.0)
