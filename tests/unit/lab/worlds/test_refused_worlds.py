"""Worlds that cannot be made: the parameter, what it was and what it must be."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from rareswitch.errors import InputError
from rareswitch.lab.distributions import Anisotropic, Counterexample, Gaussian, OneBig, PlainArms, VaryingArms
from rareswitch.lab.worlds import ActionsWorld, GaussianNoise, LinearWorld, make_world
from rareswitch.lab.worlds.clicks import LogisticBallWorld, RareClicksWorld
from rareswitch.lab.worlds.linear import (
    DisjointWorld,
    DriftingWorld,
    EndOfOptimismWorld,
    EquicorrelatedWorld,
    HeavyTailsWorld,
    LateGroupsWorld,
    MixDriftWorld,
    PlainWorld,
    StarvingWorld,
    TurningWorld,
)
from reference.refusals import raises


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: make_world("end-of-optimism:2x3"), "is named like end-of-optimism:5 for 5 features; got"),
        (lambda: make_world("random-actions:50"), r"random-actions:KxD, as in 50x20; got 'random-actions:50'"),
        (lambda: make_world("random-actions:50x"), "random-actions:KxD, as in 50x20"),
        (lambda: make_world("random-actions:50x-2"), "random-actions:KxD, as in 50x20"),
        (lambda: make_world("end-of-optimism:1"), "end-of-optimism has at least 2 features; got 'end-of-optimism:1'"),
        (
            lambda: make_world("random-actions:1x2"),
            "at least 2 actions of at least 1 feature; got 'random-actions:1x2'",
        ),
        (
            lambda: make_world("random-actions:5x0"),
            "at least 2 actions of at least 1 feature; got 'random-actions:5x0'",
        ),
        (lambda: make_world("random-actions:99999x99999"), "a set has at most 16777216 numbers"),
        (lambda: ActionsWorld.end_of_optimism(3, gap=0.5), "gap must be"),
        (lambda: ActionsWorld(actions=np.ones(1), hidden=np.ones(1)), r"actions must be \(arms, dim\).*got \(1,\)"),
        (lambda: ActionsWorld(actions=np.full((2, 2), np.nan), hidden=np.ones(2)), "actions"),
        (lambda: ActionsWorld(actions=np.eye(2), hidden=np.ones(1)), "hidden"),
        (lambda: DriftingWorld(rounds=0, dim=2, arms=2), "rounds must be at least 1"),
        (lambda: DriftingWorld(rounds=9, dim=1, arms=2), "dim must be at least 2"),
        (lambda: DriftingWorld(rounds=9, dim=2, arms=1), "arms must be at least 2"),
        (lambda: DriftingWorld(rounds=9, dim=2, arms=2, blur=1.5), "blur must be"),
        (lambda: StarvingWorld(rounds=2, dim=3, arms=2), "rounds must be at least 3"),
        (lambda: StarvingWorld(rounds=9, dim=1, arms=2), "dim must be at least 2"),
        (lambda: StarvingWorld(rounds=9, dim=3, arms=1), "arms must be at least 2"),
        (lambda: StarvingWorld(rounds=9, dim=3, arms=2, blur=-1.0), "blur must be"),
        (lambda: EndOfOptimismWorld(gap=0.0), "gap must be"),
        (lambda: EndOfOptimismWorld(gap=0.5), "gap must be"),
        (lambda: PlainArms(arms=0), "arms must be at least 1"),
        (lambda: make_world("lower-bound", dim=3, arms=2, noise=1.0, horizon=99), "dim must be even"),
        (lambda: make_world("lower-bound", dim=4, arms=2, noise=1.0, horizon=32), "horizon of at least 33"),
        (lambda: Gaussian(dim=0, arms=2), "dim must be at least 1"),
        (lambda: Gaussian(dim=2, arms=0), "arms must be at least 1"),
        (lambda: OneBig(dim=1, arms=2), "dim must be at least 2"),
        (lambda: OneBig(dim=2, arms=2, rare=1.5), "rare must be"),
        (lambda: Anisotropic(dim=2, arms=2, decay=0.0), "decay must be"),
        (lambda: Counterexample(dim=5, sample=4), "sample must be at least 5"),
        (lambda: Gaussian(dim=2, arms=2).draw(-1, seed=0), "count must be"),
        (lambda: Gaussian(dim=2, arms=2).draw(1, seed=-1), "seed must be"),
        (lambda: GaussianNoise(-1.0), "scale must be"),
        (lambda: LinearWorld(source=Gaussian(dim=2, arms=2), norm=-1.0), "norm must be"),
        (lambda: VaryingArms(source=Gaussian(dim=2, arms=2), least=3), "least must be between 1 and 2"),
        (lambda: LogisticBallWorld(norm=math.inf), "norm must be"),
        (lambda: LogisticBallWorld(arms=0), "arms"),
        (lambda: DisjointWorld(features=1), "features must be"),
        (lambda: DisjointWorld(arms=0), "arms must be"),
        (lambda: RareClicksWorld(features=0), "features must be"),
        (lambda: HeavyTailsWorld(width=math.nan), "width must be"),
        (lambda: EquicorrelatedWorld(dim=4, nonzero=5), "nonzero must be"),
        (lambda: PlainWorld(arms=0), "dim must be"),
        (lambda: LateGroupsWorld(rounds=0), "rounds must be"),
        (lambda: MixDriftWorld(rounds=10, most=1.5), "most must be"),
        (lambda: TurningWorld(rounds=10, dim=1, arms=3), "dim must be"),
        (lambda: TurningWorld(rounds=10, dim=3, arms=3, angle=math.inf), "angle must be"),
        (lambda: make_world("gaussian", noise=-1.0), "noise must be"),
        (lambda: make_world("gaussian", noise=1e308), "noise must be"),
        (lambda: make_world("clicks", dim=1), "dim must be at least 2; got 1"),
        (lambda: make_world("gaussian", dim=10**5, arms=10**5), "a set has at most 16777216 numbers"),
        (lambda: make_world("plain", arms=10**6), "a set has at most 16777216 numbers"),
        (lambda: make_world("counterexample", dim=10**6), "a set has at most 16777216 numbers"),
        (lambda: make_world("starving", dim=10**5, arms=10**5, horizon=10**6), "a set has at most 16777216 numbers"),
        (lambda: make_world("drifting", horizon=-1), "horizon must be at least 1; got -1"),
        (lambda: make_world(None), "a world is named by a text; got None"),  # type: ignore[arg-type]
        (lambda: make_world("lower-bound:" + "9" * 5000, horizon=1000), "a whole number of stages"),
        *(
            (partial(make_world, name), "made for a horizon, and none was given. Pass horizon=")
            for name in ("drifting", "starving", "lower-bound", "late-groups", "mix-drift", "turning")
        ),
    ],
)
def test_worlds_that_cannot_be_are_refused(make: Callable[[], object], words: str) -> None:
    raises(InputError, words, make)
