"""Optimal designs: G-optimal for one set of arms, distributional for a distribution of sets."""

from rareswitch.design.distributional import (
    Core,
    CoreDesign,
    StagedDesign,
    core_identification,
    core_learning,
    staged_design,
)
from rareswitch.design.frank_wolfe import CertifiedDesign, frank_wolfe_design
from rareswitch.design.goptimal import Design, g_optimal
from rareswitch.design.sampling import (
    Argmax,
    GOptimal,
    MixedArgmax,
    MixedSoftmax,
    Sampler,
    Softmax,
    Uniform,
    deviation,
    information,
    largest_forms,
    variation,
)

__all__ = [
    "Argmax",
    "CertifiedDesign",
    "Core",
    "CoreDesign",
    "Design",
    "GOptimal",
    "MixedArgmax",
    "MixedSoftmax",
    "Sampler",
    "Softmax",
    "StagedDesign",
    "Uniform",
    "core_identification",
    "core_learning",
    "deviation",
    "frank_wolfe_design",
    "g_optimal",
    "information",
    "largest_forms",
    "staged_design",
    "variation",
]
