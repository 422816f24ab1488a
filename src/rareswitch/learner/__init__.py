"""Learners: the only things that make policies."""

from rareswitch.learner.batch_linucb import BatchLinUCB, BatchLinUCBKW
from rareswitch.learner.batch_linucb_dg import (
    BatchLinUCBDG,
    BatchLinUCBDGCertified,
    CertifiedMixture,
    CoreLearning,
    Designer,
)
from rareswitch.learner.batched import BatchedLearner, EliminateByBatch
from rareswitch.learner.bounds import (
    CONTEXTS,
    TABLE,
    Adaptivity,
    Contexts,
    Guarantee,
    Switching,
    arm_logarithm,
    minimax,
    proved_for,
)
from rareswitch.learner.catalogue import LEARNERS, all_learners, budgeted, find_learner, make_learner, takes
from rareswitch.learner.clocks import AsTold, Clock, DeterminantGrowth, EveryLesson, EveryStep
from rareswitch.learner.communication import CommunicationRound, Report, Share
from rareswitch.learner.encoding import (
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
)
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.grids import (
    AdaptiveGrid,
    Forecast,
    Grid,
    GrowingGrid,
    StaticGrid,
    doubling_grid,
    forecast,
    geometric_grid,
    growing_grid,
    loglog_batches,
    paper_design_grid,
    paper_grid,
    warm_start,
)
from rareswitch.learner.interval_learner import GridLearner, IntervalLearner
from rareswitch.learner.kernels import best_columns
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.linucb import OFUL, LinUCB, LinUCBGrid, Optimism, StaleLearner
from rareswitch.learner.planned_exploration import certified_cost
from rareswitch.learner.posterior import Posterior, posterior
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.rows import Rows, attributed, clip_bounds, in_seconds
from rareswitch.learner.rule import Ended, Made, OneModelRule, Rule
from rareswitch.learner.settings import count, design_of_sets, needed, real, setting, settings_of, to_plain
from rareswitch.learner.state import Batch, State
from rareswitch.learner.statistics import LayerModels, OneModel
from rareswitch.learner.summary import Sample, Summary, sample_order, sampled
from rareswitch.learner.suplinucb import Layers, OptimisticLayers, SupLinUCB
from rareswitch.learner.thompson import (
    BatchedThompsonSampling,
    PosteriorSampling,
    StaleThompsonSampling,
    ThompsonSampling,
)

__all__ = ["CONTEXTS", "LEARNERS", "OFUL", "AdaptiveGrid", "AsTold", "Batch", "BatchLinUCB", "Forecast"]
__all__ += ["BatchLinUCBDG", "BatchLinUCBDGCertified", "BatchLinUCBKW", "BatchedLearner", "BatchedThompsonSampling"]
__all__ += ["CertifiedMixture", "Clock", "CommunicationRound", "Contexts", "CoreLearning", "Designer"]
__all__ += ["DeterminantGrowth", "EliminateByBatch", "Ended", "EveryLesson", "EveryStep", "Foresight", "Grid"]
__all__ += ["GridLearner", "GrowingGrid", "IntervalLearner", "LayerModels", "Layers", "Learner", "LinUCB", "Made"]
__all__ += ["OneModel", "OneModelRule", "Optimism", "OptimisticLayers", "Parts", "Posterior", "PosteriorSampling"]
__all__ += ["RarelySwitchSupLinUCB", "Report", "Rows", "Rule", "Sample", "Share", "StaleLearner"]
__all__ += ["LinUCBGrid", "StaleThompsonSampling", "State", "StaticGrid", "Summary", "SupLinUCB"]
__all__ += ["ThompsonSampling", "all_learners", "attributed", "best_columns", "budgeted", "certified_cost"]
__all__ += ["clip_bounds", "count", "design_of_sets", "doubling_grid", "find_learner", "forecast", "geometric_grid"]
__all__ += ["growing_grid", "in_seconds", "loglog_batches", "make_learner", "needed", "paper_design_grid"]
__all__ += ["paper_grid", "posterior", "real", "sample_order", "sampled", "setting", "settings_of"]
__all__ += ["state_from_bytes", "state_to_bytes", "summaries_from_bytes", "summaries_to_bytes", "takes", "to_plain"]
__all__ += ["warm_start"]
__all__ += ["TABLE", "Adaptivity", "Guarantee", "Switching", "arm_logarithm", "minimax", "proved_for"]
