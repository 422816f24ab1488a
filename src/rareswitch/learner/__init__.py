"""Learners: their settings, states, clocks and statistics; the only code that makes policies."""

from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG, BatchLinUCBDGCertified, CertifiedMixture, CoreLearning
from rareswitch.learner.batched import BatchedLearner, BatchLinUCB, BatchLinUCBKW, EliminateByBatch
from rareswitch.learner.catalogue import LEARNERS, all_learners, find_learner, make_learner, takes
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryStep
from rareswitch.learner.confidence import (
    LEAST_DELTA,
    ConfidenceMode,
    GridLearner,
    GrowingLearner,
    IntervalLearner,
    Intervals,
    OneModelRule,
    SelfNormalized,
    StaleLearner,
)
from rareswitch.learner.foresight import Foresight, certified_cost
from rareswitch.learner.grids import (
    PER_FEATURE,
    AdaptiveGrid,
    Forecast,
    StaticGrid,
    geometric_grid,
    loglog_batches,
    paper_design_grid,
    paper_grid,
    warm_start,
    whole_ends,
)
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.one_model import (
    OFUL,
    BatchedThompsonSampling,
    LinUCB,
    LinUCBGrid,
    Optimism,
    PosteriorSampling,
    StaleThompsonSampling,
    ThompsonSampling,
)
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.rows import Rows, attributed, clip_bounds, deduplicate, in_seconds, known_rewards, row_hashes
from rareswitch.learner.rule import BatchEnd, NewPolicy, OneModel, Rule
from rareswitch.learner.settings import (
    count,
    design_of_sets,
    plain_settings,
    real,
    required_settings,
    setting,
    settings_of,
)
from rareswitch.learner.state import (
    Sample,
    State,
    Summary,
    sampled,
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
)
from rareswitch.learner.suplinucb import Layers, OptimisticLayers, SupLinUCB

__all__ = ["LEARNERS", "LEAST_DELTA", "OFUL", "PER_FEATURE", "AdaptiveGrid", "BatchEnd", "BatchLinUCB"]
__all__ += ["BatchLinUCBDG", "BatchLinUCBDGCertified", "BatchLinUCBKW", "BatchedLearner", "BatchedThompsonSampling"]
__all__ += ["CertifiedMixture", "Clock", "ConfidenceMode", "CoreLearning", "DeterminantGrowth", "EliminateByBatch"]
__all__ += ["EveryStep", "Forecast", "Foresight", "GridLearner", "GrowingLearner", "IntervalLearner", "Intervals"]
__all__ += ["Layers", "Learner", "LinUCB", "LinUCBGrid", "NewPolicy", "OneModel", "OneModelRule", "Optimism"]
__all__ += ["OptimisticLayers", "Parts", "PosteriorSampling", "RarelySwitchSupLinUCB", "Rows", "Rule", "Sample"]
__all__ += ["SelfNormalized", "StaleLearner", "StaleThompsonSampling", "State", "StaticGrid", "Summary", "SupLinUCB"]
__all__ += ["ThompsonSampling", "all_learners", "attributed", "certified_cost", "clip_bounds", "count", "deduplicate"]
__all__ += ["design_of_sets", "find_learner", "geometric_grid", "in_seconds", "known_rewards", "loglog_batches"]
__all__ += ["make_learner", "paper_design_grid", "paper_grid", "plain_settings", "real", "required_settings"]
__all__ += ["row_hashes", "sampled", "setting", "settings_of", "state_from_bytes", "state_to_bytes"]
__all__ += ["summaries_from_bytes", "summaries_to_bytes", "takes", "warm_start", "whole_ends"]
