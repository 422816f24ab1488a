"""Learners by name."""

import math
from functools import cache
from typing import Any

from rareswitch import codec
from rareswitch.errors import InputError, ParameterError, did_you_mean
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG, BatchLinUCBDGCertified
from rareswitch.learner.batched import BatchLinUCB, BatchLinUCBKW
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.learner import Learner
from rareswitch.learner.linucb import OFUL, LinUCB, LinUCBGrid
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.settings import needed, settings_of
from rareswitch.learner.suplinucb import SupLinUCB
from rareswitch.learner.thompson import BatchedThompsonSampling, StaleThompsonSampling, ThompsonSampling
from rareswitch.validation import whole

_PAPER = (BatchLinUCB, BatchLinUCBKW, BatchLinUCBDG, BatchLinUCBDGCertified, RarelySwitchSupLinUCB)
_ADAPTIVE = (OFUL, LinUCB, ThompsonSampling, BatchedThompsonSampling, SupLinUCB)
_GRID = (LinUCBGrid, StaleThompsonSampling)
#: By name; what a learner takes are the fields of its class. Packages that add their own put them here.
LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (Foresight, *_PAPER, *_ADAPTIVE, *_GRID)}


def all_learners() -> dict[str, type[Learner]]:
    """Those of the library and those that the laboratory adds, by name."""
    codec.extend()
    return LEARNERS


def find_learner(name: str) -> type[Learner]:
    """The class of that name."""
    if not isinstance(name, str) or (name not in LEARNERS and name not in all_learners()):
        known = f"the learners are {', '.join(LEARNERS)}.{did_you_mean(name, LEARNERS)}"
        raise InputError(f"there is no learner '{name!s:.60}'; {known}")
    return LEARNERS[name]


@cache
def takes(name: str) -> tuple[str, ...]:
    """The settings of the learner of that name."""
    return tuple(entry.name for entry in settings_of(find_learner(name)))


def make_learner(name: str, **settings: Any) -> Learner:
    """The learner of that name with these settings, also as they are kept in files.

    >>> make_learner("oful", dim=5, arms=10, horizon=1e3, growth=4.0).begin().policies
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
    return kind(**{key: codec.revived(value) for key, value in settings.items()})


#: The growth of the determinant at which OFUL and RarelySwitch-SupLinUCB wait for no budget.
USUAL = 2.0
#: What stands in for a learner that would change at every step.
STALE = {"linucb": "linucb-grid", "thompson": "thompson-grid", "linmed": "linmed-grid"}


def budgeted(name: str, *, policies: int, dim: int, horizon: int) -> tuple[str, dict[str, Any]]:
    """The learner, and the settings with which it spreads ``policies`` policies over its run; none if it cannot.

    Learners that would change at every step are replaced by those that learn by batch. Those that wait for growing
    determinants get the C by which a determinant can grow so many times, (1 + T/d)^(d/policies), or their usual 2 if
    that is less. That is a plan and no promise: a cap holds because the loop enforces it.

    >>> budgeted("linucb", policies=4, dim=2, horizon=1000)
    ('linucb-grid', {'policies': 4})
    >>> round(budgeted("oful", policies=4, dim=2, horizon=1000)[1]["growth"], 1)
    22.4
    """
    whole("policies", policies)
    name = STALE.get(name, name)
    if "policies" in takes(name):
        return name, {"policies": min(policies, horizon)}
    if "growth" not in takes(name):
        return name, {}
    logarithm = dim * math.log1p(horizon / dim) / policies
    largest = 700.0  # exp(700) is near the largest that a float can hold
    return name, {"growth": max(USUAL, math.exp(min(logarithm, largest)))}
