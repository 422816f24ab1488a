"""Learners by name."""

from functools import cache
from typing import Any

from rareswitch.core import class_of_file, codec
from rareswitch.errors import InputError, ParameterError, did_you_mean
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG, BatchLinUCBDGCertified
from rareswitch.learner.batched import BatchLinUCB, BatchLinUCBKW
from rareswitch.learner.foresight import Foresight
from rareswitch.learner.learner import Learner
from rareswitch.learner.one_model import (
    OFUL,
    BatchedThompsonSampling,
    LinUCB,
    LinUCBGrid,
    StaleThompsonSampling,
    ThompsonSampling,
)
from rareswitch.learner.rarely_switch import RarelySwitchSupLinUCB
from rareswitch.learner.settings import required_settings, settings_of
from rareswitch.learner.suplinucb import SupLinUCB

__all__ = ["LEARNERS", "add_learner", "all_learners", "find_learner", "make_learner", "takes"]

_PAPER = (BatchLinUCB, BatchLinUCBKW, BatchLinUCBDG, BatchLinUCBDGCertified, RarelySwitchSupLinUCB)
_ADAPTIVE = (OFUL, LinUCB, ThompsonSampling, BatchedThompsonSampling, SupLinUCB)
_GRID = (LinUCBGrid, StaleThompsonSampling)
#: By name; what a learner takes are the fields of its class. Packages that add their own put them here.
LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (Foresight, *_PAPER, *_ADAPTIVE, *_GRID)}


def all_learners() -> dict[str, type[Learner]]:
    """Those of the library and those that the laboratory adds, by name."""
    codec.extend()
    return LEARNERS


def add_learner(kind: "type[Learner] | str") -> type[Learner]:
    """Let a learner of one's own be found by its name: its class, or ``path/to/file.py:Class``.

    A later class of the same name takes the place of an earlier one, as in a notebook; names of the library's are kept.
    """
    own = class_of_file(kind, "learner") if isinstance(kind, str) else kind
    if not isinstance(own, type) or not issubclass(own, Learner):
        raise ParameterError(
            f"learner must be a class derived from Learner, or path/to/file.py:Class; got {own!r:.80}."
        )
    if not isinstance(getattr(own, "name", None), str):
        raise ParameterError(f"learner: the class {own.__name__} must have a name, as in name: ClassVar[str] = 'mine'.")
    known = all_learners().get(own.name)
    if known is not None and known is not own and known.__module__.startswith("rareswitch."):
        raise ParameterError(f"learner: {own.name!r} is the name of a learner of the library. Choose another `name`.")
    if known is not own:
        LEARNERS[own.name] = own
        takes.cache_clear()
    return own


def find_learner(name: str) -> type[Learner]:
    """The class of that name, or of ``path/to/file.py:Class``."""
    if isinstance(name, str) and ".py:" in name:
        return add_learner(name)
    if not isinstance(name, str) or (name not in LEARNERS and name not in all_learners()):
        known = f"the learners are {', '.join(LEARNERS)}, or path/to/file.py:Class.{did_you_mean(name, LEARNERS)}"
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
    missing = [key for key in required_settings(kind) if key not in settings]
    if missing:
        names = ", ".join(settings) or "no settings"
        raise ParameterError(f"{missing[0]} must be given: {name} needs {', '.join(missing)}; got {names}.")
    return kind(**{key: codec.revived(value) for key, value in settings.items()})
