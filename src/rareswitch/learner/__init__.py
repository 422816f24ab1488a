"""Learners: the only things that make policies."""

from rareswitch.learner.base_elimination import BaSE
from rareswitch.learner.batch_linucb import BatchLinUCB, BatchLinUCBKW
from rareswitch.learner.batch_linucb_dg import (
    BatchLinUCBDG,
    BatchLinUCBDGCertified,
    CertifiedMixture,
    CoreLearning,
    Designer,
)
from rareswitch.learner.bounds import CONTEXTS, Contexts
from rareswitch.learner.catalogue import LEARNERS, budgeted, find_learner, make_learner, takes
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryLesson, EveryStep
from rareswitch.learner.e4 import E4
from rareswitch.learner.encoding import (
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
)
from rareswitch.learner.falcon import Falcon
from rareswitch.learner.fixed_set_elimination import FixedSetElimination
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.grids import (
    AdaptiveGrid,
    Ahead,
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
from rareswitch.learner.learner import Learner
from rareswitch.learner.linmed import LinMED, StaleLinMED
from rareswitch.learner.linucb import OFUL, LinUCB, Optimism, StaleLinUCB
from rareswitch.learner.planned_exploration import certified_cost
from rareswitch.learner.posterior import Posterior, posterior
from rareswitch.learner.pure_exploitation import PureExploitation
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.recommendation import Recommendation, recommend
from rareswitch.learner.rho import RHO
from rareswitch.learner.rows import Rows, attributed, clip_bounds, in_seconds
from rareswitch.learner.settings import needed, settings_of, to_plain
from rareswitch.learner.state import Batch, State
from rareswitch.learner.statistics import LayerModels
from rareswitch.learner.summary import Sample, Summary, sample_order, sampled
from rareswitch.learner.suplinrel import SupLinRel
from rareswitch.learner.suplinucb import Layers, SupLinUCB
from rareswitch.learner.thompson import (
    BatchedThompsonSampling,
    PosteriorSampling,
    StaleThompsonSampling,
    ThompsonSampling,
)

__all__ = ["CONTEXTS", "E4", "LEARNERS", "OFUL", "RHO", "BatchedThompsonSampling", "LinMED", "StaleLinMED"]
__all__ += ["AdaptiveGrid", "Ahead", "BaSE", "Batch", "BatchLinUCB", "BatchLinUCBDG"]
__all__ += ["BatchLinUCBDGCertified", "BatchLinUCBKW", "CertifiedMixture", "Clock"]
__all__ += ["Contexts", "CoreLearning", "Designer", "DeterminantGrowth", "EveryLesson", "EveryStep", "Falcon"]
__all__ += ["FixedSetElimination", "Foresight", "Grid", "GrowingGrid", "LayerModels", "Layers", "Learner", "LinUCB"]
__all__ += ["Optimism", "Posterior", "PosteriorSampling", "PureExploitation", "RarelySwitchSupLinUCB"]
__all__ += ["Recommendation", "Rows", "Sample", "StaleLinUCB", "StaleThompsonSampling", "State"]
__all__ += ["StaticGrid", "Summary", "SupLinRel", "SupLinUCB", "ThompsonSampling", "attributed", "budgeted"]
__all__ += [
    "certified_cost",
    "clip_bounds",
    "doubling_grid",
    "find_learner",
    "forecast",
    "geometric_grid",
    "growing_grid",
    "in_seconds",
]
__all__ += ["loglog_batches", "make_learner", "needed", "paper_design_grid", "paper_grid", "posterior", "recommend"]
__all__ += ["sample_order", "sampled", "settings_of", "state_from_bytes", "state_to_bytes", "summaries_from_bytes"]
__all__ += ["summaries_to_bytes", "takes", "to_plain", "warm_start"]
