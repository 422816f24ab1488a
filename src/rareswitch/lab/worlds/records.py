"""A world of records: users drawn from a sample, arms with ids, clicks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rareswitch.errors import InputError
from rareswitch.features import Features
from rareswitch.lab.worlds.world import Rounds
from rareswitch.rng import normals, uniforms
from rareswitch.validation import FloatArray, number


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordWorld:
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

    #: σ of the rewards: that of any variable in [0, 1].
    noise_scale: ClassVar[float] = 0.5

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

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "clicks", first, len(means))[:, 0] < means).astype(np.float64)
