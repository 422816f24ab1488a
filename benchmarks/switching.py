"""Measure the rarely switching family: switches, regret, rounds a second, the price of fewer policies, memory.

One thread. What is compared is timed in turn, round after round; a ratio is that of the medians over the rounds.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.stats import spearmanr

from linucb import NumpyLinUCB
from measure import FloatArray, Row, arguments, in_turn, report
from rareswitch import simulate
from rareswitch.lab import Run, Tradeoff
from rareswitch.lab.report import draw_tradeoff
from rareswitch.lab.worlds import LinearWorld, LowerBoundWorld, Rounds, every_instance, make_world
from rareswitch.learner import OFUL, Learner, RarelySwitchSupLinUCB, budgeted, make_learner, takes
from rareswitch.report import save
from steppers import NumpyOFUL, NumpyRarelySwitch

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference.switching import algorithm_6, optimist
from reference.watch import problem, watched

NOISE = 0.5
RARELY = "rarely-switch-suplinucb"
PLACES = ("gaussian", "segments", "starving", "drifting")
LEVELS: dict[str, Any] = {"oful": "tight", RARELY: 1.0, "linucb": "tight", "thompson": "tight"}
"""The confidence of the learners on the lower-bound instances; Thompson sampling has no use for it."""
CAPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def explicit_bound(dim: int, horizon: int, growth: float) -> float:
    """(κ_0 + 1)·(1 + d·log_C(1 + T/d)), the first policy included."""
    return (math.ceil(math.log2(dim)) + 1) * (1.0 + dim * math.log(1.0 + horizon / dim, growth))


def switches(horizons: list[int], longest: int, dims: tuple[int, ...]) -> Iterator[Row]:
    """Of RarelySwitch-SupLinUCB, with intervals that hold and with narrow ones that let all layers work."""
    for growth in (2.0, 4.0, 16.0):
        cases = [(t, place, level) for t in horizons for place in PLACES for level in ("tight", 0.3)]
        cases.append((longest, "drifting", 0.3))
        ratios: dict[int, list[float]] = {dim: [] for dim in dims}
        for dim in dims:
            for horizon, place, level in cases:
                world = make_world(place, dim=dim, arms=2 * dim, noise=NOISE, horizon=horizon)
                settings: dict[str, Any] = {"confidence": level, "growth": growth, "noise": NOISE}
                learner = make_learner(RARELY, dim=dim, arms=2 * dim, horizon=horizon, **settings)
                run = simulate(learner, world, seed=1)
                ratios[dim].append(run.updates / explicit_bound(dim, horizon, growth))
        everything = np.concatenate(list(ratios.values()))
        over = int((everything > 1.0).sum())
        by_dim = ", ".join(f"d = {dim}: {max(r):.2f}/{np.median(r):.2f}" for dim, r in ratios.items())
        lengths = ", ".join(f"{t:,}" for t in horizons)
        yield Row(
            what=f"policies of {RARELY}, C = {growth:g}, T = {lengths} ({', '.join(PLACES)}; tight and 0.3) and "
            f"{longest:,} (drifting; 0.3), K = 2d, against (κ_0 + 1)(1 + d log_C(1 + T/d))",
            measured=f"{over} of {len(everything)} runs above",
            ratio=f"largest/median {everything.max():.2f}/{np.median(everything):.2f} ({by_dim})",
            needed="0 above",
            holds=over == 0,
        )


def against_every_step(horizon: int, seeds: int, needed: int) -> Iterator[Row]:
    for level in ("tight", 1.0):
        for place in ("gaussian", "segments"):
            world = make_world(place, dim=10, arms=20, noise=NOISE)
            rare, every = (
                [
                    simulate(
                        make_learner(name, dim=10, arms=20, horizon=horizon, noise=NOISE, confidence=level),
                        world,
                        seed=s,
                    )
                    for s in range(seeds)
                ]
                for name in ("oful", "linucb")
            )
            most = max(run.updates for run in rare)
            ours, theirs = (float(np.mean([run.regret for run in runs])) for runs in (rare, every))
            yield Row(
                what=f"oful, C = 2, against linucb at every step, {place}, (20, 10), T = {horizon:,}, confidence "
                f"{level}, {seeds} seeds",
                measured=f"at most {most} policies; regret {ours:,.0f} against {theirs:,.0f}",
                ratio=f"{ours / theirs:.2f}×",
                needed=f"at most {needed} policies and 1.3×",
                holds=most <= needed and ours <= 1.3 * theirs,
            )


def as_printed(horizon: int) -> Iterator[Row]:
    """The fast simulation against the references of the tests, which invert afresh at every step."""
    for name in ("oful", RARELY):
        arms = times = policies = 0
        for place in ("gaussian", "segments", "starving"):
            world = make_world(place, dim=10, arms=20, noise=NOISE, horizon=horizon)
            laid_out = problem(world, horizon, 1)
            settings = {} if name == "oful" else {"confidence": 0.8}
            learner = make_learner(name, dim=10, arms=20, horizon=horizon, noise=NOISE, **settings)
            found = watched(learner, world, 1)
            if isinstance(learner, OFUL):
                level = learner.self_normalized()
                expected = optimist(
                    laid_out,
                    ridge=level.ridge,
                    growth=2.0,
                    multiplier=lambda p, a=level: a.multiplier(np.linalg.slogdet(p / a.ridge)[1]),  # type: ignore[misc]
                )
            else:
                expected = algorithm_6(laid_out, growth=2.0, first=lambda _: 0.8, multiplier=0.8)
            arms += sum(a != b for a, b in zip(found.arms, expected.arms, strict=True))
            times += len(set(found.switches) ^ {t for t in expected.switches if t < horizon})
            policies += len(found.switches)
        yield Row(
            what=f"{name} ({'tight' if name == 'oful' else 'confidence 0.8'}) against the step-by-step reference, "
            f"gaussian, segments and starving, (20, 10), T = {horizon:,}",
            measured=f"{arms} of {3 * horizon:,} decisions and {times} of {policies} switches differ",
            needed="0",
            holds=arms == times == 0,
        )


class Recorded:
    """A world whose rounds were drawn before, so that what is timed is the learner and the loop."""

    def __init__(self, world: LinearWorld, horizon: int) -> None:
        self.dim, self.arms = world.dim, world.arms
        self.drawn = world.draw(horizon, seed=1)
        self.noise = world.noise.draw(horizon, seed=1)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        part = slice(first, first + count)
        return Rounds(contexts=self.drawn.contexts[part], means=self.drawn.means[part])

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return np.asarray(means + self.noise[first : first + len(means)])


def stepped(learner: NumpyOFUL | NumpyRarelySwitch | NumpyLinUCB, recorded: Recorded) -> float:
    """The regret of a yardstick, one step after the other."""
    regret = 0.0
    for x, means, noise in zip(recorded.drawn.contexts, recorded.drawn.means, recorded.noise, strict=True):
        arm = learner.decide(x)
        regret += means.max() - means[arm]
        learner.update(x[arm], means[arm] + noise)
    return float(regret)


def yardstick(learner: Learner) -> NumpyOFUL | NumpyRarelySwitch | NumpyLinUCB:
    """The same algorithm with the same settings."""
    if isinstance(learner, OFUL):
        level = learner.self_normalized()
        return NumpyOFUL(learner.dim, ridge=level.ridge, growth=2.0, multiplier=level.multiplier)
    if isinstance(learner, RarelySwitchSupLinUCB):
        rule: Any = learner.parts.rule
        return NumpyRarelySwitch(
            learner.dim,
            accuracies=rule.accuracies,
            growth=2.0,
            first=rule.first_level.multiplier,
            other=rule.level.multiplier,
        )
    return NumpyLinUCB(learner.dim)


def speed(horizon: int, rounds: int) -> Iterator[Row]:
    """Both sides walk the whole of the same recorded rounds, so that they pass through the same regimes.

    At the first steps all widths tie but for rounding, and NumPy's argmax parts from the learner's first arm: hence
    the small differences in regret and policies, which are printed.
    """
    world = make_world("gaussian", dim=10, arms=20, noise=NOISE)
    assert isinstance(world, LinearWorld)
    recorded = Recorded(world, horizon)
    cases: tuple[tuple[str, dict[str, Any], float | None], ...] = (
        ("oful", {}, 10.0),
        (RARELY, {}, 10.0),
        ("linucb", {"confidence": 1.0, "ridge": 1.0}, None),
    )
    for name, settings, needed in cases:

        def fresh(name: str = name, settings: dict[str, Any] = settings) -> Learner:
            return make_learner(name, dim=10, arms=20, horizon=horizon, noise=NOISE, **settings)

        found: dict[str, Any] = {}

        def ours(fresh: Callable[[], Learner] = fresh, found: dict[str, Any] = found) -> None:
            found["run"] = simulate(fresh(), recorded, seed=1)

        def theirs(fresh: Callable[[], Learner] = fresh, found: dict[str, Any] = found) -> None:
            found["learner"] = yardstick(fresh())
            found["regret"] = stepped(found["learner"], recorded)

        fast, slow = np.median(in_turn(rounds, ours, theirs) / horizon, axis=0) * 1e6
        run: Run = found["run"]
        same = f"regret {run.regret:,.1f} and {found['regret']:,.1f}"
        if not isinstance(found["learner"], NumpyLinUCB):
            same += f", {run.updates} and {found['learner'].policies} policies"
        yield Row(
            what=f"simulated rounds, {name}{', every step' if name == 'linucb' else ''}, T = {horizon:,}, (20, 10), "
            f"drawn before, against the same in NumPy, step by step over the same rounds ({same})",
            measured=f"{fast:.2f} µs against {slow:.1f} µs a round",
            ratio=f"{slow / fast:.1f}×",
            needed="" if needed is None else f"{needed:g}×",
            holds=None if needed is None else bool(slow / fast >= needed),
        )
        seconds = np.median([simulate(fresh(), world, seed=1).seconds for _ in range(rounds)])
        yield Row(
            what=f"{name}, drawing the contexts included",
            measured=f"{seconds / horizon * 1e6:.2f} µs a round",
        )


def capped(name: str, cap: int | None, world: LowerBoundWorld, seed: int) -> Run:
    """A run under a cap, of the learner that can plan for it; it keeps the name."""
    told = (name, {}) if cap is None else budgeted(name, updates=cap, dim=2, horizon=world.horizon)
    made, settings = told[0], dict(told[1])
    if "seed" in takes(made):
        settings["seed"] = seed
    learner = make_learner(made, dim=2, arms=2, horizon=world.horizon, noise=1.0, confidence=LEVELS[name], **settings)
    return replace(simulate(learner, world, seed=seed, cap=cap, name="lower-bound"), learner=name)


def policies(mean: float) -> str:
    return f"{mean:,.0f}" if mean >= 100.0 else f"{mean:.3g}"


@dataclass(frozen=True, kw_only=True)
class Excess:
    """How much more regret on the same instances with the same noise."""

    mean: float
    error: float
    """Standard error, as if the signs were drawn, too."""
    noise_error: float
    """Standard error of the noise alone: all signs are there, equally often."""

    @classmethod
    def of(cls, more: FloatArray, less: FloatArray, instances: int) -> Self:
        """Of regrets (n,) that run through the instances again and again."""
        gaps = (more - less).reshape(-1, instances)
        by_noise = gaps.var(axis=0, ddof=1).sum() / len(gaps) / instances**2
        return cls(
            mean=float(gaps.mean()),
            error=float(gaps.std(ddof=1) / math.sqrt(gaps.size)),
            noise_error=math.sqrt(by_noise),
        )

    @property
    def clear(self) -> bool:
        return self.mean > 2.0 * self.error

    def __str__(self) -> str:
        return f"{self.mean:+,.0f} ± {self.error:,.0f} ({self.noise_error:,.0f})"


def price_of_few(
    horizon: int, stages: int, repeats: dict[str, int], caps: tuple[int, ...], picture: Path | None
) -> Iterator[Row]:
    """Regret under a cap on the policies, on every lower-bound instance equally often, each with noise of its own.

    With three stages a stage is long enough to tell its sign to 3σ, with four to 2σ, which drowns the effect. Tight
    intervals of rarely-switch-suplinucb never part the arms at 10^6 rounds: its regret is then the same for every cap.
    The multiplier 1 is too narrow for oful: no cap then leaves 2,127 where tight leaves 1,738, and hides the price.
    """
    runs: dict[int | None, list[Run]] = {cap: [] for cap in (*caps, None)}
    count = 2**stages
    for name, times in repeats.items():
        instances = list(every_instance(horizon=horizon, stages=stages)) * times
        regrets: dict[int | None, FloatArray] = {}
        used: dict[int | None, float] = {}
        for cap in (*caps, None):
            group = [capped(name, cap, world, seed) for seed, world in enumerate(instances)]
            runs[cap] += group
            regrets[cap] = np.array([run.regret for run in group])
            used[cap] = float(np.mean([run.updates for run in group]))
        level = "" if name == "thompson" else f" (confidence {LEVELS[name]})"
        where = f"{name}{level}, lower bound, T = {horizon:,}, d = 2, L = {stages}, σ = 1, {count} signs × {times}"
        yield Row(
            what=f"{where}: regret by cap (policies deployed)",
            measured=", ".join(
                f"{cap or 'none'}: {r.mean():,.0f} ({policies(used[cap])})" for cap, r in regrets.items()
            ),
        )
        few = {cap: Excess.of(regrets[cap], regrets[None], count) for cap in caps if cap < stages}
        yield Row(
            what=f"{where}: excess over no cap, ± s.e. (of the noise alone), with fewer policies than stages",
            measured=", ".join(f"{cap}: {more}" for cap, more in few.items()),
            needed="> 2 s.e. each",
            holds=all(more.clear for more in few.values()),
        )
        fall = Excess.of(regrets[caps[0]], regrets[caps[-1]], count)
        rank = float(spearmanr(caps, [regrets[cap].mean() for cap in caps]).statistic)
        yield Row(
            what=f"{where}: excess of cap {caps[0]} over cap {caps[-1]}, ± s.e. (of the noise alone)",
            measured=str(fall),
            ratio=f"Spearman of regret and cap {rank:.2f}",
            needed="> 2 s.e.",
            holds=fall.clear,
        )
    if picture is not None:
        world = LowerBoundWorld(horizon=horizon, stages=stages)
        save(draw_tradeoff(Tradeoff(runs=runs, interrupted=False, resumed=0, skipped={}), world), picture)


SCRIPT = """
import json, re, sys
from rareswitch import simulate
from rareswitch.lab.worlds import make_world
from rareswitch.learner import make_learner
name, horizon = sys.argv[1], int(sys.argv[2])
world = make_world("gaussian", dim=10, arms=1000, noise=0.5)
run = simulate(make_learner(name, dim=10, arms=1000, horizon=horizon, noise=0.5), world, seed=1)
peak = re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]  # a child inherits its ru_maxrss
print(json.dumps([int(peak) / 1024, run.seconds / horizon]))
"""


def memory(horizons: tuple[int, int]) -> Iterator[Row]:
    for name in ("oful", RARELY, "linucb"):
        peaks, seconds = [], []
        for horizon in horizons:
            command = [sys.executable, "-c", SCRIPT, name, str(horizon)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peak, each = json.loads(done.stdout)
            peaks.append(peak)
            seconds.append(each)
        yield Row(
            what=f"resident memory, {name}, (1000, 10), T = {horizons[0]:,} and {horizons[1]:,}",
            measured=f"{peaks[0]:.0f} and {peaks[1]:.0f} MiB; {seconds[0] * 1e6:.0f} and {seconds[1] * 1e6:.0f} µs a "
            "round, drawing included",
            ratio=f"{peaks[1] / peaks[0]:.2f}×",
            needed="at most 1.1× and 1024 MiB",
            holds=peaks[1] <= 1.1 * peaks[0] and max(peaks) < 1024,
        )


def rows(quick: bool, picture: Path | None) -> Iterator[Row]:
    if quick:
        yield from switches([1000], 10_000, (2, 5, 10))
        yield from against_every_step(10_000, 3, 150)
        yield from as_printed(500)
        yield from speed(20_000, 3)
        yield from price_of_few(
            100_000, 2, dict.fromkeys(("oful", RARELY, "linucb", "thompson"), 2), (1, 4, 16), picture
        )
        yield from memory((2000, 6000))
        return
    yield from switches([10_000, 100_000], 1_000_000, (2, 5, 10, 20))
    yield from against_every_step(100_000, 10, 150)
    yield from as_printed(5000)
    yield from speed(100_000, 5)
    yield from price_of_few(1_000_000, 3, {"oful": 6, RARELY: 6, "linucb": 6, "thompson": 3}, CAPS, picture)
    yield from memory((20_000, 60_000))


NOTE = (
    "The levels of confidence on the lower-bound instances were chosen after looking at results: at the\n"
    "multiplier 1 the excess of oful is not clear, and tight intervals of rarely-switch-suplinucb never part\n"
    "the two arms, so that its regret is the same at every cap."
)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--picture", type=Path, help="draw regret against the cap there")
    options = parser.parse_args()
    return report("Rare switches", rows(options.quick, options.picture), options.out, NOTE)


if __name__ == "__main__":
    sys.exit(main())
