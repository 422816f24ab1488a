"""Measure foresight as it comes against its linear belief where rewards are clicks: rates, slopes, arms, policies.

Development seeds are 1000 and following; those reported are 0 and following.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from measure import Row, arguments, report
from rareswitch import Features, Foresight, simulate
from rareswitch.errors import LevelWarning
from rareswitch.lab.worlds import RecordWorld
from rareswitch.learner import StaticGrid


class Cell(NamedTuple):
    """A shape of clicks: users with an age, a device and a flag; arms without records of their own."""

    rate: float
    gain: float = 1.0
    arms: int = 6
    policies: int = 8
    horizon: int = 8000
    #: Whether batches are equally long; geometric otherwise.
    equal: bool = False

    def world(self) -> RecordWorld:
        """The same users for every seed; what they like is the seed's."""
        rng = random.Random(11)
        sample = [
            {"age": rng.randint(18, 80), "device": rng.choice(("android", "ios")), "new": rng.random() < 0.3}
            for _ in range(2000)
        ]
        offers = [f"arm {k}" for k in range(self.arms)]
        features = Features.fit(sample, offers, room=0)
        return RecordWorld(
            features=features, sample=sample, offers=dict.fromkeys(offers), click_rate=self.rate, gain=self.gain
        )

    def batches(self) -> dict[str, Any]:
        """The settings that say when batches end."""
        ends = tuple(round(self.horizon * (k + 1) / self.policies) for k in range(self.policies))
        if not self.equal:
            return {"updates": self.policies}
        return {"grid": StaticGrid(ends=ends)}


CELLS = {
    "1 %": Cell(0.01),
    "1 %, steep": Cell(0.01, gain=2.0),
    "2 %": Cell(0.02, gain=1.5),
    "5 %": Cell(0.05),
    "5 %, 40 equal batches": Cell(0.05, policies=40, equal=True),
    "10 %": Cell(0.1),
    "30 %": Cell(0.3),
    "50 %, steep": Cell(0.5, gain=3.0),
    "0.2 %, 30,000 decisions": Cell(0.002, horizon=30_000),
    "1 %, 2 arms, 3 policies": Cell(0.01, arms=2, policies=3),
    "3 %, 50 arms, 16 policies": Cell(0.03, arms=50, policies=16, horizon=16_000),
    "10 %, 20 arms, 8 equal batches": Cell(0.1, gain=1.5, arms=20, equal=True),
    "20 %, steep, 3 policies": Cell(0.2, gain=2.0, policies=3),
    "50 %, 10 arms, 40 policies": Cell(0.5, arms=10, policies=40),
    "the demo's, best times": Cell(0.1, gain=1.5, arms=8, horizon=10_080),
    "the demo's, weekly": Cell(0.1, gain=1.5, arms=8, horizon=10_080, equal=True),
}


def regrets(cell: Cell, seeds: range, **settings: Any) -> np.ndarray:
    """(n,) of one setting, seed by seed."""
    world = cell.world()
    return np.array(
        [
            simulate(
                Foresight(dim=world.dim, horizon=cell.horizon, seed=seed, intercept=True, **cell.batches(), **settings),
                world,
                seed=seed,
            ).regret
            for seed in seeds
        ]
    )


def rows(cells: list[str], seeds: range) -> Iterator[Row]:
    """A row for each cell."""
    for name in cells:
        linear, default = regrets(CELLS[name], seeds, rewards="linear"), regrets(CELLS[name], seeds)
        mean, worst = default.mean() / linear.mean(), default.max() / linear.max()
        yield Row(
            what=name,
            measured=f"regret {default.mean():,.0f} (worst {default.max():,.0f}), linear {linear.mean():,.0f} "
            f"({linear.max():,.0f}); {len(seeds)} seeds from {seeds[0]}",
            ratio=f"mean {mean:.2f}×, worst {worst:.2f}×",
            needed="mean at most 1.05×, worst 1.3×",
            holds=mean <= 1.05 and worst <= 1.3,
        )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first-seed", type=int, default=0, help="0 by default; 1000 and following are to develop on")
    parser.add_argument("--seeds", type=int, default=16, help="how many; 16 by default")
    parser.add_argument("--cells", nargs="*", default=list(CELLS), help="which; all by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore", LevelWarning)
    seeds = range(options.first_seed, options.first_seed + (2 if options.quick else options.seeds))
    return report(
        "Clicks of many shapes: foresight as it comes against its linear belief",
        rows(options.cells, seeds),
        options.out,
    )


if __name__ == "__main__":
    sys.exit(main())
