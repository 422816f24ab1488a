"""Learners: the only things that make policies."""

from rareswitch.learner.batch_linucb import BatchLinUCB
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.catalogue import LEARNERS, make_learner
from rareswitch.learner.designers import CertifiedMixture, CoreLearning, Designer
from rareswitch.learner.feedback import Feedback, Summary
from rareswitch.learner.grids import (
    AdaptiveGrid,
    Grid,
    StaticGrid,
    custom_grid,
    geometric_grid,
    loglog_batches,
    paper_design_grid,
    paper_grid,
    warm_start,
)
from rareswitch.learner.recommendation import Recommendation, recommend

__all__ = [
    "LEARNERS",
    "AdaptiveGrid",
    "BatchLinUCB",
    "BatchLinUCBDG",
    "BatchLinUCBKW",
    "BatchedLearner",
    "CertifiedMixture",
    "CoreLearning",
    "Designer",
    "Feedback",
    "Grid",
    "Recommendation",
    "StaticGrid",
    "Summary",
    "custom_grid",
    "geometric_grid",
    "loglog_batches",
    "make_learner",
    "paper_design_grid",
    "paper_grid",
    "recommend",
    "warm_start",
]
