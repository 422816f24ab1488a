"""Contextual bandits that need only a handful of policy updates."""

from importlib import import_module

TYPE_CHECKING = False  # as in the module typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from rareswitch.api import *


def __getattr__(name: str) -> "Any":
    """Load the library when the first of its names is asked for: the command line often needs little of it."""
    if name in {"__all__", "__version__"} or not name.startswith("__"):
        names = vars(import_module("rareswitch.api"))
        public = [entry for entry in names if not entry.startswith("__") or entry == "__version__"]
        globals().update({entry: names[entry] for entry in public}, __all__=public)
        if name in globals():  # also a package, which came with the library
            return globals()[name]
    raise AttributeError(f"module 'rareswitch' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
