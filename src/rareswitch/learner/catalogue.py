"""Learners by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rareswitch.errors import InputError, ParameterError
from rareswitch.learner.base_elimination import BaSE
from rareswitch.learner.batch_linucb import BatchLinUCB
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.designers import CertifiedMixture
from rareswitch.learner.falcon import Falcon
from rareswitch.learner.fixed_set_elimination import FixedSetElimination
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.grids import geometric_grid
from rareswitch.learner.learner import Learner
from rareswitch.learner.linucb import LinUCB
from rareswitch.learner.oful import OFUL
from rareswitch.learner.pure_exploitation import PureExploitation
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.suplinrel import SupLinRel
from rareswitch.learner.suplinucb import SupLinUCB
from rareswitch.learner.thompson import ThompsonSampling

SIZES = frozenset({"dim", "arms", "horizon"})
COMMON = SIZES | {"confidence", "delta", "noise", "norm", "ridge"}
"""Settings of learners with confidence intervals that must be told the noise."""
STALE_BATCHES = 8


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A learner as the commands know it."""

    text: str
    """What it does, on one line."""
    adaptivity: str
    """How many policies it deploys."""
    regret: str
    """Its bound, up to logarithmic factors, and for which contexts."""
    make: Callable[..., Learner]
    takes: frozenset[str] = COMMON
    """Its settings."""


def _stale(make: Callable[..., Learner]) -> Callable[..., Learner]:
    """On a geometric grid, or on one that is given."""

    def fresh(*, horizon: int, batches: int | None = None, grid: Any = None, **settings: Any) -> Learner:
        if batches is not None and grid is not None:
            raise ParameterError("give batches, for a geometric grid of that many, or a grid; not both.")
        if grid is None:
            grid = geometric_grid(horizon, min(horizon, STALE_BATCHES) if batches is None else batches)
        return make(horizon=horizon, clock=grid, **settings)

    return fresh


BATCHED = COMMON | {"batches", "grid"}
LEARNERS: dict[str, Entry] = {
    "foresight": Entry(
        text="posterior draws, exploration planned at each update; nothing to tune",
        adaptivity="updates (8)",
        regret="d^1.5·√(T/floor), stochastic, if its estimates of scale hold",
        make=Foresight,
        takes=SIZES | {"updates", "grid", "intercept", "floor", "delta", "seed"},
    ),
    "batch-linucb": Entry(
        text="uniform among the survivors of elimination (Algorithm 1)",
        adaptivity="⌈log log T⌉",
        regret="√(dKT), stochastic",
        make=BatchLinUCB,
        takes=BATCHED,
    ),
    "batch-linucb-kw": Entry(
        text="G-optimal design of the survivors (Appendix B)",
        adaptivity="⌈log log T⌉",
        regret="d√T, stochastic",
        make=BatchLinUCBKW,
        takes=BATCHED | {"g_optimal"},
    ),
    "batch-linucb-dg": Entry(
        text="a sampling policy learned by CoreLearning (Algorithm 5)",
        adaptivity="⌈log log T⌉ + 1",
        regret="√(dT), stochastic",
        make=BatchLinUCBDG,
        takes=BATCHED | {"g_optimal"},
    ),
    "batch-linucb-dg-certified": Entry(
        text="Algorithm 5 with the certified Frank-Wolfe design",
        adaptivity="⌈log log T⌉ + 1",
        regret="√(dT), stochastic, on its certificate",
        make=lambda **settings: BatchLinUCBDG(designer=CertifiedMixture(), **settings),
        takes=BATCHED | {"g_optimal"},
    ),
    "rarely-switch-suplinucb": Entry(
        text="layers frozen until their determinants grow by C (Algorithm 6)",
        adaptivity="O(d log d log T / log C)",
        regret="C√(dT), adversarial",
        make=RarelySwitchSupLinUCB,
        takes=COMMON | {"growth"},
    ),
    "oful": Entry(
        text="LinUCB, changed when the determinant grows by C",
        adaptivity="O(d log T / log C)",
        regret="√C·d√T, adversarial",
        make=OFUL,
        takes=COMMON | {"growth"},
    ),
    "linucb": Entry(
        text="the arm whose interval reaches highest, updated every step",
        adaptivity="T",
        regret="d√T, adversarial",
        make=LinUCB,
        takes=COMMON | {"clock"},
    ),
    "thompson": Entry(
        text="the best arm of a posterior draw, updated every step",
        adaptivity="T",
        regret="d√T on average over the prior",
        make=ThompsonSampling,
        takes=COMMON | {"clock", "scale", "draws", "seed"},
    ),
    "suplinucb": Entry(
        text="layered LinUCB, updated every step (Chu et al. 2011)",
        adaptivity="up to T",
        regret="√(dT), adversarial",
        make=SupLinUCB,
    ),
    "suplinrel": Entry(
        text="layered truncated least squares, updated every step (Auer 2002); slow",
        adaptivity="up to T",
        regret="√(dT), adversarial",
        make=SupLinRel,
    ),
    "stale-linucb": Entry(
        text="LinUCB on a grid, geometric by default",
        adaptivity="batches (8)",
        regret="none",
        make=_stale(LinUCB),
        takes=BATCHED,
    ),
    "stale-thompson": Entry(
        text="Thompson sampling on a grid, by frozen posterior draws",
        adaptivity="batches (8)",
        regret="none",
        make=_stale(ThompsonSampling),
        takes=BATCHED | {"scale", "draws", "seed"},
    ),
    "pure-exploitation": Entry(
        text="the best-looking arm, updated by batch (Han et al. 2020)",
        adaptivity="⌈log log T⌉",
        regret="√(dT), contexts that explore by themselves",
        make=PureExploitation,
        takes=BATCHED,
    ),
    "falcon": Entry(
        text="inverse-gap weighting by epochs (Simchi-Levi and Xu 2020)",
        adaptivity="⌈log T⌉",
        regret="√(dKT), stochastic",
        make=Falcon,
        takes=BATCHED,
    ),
    "fixed-set-elimination": Entry(
        text="G-optimal elimination of one fixed action set (Esfandiari et al. 2019)",
        adaptivity="⌈ln T⌉",
        regret="√(dT), one fixed set",
        make=FixedSetElimination,
        takes=BATCHED | {"g_optimal"},
    ),
    "base": Entry(
        text="successive elimination of plain arms by batch (Gao et al. 2019)",
        adaptivity="⌈log log T⌉",
        regret="√(KT), plain arms",
        make=BaSE,
        takes=BATCHED,
    ),
}


def find_learner(name: str) -> Entry:
    """The entry of that name."""
    if name not in LEARNERS:
        raise InputError(f"there is no learner '{name}'; the learners are {', '.join(LEARNERS)}.")
    return LEARNERS[name]


def make_learner(name: str, **settings: Any) -> Learner:
    """A fresh learner of that name with the given settings (dim, arms, horizon and what it takes besides).

    >>> make_learner("oful", dim=5, arms=10, horizon=1000, growth=4.0).updates
    1
    """
    entry = find_learner(name)
    foreign = sorted(set(settings) - entry.takes)
    if foreign:
        raise ParameterError(f"{name} does not take {', '.join(foreign)}; it takes {', '.join(sorted(entry.takes))}.")
    return entry.make(**settings)
