"""What fewer policies cost: every learner under every cap."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rareswitch.errors import InputError
from rareswitch.lab.run import Run
from rareswitch.lab.sweep import Sweep, joined, sweep
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner
from rareswitch.validation import whole

#: Makes a learner for a cap (None for none), a world, a horizon and a seed.
CappedFactory = Callable[[int | None, World, int, int], Learner]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tradeoff(Sweep):
    """Runs by cap."""

    #: By cap, from few policies to many; None, the last, are the runs without one.
    runs: dict[int | None, list[Run]]  # type: ignore[assignment]


def tradeoff(
    learners: Mapping[str, CappedFactory],
    world: World,
    *,
    horizon: int,
    caps: Iterable[int],
    seeds: Iterable[int],
    name: str = "world",
    path: str | Path | None = None,
    quiet: bool = False,
) -> Tradeoff:
    """Run every learner under every cap and without one, on the same seeds.

    ``path`` is a Parquet file in which runs are kept, as in :func:`~rareswitch.sweep`.

    >>> from rareswitch.lab.worlds import make_world
    >>> from rareswitch.learner import OFUL
    >>> found = tradeoff(
    ...     {"oful": lambda cap, world, t, seed: OFUL(dim=world.dim, arms=world.arms, horizon=t)},
    ...     make_world("gaussian", dim=3, arms=4, noise=0.5), horizon=200, caps=[1, 4], seeds=range(2),
    ... )
    >>> {cap: [run.policies for run in runs] for cap, runs in found.runs.items()}
    {1: [1, 1], 4: [4, 4], None: [17, 16]}
    """
    caps = sorted({whole("cap", cap) for cap in caps})
    seeds = list(seeds)
    if not caps:
        raise InputError("a trade-off needs at least one cap.")
    runs: dict[int | None, list[Run]] = {}

    def under(cap: int | None) -> Sweep:
        makers = {label: partial(make, cap) for label, make in learners.items()}
        found = sweep(makers, {name: world}, horizons=[horizon], seeds=seeds, cap=cap, path=path, quiet=quiet)
        if found.runs:
            runs[cap] = found.runs
        return found

    return Tradeoff(**vars(joined(map(under, (*caps, None)))) | {"runs": runs})
