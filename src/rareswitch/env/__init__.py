"""Worlds to learn in."""

from rareswitch.env.adversary import DriftingWorld, StarvingWorld
from rareswitch.env.catalogue import WORLDS, NamedWorld, make_world
from rareswitch.env.classification import ClassificationWorld
from rareswitch.env.linear import ClickWorld, LinearWorld
from rareswitch.env.logistic_ball import LogisticBallWorld
from rareswitch.env.lower_bound import (
    LowerBoundWorld,
    Regime,
    every_instance,
    every_sign,
    most_stages,
    switch_lower_bound,
    theorem_range,
)
from rareswitch.env.movielens import MovieLensWorld
from rareswitch.env.noise import CoinNoise, GaussianNoise, Noise, UniformNoise
from rareswitch.env.optimism import EndOfOptimismWorld
from rareswitch.env.records import RecordWorld
from rareswitch.env.sequence import SequenceWorld
from rareswitch.env.trial import AdaptiveTrialWorld
from rareswitch.env.world import Rounds, World

__all__ = [
    "WORLDS",
    "AdaptiveTrialWorld",
    "ClassificationWorld",
    "ClickWorld",
    "CoinNoise",
    "DriftingWorld",
    "EndOfOptimismWorld",
]
__all__ += [
    "GaussianNoise",
    "LinearWorld",
    "LogisticBallWorld",
    "LowerBoundWorld",
    "MovieLensWorld",
    "NamedWorld",
    "Noise",
    "Regime",
]
__all__ += [
    "RecordWorld",
    "Rounds",
    "SequenceWorld",
    "StarvingWorld",
    "UniformNoise",
    "World",
    "every_instance",
    "every_sign",
]
__all__ += ["make_world", "most_stages", "switch_lower_bound", "theorem_range"]
