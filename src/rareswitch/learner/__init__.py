"""Learners: their settings, states, clocks and statistics; the only code that makes policies."""

from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG, BatchLinUCBDGCertified, CertifiedMixture, CoreLearning
from rareswitch.learner.batched import BatchedLearner, BatchLinUCB, BatchLinUCBKW, EliminateByBatch
from rareswitch.learner.bounds import (
    CONTEXTS,
    Contexts,
    Guarantee,
    Switching,
    arm_logarithm,
    proved_for,
)
from rareswitch.learner.catalogue import LEARNERS, all_learners, find_learner, make_learner, takes
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryStep
from rareswitch.learner.confidence import (
    LEAST_DELTA,
    ConfidenceMode,
    GridLearner,
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
from rareswitch.learner.planning import best_columns
from rareswitch.learner.posterior import Posterior, posterior
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.reserve import Uncertainty
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
    Batch,
    Note,
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

__all__ = ["CONTEXTS", "LEARNERS", "OFUL", "AdaptiveGrid"]
__all__ += ["Batch", "BatchEnd", "BatchLinUCB", "BatchLinUCBDG"]
__all__ += ["BatchLinUCBDGCertified", "BatchLinUCBKW", "BatchedLearner", "BatchedThompsonSampling"]
__all__ += ["CertifiedMixture", "Clock", "Contexts", "CoreLearning", "DeterminantGrowth", "EliminateByBatch"]
__all__ += ["EveryStep", "Forecast", "Foresight", "GridLearner", "Guarantee", "IntervalLearner", "Layers", "Learner"]
__all__ += ["LinUCB", "LinUCBGrid", "NewPolicy", "Note", "OneModel", "OneModelRule", "Optimism", "OptimisticLayers"]
__all__ += ["Parts", "Posterior", "PosteriorSampling", "RarelySwitchSupLinUCB", "Rows", "Rule", "Sample"]
__all__ += ["StaleLearner", "StaleThompsonSampling", "State", "StaticGrid", "Summary", "SupLinUCB", "Switching"]
__all__ += ["ThompsonSampling", "Uncertainty", "all_learners", "arm_logarithm", "attributed", "best_columns"]
__all__ += ["certified_cost", "clip_bounds", "count", "deduplicate", "design_of_sets", "find_learner"]
__all__ += ["geometric_grid", "in_seconds", "known_rewards", "loglog_batches", "make_learner"]
__all__ += ["paper_design_grid", "paper_grid", "plain_settings", "posterior", "proved_for", "real"]
__all__ += ["required_settings", "row_hashes", "sampled", "setting", "settings_of"]
__all__ += ["state_from_bytes", "state_to_bytes", "summaries_from_bytes", "summaries_to_bytes", "takes", "warm_start"]
__all__ += ["whole_ends"]
__all__ += ["LEAST_DELTA", "ConfidenceMode", "Intervals", "SelfNormalized"]
