"""``rareswitch warm-up``: compile every kernel beforehand, for the image of a container."""

import argparse
import time
from typing import Any

from rareswitch.cli.options import add_command

#: Small enough to take a moment once all is compiled; more arms than twice the features, so that designs are solved.
DIM, ARMS, HORIZON = 3, 8, 300


def add_parser(commands: Any) -> None:
    """Add the command."""
    add_command(
        commands,
        "warm-up",
        run,
        description=(
            "Compile all kernels and keep their machine code where Numba keeps it: beside the installed files, or in "
            "NUMBA_CACHE_DIR. Run it once when a container image is built; processes start without compiling then."
        ),
    )


def run(options: argparse.Namespace) -> int:
    """Use everything once, in small: what is compiled are the very types of arrays that commands use."""
    from rareswitch.lanes import kernels

    began = time.monotonic()
    _use_designs()
    _use_learners()
    _use_experiment()
    print(f"{len(kernels)} kernels are compiled. {time.monotonic() - began:.0f} s")
    return 0


def _use_designs() -> None:
    """Designs and quadratic forms, of sets that need coordinates of their span as well."""
    import numpy as np

    from rareswitch.design import MixedSoftmax, g_optimal

    sets = np.random.default_rng(0).standard_normal((4, ARMS, DIM))
    sets[1, :, 2] = sets[1, :, 1]
    g_optimal(sets)
    MixedSoftmax(weights=np.ones(1), matrices=np.eye(DIM)[None]).probabilities(sets)


def _use_learners() -> None:
    """A short run of every learner, in a world that it is made for."""
    from rareswitch.errors import UnsuitableError
    from rareswitch.lab import learner_for, simulate
    from rareswitch.lab.worlds import make_world
    from rareswitch.learner import all_learners

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
    from rareswitch.evaluation import effects, evaluate
    from rareswitch.experiment import create
    from rareswitch.features import Features
    from rareswitch.log import DecisionLog

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
