"""Learners: their settings, states, clocks and statistics; the only code that makes policies."""

from rareswitch.learner.batch_linucb_dg import (
    BatchLinUCBDG,
    BatchLinUCBDGCertified,
    CertifiedMixture,
    CoreLearning,
    Designer,
)
from rareswitch.learner.batched import BatchedLearner, BatchLinUCB, BatchLinUCBKW, EliminateByBatch
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
from rareswitch.learner.clocks import ByRule, Clock, DeterminantGrowth, EveryInformativeStep, EveryStep
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
from rareswitch.learner.rows import (
    Rows,
    attributed,
    clip_bounds,
    deduplicate,
    in_seconds,
    known_rewards,
    row_hashes,
)
from rareswitch.learner.rule import BatchEnd, LayerModels, NewPolicy, OneModel, OneModelRule, Rule
from rareswitch.learner.settings import count, design_of_sets, needed, real, setting, settings_of, to_plain
from rareswitch.learner.state import Batch, Sample, State, Summary, sample_order, sampled
from rareswitch.learner.suplinucb import Layers, OptimisticLayers, SupLinUCB
from rareswitch.learner.thompson import (
    BatchedThompsonSampling,
    PosteriorSampling,
    StaleThompsonSampling,
    ThompsonSampling,
)

__all__ = ["CONTEXTS", "LEARNERS", "OFUL", "AdaptiveGrid", "Batch", "BatchEnd", "BatchLinUCB", "BatchLinUCBDG"]
__all__ += ["BatchLinUCBDGCertified", "BatchLinUCBKW", "BatchedLearner", "BatchedThompsonSampling", "ByRule"]
__all__ += ["CertifiedMixture", "Clock", "Contexts", "CoreLearning", "Designer"]
__all__ += ["DeterminantGrowth", "EliminateByBatch", "EveryInformativeStep", "EveryStep", "Forecast", "Foresight"]
__all__ += ["Grid", "GridLearner", "GrowingGrid", "IntervalLearner", "LayerModels", "Layers", "Learner", "LinUCB"]
__all__ += ["LinUCBGrid", "NewPolicy", "OneModel", "OneModelRule", "Optimism", "OptimisticLayers", "Parts"]
__all__ += ["Posterior", "PosteriorSampling", "RarelySwitchSupLinUCB", "Rows", "Rule"]
__all__ += ["Sample", "StaleLearner", "StaleThompsonSampling", "State", "StaticGrid", "Summary"]
__all__ += ["SupLinUCB", "ThompsonSampling", "all_learners", "attributed", "best_columns", "budgeted"]
__all__ += ["certified_cost", "clip_bounds", "count", "design_of_sets", "doubling_grid", "find_learner", "forecast"]
__all__ += ["geometric_grid", "growing_grid", "in_seconds", "loglog_batches", "make_learner", "needed"]
__all__ += ["paper_design_grid", "paper_grid", "posterior", "real", "sample_order", "sampled"]
__all__ += ["setting", "settings_of", "state_from_bytes", "state_to_bytes", "summaries_from_bytes"]
__all__ += ["summaries_to_bytes", "takes", "to_plain", "warm_start"]
__all__ += ["TABLE", "Adaptivity", "Guarantee", "Switching", "arm_logarithm", "minimax", "proved_for"]
__all__ += ["deduplicate", "known_rewards", "row_hashes"]
