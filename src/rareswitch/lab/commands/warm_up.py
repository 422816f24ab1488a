"""``rareswitch warm-up``: compile all kernels, when a container image is built."""

import argparse
import time

import numpy as np

from rareswitch.cli.output import Output
from rareswitch.decisions import DecisionLog
from rareswitch.design import MixedSoftmax, g_optimal
from rareswitch.errors import UnsuitableError
from rareswitch.evaluation import effects, evaluate
from rareswitch.experiment import create
from rareswitch.features import Features
from rareswitch.lab.simulate import simulate
from rareswitch.lab.sweep import learner_for
from rareswitch.lab.worlds import make_world
from rareswitch.lanes import kernels
from rareswitch.learner import BatchLinUCB, all_learners

#: Small enough to take a moment once all is compiled; more arms than twice the features, so that designs are solved.
DIM, ARMS, HORIZON = 3, 8, 300


def run_warm_up(options: argparse.Namespace) -> Output:
    """The number of kernels."""
    # use everything once, in small: kernels are compiled for the types of arrays that commands use
    began = time.monotonic()
    _use_designs()
    _use_learners()
    _use_experiment()
    seconds = time.monotonic() - began
    text = f"{len(kernels)} kernels are compiled. {seconds:.0f} s"
    return Output({"kernels": len(kernels), "seconds": seconds}, text)


def _use_designs() -> None:
    """Designs and quadratic forms, of sets that need coordinates of their span as well."""
    sets = np.random.default_rng(0).standard_normal((4, ARMS, DIM))
    sets[1, :, 2] = sets[1, :, 1]
    g_optimal(sets)
    MixedSoftmax(weights=np.ones(1), matrices=np.eye(DIM)[None]).probabilities(sets)


def _use_learners() -> None:
    """A short run of every learner, in a world that it is made for, and one whose batches follow its intervals."""
    adaptive = BatchLinUCB(dim=DIM, arms=ARMS, horizon=HORIZON, grid="adaptive")
    simulate(adaptive, make_world("gaussian", dim=DIM, arms=ARMS, noise=0.5), seed=0)
    for name in all_learners():
        for place in ("gaussian", "fixed", "plain"):
            world = make_world(place, dim=DIM, arms=ARMS, noise=0.5)
            try:
                simulate(learner_for(world, name, horizon=HORIZON, seed=0, noise=0.5), world, seed=0)
            except UnsuitableError:
                continue
            break


def _use_experiment() -> None:
    """Records, decisions one by one and in numbers, rewards, updates, and the evaluation of it all."""
    visitors = [{"age": 20 + 3 * k % 50, "device": ("ios", "web")[k % 2]} for k in range(200)]
    offers = [f"offer-{k}" for k in range(ARMS)]
    features = Features.fit(visitors, offers)
    with create(
        "memory:", "warm-up", features=features, policies=3, horizon=4 * len(visitors), min_propensity=0.01, seed=0
    ) as trial:
        for batch in range(3):
            trial.decide(visitors[0], offers, id=f"one-{batch}")
            ids = [f"{batch}-{k}" for k in range(len(visitors))]
            trial.decide_many(visitors, offers, ids=ids)
            trial.reward_many(ids, [float(k % 3 == 0) for k in range(len(ids))])
            trial.advance(force=True)
        evaluate(trial, "uniform")
        effects(trial, offers[0], offers[1])
    places = [k % ARMS for k in range(len(visitors))]
    propensities = [1.0 / ARMS] * len(places)  # a log of others says no more than these
    evaluate(DecisionLog(arm_indices=places, propensities=propensities, rewards=places, arms=offers), "uniform")
