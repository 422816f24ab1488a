"""Measure the batched family: growth of regret, widths, decisions a second, rounds a second, memory.

One thread. What is compared is timed in turn, round after round; a ratio is the median over the rounds.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linucb import NumpyLinUCB
from measure import Row, arguments, in_turn, report
from rareswitch import ContextSets, simulate
from rareswitch.design import GOptimal, Sampler, Uniform
from rareswitch.distributions import Gaussian
from rareswitch.lab.worlds import LinearWorld, Rounds, make_world
from rareswitch.learner import loglog_batches, make_learner
from rareswitch.policy import Elimination, Policy, widest_intervals
from rareswitch.validation import FloatArray

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference.watch import watched

NOISE = 0.5


def batches_used() -> Iterator[Row]:
    wrong = 0
    horizons = [16, 17, 100, 256, 257, 1000, 10_000, 65_536, 65_537]
    world = make_world("gaussian", dim=3, arms=4, noise=NOISE)
    for horizon in horizons:
        for name, extra in (("batch-linucb", 0), ("batch-linucb-kw", 0), ("batch-linucb-dg", 1)):
            run = simulate(make_learner(name, dim=3, arms=4, horizon=horizon), world, seed=1)
            wrong += run.updates != loglog_batches(horizon) + extra
    yield Row(
        what=f"batches used, {len(horizons)} horizons from 16 to 65,537, runs of the three learners",
        measured=f"{wrong} differ from ⌈log log T⌉ (+1 for DG)",
        needed="0",
        holds=wrong == 0,
    )


def growth(name: str, place: str, horizons: list[int], seeds: int) -> Iterator[Row]:
    world = make_world(place, dim=10, arms=20, noise=NOISE)
    regrets = [
        np.mean(
            [
                simulate(make_learner(name, dim=10, arms=20, horizon=t, noise=NOISE), world, seed=s).regret
                for s in range(seeds)
            ]
        )
        for t in horizons
    ]
    slope = float(np.polyfit(np.log(horizons), np.log(regrets), 1)[0])
    last = float(np.diff(np.log(regrets[-2:]))[0] / np.diff(np.log(horizons[-2:]))[0])
    yield Row(
        what=f"growth of regret, {name}, {place}, T from {horizons[0]:,} to {horizons[-1]:,}, {seeds} seeds",
        measured=", ".join(f"{r:,.0f}" for r in regrets),
        ratio=f"slope {slope:.2f}, at the end {last:.2f}",
        needed="≤ 0.6",
        holds=slope <= 0.6,
    )


def final_width(name: str, horizon: int, seed: int) -> float:
    """Mean over fresh sets of the widest surviving interval, after the last elimination of a run."""
    world = make_world("one-big", dim=10, arms=20, noise=NOISE)
    learner = make_learner(name, dim=10, arms=20, horizon=horizon, noise=NOISE, g_optimal=GOptimal())
    policy = watched(learner, world, seed).state.policy
    fresh = world.draw(2000, seed=seed, first=10**9).contexts
    return float(widest_intervals(policy.eliminations[-1], ContextSets(fresh, policy.survivors(fresh))).mean())


def widths(horizon: int, seeds: int) -> Iterator[Row]:
    """In a world where the G-optimal sampler is weak."""
    kw = np.mean([final_width("batch-linucb-kw", horizon, s) for s in range(seeds)])
    for name in ("batch-linucb-dg", "batch-linucb-dg-certified"):
        dg = np.mean([final_width(name, horizon, s) for s in range(seeds)])
        yield Row(
            what=f"width after the last elimination, one-big, T = {horizon:,}, {seeds} seeds: {name} against kw",
            measured=f"{dg:.4f} against {kw:.4f}",
            ratio=f"{kw / dg:.2f}× narrower",
            needed="measurably smaller (theory: up to √d = 3.2)",
            holds=bool(dg < kw),
        )


def policy(dim: int, count: int, sampler: Sampler) -> Policy:
    """A policy like those of a run: estimates from ever longer batches."""
    rng = np.random.default_rng(1)
    parts = []
    for k in range(count):
        x = rng.standard_normal((300 * 5**k, dim)) / np.sqrt(dim)
        parts.append(Elimination.of(rng.standard_normal(dim) / np.sqrt(dim) / 4, x.T @ x + np.eye(dim), 3.0))
    return Policy(dim=dim, sampler=sampler, eliminations=tuple(parts))


def decisions(rounds: int) -> Iterator[Row]:
    contexts = Gaussian(dim=20, arms=50).draw(4000, seed=1).contexts
    ids = range(4000)
    yardstick = NumpyLinUCB(20)
    for x in contexts[:200]:
        yardstick.update(x[yardstick.decide(x)], 0.1)

    def steps() -> None:
        for x in contexts[:400]:
            yardstick.decide(x)

    for count, sampler, label, needed in (
        (1, Uniform(), "one elimination, uniform", 4.0),
        (3, Uniform(), "three eliminations, uniform", 1.5),
        (3, GOptimal(tol=1.0), "three eliminations, G-optimal at factor 2", 1.0),
    ):
        made = policy(20, count, sampler)
        seconds = in_turn(rounds, lambda p=made: p.decide(contexts, ids=ids, seed=1), steps) / [len(contexts), 400]  # type: ignore[misc]
        left = made.decide(contexts, ids=ids, seed=1).survivors.mean()
        ratio = float(np.median(seconds[:, 1] / seconds[:, 0]))
        ours, theirs = np.median(seconds, axis=0) * 1e6
        yield Row(
            what=f"decide in batches, (50, 20), {label} ({left:.0f} arms left) against a NumPy LinUCB decision",
            measured=f"{ours:.2f} µs against {theirs:.1f} µs",
            ratio=f"{ratio:.2f}×",
            needed=f"{needed:g}×",
            holds=ratio >= needed,
        )
    made = policy(20, 3, Uniform())

    def singles() -> None:
        for s, x in enumerate(contexts[:400]):
            made.decide(x, ids=s, seed=1)

    seconds = in_turn(rounds, singles, steps) / 400
    ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
    ours, theirs = np.median(seconds, axis=0) * 1e6
    yield Row(
        what="one decision from Python, (50, 20), three eliminations, against a NumPy LinUCB decision",
        measured=f"{ours:.1f} µs against {theirs:.1f} µs",
        ratio=f"{ratio:.2f}×",
        needed="at most 3×",
        holds=ratio <= 3.0,
    )


class Recorded:
    """A world whose rounds were drawn before, so that what is timed is the learner and the loop."""

    def __init__(self, world: LinearWorld, horizon: int) -> None:
        self.dim, self.arms = world.dim, world.arms
        self.drawn = world.draw(horizon, seed=1)
        self.noise: FloatArray = world.noise.draw(horizon, seed=1)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        part = slice(first, first + count)
        return Rounds(contexts=self.drawn.contexts[part], means=self.drawn.means[part])

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means + self.noise[first : first + len(means)]


def simulation(horizon: int) -> Iterator[Row]:
    world = make_world("gaussian", dim=10, arms=20, noise=NOISE)
    assert isinstance(world, LinearWorld)
    recorded = Recorded(world, horizon)
    steps = 20_000

    def ours() -> None:
        simulate(make_learner("batch-linucb-kw", dim=10, arms=20, horizon=horizon, noise=NOISE), recorded, seed=1)

    def theirs() -> None:
        learner = NumpyLinUCB(10)
        regret = 0.0
        for t in range(steps):
            x, means = recorded.drawn.contexts[t], recorded.drawn.means[t]
            arm = learner.decide(x)
            regret += means.max() - means[arm]
            learner.update(x[arm], means[arm] + recorded.noise[t])

    seconds = in_turn(3, ours, theirs) / [horizon, steps]
    ratio = float(np.median(seconds[:, 1] / seconds[:, 0]))
    fast, slow = np.median(seconds, axis=0) * 1e6
    yield Row(
        what=f"simulated rounds, batch-linucb-kw, T = {horizon:,}, (20, 10), against stepping NumPy LinUCB",
        measured=f"{fast:.2f} µs against {slow:.1f} µs a round",
        ratio=f"{ratio:.1f}×",
        needed="20×",
        holds=ratio >= 20.0,
    )
    start = time.perf_counter()
    simulate(make_learner("batch-linucb-kw", dim=10, arms=20, horizon=horizon, noise=NOISE), world, seed=1)
    yield Row(
        what="the same, drawing the contexts included",
        measured=f"{(time.perf_counter() - start) / horizon * 1e6:.2f} µs a round",
    )


def memory(horizon: int) -> Iterator[Row]:
    script = (
        "import re; from rareswitch import simulate; from rareswitch.lab.worlds import make_world; "
        "from rareswitch.learner import make_learner; "
        f"simulate(make_learner('batch-linucb-kw', dim=10, arms=20, horizon={horizon}, noise=0.5), "
        "make_world('gaussian', dim=10, arms=20, noise=0.5), seed=1); "
        "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"  # a child inherits its ru_maxrss
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    mebibytes = int(done.stdout) / 1024
    yield Row(
        what=f"resident memory, batch-linucb-kw, T = {horizon:,}, (20, 10)",
        measured=f"{mebibytes:.0f} MiB",
        needed="under 1024 MiB",
        holds=mebibytes < 1024,
    )


def rows(quick: bool) -> Iterator[Row]:
    yield from batches_used()
    horizons = [10_000, 30_000, 100_000] if quick else [10_000, 100_000, 1_000_000]
    for name, seeds in (("batch-linucb-kw", 3), ("batch-linucb-dg-certified", 3), ("batch-linucb-dg", 1)):
        for place in ("gaussian", "segments"):
            yield from growth(name, place, horizons, 1 if quick else seeds)
    yield from widths(50_000, 2 if quick else 5)
    yield from decisions(5 if quick else 15)
    yield from simulation(100_000 if quick else 1_000_000)
    yield from memory(300_000 if quick else 10_000_000)


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("The batched family", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
