from typing import Any, NamedTuple


class Due(NamedTuple):
    now: bool
    waits: tuple[str, ...] = ()
    at: Any = None
    decisions: int | None = None


class Progress(NamedTuple):
    created: float
    now: float
    versions: tuple[Any, ...]
    published: tuple[float, ...]
    window: float | None


class Schedule: ...


def schedule_of(g):
    return g


def schedule_from_plain(g):
    return g
