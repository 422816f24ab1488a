"""Wine as a classification bandit: near-separable classes, small residuals, and rewards that are not linear.

30,000 decisions on scikit-learn's 178 wines, standardised, as 8 components and a constant for each of three classes.
"""

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np

from measure import Row, arguments, report
from rareswitch.lab import Entrant
from rareswitch.lab.report import regret_ratio
from rareswitch.lab.worlds import NamedWorld
from rareswitch.learner import geometric_grid
from runs import add_seeds, chosen_seeds, regrets, runs_of, with_interval

STEPS = "thompson 0.5, every step"
ENTRANTS = {
    "foresight, 8 updates": Entrant(learner="foresight", kind="rare", settings={"updates": 8}),
    "foresight, 16 updates": Entrant(learner="foresight", kind="other", settings={"updates": 16}),
    "stale thompson 0.5, 8 updates": Entrant(learner="stale-thompson", kind="rare", settings={"scale": 0.5}),
    "greedy, 8 updates": Entrant(learner="pure-exploitation", kind="rare", grid=partial(geometric_grid, updates=8)),
    STEPS: Entrant(learner="thompson", kind="adaptive", settings={"scale": 0.5}),
    "linucb 1, every step": Entrant(learner="linucb", kind="adaptive", settings={"confidence": 1.0}),
}
#: The most that runs with 8 updates may cost, on average and at worst.
MEAN, WORST = 450.0, 900.0


def rows(horizon: int, seeds: range, only: tuple[str, ...]) -> Iterator[Row]:
    """A row for each entrant, or for those whose names begin so and the one that they are compared with."""
    makers = {label: entrant.make for label, entrant in ENTRANTS.items() if label.startswith((*only, STEPS))}
    worlds = {"wine": NamedWorld(name="wine", dim=10, arms=20, noise=0.5)}
    found = {label: regrets(runs) for label, runs in runs_of(makers, worlds, horizon=horizon, seeds=seeds).items()}
    for label, own in found.items():
        asked = label == "foresight, 8 updates" and horizon == 30_000
        yield Row(
            what=label,
            measured=f"{own.mean():,.0f}, worst {own.max():,.0f}",
            ratio="1" if label == STEPS else with_interval(regret_ratio(own, found[STEPS])),
            needed=f"at most {MEAN:.0f}, worst {WORST:.0f}" if asked else "",
            holds=bool(own.mean() <= MEAN and np.max(own) <= WORST) if asked else None,
        )


def main() -> int:
    parser = arguments(__doc__)
    add_seeds(parser, 20)
    parser.add_argument("--horizon", type=int, default=30_000, help="decisions of a run; the bars are for 30,000")
    parser.add_argument("--only", nargs="*", help="entrants whose names begin with one of these; all by default")
    options = parser.parse_args()
    seeds = chosen_seeds(options)
    note = f"Regret over {options.horizon:,} decisions, seeds {seeds[0]} to {seeds[-1]}; ratios are to {STEPS}."
    return report("Wine", rows(options.horizon, seeds, tuple(options.only or [""])), options.out, note)


if __name__ == "__main__":
    sys.exit(main())
