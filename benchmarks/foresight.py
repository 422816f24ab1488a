"""Measure foresight: what its parts are worth, and how fast it runs. One thread.

The contest against all other learners is ``make contest``. The seeds here are those of its development, 100 and on.
"""

import os
from importlib import import_module

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report
from rareswitch import simulate
from rareswitch.lab.report import regret_ratio
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, Posterior, make_learner, planning
from rareswitch.learner import planned_exploration as room
from rareswitch.stats import Stats

PLACES = ("gaussian", "anisotropic", "segments", "zipf", "fixed", "one-big", "counterexample", "end-of-optimism")
DIM, ARMS, NOISE, FIRST_SEED = 10, 20, 0.5, 100


@contextmanager
def changed(place: Any, **values: Any) -> Iterator[None]:
    """Other values for names of a module, for a while."""
    before = {name: getattr(place, name) for name in values}
    for name, value in values.items():
        setattr(place, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(place, name, value)


def told(stats: Stats) -> Posterior:
    """A belief that is told the noise and a prior of unit variance, as the other learners are."""
    ridge = NOISE**2
    precision = stats.gram + ridge * np.eye(stats.dim)
    return Posterior(estimate=stats.estimate(ridge=ridge), precision=precision, noise=NOISE, ridge=ridge)


def regrets(horizon: int, seeds: range, **settings: Any) -> FloatArray:
    """Of foresight, (seeds, worlds)."""
    found = []
    for place in PLACES:
        world = make_world(place, dim=DIM, arms=ARMS, noise=NOISE, horizon=horizon)
        runs = [simulate(Foresight(dim=world.dim, horizon=horizon, seed=s, **settings), world, seed=s) for s in seeds]
        found.append([run.regret for run in runs])
    return np.array(found).T


def yardstick(horizon: int, seeds: range) -> FloatArray:
    """Of LinUCB at every step with the multiplier 1, told the noise, (seeds, worlds)."""
    found = []
    for place in PLACES:
        world = make_world(place, dim=DIM, arms=ARMS, noise=NOISE, horizon=horizon)
        settings = {"dim": world.dim, "arms": world.arms, "horizon": horizon, "noise": NOISE, "confidence": 1.0}
        found.append([simulate(make_learner("linucb", **settings), world, seed=s).regret for s in seeds])
    return np.array(found).T


def parts(horizon: int, count: int) -> Iterator[Row]:
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    base = yardstick(horizon, seeds)

    def row(label: str, found: FloatArray) -> Row:
        ratios = {place: regret_ratio(found[:, k], base[:, k]) for k, place in enumerate(PLACES)}
        mean = regret_ratio(found, base)
        worst = max(ratios, key=lambda place: ratios[place].value)
        return Row(
            what=f"foresight, T = {horizon:,}, {count} seeds: {label}",
            measured=", ".join(f"{place} {ratio.marked.strip()}" for place, ratio in ratios.items())
            + " (?: not resolved)",
            ratio=f"{mean.value:.2f}× linucb 1 (geometric mean; 90 %: {mean.interval or 'too few seeds'}), "
            f"{ratios[worst].value:.2f}× in {worst}",
        )

    yield row("as it is", regrets(horizon, seeds))
    for floor in (0.0, 0.001, 0.01):
        yield row(f"floor {floor:g}", regrets(horizon, seeds, floor=floor))
    for updates in (4, 16):
        yield row(f"{updates} policies", regrets(horizon, seeds, updates=updates))
    for scale in (0.0, 1.0):
        with (
            changed(planning, SCALES=(scale,)),
            changed(import_module("rareswitch.learner.posterior"), LEAST_SCALE=scale),
        ):
            yield row(f"not planned, scale {scale:g} but in the last batch", regrets(horizon, seeds))
    with changed(planning, STAGES=2):
        yield row("all batches after the next played as one", regrets(horizon, seeds))
    with changed(planning, TRUTHS=64):
        yield row("64 truths", regrets(horizon, seeds))
    with changed(room, posterior=told):
        yield row("told the noise, with a prior of unit variance", regrets(horizon, seeds))


def pace(horizon: int) -> Iterator[Row]:
    world = make_world("gaussian", dim=DIM, arms=ARMS, noise=NOISE)
    chunk, means = 1310, np.zeros(1310)
    began = time.perf_counter()
    for first in range(0, horizon, chunk):
        world.draw(chunk, seed=1, first=first)
        world.rewards(means, seed=1, first=first)
    drawing = time.perf_counter() - began
    run = simulate(Foresight(dim=DIM, horizon=horizon), world, seed=1)
    yield Row(
        what=f"{horizon:,} rounds, (20, 10), against drawing the contexts and the noise alone",
        measured=f"{run.seconds:.0f} s against {drawing:.0f} s",
        ratio=f"{run.seconds / drawing:.2f}×",
        needed="at most 3×",
        holds=run.seconds <= 3.0 * drawing,
    )


def rows(quick: bool) -> Iterator[Row]:
    yield from pace(200_000 if quick else 10_000_000)
    yield from parts(10_000 if quick else 100_000, 1 if quick else 8)


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Foresight", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
