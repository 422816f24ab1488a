"""Worlds to learn in."""

from rareswitch.env.actions import ActionsWorld
from rareswitch.env.adversary import DriftingWorld, StarvingWorld
from rareswitch.env.catalogue import WORLDS, NamedWorld, make_world
from rareswitch.env.choices import ChoiceWorld
from rareswitch.env.classification import ClassificationWorld
from rareswitch.env.disjoint import DisjointWorld
from rareswitch.env.equicorrelated import EquicorrelatedWorld
from rareswitch.env.groups import LateGroupsWorld, MixDriftWorld
from rareswitch.env.heavy_tails import HeavyTailsWorld
from rareswitch.env.hindsight import greedy_value
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
from rareswitch.env.plain import PlainWorld
from rareswitch.env.rare_clicks import RareClicksWorld
from rareswitch.env.records import RecordWorld
from rareswitch.env.sequence import SequenceWorld
from rareswitch.env.table import table_world
from rareswitch.env.trial import AdaptiveTrialWorld
from rareswitch.env.turning import TurningWorld
from rareswitch.env.world import Rounds, World

__all__ = ["WORLDS", "ActionsWorld", "AdaptiveTrialWorld", "ChoiceWorld", "ClassificationWorld", "ClickWorld"]
__all__ += ["CoinNoise", "DriftingWorld", "EndOfOptimismWorld", "GaussianNoise", "LinearWorld", "LogisticBallWorld"]
__all__ += ["LowerBoundWorld", "MovieLensWorld", "NamedWorld", "Noise", "Regime"]
__all__ += [
    "RecordWorld",
    "Rounds",
    "SequenceWorld",
    "StarvingWorld",
    "UniformNoise",
    "World",
    "every_instance",
    "every_sign",
    "greedy_value",
]
__all__ += ["DisjointWorld", "EquicorrelatedWorld", "HeavyTailsWorld", "LateGroupsWorld", "MixDriftWorld"]
__all__ += ["PlainWorld", "RareClicksWorld", "TurningWorld"]
__all__ += ["make_world", "most_stages", "switch_lower_bound", "table_world", "theorem_range"]
