"""Measure foresight in AExGym's setting, beside what was published of it, Thompson sampling and RHO.

The setting is that of its notebook on personalised linear rewards (namkoong-lab/aexgym, arXiv:2408.04570): ten arms,
each with parameters N(0, I/1000) over five features N(1, I) of the user, noise of variance 0.2, five batches of 100.
What is measured is its ``cumul_regret``, as published in results/linear_simple_cumul_dict_5.json: the mean over all
500 users of the best arm's expected reward less that of the arm that was played. Other figures of that file are
``simple_regret``, of the greedy policy on the final posterior mean for fresh users; they are not measured here.

AExGym standardises the rewards of each batch, less their mean and divided by σ, before it updates a posterior, and
leaves the prior as it was: in the units of the rewards its agents are told a prior that is σ = 0.45 times as wide as
the true one, and in later batches a good arm looks the worse the more often it is played. One row does the same, to
reproduce its Thompson sampling; the others are told the true prior and the noise. Foresight is told nothing.

Two rows say what knowing the prior is worth: greedy play on the true posterior, in the same batches and after every
reward. They are Thompson sampling at so small a scale that it only breaks ties, as in the first batch among all arms.

The last rows say what five batches can have at all, over many more trials: who is told the prior and the noise plays
each arm as often in the first batch, and from then on the arm of the largest posterior mean plus so many deviations.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import math
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report
from rareswitch import Foresight, Learner, simulate
from rareswitch.lab.worlds import AdaptiveTrialWorld
from rareswitch.lab.worlds.trial import UNIT
from rareswitch.learner import RHO, BatchLinUCB, StaleThompsonSampling, ThompsonSampling
from rareswitch.linalg import inverse_root
from rareswitch.rng import normals

WORLD = AdaptiveTrialWorld()
GRID = [100, 200, 300, 400, 500]
#: Weights of rewards within the trial in RHO's objective; None is our own objective, the regret of the trial.
WEIGHTS = (None, 0.3, 0.7, 1.0)
#: Regret of a decision as published, the mean over thousands of trials.
PUBLISHED = {"uniform": 0.1484, "thompson": 0.1252, "rho": 0.0852}
NEEDED = 0.080
#: Of the posterior's spread.
GREEDY = 0.01
#: Deviations above the posterior mean in the rows that say what five batches can have, and times as many trials there.
OPTIMISM = (0.0, 0.25, 0.5, 1.0)
TIMES = 10
#: RHO, which takes longest, plays the first one in so many of the trials.
ONE_IN = 8


def learners(told: dict[str, Any], seed: int) -> dict[str, Callable[[], Learner]]:
    """Who plays, but for uniform play."""
    told = told | {"norm": WORLD.prior_scale, "seed": seed}
    return {
        "thompson, told the prior": lambda: StaleThompsonSampling(grid=GRID, **told),
        "greedy, told the prior": lambda: StaleThompsonSampling(grid=GRID, scale=GREEDY, **told),
        "greedy, told the prior, after every reward": lambda: ThompsonSampling(scale=GREEDY, **told),
        "foresight, told nothing": lambda: Foresight(dim=WORLD.dim, grid=GRID, seed=seed),
    }


def rhos(told: dict[str, Any], seed: int) -> dict[str, Callable[[], Learner]]:
    """RHO at its weights."""
    return {_label(weight): _rho(told, seed, weight) for weight in WEIGHTS}


def _label(weight: float | None) -> str:
    return "rho, told the prior, " + ("for regret" if weight is None else f"weight {weight:g}")


def _rho(told: dict[str, Any], seed: int, weight: float | None) -> Callable[[], Learner]:
    return lambda: RHO(grid=GRID, norm=WORLD.prior_scale, weight=weight, seed=seed, **told)


def aexgym_thompson(seed: int) -> float:
    """Regret of a trial by Thompson sampling on standardised rewards: for each user a parameter of their own."""
    rounds = WORLD.draw(GRID[-1], seed=seed)
    precision, moment = np.eye(WORLD.dim) / WORLD.prior_scale**2, np.zeros(WORLD.dim)
    z = normals(seed, "aexgym", 0, GRID[-1], WORLD.dim)
    arms = np.zeros(GRID[-1], dtype=np.int64)
    for start, end in pairwise([0, *GRID]):
        users = np.arange(start, end)
        draws = np.linalg.solve(precision, moment) + z[users] @ inverse_root(precision)
        arms[users] = (rounds.contexts[users] @ draws[:, :, None])[:, :, 0].argmax(axis=1)
        played = rounds.contexts[users, arms[users]]
        rewards = WORLD.rewards(rounds.means[users, arms[users]], seed=seed, first=start)
        precision += played.T @ played
        moment += played.T @ (rewards - rewards.mean()) / WORLD.noise_scale
    return float((rounds.means.max(axis=1) - rounds.means[np.arange(len(arms)), arms]).sum())


def index_play(optimism: float, trials: int, seed: int) -> FloatArray:
    """Regret of a decision in each trial, all played at once, by who is told the prior and the noise."""
    arms, dim, users = WORLD.arms, WORLD.dim // WORLD.arms, GRID[0]
    rng = np.random.default_rng(seed)
    theta = WORLD.prior_scale * rng.normal(size=(trials, arms, dim))
    precision = np.broadcast_to(np.eye(dim) / WORLD.prior_scale**2, (trials, arms, dim, dim)).copy()
    moment = np.zeros((trials, arms, dim))
    regret = np.zeros(trials)
    for batch in range(len(GRID)):
        x = (1.0 + rng.normal(size=(trials, users, dim))) / UNIT
        noise = WORLD.noise_scale * rng.normal(size=(trials, users))
        means = np.einsum("nud,nkd->nuk", x, theta)
        if batch == 0:
            chosen = np.tile(np.arange(users) % arms, (trials, 1))
        else:
            covariance = np.linalg.inv(precision)
            estimate = np.einsum("nkij,nkj->nki", covariance, moment)
            variance = np.einsum("nui,nkij,nuj->nuk", x, covariance, x, optimize=True)
            chosen = (np.einsum("nud,nkd->nuk", x, estimate) + optimism * np.sqrt(variance)).argmax(axis=2)
        played = np.take_along_axis(means, chosen[:, :, None], axis=2)[:, :, 0]
        regret += (means.max(axis=2) - played).sum(axis=1)
        own = np.eye(arms)[chosen]
        precision += np.einsum("nuk,nui,nuj->nkij", own, x, x, optimize=True) / WORLD.noise_scale**2
        moment += np.einsum("nuk,nui,nu->nki", own, x, played + noise, optimize=True) / WORLD.noise_scale**2
    return regret / GRID[-1]


def regrets(seeds: range) -> dict[str, FloatArray]:
    """Regret of a decision in each trial, by who played."""
    told: dict[str, Any] = {"dim": WORLD.dim, "arms": WORLD.arms, "horizon": GRID[-1], "noise": WORLD.noise_scale}
    found: dict[str, list[float]] = {}
    for seed in seeds:
        # the first policy of this learner is uniform, and no second one may be made
        totals = {"uniform": simulate(BatchLinUCB(**told), WORLD, seed=seed, cap=1).regret}
        totals["thompson, as in AExGym"] = aexgym_thompson(seed)
        makers = learners(told, seed) | (rhos(told, seed) if seed < len(seeds) // ONE_IN else {})
        totals |= {name: simulate(make(), WORLD, seed=seed).regret for name, make in makers.items()}
        for name, total in totals.items():
            found.setdefault(name, []).append(total / GRID[-1])
        if (seed + 1) % 20 == 0:
            print(f"{seed + 1} of {seeds.stop} trials", file=sys.stderr, flush=True)
    return {name: np.array(values) for name, values in found.items()}


def rows(seeds: range) -> Iterator[Row]:
    """A row for each."""
    found = regrets(seeds)
    errors = {name: float(values.std(ddof=1)) / math.sqrt(len(values)) for name, values in found.items()}
    best = min((name for name in found if "weight" in name), key=lambda name: found[name].mean())
    for name, values in found.items():
        mean, error = float(values.mean()), errors[name]
        published = PUBLISHED.get({"thompson, as in AExGym": "thompson", best: "rho"}.get(name, name))
        needed, holds = "", None
        if name == "foresight, told nothing":
            needed, holds = f"at most {NEEDED:.3f}", mean <= NEEDED
        elif published is not None and name != best:
            needed, holds = f"{published} within two standard errors", abs(mean - published) <= 2.0 * error
        more = values - found["foresight, told nothing"][: len(values)]
        paired = f"{more.mean():+.4f} ± {more.std(ddof=1) / math.sqrt(len(more)):.4f} to foresight"
        yield Row(
            what=name + (" (the best)" if name == best else ""),
            measured=f"{mean:.4f} ± {error:.4f} a decision, {len(values)} trials"
            + (f"; published {published}" if published is not None else ""),
            ratio=paired if name != "foresight, told nothing" else "",
            needed=needed,
            holds=holds,
        )
    for optimism in OPTIMISM:
        values = index_play(optimism, TIMES * len(seeds), seed=0)
        yield Row(
            what=f"told the prior, mean + {optimism:g} deviations",
            measured=f"{values.mean():.4f} ± {values.std(ddof=1) / math.sqrt(len(values)):.4f} a decision, "
            f"{len(values)} other trials",
        )


def main() -> int:
    options = arguments(__doc__).parse_args()
    count = 20 if options.quick else 400
    return report("AExGym's adaptive trial", rows(range(count)), options.out)


if __name__ == "__main__":
    sys.exit(main())
