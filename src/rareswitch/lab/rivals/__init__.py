"""Learners to compare with: the companions of the paper, and rivals; they join the catalogue when they are imported."""

from rareswitch.lab.rivals.fixed_sets import E4, Allocation, BaSE, FixedSetElimination, cheapest_allocation
from rareswitch.lab.rivals.gap_weighting import (
    EmpiricalDivergence,
    Falcon,
    InverseGap,
    LinMED,
    LinMEDGrid,
    PureExploitation,
)
from rareswitch.lab.rivals.rho import RHO
from rareswitch.lab.rivals.suplinrel import SupLinRel
from rareswitch.learner import LEARNERS

for _kind in (LinMED, SupLinRel, LinMEDGrid, PureExploitation, RHO, Falcon, FixedSetElimination, E4, BaSE):
    LEARNERS[_kind.name] = _kind

__all__ = [
    "E4",
    "RHO",
    "Allocation",
    "BaSE",
    "EmpiricalDivergence",
    "Falcon",
    "FixedSetElimination",
    "InverseGap",
    "LinMED",
    "LinMEDGrid",
    "PureExploitation",
    "SupLinRel",
    "cheapest_allocation",
]
