"""The algorithms are the paper's: batches and grids, and every decision of theirs."""

import math
from itertools import accumulate

from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.reproduction.claims import Claim, Effort, Measured, none_of
from rareswitch.lab.simulate import simulate
from rareswitch.lab.worlds import GaussianNoise, LinearWorld
from rareswitch.learner import make_learner, paper_grid

#: Both sides of the steps of ⌈log log T⌉ among them.
HORIZONS = (16, 17, 100, 256, 257, 1_000, 10_000, 65_536, 65_537)
BATCHED = ("batch-linucb", "batch-linucb-kw", "batch-linucb-dg")


def root_below(number: int, degree: int) -> int:
    """⌊number^(1/degree)⌋ in whole numbers.

    >>> root_below(10**12, 4), root_below(999, 3)
    (1000, 9)
    """
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle)
    return low


def printed_ends(horizon: int, *, designs: bool) -> list[int]:
    """The grid of Algorithms 1 and KW, or that of Algorithm 5, as printed and rounded down; ⌈log log T⌉ exactly.

    Of ends that are not larger than those before them, each is moved by one, so that no batch is empty.

    >>> printed_ends(10_000, designs=False), printed_ends(10_000, designs=True)
    ([100, 1000, 3162, 10000], [100, 200, 1000, 3162, 10000])
    """
    batches = 1
    while 2 ** (2**batches) < horizon:
        batches += 1
    ends = [root_below(horizon ** (2**i - 1), 2**i) for i in range(1, batches)]
    ends[1:1] = [math.isqrt(4 * horizon)] if designs else []
    return [*accumulate(ends, lambda last, end: max(last + 1, end)), horizon]


def ends_of(batches: int, horizon: int) -> list[int]:
    """T_i = T^((1-2^-i)/(1-2^-M)) for any number M of batches, rounded down."""
    degree = 2**batches - 1
    return [root_below(horizon ** (2**batches - 2 ** (batches - i)), degree) for i in range(1, batches + 1)]


def _batches(case: tuple[str, int, int | None, int]) -> tuple[int, int]:
    """Policies too many or too few of a run, and batch ends that are not where the paper has them."""
    name, horizon, policies, seed = case
    world = LinearWorld(source=Gaussian(dim=2, arms=3), noise=GaussianNoise(0.5))
    sizes = {"dim": 2, "arms": 3, "horizon": horizon, "noise": 0.5}
    if policies is None:
        ends, grid = printed_ends(horizon, designs=name.endswith("dg")), {}
    else:
        ends, grid = ends_of(policies, horizon), {"grid": paper_grid(horizon, policies)}
    run = simulate(make_learner(name, **sizes, **grid), world, seed=seed)
    measured = run.batch_ends.tolist()
    return abs(run.policies - len(ends)), len(set(measured) ^ set(ends))


def batches(effort: Effort) -> Measured:
    """Runs of three learners, by their own number of batches and by any other."""
    horizons = effort.of(whole=HORIZONS, quick=HORIZONS, small=HORIZONS[:4])
    cases = [(name, horizon, None, effort.seed) for name in BATCHED for horizon in horizons]
    own = effort.map(_batches, cases)
    others = effort.map(_batches, [(name, 10_000, m, effort.seed) for name in BATCHED for m in range(1, 9)])
    runs = f"{len(BATCHED)} learners, {len(horizons)} horizons up to {horizons[-1]:,}"
    number = "⌈log log T⌉ (+ 1 for DG)"
    return Measured(
        findings=(
            none_of(what=f"runs whose policies are not {number}: {runs}", value=sum(p > 0 for p, _ in own)),
            none_of(what="their batch ends that are not those printed, rounded down", value=sum(e for _, e in own)),
            none_of(what="the same for M = 1 to 8 batches, T = 10,000", value=sum(p + e for p, e in others)),
        ),
        seeds=1,
        remark="The powers of T are computed in whole numbers.",
    )


CLAIMS = (
    Claim(
        number=1,
        claim="⌈log log T⌉ batches are enough, one more for DG; any other number M has a grid too",
        theorem="Algorithms 1, KW and 5; contribution (C2)",
        criterion="every run has that many policies, and every batch ends where the paper says",
        measure=batches,
    ),
)
