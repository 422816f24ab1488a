"""The sample-ratio check: alarms on honest logs, and how soon one arm's propensity that is off by a tenth is found.

Honest logs are those of ten ways to choose, half of them learning in between, with 2, 5 and 20 arms. Then one arm's
propensity is off by 10 %: recorded too high or too low, or the arm really comes more or less often. *Best* is what no
test with 1 % false alarms can exceed: that of one who knows which arm is off, and in which direction
(Neyman and Pearson), of the normal approximation. The rules were chosen on seeds from 1000 on; the report is on seeds
from 0 on.
"""

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import special

from measure import FloatArray, Row, arguments, available_cores, report
from rareswitch.evaluation.calibration import THRESHOLD, Tally
from rareswitch.lab.worlds import make_world
from rareswitch.learner import BatchLinUCB, Foresight, Rows
from rareswitch.log import DecisionLog

DECISIONS = 5_000
#: Batches of logs that learn.
BATCHES = 8
ARMS = (2, 5, 20)
SIZES = (200, DECISIONS)

Generator = np.random.Generator


def drawn(logging: FloatArray, rng: Generator) -> Any:
    coins = rng.random(len(logging)) * logging.sum(axis=1)
    return (coins[:, None] >= logging.cumsum(axis=1)).sum(axis=1).clip(max=logging.shape[1] - 1)


def uniform(count: int, arms: int, rng: Generator) -> Iterator[FloatArray]:
    yield np.full((count, arms), 1.0 / arms)


def shares(count: int, arms: int, rng: Generator) -> Iterator[FloatArray]:
    yield np.tile(rng.dirichlet(np.ones(arms)), (count, 1))


def rare(count: int, arms: int, rng: Generator) -> Iterator[FloatArray]:
    yield np.tile([1.0 - 0.003 * (arms - 1), *[0.003] * (arms - 1)], (count, 1))


def by_context(count: int, arms: int, rng: Generator) -> Iterator[FloatArray]:
    yield rng.dirichlet(np.ones(arms), count)


def peaked(count: int, arms: int, rng: Generator) -> Iterator[FloatArray]:
    yield rng.dirichlet(np.full(arms, 0.1), count)


def eliminating(count: int, arms: int, rng: Generator) -> Iterator[FloatArray]:
    kept = rng.random((count, arms)) < 0.6
    kept[:, 0] |= ~kept.any(axis=1)
    yield kept / kept.sum(axis=1, keepdims=True)


def _learning(
    choose: Callable[[FloatArray], FloatArray], count: int, arms: int, rng: Generator
) -> Iterator[FloatArray | Any]:
    """Batches of probabilities by the mean rewards so far; places are sent back."""
    means, sums, counts = rng.normal(size=arms) / 2.0, np.zeros(arms), np.ones(arms)
    for part in np.array_split(np.arange(count), BATCHES):
        places: Any = yield np.tile(choose(sums / counts), (len(part), 1))
        rewards = means[places] + rng.normal(size=len(part))
        sums += np.bincount(places, rewards, minlength=arms)
        counts += np.bincount(places, minlength=arms)


def softmax(count: int, arms: int, rng: Generator) -> Iterator[FloatArray | Any]:
    def choose(means: FloatArray) -> FloatArray:
        powers = np.exp(5.0 * (means - means.max()))
        return np.asarray(powers / powers.sum())

    return _learning(choose, count, arms, rng)


def greedy(count: int, arms: int, rng: Generator) -> Iterator[FloatArray | Any]:
    def choose(means: FloatArray) -> FloatArray:
        return np.where(np.arange(arms) == means.argmax(), 0.9, 0.0) + 0.1 / arms

    return _learning(choose, count, arms, rng)


MADE = {
    one.__name__.replace("_", " "): one
    for one in (uniform, shares, rare, by_context, peaked, eliminating, softmax, greedy)
}


def _logged(recorded: FloatArray, places: Any, **columns: Any) -> DecisionLog:
    return DecisionLog(
        arm_indices=places,
        propensities=recorded[np.arange(len(places)), places],
        rewards=np.zeros(len(places)),
        available=np.ones(recorded.shape, dtype=np.bool_),
        **columns,
    )


def alarms(logging: list[FloatArray], places: list[Any], recorded: list[FloatArray] | None = None) -> tuple[bool, bool]:
    """With the probabilities of all arms, and with those of the chosen ones alone; a batch for each of the list."""
    tallies, names = (Tally(), Tally()), tuple(f"policy {number}" for number in range(len(logging)))
    for number, (probabilities, chosen) in enumerate(zip(recorded or logging, places, strict=True)):
        log = _logged(probabilities, chosen, batches=np.full(len(chosen), number), batch_names=names)
        tallies[0].add(log, logging[number] if recorded is None else probabilities)
        tallies[1].add(log)
    found = [tally.calibration() for tally in tallies]
    return tuple(one is not None and one.alarm for one in found)  # type: ignore[return-value]


