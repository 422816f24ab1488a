"""Measure how often foresight's intervals hold, and how far certificates are above what policies cost. One thread."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from measure import Row, arguments, report
from rareswitch.contexts import ContextSets
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, Rows, certified_cost

PLACES = ("gaussian", "anisotropic", "segments", "zipf", "fixed", "one-big", "counterexample", "end-of-optimism")
DIM, ARMS, NOISE, FIRST_SEED, FRESH = 10, 20, 0.5, 300, 500


def updates(place: str, horizon: int, seed: int, **settings: Any) -> Iterator[tuple[bool, float | None, float]]:
    """After each update, on sets that no batch had: whether the best arms survive, the certificate, the true cost."""
    world = make_world(place, dim=DIM, arms=ARMS, noise=NOISE, horizon=horizon + FRESH)
    learner = Foresight(dim=world.dim, arms=world.arms, horizon=horizon, seed=seed, **settings)
    fresh = world.draw(FRESH, seed=seed, first=horizon)
    alive = np.ones(fresh.means.shape, dtype=np.bool_) if fresh.alive is None else fresh.alive
    sets = ContextSets(fresh.contexts, alive)
    means = np.where(alive, fresh.means, -np.inf)
    gaps = np.where(alive, means.max(axis=1, keepdims=True) - fresh.means, 0.0)
    state = learner.begin()
    while len(state.ahead) > 1:
        count = state.ahead[0]
        rounds = world.draw(count, seed=seed, first=state.start)
        decisions = state.policy.decide(rounds.contexts, rounds.alive, ids=range(state.start, state.stop), seed=seed)
        rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=state.start)
        rows = Rows.of(ContextSets(rounds.contexts, np.ones(rounds.means.shape, bool)), decisions, rewards)
        state = learner.next(state, learner.summarize(state, rows))
        if not state.policy.eliminations:
            continue
        best_left = np.where(state.policy.survivors(sets), means, -np.inf).max(axis=1)
        cost = float((state.policy.probabilities(sets) * gaps).sum(axis=1).mean())
        yield bool((best_left == means.max(axis=1)).all()), certified_cost(state.policy, sets), cost


def rows(quick: bool) -> Iterator[Row]:
    horizon, seeds = (2000, 2) if quick else (20_000, 20)
    for label, settings in (("estimated", {}), ("proved", {"noise_bound": NOISE})):
        for place in PLACES:
            held, certificates, costs, runs = 0, [], [], 0
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                found = list(updates(place, horizon, seed, **settings))
                runs += all(keeps for keeps, _, _ in found)
                held += sum(keeps for keeps, _, _ in found)
                certificates += [(most, cost) for _, most, cost in found if most is not None]
                costs += [cost for _, _, cost in found]
            below = sum(most < cost for most, cost in certificates)
            certified = np.mean([most for most, _ in certificates])
            none = len(costs) - len(certificates)
            yield Row(
                what=f"{place}, {label} intervals, T = {horizon:,}, {seeds} seeds",
                measured=(
                    f"the best arm of all {FRESH} fresh sets survives after {held} of {len(costs)} updates; in all of "
                    f"them in {runs} of {seeds} runs; certificate {certified:.3g} where policies cost "
                    f"{np.mean(costs):.3g} a decision, below it {below} times"
                    + (f"; {none} updates had none" if none else "")
                ),
                ratio=f"{certified / np.mean(costs):.3g}×",
                needed="all runs" if label == "proved" else "",
                holds=runs == seeds if label == "proved" else None,
            )


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Foresight's intervals and certificates", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
