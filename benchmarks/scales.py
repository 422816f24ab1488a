"""Measure whether levels and units matter: the same data with rewards raised or scaled, and with features scaled.

Every learner that can be deployed plays one world, and then the same world in other units. Those that are told the
noise and a bound on the parameter are told them in these units. Rows say what share of the decisions is the same and
the regret against that of the plain run, or what the learner says where it refuses.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from measure import Row, arguments, report
from rareswitch.errors import InputError
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import LEARNERS, Learner, Rows, make_learner, takes

DIM, ARMS, NOISE, SEED = 4, 6, 0.3, 1
#: Share of the decisions that must be the same: a tie may fall otherwise by rounding.
SAME = 0.999


class Units(NamedTuple):
    """What is done to the data."""

    what: str
    level: float = 0.0
    rewards: float = 1.0
    features: float = 1.0


PLAIN = Units("plain")
CHANGES = (
    Units("rewards + 10^9", level=1e9),
    Units("rewards × 10^12", rewards=1e12),
    Units("rewards × 10^-12", rewards=1e-12),
    Units("features × 10^12", features=1e12),
    Units("features × 10^-12", features=1e-12),
)


def made(name: str, horizon: int, units: Units, **told: Any) -> Learner:
    """The learner for these units."""
    settings: dict[str, Any] = {"dim": ARMS if name == "base" else DIM, "arms": ARMS, "horizon": horizon}
    settings |= {"noise": NOISE * units.rewards, "norm": units.rewards / units.features}
    return make_learner(name, **{key: value for key, value in settings.items() if key in takes(name)}, **told)


def place(name: str) -> World:
    """A world that the learner is made for."""
    kind = {"base": "plain", "fixed-set-elimination": "fixed", "e4": "fixed"}.get(name, "gaussian")
    return make_world(kind, dim=ARMS if name == "base" else DIM, arms=ARMS, noise=NOISE)


def play(learner: Learner, world: World, units: Units) -> tuple[list[int], float]:
    """The arms of a run, and its regret in the plain units."""
    state, arms, regret = learner.begin(), [], 0.0
    while not state.done:
        count = state.ahead[0]
        rounds = world.draw(count, seed=SEED, first=state.start)
        contexts, at = rounds.contexts * units.features, np.arange(count)
        decisions = state.policy.decide(contexts, rounds.alive, ids=range(state.start, state.stop), seed=SEED)
        means = rounds.means[at, decisions.arms]
        rewards = (world.rewards(means, seed=SEED, first=state.start) + units.level) * units.rewards
        arms += decisions.arms.tolist()
        regret += float((rounds.means.max(axis=1) - means).sum())
        state = learner.next(state, learner.summarize(state, Rows.of(contexts, decisions, rewards, rounds.alive)))
    return arms, regret


def rows(horizon: int) -> Iterator[Row]:
    """A row for each learner and change."""
    entries: list[tuple[str, dict[str, Any]]] = [("foresight", {"intercept": True})]
    entries += [(name, {}) for name in LEARNERS]
    for name, told in entries:
        learner, world = made(name, horizon, PLAIN, **told), place(name)
        if learner.clock.steps or learner.clock.looks:
            continue
        arms, regret = play(learner, world, PLAIN)
        for units in CHANGES:
            what = f"{name}{', intercept' if told else ''}: {units.what}"
            try:
                others, other = play(made(name, horizon, units, **told), world, units)
            except InputError as error:
                yield Row(what=what, measured=f"refused: {str(error).replace('|', '/')}", needed="a remedy", holds=True)
                continue
            same = float(np.mean([a == b for a, b in zip(arms, others, strict=True)]))
            yield Row(
                what=what,
                measured=f"{same:.2%} of {horizon:,} decisions the same",
                ratio=f"{other / regret:.3f}× the regret",
                needed=f"{SAME:.1%}",
                holds=same >= SAME,
            )


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Levels and units", rows(1000 if options.quick else 10_000), options.out)


if __name__ == "__main__":
    sys.exit(main())
