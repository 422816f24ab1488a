"""Intervals where few decisions carry a value: rare arms, rare clicks, and arms that are best where they are rare.

A candidate always shows one arm. In 30 % of contexts the log shows it with a small probability, elsewhere with 1/2.
N is the number of decisions that carry the sum of the weights, on which the rule of refusal rests; *worth* as many
decisions of the candidate itself would tell as much. Rewards: normal; clicks of 1 % and of 10 %; clicks that come four
times as often where the arm is rare; and a tenth as often. Intervals of :func:`rareswitch.evaluate` with all
probabilities of the log known, and with those of chosen arms alone, beside Student's of the same scores. What is
refused is not counted. The rules were chosen on seeds from 1000 on; the report is on seeds from 0 on.
"""

import math
import sys
from typing import Any

import numpy as np

import rareswitch
from measure import Row, arguments, report
from rareswitch.evaluation import Always
from rareswitch.log import DecisionLog

RARE = 0.3
#: Decisions of a batch, the small probability, batches.
LOGS = ((2000, 0.02, 1), (4000, 0.02, 1), (1000, 0.04, 4), (500, 0.1, 4), (250, 0.1, 8), (10_000, 0.01, 1))
KINDS: dict[str, Any] = {
    "normal": None,
    "clicks, 1 %": (0.01, 0.01),
    "clicks, 10 %": (0.1, 0.1),
    "clicks, 5 %, 20 % where the arm is rare": (0.05, 0.2),
    "clicks, 20 %, 2 % where the arm is rare": (0.2, 0.02),
}


def logged(count: int, small: float, batches: int, kind: str, seed: int, *, known: bool) -> tuple[DecisionLog, float]:
    """A log, and the truth."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    total = count * batches
    rare = rng.random(total) < RARE
    logging = np.where(rare, small, 0.5)
    places = (rng.random(total) >= logging).astype(np.int64)
    if KINDS[kind] is None:
        truth, rewards = 1.0, rng.normal(1.0, 1.0, total)
    else:
        usual, there = KINDS[kind]
        truth = RARE * there + (1.0 - RARE) * usual
        rewards = (rng.random(total) < np.where(rare & (places == 0), there, usual)).astype(np.float64)
    both = np.column_stack([logging, 1.0 - logging])
    log = DecisionLog(
        arm_indices=places,
        propensities=both[np.arange(total), places],
        rewards=rewards,
        behavior_probs=both if known else None,
        arms=("candidate", "other"),
        batches=np.repeat(np.arange(batches), count),
        batch_names=tuple(map(str, range(batches))),
    )
    return log, truth


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=300, help="logs of each kind")
    options = parser.parse_args()
    seeds = range(options.first, options.first + (20 if options.quick else options.seeds))
    rows, answers, worst = [], 0, 1.0
    for kind in KINDS:
        for count, small, batches in LOGS:
            square, cube = RARE / small + (1.0 - RARE) / 0.5, RARE / small**2 + (1.0 - RARE) / 0.25
            carried, worth = count * batches * square**3 / cube**2, count * batches / square
            texts = []
            for known in (True, False):
                hits = naive = told = 0
                for seed in seeds:
                    log, truth = logged(count, small, batches, kind, seed, known=known)
                    value = rareswitch.evaluate(log, Always("candidate")).values[0]
                    if value.interval is None or value.naive is None:
                        continue
                    told += 1
                    hits += value.interval.low <= truth <= value.interval.high
                    naive += value.naive.low <= truth <= value.naive.high
                answers += told
                if told:
                    worst = min(worst, hits / told)
                    texts.append(f"{100 * hits / told:.1f} % of {told} (Student's {100 * naive / told:.1f} %)")
                else:
                    texts.append("all refused")
            what = f"{kind}: {batches} × {count:,}, {small:g}; N {carried:.0f}, worth {worth:.0f}"
            rows.append(Row(what=what, measured=f"known {texts[0]}; chosen alone {texts[1]}"))
            print(what, texts, file=sys.stderr, flush=True)
    error = 2.0 * math.sqrt(0.95 * 0.05 / len(seeds))
    rows.append(Row(what=f"the worst of these, ± {100 * error:.0f} %", measured=f"{100 * worst:.1f} %"))
    return report("Values that few decisions carry", rows, options.out)


if __name__ == "__main__":
    raise SystemExit(main())
