"""Contextual bandits that need only a handful of policy updates."""

from importlib import import_module

TYPE_CHECKING = False  # as in the module typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from rareswitch.api import *  # noqa: F403


def __getattr__(name: str) -> "Any":
    """Load the library when the first of its names is asked for: the command line often needs little of it."""
    if name in {"__all__", "__version__"} or not name.startswith("__"):
        api = import_module("rareswitch.api")
        if name == "__all__" or name in api.__all__:
            globals()[name] = getattr(api, name)
        if name in globals():  # also a package, which came with the library
            return globals()[name]
    raise AttributeError(f"module 'rareswitch' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("rareswitch.api").__all__})
