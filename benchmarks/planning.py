"""One update of foresight, look-ahead included: seconds by the number of features and of arms, and memory. One thread.

Each update of runs with 8 and with 16 policies is timed; the slowest counts.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Iterator
from functools import reduce
from operator import add

import numpy as np

from measure import Row, arguments, peak_memory, report
from playing import rounds
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, State, Summary

#: Features, arms, and the most seconds that an update may take.
SIZES = ((10, 20, 0.3), (50, 20, 1.5), (200, 20, 5.0), (10, 1000, None))
#: The most MiB that an update may need.
MEMORY = 1024.0


def first_batch(dim: int, arms: int, updates: int = 8) -> tuple[Foresight, State, Summary]:
    """A run of 20,000 decisions whose first update is due."""
    learner = Foresight(dim=dim, horizon=20_000, updates=updates)
    state = learner.begin()
    return learner, state, batch(learner, state, arms)


def batch(learner: Foresight, state: State, arms: int) -> Summary:
    """What the current policy's batch teaches."""
    world = make_world("gaussian", dim=learner.dim, arms=arms, noise=0.5)
    return reduce(add, (learner.summarize(state, played.rows) for played in rounds(state, world, 1, None)))


def seconds(dim: int, arms: int, updates: int) -> list[float]:
    """Of the processor, for each update of a run: what others do on the machine is not counted."""
    learner, state, summary = first_batch(dim, arms, updates)
    found = []
    while True:
        began = time.process_time()
        state = learner.next(state, summary)
        found.append(time.process_time() - began)
        if len(state.ahead) == 1:  # the last batch is not learned from
            return found
        summary = batch(learner, state, arms)


def update_times(counts: tuple[int, ...]) -> Iterator[Row]:
    seconds(2, 3, 4)  # compiles what is compiled at the first use
    for dim, arms, bar in SIZES:
        found = [one for updates in counts for one in seconds(dim, arms, updates)]
        yield Row(
            what=f"an update, d = {dim}, K = {arms}, {len(found)} of them: processor time of the slowest",
            measured=f"{max(found):.2f} s (median {np.median(found):.2f} s)",
            needed="" if bar is None else f"under {bar:g} s",
            holds=None if bar is None else max(found) < bar,
        )


def memory() -> Iterator[Row]:
    script = "from planning import first_batch; learner, state, summary = first_batch(200, 20); print(peak()); "
    before, after = peak_memory(f"{script}learner.next(state, summary); print(peak())")
    yield Row(
        what="peak memory of the first update, d = 200, K = 20, in a process of its own",
        measured=f"{after:.0f} MiB; before it {before:.0f} MiB",
        needed=f"at most {MEMORY:.0f} MiB more",
        holds=after - before <= MEMORY,
    )


def main() -> int:
    options = arguments(__doc__).parse_args()

    def rows() -> Iterator[Row]:
        yield from update_times((8,) if options.quick else (8, 16))
        yield from memory()

    return report("An update of foresight", rows(), options.out)


if __name__ == "__main__":
    sys.exit(main())
