"""How many updates: foresight with 2 to 64 policies over 10,000 decisions, against full adaptivity.

Ratios are (mean regret + 10) over that of Thompson sampling at scale 0.5 that is updated at every step and told the
noise, on the same seeds: geometric means over six worlds with 90 % intervals. Where regret falls as 1/t, M geometric
batches cost (r - 1)/ln r, with r = (T/first)^(1/(M - 1)): no policy within the batches wins that back.
"""

import math
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from measure import Row, arguments, report
from rareswitch.lab import Entrant, Run
from rareswitch.lab.report import regret_ratio
from rareswitch.lab.worlds import NamedWorld
from rareswitch.learner import Foresight
from runs import SIX, add_seeds, chosen_seeds, mean_regrets, regrets, runs_of, with_interval

COUNTS = (2, 3, 4, 5, 6, 8, 12, 16, 32, 64)
STEPS = "thompson 0.5, every step"
#: The most that a number of updates may cost.
BARS = {2: 6.5, 4: 2.1, 16: 1.2, 32: 1.1}
#: Fewer batches grow by so much that regret no longer falls as 1/t within one.
LEAST_FLOOR = 8


def rows(counts: tuple[int, ...], horizon: int, seeds: range) -> Iterator[Row]:
    """A row for each number of updates, and one on whether more of them ever cost more."""
    entrants = {STEPS: Entrant(learner="thompson", kind="adaptive", settings={"scale": 0.5})}
    entrants |= {str(n): Entrant(learner="foresight", kind="other", settings={"updates": n}) for n in counts}
    worlds = {name: NamedWorld(name=name, dim=10, arms=20, noise=0.5) for name in SIX}
    makers = {label: entrant.make for label, entrant in entrants.items()}
    runs = runs_of(makers, worlds, horizon=horizon, seeds=seeds)
    dims = [world(horizon).dim for world in worlds.values()]
    yield Row(what=f"{STEPS}, T = {horizon:,}, {len(seeds)} seeds", measured=mean_regrets(runs[STEPS]), ratio="1")
    for count in counts:
        ratio = regret_ratio(regrets(runs[str(count)]), regrets(runs[STEPS]))
        bar = BARS.get(count) if horizon == 10_000 else None
        known = "" if count < LEAST_FLOOR else f"; the floor {floor(count, horizon, dims):.2f}"
        yield Row(
            what=f"{count} updates",
            measured=mean_regrets(runs[str(count)]),
            ratio=f"{with_interval(ratio)}, median over seeds {ratio.median:.2f}{known}",
            needed="" if bar is None else f"at most {bar:g}",
            holds=None if bar is None else ratio.value <= bar,
        )
    yield rises(counts, runs)


def rises(counts: tuple[int, ...], runs: Mapping[str, Mapping[str, list[Run]]]) -> Row:
    """Whether regret falls with every update, by the paired interval of each step."""
    steps = {
        f"{few} to {many}": regret_ratio(regrets(runs[str(many)]), regrets(runs[str(few)]))
        for few, many in pairwise(counts)
    }
    risen = [step for step, ratio in steps.items() if ratio.low > 1.0]
    return Row(
        what="regret with more updates over that with fewer",
        measured=", ".join(f"{step}: {with_interval(ratio)}" for step, ratio in steps.items()),
        ratio=f"largest {max(ratio.value for ratio in steps.values()):.2f}",
        needed="no interval above 1",
        holds=None if any(math.isnan(ratio.low) for ratio in steps.values()) else not risen,
    )


def floor(count: int, horizon: int, dims: list[int]) -> float:
    """The geometric mean over worlds of what as many batches cost where regret falls as 1/t."""
    growth = [
        (horizon / Foresight(dim=dim, horizon=horizon, updates=count).clock.begin()[0]) ** (1.0 / (count - 1))
        for dim in dims
    ]
    return float(np.exp(np.mean([math.log((r - 1.0) / math.log(r)) for r in growth])))


def main() -> int:
    parser = arguments(__doc__)
    add_seeds(parser, 20)
    parser.add_argument("--counts", type=int, nargs="*", help="numbers of updates, increasing; from 2 to 64 by default")
    parser.add_argument("--horizon", type=int, default=10_000, help="decisions of a run; the bars are for 10,000")
    options = parser.parse_args()
    counts = tuple(options.counts or ((2, 4, 8, 16) if options.quick else COUNTS))
    seeds = chosen_seeds(options)
    note = f"Regret is the mean over seeds {seeds[0]} to {seeds[-1]}. The first policy is counted among the updates."
    return report("How many updates", rows(counts, options.horizon, seeds), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
