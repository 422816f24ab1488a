"""Worlds to learn in."""

from rareswitch.lab.worlds.catalogue import WORLDS, NamedWorld, make_world
from rareswitch.lab.worlds.changing import DriftingWorld, LateGroupsWorld, MixDriftWorld, StarvingWorld, TurningWorld
from rareswitch.lab.worlds.classification import ClassificationWorld, greedy_value
from rareswitch.lab.worlds.clicks import LogisticBallWorld, RareClicksWorld, RecordWorld
from rareswitch.lab.worlds.linear import (
    ActionsWorld,
    AdaptiveTrialWorld,
    ClickWorld,
    DisjointWorld,
    EndOfOptimismWorld,
    EquicorrelatedWorld,
    HeavyTailsWorld,
    LinearWorld,
    PlainWorld,
)
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
from rareswitch.lab.worlds.sequence import SequenceWorld
from rareswitch.lab.worlds.tables import ChoiceWorld, table_world
from rareswitch.lab.worlds.world import CoinNoise, GaussianNoise, Noise, Rounds, UniformNoise, World

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
