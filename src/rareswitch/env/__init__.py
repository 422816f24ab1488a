"""Worlds to learn in."""

from rareswitch.env.catalogue import WORLDS, make_world
from rareswitch.env.linear import ClickWorld, LinearWorld
from rareswitch.env.noise import CoinNoise, GaussianNoise, Noise, UniformNoise
from rareswitch.env.replay import ClassificationWorld
from rareswitch.env.world import Rounds, World

__all__ = [
    "WORLDS",
    "ClassificationWorld",
    "ClickWorld",
    "CoinNoise",
    "GaussianNoise",
    "LinearWorld",
    "Noise",
    "Rounds",
    "UniformNoise",
    "World",
    "make_world",
]
