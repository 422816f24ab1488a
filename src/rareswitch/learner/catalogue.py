"""Learners by name."""

from typing import Any

from rareswitch.errors import InputError, ParameterError, did_you_mean
from rareswitch.learner.base_elimination import BaSE
from rareswitch.learner.batch_linucb import BatchLinUCB
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG, BatchLinUCBDGCertified
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.batched_thompson import BatchedThompsonSampling
from rareswitch.learner.e4 import E4
from rareswitch.learner.falcon import Falcon
from rareswitch.learner.fixed_set_elimination import FixedSetElimination
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.learner import Learner
from rareswitch.learner.linmed import LinMED, StaleLinMED
from rareswitch.learner.linucb import LinUCB, StaleLinUCB
from rareswitch.learner.oful import OFUL
from rareswitch.learner.pure_exploitation import PureExploitation
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.rho import RHO
from rareswitch.learner.settings import from_plain, needed, settings_of
from rareswitch.learner.suplinrel import SupLinRel
from rareswitch.learner.suplinucb import SupLinUCB
from rareswitch.learner.thompson import StaleThompsonSampling, ThompsonSampling

_PAPER = (BatchLinUCB, BatchLinUCBKW, BatchLinUCBDG, BatchLinUCBDGCertified, RarelySwitchSupLinUCB)
_ADAPTIVE = (OFUL, LinUCB, ThompsonSampling, BatchedThompsonSampling, LinMED, SupLinUCB, SupLinRel)
_STALE = (StaleLinUCB, StaleThompsonSampling, StaleLinMED)
_BATCHED = (*_STALE, PureExploitation, RHO, Falcon, FixedSetElimination, E4, BaSE)
#: All of them; what a learner takes are the fields of its class.
LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (Foresight, *_PAPER, *_ADAPTIVE, *_BATCHED)}


def find_learner(name: str) -> type[Learner]:
    """The class of that name."""
    if not isinstance(name, str) or name not in LEARNERS:
        known = f"the learners are {', '.join(LEARNERS)}.{did_you_mean(name, LEARNERS)}"
        raise InputError(f"there is no learner '{name!s:.60}'; {known}")
    return LEARNERS[name]


def takes(name: str) -> tuple[str, ...]:
    """The settings of the learner of that name."""
    return tuple(entry.name for entry in settings_of(find_learner(name)))


def make_learner(name: str, **settings: Any) -> Learner:
    """The learner of that name with these settings, also as they are kept in files.

    >>> make_learner("oful", dim=5, arms=10, horizon=1e3, growth=4.0).begin().updates
    1
    """
    kind = find_learner(name)
    foreign = sorted(set(settings) - set(takes(name)))
    if foreign:
        known = f"it takes {', '.join(sorted(takes(name)))}.{did_you_mean(foreign[0], takes(name))}"
        raise ParameterError(f"{name} does not take {', '.join(foreign)}; {known}")
    missing = [key for key in needed(kind) if key not in settings]
    if missing:
        given = ", ".join(settings) or "no settings"
        raise ParameterError(f"{missing[0]} must be given: {name} needs {', '.join(missing)}; got {given}.")
    return kind(**{key: from_plain(key, value) for key, value in settings.items()})
