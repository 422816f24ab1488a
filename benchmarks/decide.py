"""Measure decisions: one at a time against LinUCB in NumPy, in batches against BLAS, scattered ids against a row.

One thread. What is compared is timed in turn, round after round; a ratio is the median over the rounds. The policy is
one of foresight: the best arm of one of 128 posterior draws, a G-optimal explorer, and intervals so wide that every arm
survives them, which is the most work.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from linucb import NumpyLinUCB
from measure import FloatArray, Row, arguments, in_turn, report
from rareswitch.design import GOptimal
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws

SHAPES = ((20, 10), (50, 20))
"""Arms and features."""
DRAWS, CALLS, PIECE = 128, 100, 20
"""Posterior draws; decisions timed together; sets in a product of BLAS that stays in the cache."""


def learned(dim: int) -> tuple[FloatArray, FloatArray]:
    """An estimate and the precision it has after 400 decisions."""
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((400, dim)) / np.sqrt(dim)
    return rng.standard_normal(dim) / 3, x.T @ x + np.eye(dim)


def foresight(dim: int) -> Policy:
    estimate, precision = learned(dim)
    half = np.linalg.cholesky(np.linalg.inv(precision))
    draws = estimate + np.random.default_rng(1).standard_normal((DRAWS, dim)) @ half.T
    policy = Policy(
        dim=dim,
        sampler=Blend(main=PosteriorDraws(draws=draws), explorer=GOptimal(tol=1.0), share=0.0003),
        eliminations=(Elimination.of(estimate, precision, 20.0),),
    )
    assert policy.id
    return policy


def drawn(count: int, arms: int, dim: int) -> FloatArray:
    return np.asarray(np.random.default_rng(2).standard_normal((count, arms, dim)) / np.sqrt(dim))


def row(
    what: str, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, each: int, most: float | None
) -> Row:
    seconds = in_turn(rounds, ours, theirs) / each * 1e6
    ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
    mine, other = np.median(seconds, axis=0)
    return Row(
        what=what,
        measured=f"{mine:.1f} µs against {other:.1f} µs",
        ratio=f"{ratio:.2f}×",
        needed="" if most is None else f"at most {most}×",
        holds=None if most is None else ratio <= most,
    )


def singles(rounds: int) -> Iterator[Row]:
    for (arms, dim), limits in zip(SHAPES, ((3, 4), (4, 5)), strict=True):
        policy, sets = foresight(dim), drawn(CALLS, arms, dim)
        yardstick = NumpyLinUCB(dim)
        yardstick.theta, precision = learned(dim)
        yardstick.inverse[:] = np.linalg.inv(precision)
        numbers: list[Any] = np.random.default_rng(3).integers(2**62, size=CALLS).tolist()
        for kind, ids, most in (
            ("numbers", numbers, limits[0]),
            ("strings", [f"request-{number:x}" for number in numbers], limits[1]),
        ):
            yield row(
                f"one decision of {arms} arms, d = {dim}, {kind} as ids, against LinUCB in NumPy",
                lambda ids=ids, sets=sets, policy=policy: [  # type: ignore[misc]
                    policy.decide(x, ids=id, seed=7)
                    for x, id in zip(sets, ids, strict=True)  # noqa: A001
                ],
                lambda sets=sets, yardstick=yardstick: [yardstick.decide(x) for x in sets],  # type: ignore[misc]
                rounds,
                CALLS,
                most,
            )


def best_arms(sets: FloatArray, draws: FloatArray, piece: int) -> list[Any]:
    """The best arm of each draw in each set by BLAS and NumPy, ``piece`` sets at once."""
    parts = (sets[start : start + piece] for start in range(0, len(sets), piece))
    shape = (len(draws), -1, sets.shape[1])
    return [(draws @ part.reshape(-1, sets.shape[2]).T).reshape(shape).argmax(axis=2) for part in parts]


def batches(count: int, rounds: int) -> Iterator[Row]:
    for arms, dim in SHAPES:
        policy, sets = foresight(dim), drawn(count, arms, dim)
        assert policy.survivors(sets).all()
        draws = policy.sampler.main.draws  # type: ignore[attr-defined]
        for piece, how, most in ((count, "in one product", 1.2), (PIECE, f"{PIECE} sets at a time, its fastest", None)):
            yield row(
                f"{count} decisions of {arms} arms, d = {dim}, each, against BLAS and argmax of the draws alone, {how}",
                lambda policy=policy, sets=sets: policy.decide(sets, ids=range(count), seed=7),  # type: ignore[misc]
                lambda sets=sets, draws=draws, piece=piece: best_arms(sets, draws, piece),  # type: ignore[misc]
                rounds,
                count,
                most,
            )


def ids(rounds: int) -> Iterator[Row]:
    policy, sets = foresight(10), drawn(64, 20, 10)
    scattered = np.random.default_rng(4).integers(2**62, size=64)
    for kind, names, most in (
        ("scattered numbers", scattered, 1.3),
        ("a list of them", scattered.tolist(), 1.3),
        ("strings", [f"request-{number:x}" for number in scattered], None),
    ):
        yield row(
            f"64 decisions of 20 arms, d = 10, in one call: {kind} as ids against consecutive numbers",
            lambda names=names: policy.decide(sets, ids=names, seed=7),  # type: ignore[misc]
            lambda: policy.decide(sets, ids=range(64), seed=7),
            10 * rounds,
            1,
            most,
        )


def rows(quick: bool) -> Iterator[Row]:
    rounds, count = (11, 1000) if quick else (101, 3000)
    yield from ids(rounds)
    yield from singles(rounds)
    yield from batches(count, rounds // 4)


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Decisions", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