def honest(job: tuple[str, int, int, int]) -> tuple[bool, bool]:
    """Alarms on one honest log."""
    kind, arms, count, seed = job
    rng = np.random.default_rng([seed, arms, count, len(kind)])
    if kind in ("foresight", "batch linucb"):
        return alarms(*_learned(kind, arms, count, seed))
    made, logging, places = MADE[kind](count, arms, rng), list[FloatArray](), list[Any]()
    answer: Any = None
    while True:
        try:
            probabilities = made.send(answer) if answer is not None else next(made)  # type: ignore[attr-defined]
        except StopIteration:
            return alarms(logging, places)
        logging.append(probabilities)
        answer = drawn(probabilities, rng)
        places.append(answer)


def _learned(kind: str, arms: int, count: int, seed: int) -> tuple[list[FloatArray], list[Any]]:
    """Of the library's own learners, in a linear world."""
    world = make_world("gaussian", dim=4, arms=arms)
    learner: Any = (
        Foresight(dim=4, horizon=count, updates=4)
        if kind == "foresight"
        else BatchLinUCB(dim=4, arms=arms, horizon=count)
    )
    state, logging, places, first = learner.begin(), list[FloatArray](), list[Any](), 0
    for part in np.array_split(np.arange(count), 4):
        rounds = world.draw(len(part), seed=seed, first=first)
        decisions = state.policy.decide(rounds.contexts, ids=part, seed=seed)
        logging.append(state.policy.probabilities(rounds.contexts))
        places.append(decisions.arms)
        expected = rounds.means[np.arange(len(part)), decisions.arms]
        rows = Rows.of(rounds.contexts, decisions, world.rewards(expected, seed=seed, first=first))
        first += len(part)
        if first < count:
            state = learner.next(state, learner.summarize(state, rows))
    return logging, places


def fixed(share: float, arms: int, count: int = DECISIONS) -> FloatArray:
    return np.tile([share, *[(1.0 - share) / (arms - 1)] * (arms - 1)], (count, 1))


def off(job: tuple[int, float, int]) -> FloatArray:
    """(7,) of a log in which one arm's propensity is off: whether it was found.

    Where the arm really comes more or less often, with all probabilities and with the chosen ones; where it was
    recorded so and the others to fit, likewise; where it alone was recorded so, likewise; and the decision at which
    its policy, where that is at hand, gives it away.
    """
    arms, share, seed = job
    rng = np.random.default_rng([seed, arms, round(1000 * share)])
    factor = 1.1 if seed % 2 else 0.9
    right, wrong = fixed(share, arms), fixed(factor * share, arms)
    comes = alarms([right], [drawn(wrong, rng)])
    places, alone = drawn(right, rng), right.copy()
    alone[:, 0] *= factor
    fitted, apart = alarms([wrong], [places]), alarms([alone], [places])
    first = int(np.argmax(places == 0)) + 1
    beside = Tally()
    beside.add(_logged(alone[:first], places[:first]), right[:first])
    told = beside.calibration()
    return np.array([*comes, *fitted, *apart, first if told is not None and told.alarm else np.inf], dtype=np.float64)


def off_by_context(job: tuple[int, float, int]) -> FloatArray:
    """(3,) where propensities vary with the context, about ``share`` on average, and one arm's was recorded off.

    With all probabilities, the others to fit; with the chosen ones, recorded too low; and recorded too high.
    """
    arms, share, seed = job
    rng = np.random.default_rng([seed, arms, round(1000 * share), 1])
    right = rng.dirichlet(5.0 * arms * fixed(share, arms, 1)[0], DECISIONS)
    places = drawn(right, rng)
    found = list[bool]()
    for factor in (0.9, 1.1):
        wrong = right.copy()
        wrong[:, 0] = np.minimum(wrong[:, 0] * factor, 0.999)
        wrong[:, 1:] *= ((1.0 - wrong[:, 0]) / (1.0 - right[:, 0]))[:, None]
        found.extend(alarms([wrong], [places]))
    return np.array([(found[0] + found[2]) / 2.0, found[1], found[3]])


def best_possible(share: float) -> float:
    return float(special.ndtr(0.1 * math.sqrt(DECISIONS * share / (1.0 - share)) + special.ndtri(THRESHOLD)))


def enough(share: float, arms: int) -> int:
    """Decisions after which nine of ten are found, by the normal approximation."""
    tests = arms if arms > 2 else 1
    distance = special.ndtri(0.9) - special.ndtri(THRESHOLD / tests / 2.0)
    return int(distance**2 * (1.0 - share) / share * 100.0)


