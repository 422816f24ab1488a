"""Worlds to learn in."""

from rareswitch.lab.worlds.catalogue import WORLDS, NamedWorld, make_world
from rareswitch.lab.worlds.classification import ClassificationWorld, greedy_value
from rareswitch.lab.worlds.clicks import RecordWorld
from rareswitch.lab.worlds.linear import ActionsWorld, AdaptiveTrialWorld, ClickWorld, LinearWorld
from rareswitch.lab.worlds.lower_bound import LowerBoundWorld, every_instance, switch_lower_bound, theorem_range
from rareswitch.lab.worlds.movielens import MovieLensWorld
from rareswitch.lab.worlds.sequence import SequenceWorld
from rareswitch.lab.worlds.tables import ChoiceWorld, table_world
from rareswitch.lab.worlds.world import CoinNoise, GaussianNoise, Noise, Rounds, UniformNoise, World

__all__ = ["WORLDS", "ActionsWorld", "AdaptiveTrialWorld", "ChoiceWorld", "ClassificationWorld", "ClickWorld"]
__all__ += ["CoinNoise", "GaussianNoise", "LinearWorld", "LowerBoundWorld", "MovieLensWorld", "NamedWorld", "Noise"]
__all__ += ["RecordWorld", "Rounds", "SequenceWorld", "UniformNoise", "World", "every_instance", "greedy_value"]
__all__ += ["make_world", "switch_lower_bound", "table_world", "theorem_range"]
