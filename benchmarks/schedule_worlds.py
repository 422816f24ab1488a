"""The six worlds in which schedules are compared, and one in which user groups appear late."""

from rareswitch.env import World, make_world

WORLDS: dict[str, World] = {
    **{name: make_world(name) for name in ("gaussian", "fixed", "segments", "disjoint")},
    "clicks": make_world("rare-clicks"),
    "heavy tails": make_world("heavy-tails"),
}
