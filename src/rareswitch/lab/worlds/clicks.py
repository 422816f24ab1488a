"""Worlds of clicks: of vectors, and of records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rareswitch.core import LARGEST_SCALE, FloatArray, normals, number, set_size, uniforms, whole
from rareswitch.errors import InputError
from rareswitch.features import Features
from rareswitch.lab.distributions import into_ball, normal_vectors
from rareswitch.lab.worlds.world import ClickRewards, Rounds

__all__ = ["RecordWorld"]


@dataclass(frozen=True, kw_only=True)
class RareClicksWorld(ClickRewards):
    """Rewards are 1 with probability 1/(1 + exp(3.5 − 1.2·xᵀθ)) and otherwise 0.

    x = z/√p with z standard normal, shortened to length 1 where it is longer; θ ~ N(0, I), and learners see (x, 1)/√2.
    The rates of the middle half of all arms are about 1 to 8 %.

    >>> world = RareClicksWorld()
    >>> world.dim, bool(0.01 < world.draw(1000, seed=1).means.mean() < 0.08)
    (9, True)
    """

    arms: int = 15
    #: p, the constant one not included.
    features: int = 8
    #: σ of the rewards: about the root of the mean of q(1 − q).
    noise_scale: ClassVar[float] = 0.2

    def __post_init__(self) -> None:
        set_size(whole("features", self.features) + 1, self.arms)

    @property
    def dim(self) -> int:
        """Number of features of an arm, the constant one included."""
        return self.features + 1

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameters (p,) of the log-odds."""
        return np.asarray(normals(seed, "theta", 0, 1, self.features)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normal_vectors(seed, "items", first, (count, self.arms, self.features))
        x = into_ball(z / math.sqrt(self.features))
        contexts = np.pad(x, ((0, 0), (0, 0), (0, 1)), constant_values=1.0) / math.sqrt(2.0)
        return Rounds(contexts=contexts, means=1.0 / (1.0 + np.exp(3.5 - 1.2 * (x @ self.theta(seed)))))


@dataclass(frozen=True, kw_only=True)
class LogisticBallWorld(ClickRewards):
    """Rewards are 1 with probability 1/(1 + exp(-xᵀθ)) and otherwise 0; arms are uniform in the unit ball.

    With the defaults and 20,000 decisions it is the setting in which RS-GLinCB was published (Sawarni, Das, Barman and
    Sinha 2024, arXiv:2404.06831): θ is the direction of a vector uniform in [-1, 1]^d, of length 5.

    >>> LogisticBallWorld().draw(3, seed=1).means.shape
    (3, 20)
    """

    dim: int = 5
    arms: int = 20
    #: ‖θ‖
    norm: float = 5.0

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms)
        number("norm", self.norm, low=0.0, high=LARGEST_SCALE)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,) of the log-odds."""
        direction = 2.0 * uniforms(seed, "theta", 0, 1, self.dim)[0] - 1.0
        return np.asarray(self.norm * direction / np.linalg.norm(direction))

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        x = normal_vectors(seed, "ball", first, (count, self.arms, self.dim))
        radii = uniforms(seed, "ball/radius", first, count, self.arms) ** (1.0 / self.dim)
        x *= (radii / np.linalg.norm(x, axis=2))[:, :, None]
        return Rounds(contexts=x, means=1.0 / (1.0 + np.exp(-(x @ self.theta(seed)))))


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordWorld(ClickRewards):
    """Users from a sample, arms with ids, and clicks whose log-odds are linear in the features.

    A reward is 1 with probability 1/(1 + exp(−a − gain·xᵀθ)), where θ is drawn by the seed, and otherwise 0;
    ``click_rate`` is that probability where xᵀθ is 0.

    Examples
    --------
    >>> from rareswitch.features import Arms, Category, Features
    >>> device = Category("device", levels=["ios", "web"])
    >>> features = Features(fields=[device], arms=Arms(ids=["a", "b"], own=["device"]))
    >>> sample = [{"device": "ios"}, {"device": "web"}]
    >>> world = RecordWorld(features=features, sample=sample, offers={"a": None, "b": None}, since={"b": 5})
    >>> rounds = world.draw(10, seed=1)
    >>> rounds.means.shape, rounds.available.sum(axis=1).tolist()
    ((10, 2), [1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    """

    features: Features
    #: Records, of which each user is one.
    sample: Sequence[Mapping[str, Any]]
    #: Ids of arms, with their records where they have some.
    offers: Mapping[str, Any]
    #: Arms that come later: the number of the round from which they are offered.
    since: Mapping[str, int] = field(default_factory=dict)
    click_rate: float = 0.1
    gain: float = 1.0
    stream: ClassVar[str] = "clicks"

    def __post_init__(self) -> None:
        number("click_rate", self.click_rate, low=1e-6, high=1.0 - 1e-6)
        number("gain", self.gain, low=0.0, high=100.0)
        if not self.sample or not self.offers:
            raise InputError("a world of records needs a sample of users, and arms; one of them is empty.")

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        return self.features.dim

    @property
    def arms(self) -> int:
        """Most arms in a set."""
        return len(self.offers)

    def requests(self, count: int, *, seed: int, first: int = 0) -> tuple[list[Mapping[str, Any]], list[Any]]:
        """Records of users and, for each, the arms on offer, of rounds ``first`` … ``first + count - 1``."""
        chosen = (uniforms(seed, "users", first, count)[:, 0] * len(self.sample)).astype(np.int64)
        return [self.sample[place] for place in chosen.tolist()], [self._offered(first + k) for k in range(count)]

    def _offered(self, round_: int) -> Any:
        names = [name for name in self.offers if round_ >= self.since.get(name, 0)]
        if all(not self.offers[name] for name in names):
            return names
        return {name: self.offers[name] for name in names}

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        sets = self.features.encode_many(*self.requests(count, seed=seed, first=first)).sets
        short = self.arms - sets.contexts.shape[1]  # arms that come later
        contexts = np.pad(sets.contexts, ((0, 0), (0, short), (0, 0)))
        theta = normals(seed, "theta", 0, 1, self.dim)[0]
        odds = np.log(self.click_rate / (1.0 - self.click_rate)) + self.gain * (contexts @ theta)
        available = np.pad(sets.available, ((0, 0), (0, short)))
        return Rounds(contexts=contexts, means=1.0 / (1.0 + np.exp(-odds)), available=available)
