"""Worlds to learn in."""

from rareswitch.lab.worlds.actions import ActionsWorld
from rareswitch.lab.worlds.adversary import DriftingWorld, StarvingWorld
from rareswitch.lab.worlds.catalogue import WORLDS, NamedWorld, make_world
from rareswitch.lab.worlds.choices import ChoiceWorld
from rareswitch.lab.worlds.classification import ClassificationWorld
from rareswitch.lab.worlds.disjoint import DisjointWorld
from rareswitch.lab.worlds.equicorrelated import EquicorrelatedWorld
from rareswitch.lab.worlds.groups import LateGroupsWorld, MixDriftWorld
from rareswitch.lab.worlds.heavy_tails import HeavyTailsWorld
from rareswitch.lab.worlds.hindsight import greedy_value
from rareswitch.lab.worlds.linear import ClickWorld, LinearWorld
from rareswitch.lab.worlds.logistic_ball import LogisticBallWorld
from rareswitch.lab.worlds.lower_bound import (
    LowerBoundWorld,
    Regime,
    every_instance,
    every_sign,
    most_stages,
    switch_lower_bound,
    theorem_range,
)
from rareswitch.lab.worlds.movielens import MovieLensWorld
from rareswitch.lab.worlds.noise import CoinNoise, GaussianNoise, Noise, UniformNoise
from rareswitch.lab.worlds.optimism import EndOfOptimismWorld
from rareswitch.lab.worlds.plain import PlainWorld
from rareswitch.lab.worlds.rare_clicks import RareClicksWorld
from rareswitch.lab.worlds.records import RecordWorld
from rareswitch.lab.worlds.sequence import SequenceWorld
from rareswitch.lab.worlds.table import table_world
from rareswitch.lab.worlds.trial import AdaptiveTrialWorld
from rareswitch.lab.worlds.turning import TurningWorld
from rareswitch.lab.worlds.world import Rounds, World

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