VARIED = ((3, 1 / 3), (5, 0.4), (10, 0.3))
PLANS = ((2, 0.5), (3, 1 / 3), (5, 0.4), (5, 0.2), (10, 0.5), (10, 0.3), (10, 0.1), (20, 0.3), (20, 0.05))


def rows(logs: int, runs: int, first: int) -> Iterator[Row]:
    with ProcessPoolExecutor(available_cores()) as pool:
        found = {}
        for kind in (*MADE, "foresight", "batch linucb"):
            many = max(1, logs // 5) if kind in ("foresight", "batch linucb") else logs
            jobs = [
                (kind, arms, count, seed) for arms in ARMS for count in SIZES for seed in range(first, first + many)
            ]
            found[kind] = np.array([*pool.map(honest, jobs, chunksize=8)])
            print(f"honest, {kind}: {found[kind].mean(axis=0)}", file=sys.stderr, flush=True)
        whole = np.concatenate([*found.values()])
        for column, name in enumerate(("all arms' probabilities", "the chosen arm's alone")):
            rates = {kind: one[:, column].mean() for kind, one in found.items()}
            worst = max(rates, key=lambda kind: rates[kind])
            yield Row(
                what=f"honest logs, {name}: alarms",
                measured=f"{int(whole[:, column].sum())} of {len(whole):,} ({whole[:, column].mean():.2%})",
                ratio=f"most: {worst}, {rates[worst]:.2%} of {len(found[worst])}",
                needed="at most 1 %",
                holds=bool(whole[:, column].mean() <= THRESHOLD),
            )
        runs_of = {
            plan: np.array([*pool.map(off, [(*plan, seed) for seed in range(first, first + runs)], chunksize=8)])
            for plan in PLANS
        }
        varied = {
            plan: np.mean([*pool.map(off_by_context, [(*plan, seed) for seed in range(first, first + runs)])], axis=0)
            for plan in VARIED
        }
    beside = np.concatenate([*runs_of.values()])
    yield Row(
        what="one arm's propensities recorded 10 % off: its policy is at hand",
        measured=f"found {int(np.isfinite(beside[:, 6]).sum()):,} of {len(beside):,}",
        ratio=f"after {np.mean(beside[:, 6]):.1f} decisions on average, {np.max(beside[:, 6]):.0f} at most",
        needed="found within 5,000",
        holds=bool((beside[:, 6] <= DECISIONS).all()),
    )
    yield Row(
        what="the same, all arms' probabilities were recorded",
        measured=f"found {int(beside[:, 4].sum()):,} of {len(beside):,}",
        ratio="at once: they do not add up to 1",
        needed="found within 5,000",
        holds=bool((beside[:, 4] == 1.0).all()),
    )
    for (arms, share), found_off in runs_of.items():
        comes_all, comes_chosen, fitted_all, fitted_chosen, _, apart_chosen, _ = found_off.mean(axis=0)
        best = best_possible(share)
        yield Row(
            what=f"{arms} arms, one of share {share:.2g} off by 10 %",
            measured=(
                f"all probabilities: comes so {comes_all:.0%}, recorded so and others to fit {fitted_all:.0%}; chosen "
                f"arms' alone: comes so {comes_chosen:.0%}, recorded so {apart_chosen:.0%}, others to fit "
                f"{fitted_chosen:.0%}"
            ),
            ratio=f"best {best:.0%}; 90 % after {enough(share, arms):,}",
            # what nobody could find in 99 of 100 cases is not promised
            needed="found within 5,000, most" if best >= 0.99 else "",
            holds=bool(min(comes_all, comes_chosen, fitted_all, fitted_chosen, apart_chosen) >= 0.8)
            if best >= 0.99
            else None,
        )
    for (arms, share), (everything, low, high) in varied.items():
        yield Row(
            what=f"{arms} arms, one of share {share:.2g} on average, by context, recorded off by 10 %, others to fit",
            measured=f"all probabilities: {everything:.0%}; chosen arms' alone: too low {low:.0%}, too high {high:.0%}",
        )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    logs, runs = (4, 10) if given.quick else (120, 200)
    note = (
        "5,000 decisions each. An arm of share s that is off by 10 % lies 0.1 √(n s/(1 − s)) standard deviations away "
        "after n decisions: of an arm of share 0.1 that is 2.4, and nobody can tell it from chance reliably. Where the "
        "policy that decided is at hand, as in all logs of this library, or where all probabilities were recorded and "
        "do not add up to 1, no statistics are needed: the first such decision gives it away. Where only the chosen "
        "arm's propensity is known and it varies with the context, arms that come too rarely are not judged: they may "
        "have had probability 0 at times."
    )
    return report("Sample-ratio check", rows(logs, runs, given.first), given.out, note)


if __name__ == "__main__":
    sys.exit(main())
