"""How often intervals of lifts and gains hold while policies learn, so far and by week.

The first policy plays a baseline but for a share; each later one plays what a ridge regression of all before it says is
best, with or without a floor under every arm. Contexts are drawn from a pool, so that the truth is exact: what the
policies that were made earn, less what the baseline does. The gain is that of uniform play. Settings were tried on
seeds from 1000 on; the report is on seeds from 0 on.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

import rareswitch
from measure import FloatArray, Row, arguments, report
from rareswitch.design import Uniform
from rareswitch.log import DecisionLog
from rareswitch.policy import Baseline, Blend, Policy, PosteriorDraws

ARMS, DIM, POOL = 4, 4, 500
#: Decisions of each policy, a week each.
BATCHES = (400, 600, 1000, 1500)
WEEK = 7 * 86400.0
#: The mean reward, and how much arms differ; normal where there is no mean.
REWARDS = {"normal": None, "clicks, 10 %": 0.1, "clicks, 2 %": 0.02}
FLOORS = (0.05, 0.0)


@dataclass(frozen=True)
class World:
    """What contexts there are, what their arms earn, and what the baseline shows."""

    contexts: FloatArray
    means: FloatArray
    baselines: Any


def made_world(kind: str, rng: np.random.Generator) -> World:
    contexts = rng.normal(size=(POOL, ARMS, DIM))
    contexts /= np.maximum(1.0, np.linalg.norm(contexts, axis=2, keepdims=True))
    values = contexts @ (lambda v: v / np.linalg.norm(v))(rng.normal(size=DIM))
    level = REWARDS[kind]
    means = values if level is None else level * (1.0 + 0.8 * values)
    return World(contexts, means, rng.integers(ARMS, size=POOL))


def run(kind: str, floor: float, seed: int) -> tuple[DecisionLog, dict[str, float]]:
    """A log, and the truth by name."""
    rng = np.random.default_rng([seed, list(REWARDS).index(kind), int(1000 * floor)])
    world = made_world(kind, rng)
    rows = np.arange(POOL)
    of_baseline = world.means[rows, world.baselines].mean()
    policy = Policy(dim=DIM, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.2))
    parts, policies, truths, earned = [], [], dict[str, float](), []
    for batch, count in enumerate(BATCHES):
        told = {"baseline": world.baselines} if policy.needs_baseline else {}
        earned.append(float((policy.probabilities(world.contexts, **told) * world.means).sum(axis=1).mean()))
        at = rng.integers(POOL, size=count)
        named = {"baseline": world.baselines[at]} if policy.needs_baseline else {}
        ids = np.arange(count) + 10_000 * batch
        decided = policy.decide(world.contexts[at], ids=ids, seed=seed, **named)
        mean = world.means[at, decided.arms]
        noise = REWARDS[kind] is None
        rewards = rng.normal(mean, 1.0) if noise else (rng.random(count) < mean).astype(np.float64)
        parts.append((at, decided.arms, decided.propensities, rewards, ids, np.full(count, batch)))
        policies.append(policy)
        x = np.concatenate([world.contexts[one[0], one[1]] for one in parts])
        r = np.concatenate([one[3] for one in parts])
        estimate = np.linalg.solve(x.T @ x + np.eye(DIM), x.T @ (r - r.mean()))
        greedy = PosteriorDraws(draws=estimate[None])
        policy = Policy(dim=DIM, sampler=Blend(main=greedy, explorer=Uniform(), share=ARMS * floor), edition=batch)
    at, arms, propensities, rewards, ids, batches = (np.concatenate(column) for column in zip(*parts, strict=True))
    whole = float(np.average(earned, weights=BATCHES))
    truths = {f"week {batch + 1}": one - of_baseline for batch, one in enumerate(earned)}
    truths |= {"so far": whole - of_baseline, "gain of uniform play": float(world.means.mean()) - whole}
    log = DecisionLog(
        arm_indices=arms,
        propensities=propensities,
        rewards=rewards,
        contexts=world.contexts[at],
        baselines=world.baselines[at],
        ids=ids,
        times=4 * 86400.0 + WEEK * batches,
        batches=batches,
        batch_names=tuple(str(k) for k in range(len(BATCHES))),
        policies={str(k): one for k, one in enumerate(policies)},
    )
    return log, truths


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=400, help="logs of each kind")
    options = parser.parse_args()
    seeds = range(options.first, options.first + (30 if options.quick else options.seeds))
    rows, right, total = list[Row](), Counter[str](), Counter[str]()
    for kind in REWARDS:
        for floor in FLOORS:
            hits, told, assumed = Counter[str](), Counter[str](), 0
            for seed in seeds:
                log, truths = run(kind, floor, seed)
                found = rareswitch.evaluate(log, "uniform")
                so_far, *weeks = found.lift
                named = {"so far": so_far, "gain of uniform play": found.gains[0]}
                named |= {f"week {k}": one for k, one in enumerate(weeks, 1)}
                assumed += bool(so_far.assumes)
                for name, one in named.items():
                    if one.interval is not None:
                        key = "weeks" if name.startswith("week") else name
                        told[key] += 1
                        hits[key] += one.interval.low <= truths[name] <= one.interval.high
            right += hits
            total += told
            shown = "; ".join(f"{name} {100 * hits[name] / told[name]:.1f} % of {told[name]}" for name in told)
            less = f"; so far rests on some batches alone in {assumed}" if assumed else ""
            rows.append(Row(what=f"{kind}, {f'floor {floor:g}' if floor else 'no floor'}", measured=shown + less))
            print(rows[-1].what, rows[-1].measured, file=sys.stderr, flush=True)
    for name in total:
        share = right[name] / total[name]
        holds = f"{100 * share:.2f} % of {total[name]:,} hold"
        rows.append(Row(what=f"all: {name}", measured=holds, needed="at least 93.5 %", holds=share >= 0.935))
    return report("Lifts and gains", rows, options.out)


if __name__ == "__main__":
    raise SystemExit(main())
