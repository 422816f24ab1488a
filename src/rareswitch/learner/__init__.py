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
from rareswitch.learner.rows import (
    Rows,
    attributed,
    clip_bounds,
    deduplicate,
    in_seconds,
    known_rewards,
    row_hashes,
)
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

__all__ = ["AdaptiveGrid", "BatchEnd", "BatchLinUCB", "BatchLinUCBDG", "BatchLinUCBDGCertified", "BatchLinUCBKW"]
__all__ += ["BatchedLearner", "BatchedThompsonSampling", "CertifiedMixture", "Clock", "ConfidenceMode", "CoreLearning"]
__all__ += ["DeterminantGrowth", "EliminateByBatch", "EveryStep", "Forecast", "Foresight", "GridLearner"]
__all__ += ["LEARNERS", "LEAST_DELTA", "GrowingLearner", "IntervalLearner", "Intervals", "Layers", "Learner", "LinUCB"]
__all__ += ["OFUL", "LinUCBGrid", "NewPolicy", "OneModel", "OneModelRule", "Optimism", "OptimisticLayers", "Parts"]
__all__ += ["PosteriorSampling", "RarelySwitchSupLinUCB", "Rows", "Rule", "Sample", "SelfNormalized"]
__all__ += ["StaleLearner", "StaleThompsonSampling", "State", "StaticGrid", "Summary", "SupLinUCB", "ThompsonSampling"]
__all__ += ["all_learners", "attributed", "certified_cost", "clip_bounds", "count", "deduplicate"]
__all__ += ["design_of_sets", "find_learner", "geometric_grid", "in_seconds", "known_rewards", "loglog_batches"]
__all__ += ["make_learner", "paper_design_grid", "paper_grid", "plain_settings", "real"]
__all__ += ["required_settings", "row_hashes", "sampled", "setting", "settings_of", "state_from_bytes"]
__all__ += ["state_to_bytes", "summaries_from_bytes", "summaries_to_bytes", "takes", "warm_start", "whole_ends"]
