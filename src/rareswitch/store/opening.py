"""Stores by their URLs."""

from rareswitch.errors import ParameterError
from rareswitch.store.memory import MemoryStore
from rareswitch.store.store import Store


def open_store(url: str, name: str) -> Store:
    """The store of one experiment; nothing is made before :meth:`Store.create`."""
    if url == "memory:":
        return MemoryStore(name)
    raise ParameterError(f"url must be memory:, …; got {url!r:.100}.")
