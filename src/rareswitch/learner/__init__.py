"""Learners: the only things that make policies."""

from rareswitch.learner.base_elimination import BaSE
from rareswitch.learner.batch_linucb import BatchLinUCB
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.budget import budget_settings
from rareswitch.learner.catalogue import LEARNERS, Entry, find_learner, make_learner
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryStep
from rareswitch.learner.communication import CommunicationRound, Report, Share
from rareswitch.learner.designers import CertifiedMixture, CoreLearning, Designer
from rareswitch.learner.evidence import Posterior, posterior
from rareswitch.learner.falcon import Falcon
from rareswitch.learner.feedback import Feedback, Summary
from rareswitch.learner.fixed_set_elimination import FixedSetElimination
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.grids import (
    AdaptiveGrid,
    Grid,
    StaticGrid,
    custom_grid,
    doubling_grid,
    geometric_grid,
    growing_grid,
    loglog_batches,
    paper_design_grid,
    paper_grid,
    warm_start,
)
from rareswitch.learner.learner import Learner
from rareswitch.learner.linucb import LinUCB
from rareswitch.learner.oful import OFUL
from rareswitch.learner.pure_exploitation import PureExploitation
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.recommendation import Recommendation, recommend
from rareswitch.learner.summary_files import summary_from_bytes, summary_to_bytes
from rareswitch.learner.suplinrel import SupLinRel
from rareswitch.learner.suplinucb import SupLinUCB
from rareswitch.learner.thompson import ThompsonSampling
from rareswitch.learner.walking import Walker

__all__ = [
    "LEARNERS",
    "OFUL",
    "AdaptiveGrid",
    "BaSE",
    "BatchLinUCB",
    "BatchLinUCBDG",
    "BatchLinUCBKW",
    "BatchedLearner",
    "CertifiedMixture",
    "Clock",
    "CommunicationRound",
    "CoreLearning",
    "Designer",
    "DeterminantGrowth",
    "Entry",
    "EveryStep",
    "Falcon",
    "Feedback",
    "FixedSetElimination",
    "Foresight",
    "Grid",
    "Learner",
    "LinUCB",
    "Posterior",
    "PureExploitation",
    "RarelySwitchSupLinUCB",
    "Recommendation",
    "Report",
    "Share",
    "StaticGrid",
    "Summary",
    "SupLinRel",
    "SupLinUCB",
    "ThompsonSampling",
    "Walker",
    "budget_settings",
    "custom_grid",
    "doubling_grid",
    "find_learner",
    "geometric_grid",
    "growing_grid",
    "loglog_batches",
    "make_learner",
    "paper_design_grid",
    "paper_grid",
    "posterior",
    "recommend",
    "summary_from_bytes",
    "summary_to_bytes",
    "warm_start",
]
