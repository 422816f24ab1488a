"""Speed: decisions, updates, stores, evaluations, designs and starts, each beside what it could at best take.

What is compared is timed in turn, round after round; a ratio is the median over the rounds. Linear algebra has one
thread. Stores are on the disk of temporary files, which TMPDIR chooses.
"""

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count as counter
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import numpy as np

import rareswitch
from harness import (
    NOTHING,
    Case,
    FloatArray,
    Row,
    Setup,
    at_most,
    available_cores,
    compared,
    in_process,
    in_turn,
    main,
    missing,
)
from rareswitch import simulate
from rareswitch.design import GOptimal, frank_wolfe_design, g_optimal, information, staged_design, variation
from rareswitch.experiment import Experiment
from rareswitch.features import Features
from rareswitch.lab.distributions import Anisotropic, ContextDistribution, Gaussian, OneBig
from rareswitch.lab.reproduction.references.designs import literal_algorithm_2
from rareswitch.lab.rivals import InverseGap
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, make_learner
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws, save_policy
from rareswitch.service import MSGPACK, Hub, Security, Service, Tokens, application
from reference.load import MARK, Load, Outcome, request
from reference.loop import rows_of
from reference.postgres import database, server
from reference.served import Server, serving
from yardsticks import NumpyLinUCB, batched_numpy, clarabel, open_loop_frank_wolfe

DIM = 20


def posterior(dim: int) -> tuple[FloatArray, FloatArray]:
    """An estimate and the precision it has after 400 decisions."""
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((400, dim)) / np.sqrt(dim)
    return rng.standard_normal(dim) / 3, x.T @ x + np.eye(dim)


def foresight(dim: int, features: Features | None = None) -> Policy:
    """A policy such as foresight's: 128 posterior draws, a G-optimal explorer, intervals that every arm survives."""
    estimate, precision = posterior(dim)
    half = np.linalg.cholesky(np.linalg.inv(precision))
    draws = estimate + np.random.default_rng(1).standard_normal((128, dim)) @ half.T
    sampler = Blend(main=PosteriorDraws(draws=draws), explorer=GOptimal(tol=1.0), share=0.0003)
    past = (Elimination.of(estimate, precision, 20.0),)
    return Policy(dim=dim, sampler=sampler, eliminations=past, features=features)


def drawn(count: int, arms: int, dim: int) -> FloatArray:
    return np.asarray(np.random.default_rng(2).standard_normal((count, arms, dim)) / np.sqrt(dim))


def best_arms(sets: FloatArray, draws: FloatArray) -> Any:
    """The best arm of each draw in each set by BLAS and NumPy."""
    return (draws @ sets.reshape(-1, sets.shape[2]).T).reshape(len(draws), -1, sets.shape[1]).argmax(axis=2)


def decide(setup: Setup) -> Iterator[Row]:
    """Decisions one at a time against LinUCB in NumPy, in batches against BLAS, scattered ids against a row."""
    rounds, many, calls = setup.pick(101, 11), setup.pick(3000, 500), 100
    for (arms, dim), limits in zip(((20, 10), (50, 20)), ((3.0, 4.0), (4.0, 5.0)), strict=True):
        policy, sets, yardstick = foresight(dim), drawn(calls, arms, dim), NumpyLinUCB(dim)
        yardstick.theta, precision = posterior(dim)
        yardstick.inverse[:] = np.linalg.inv(precision)
        numbers: list[Any] = np.random.default_rng(3).integers(2**62, size=calls).tolist()
        for kind, ids, most in zip(
            ("numbers", "strings"), (numbers, [f"r-{k:x}" for k in numbers]), limits, strict=True
        ):
            yield compared(
                f"one decision of {arms} arms, d = {dim}, {kind} as ids, against LinUCB in NumPy",
                lambda p=policy, s=sets, i=ids: [p.decide(x, ids=own, seed=7) for x, own in zip(s, i, strict=True)],  # type: ignore[misc]
                lambda s=sets, y=yardstick: [y.decide(x) for x in s],  # type: ignore[misc]
                rounds=rounds,
                each=(calls, calls),
                most=most,
            )
        batch, draws = drawn(many, arms, dim), policy.sampler.main.draws  # type: ignore[attr-defined]
        yield compared(
            f"{many} decisions of {arms} arms, d = {dim}, each, against BLAS and argmax of the draws alone",
            partial(policy.decide, batch, ids=range(many), seed=7),
            partial(best_arms, batch, draws),
            rounds=rounds // 4,
            each=(many, many),
            most=1.2,
        )
    policy, sets, scattered = foresight(10), drawn(64, 20, 10), np.random.default_rng(4).integers(2**62, size=64)
    yield compared(
        "64 decisions of 20 arms, d = 10, in one call: scattered numbers as ids against consecutive ones",
        partial(policy.decide, sets, ids=scattered, seed=7),
        partial(policy.decide, sets, ids=range(64), seed=7),
        rounds=10 * rounds,
        most=1.3,
    )


def requests(count: int, seed: int, arms: int = 20) -> list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Users of 4 fields and offers of 12."""
    rng = np.random.default_rng(seed)
    items = [
        {f"price {k}": round(float(rng.normal(20, 8)), 2) for k in range(6)}
        | {f"kind {k}": ("shirt", "shoe", "hat")[int(rng.integers(3))] for k in range(4)}
        | {f"flag {k}": bool(rng.integers(2)) for k in range(2)}
        for _ in range(200)
    ]
    users = [
        {"age": round(float(rng.normal(40, 20)), 1), "device": str(rng.choice(["ios", "android", "web", "tv"]))}
        | {"member": bool(rng.integers(2)), "visits": int(rng.poisson(4))}
        for _ in range(count)
    ]
    return [(user, {f"item {k}": items[int(rng.integers(200))] for k in range(arms)}) for user in users]


def records(setup: Setup) -> Iterator[Row]:
    """Records to decisions: against ready vectors, and through an experiment in memory."""
    sample, asked, rounds = requests(500, 4), requests(20, 1), setup.pick(501, 21)
    features = Features.fit([user for user, _ in sample], arms=[offer for _, offer in sample])
    policy = foresight(features.dim, features)
    vectors = [features.encode(*request).vectors for request in asked]
    by_records = partial(_all, lambda k, request: policy.decide_records(*request, id=f"r {k}", seed=7), asked)
    yield compared(
        f"one request of 20 arms × 12 fields and a user of 4, d = {features.dim}: decide_records against decide on "
        "ready vectors, CPU time",
        by_records,
        partial(_all, lambda k, x: policy.decide(x, ids=f"r {k}", seed=7), vectors),
        rounds=rounds,
        each=(len(asked), len(asked)),
        most=4.0,
        clock=time.thread_time,
    )
    number = counter()
    with rareswitch.create("memory:", "records", features=features, context_sample_rate=0.01) as trial:
        own = trial.policy
        yield compared(
            "the same through an experiment in memory, against its policy's own decide_records, CPU time",
            partial(_all, lambda k, request: trial.decide(*request, id=next(number)), asked),
            partial(_all, lambda k, request: own.decide_records(*request, id=f"r {k}", seed=7), asked),
            rounds=rounds,
            each=(len(asked), len(asked)),
            most=2.3,
            clock=time.thread_time,  # nothing is waited for, and another process may take the processor in between
        )


def _all(call: Callable[[int, Any], Any], items: list[Any]) -> None:
    for k, item in enumerate(items):
        call(k, item)


def rounds_a_second(setup: Setup) -> Iterator[Row]:
    """Simulated rounds against LinUCB in NumPy that steps through drawn rounds, and the memory of a long run."""
    horizon, steps = setup.pick(1_000_000, 20_000), setup.pick(20_000, 2000)
    world = make_world("gaussian", dim=10, arms=20, noise=0.5)
    rounds = world.draw(steps, seed=1)

    def stepping() -> None:
        yardstick = NumpyLinUCB(10)
        for x, means in zip(rounds.contexts, rounds.means, strict=True):
            arm = yardstick.decide(x)
            yardstick.update(x[arm], means[arm])

    for name, least in (("batch-linucb-kw", 2.5), ("foresight", None), ("oful", None), ("linucb", None)):
        sizes: dict[str, Any] = {"dim": 10, "arms": 20, "horizon": horizon}
        learner = make_learner(name, **sizes, **({} if name == "foresight" else {"noise": 0.5}))
        yield compared(
            f"simulated rounds, {name}, T = {horizon:,}, (20, 10), drawing included, against stepping NumPy LinUCB",
            partial(simulate, learner, world, seed=1),
            stepping,
            rounds=setup.pick(3, 1),
            each=(horizon, steps),
            least=least,
        )
    script = """
import json, sys
from harness import peak_memory
from rareswitch import simulate
from rareswitch.lab.worlds import make_world
from rareswitch.learner import make_learner
learner = make_learner("batch-linucb-kw", dim=10, arms=20, horizon=int(sys.argv[1]), noise=0.5)
simulate(learner, make_world("gaussian", dim=10, arms=20, noise=0.5), seed=1)
print(json.dumps(peak_memory()))
"""
    longest = setup.pick(10_000_000, 100_000)
    peak = in_process(script, str(longest))
    what = f"peak memory, batch-linucb-kw, T = {longest:,}, (20, 10)"
    yield Row(what=what, measured=f"{peak:.0f} MiB", must=("under 1024 MiB", peak < 1024))


def foresight_update(setup: Setup) -> Iterator[Row]:
    """One update of foresight, look-ahead included: processor time of the slowest of a run, by features and arms."""
    for dim, arms, most in ((10, 20, 0.3), (50, 20, 1.5), (200, 20, 5.0), (10, 1000, None))[: setup.pick(4, 2)]:
        world, horizon = make_world("gaussian", dim=dim, arms=arms, noise=0.5), setup.pick(20_000, 2000)
        learner, seconds = Foresight(dim=dim, horizon=horizon, policies=8), list[float]()
        state = learner.begin()
        while len(state.batch_sizes) > 1:
            summary = learner.summarize(state, rows_of(state, world, 1))
            if not seconds:
                learner.next(state, summary)  # compiles what is compiled at the first use
            begun = time.process_time()
            state = learner.next(state, summary)
            seconds.append(time.process_time() - begun)
        yield Row(
            what=f"an update of foresight, d = {dim}, K = {arms}: the slowest of {len(seconds)}",
            measured=f"{max(seconds):.2f} s (median {np.median(seconds):.2f} s)",
            must=at_most(max(seconds), most, " s"),
        )


ADVANCE = """
import json, sys, time
from harness import peak_memory
from rareswitch.experiment import open_experiment
with open_experiment(sys.argv[1], "trial") as trial:
    begun = time.perf_counter()
    trial.advance(force=True)
    print(json.dumps([time.perf_counter() - begun, peak_memory()]))
"""


def filled(url: str, count: int) -> Experiment:
    """An experiment with so many decisions among 5 arms, all rewarded."""
    chosen: dict[str, Any] = {
        "schedule": [10**9, 2 * 10**9],
        "policies": 2,
        "context_sample_rate": min(1.0, 1000 / count),
    }
    trial = rareswitch.create(url, "trial", dim=DIM, seed=1, **chosen)
    rng, size = np.random.default_rng(1), 10_000
    for first in range(0, count, size):
        ids = range(first, min(first + size, count))
        trial.decide_many(rng.standard_normal((len(ids), 5, DIM)) / np.sqrt(DIM), ids=ids)
        trial.reward_many(ids, rng.standard_normal(len(ids)).tolist())
    return trial


def stores(stack: ExitStack) -> Iterator[tuple[str, Callable[[str], str]]]:
    """What stores there are, and addresses of new databases in them."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    yield "SQLite", lambda name: f"sqlite:///{folder}/{name}.db"
    address = stack.enter_context(server(uuid4().hex))
    yield "PostgreSQL", lambda name: stack.enter_context(database(address, name))


def advance(setup: Setup, count: int = 1_000_000, *, databases: int = 2) -> Iterator[Row]:
    """An update from stored decisions, in a process of its own, and its memory beside a tenth of them."""
    counts, most = setup.pick((count // 10, count), (500, 5000)), 6e-6 * count
    with ExitStack() as stack:
        for what, address in islice(stores(stack), databases):
            outcomes = []
            for stored in counts:
                url = address(f"advance-{stored}")
                filled(url, stored).close()
                outcomes.append(in_process(ADVANCE, url))
            (_, little), (seconds, much) = outcomes
            yield Row(
                what=f"{what}: advance over {counts[1]:,} decisions, d = {DIM}",
                measured=f"{seconds:.2f} s; peak memory {much:.0f} MiB, with a tenth of them {little:.0f} MiB",
                ratio=f"{much / little:.2f}× the memory",
                must=(f"at most {most:.0f} s and 1.1×", seconds <= most and much <= 1.1 * little),
            )


def grown(setup: Setup) -> Iterator[Row]:
    """What a decision, a look and an advance that is not due cost where much is stored, against little."""
    few, many, sets = 2000, setup.pick(1_000_000, 20_000), np.eye(DIM)[:5]
    with ExitStack() as stack:
        for what, address in stores(stack):
            trials = [stack.enter_context(filled(address(f"grown-{count}"), count)) for count in (few, many)]
            number = counter(10 * many)

            def decides(trial: Experiment, number: Iterator[int] = number) -> None:
                for _ in range(100):
                    trial.decide(sets, id=next(number))

            large, small = (partial(decides, trial) for trial in (trials[1], trials[0]))
            yield compared(
                f"{what}: a durable decision where {many:,} rewards are stored, against {few:,}",
                large,
                small,
                rounds=setup.pick(25, 3),
                each=(100, 100),
                most=1.3,
                unit="ms",
            )
            calls: dict[str, Callable[[], object]] = {"status": trials[1].status, "advance, not due": trials[1].advance}
            for name, call in calls.items():
                taken = 1e3 * float(np.median(in_turn(setup.pick(15, 3), call)))
                yield Row(
                    what=f"{what}: {name} where {many:,} rewards are stored",
                    measured=f"{taken:.1f} ms",
                    must=at_most(taken, 50, " ms"),
                )


def synced(folder: Path, size: int, times: int) -> None:
    """Bytes appended to a file, each time down to the disk."""
    file = os.open(folder / f"raw-{uuid4().hex}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(times):
        os.write(file, bytes(size))
        os.fdatasync(file)
    os.close(file)


def commits(setup: Setup) -> Iterator[Row]:
    """Durable decisions: 100 in a call against a synced write, 64 callers of one each against a policy alone."""
    rounds, arms, number = setup.pick(7, 1), 20, counter()
    sets, calls, callers = drawn(100, arms, DIM), setup.pick(50, 5), 64
    sample, asked = requests(500, 4), requests(calls, 1)
    features = Features.fit([user for user, _ in sample], arms=[offer for _, offer in sample])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for what, address in stores(stack):
            many, one = (
                stack.enter_context(rareswitch.create(address(name), "trial", context_sample_rate=0.01, **chosen))
                for name, chosen in (("many", {"dim": DIM}), ("one", {"features": features}))
            )
            own = one.policy

            def batches(trial: Experiment = many) -> None:
                for _ in range(calls):
                    trial.decide_many(sets, ids=[next(number) for _ in range(100)])

            def waiting(trial: Experiment = one) -> None:
                decides = partial(_all, lambda k, request: trial.decide(*request, id=next(number)), asked)
                threads = [threading.Thread(target=decides) for _ in range(callers)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

            def alone(policy: Policy = own) -> None:
                _all(lambda k, request: policy.decide_records(*request, id=f"r {k}", seed=7), asked)

            yield compared(
                f"{what}: decide_many of 100, {arms} arms, d = {DIM}, against 100 × 300 bytes written and synced",
                batches,
                partial(synced, folder, 30_000, calls),
                rounds=rounds,
                each=(calls, calls),
                unit="ms",
            )
            rates = np.array([callers * calls, calls, 10 * calls]) / in_turn(
                rounds, waiting, alone, partial(synced, folder, 300, 10 * calls)
            )
            decided, policy, disk = np.median(rates, axis=0)
            ratio = float(np.median(rates[:, 0] / rates[:, 1]))
            yield Row(
                what=f"{what}: {callers} callers of one durable decision of 20 arms × 12 fields at a time, against one "
                "process that calls decide_records",
                measured=f"{decided:,.0f} a second against {policy:,.0f}; the disk syncs {disk:,.0f} writes a second",
                ratio=f"{ratio:.2f}",
                must=("at least 0.45", ratio >= 0.45) if what == "SQLite" else NOTHING,
            )


EVALUATE_ARMS, LOGGED, CANDIDATE = 10, 20.0, 60.0


def exported(folder: Path, count: int) -> None:
    """Decisions of one frozen policy in Parquet, as an experiment exports them, and a candidate."""
    first, second = np.random.default_rng(10).standard_normal((2, DIM))
    save_policy(Policy(dim=DIM, sampler=InverseGap(estimate=second, gamma=CANDIDATE)), folder / "candidate.policy")
    np.save(folder / "theta.npy", second)
    rng, size = np.random.default_rng(11), 1 << 16
    policy = Policy(dim=DIM, sampler=InverseGap(estimate=first, gamma=LOGGED))
    from rareswitch.log import write_part

    for start in range(0, count, size):
        ids = np.arange(start, min(start + size, count))
        contexts = rng.standard_normal((len(ids), EVALUATE_ARMS, DIM)) / np.sqrt(DIM)
        decided = policy.decide(contexts, ids=ids, seed=1)
        chosen = contexts[np.arange(len(ids)), decided.arms]
        write_part(
            folder / f"part-{start // size:04d}.parquet",
            policy_id=policy.id,
            ids=ids,
            features=chosen,
            propensities=decided.propensities,
            rewards=chosen @ second + rng.standard_normal(len(ids)),
            contexts=dict(zip(ids.tolist(), contexts, strict=True)),
        )


EVALUATE = """
import json, sys, time
from pathlib import Path
import numba, numpy as np, pyarrow.parquet as parquet
import rareswitch
from harness import peak_memory
from rareswitch.log import ParquetLog
from rareswitch.policy import load_policy
from speed import CANDIDATE, DIM, EVALUATE_ARMS
folder, kind = Path(sys.argv[1]), sys.argv[2]
begun = time.perf_counter()
if kind == "numpy":
    theta, total, count = np.load(folder / "theta.npy"), 0.0, 0
    for path in sorted(folder.glob("*.parquet")):
        columns = ["contexts", "features", "propensity", "reward"]
        for batch in parquet.ParquetFile(path).iter_batches(1 << 14, columns=columns):
            x = batch["contexts"].flatten().to_numpy().reshape(-1, EVALUATE_ARMS, DIM)
            chosen = batch["features"].flatten().to_numpy().reshape(-1, DIM) @ theta
            scores, rows = x @ theta, np.arange(len(x))
            best = scores.argmax(axis=1)
            chances = 1.0 / (EVALUATE_ARMS + CANDIDATE * (scores[rows, best][:, None] - scores))
            chances[rows, best] = 0.0
            chances[rows, best] = 1.0 - chances.sum(axis=1)
            own = chances[rows, np.abs(scores - chosen[:, None]).argmin(axis=1)]
            total += float((own / batch["propensity"].to_numpy() * batch["reward"].to_numpy()).sum())
            count += len(x)
    value = total / count
else:
    candidate = {"candidate": load_policy(folder / "candidate.policy")}
    found = rareswitch.evaluate(ParquetLog(folder / "*.parquet", []), candidate, estimator=kind)
    value = found["candidate"].interval.value
print(json.dumps([time.perf_counter() - begun, peak_memory(), value]))
"""


def evaluate(setup: Setup) -> Iterator[Row]:
    """An evaluation of 10^6 decisions in Parquet, against NumPy that reads the same files and computes IPS alone."""
    count = setup.pick(1_000_000, 20_000)
    with tempfile.TemporaryDirectory() as name:
        exported(Path(name), count)
        kinds = ("numpy", "dr", "ips")  # in turn, as other work on the machine slows all of them
        rounds = np.array([[in_process(EVALUATE, name, kind) for kind in kinds] for _ in range(setup.pick(7, 2))])
    runs, ratio = dict(zip(kinds, np.median(rounds, axis=0), strict=True)), np.median(rounds[:, 1, 0] / rounds[:, 0, 0])
    yield Row(
        what=f"an evaluation of {count:,} decisions, d = {DIM}, {EVALUATE_ARMS} arms, against NumPy with IPS alone",
        measured=f"{runs['dr'][0]:.2f} s and {runs['dr'][1]:.0f} MiB against {runs['numpy'][0]:.2f} s and "
        f"{runs['numpy'][1]:.0f} MiB",
        ratio=f"{ratio:.2f}×",
        must=at_most(float(ratio), 2.0),
    )
    apart = abs(runs["ips"][2] - runs["numpy"][2])
    yield Row(what="IPS of both", measured=f"{apart:.1e} apart", must=at_most(apart, 1e-10, ""))


def design(setup: Setup) -> Iterator[Row]:
    """Designs at 1.05·d against other solvers, Algorithm 2 against the literal loop, and the certified design."""
    rounds, entries = setup.pick(15, 1), setup.pick(2**20, 2**15)
    solvers: list[tuple[str, Callable[[FloatArray], Any], int | None, float | None]] = [
        ("plain Python Frank-Wolfe", lambda sets: [open_loop_frank_wolfe(x) for x in sets], 2, 400.0),
        ("batched NumPy", batched_numpy, None, 2.0),
    ]
    if importlib.util.find_spec("cvxpy") and importlib.util.find_spec("clarabel"):
        solvers.append(("cvxpy + Clarabel", lambda sets: [clarabel(x) for x in sets], 2, 5000.0))
    else:
        yield from missing("designs against cvxpy + Clarabel", "not installed")
    for arms, dim in ((10, 5), (20, 10), (50, 20), (100, 50))[: setup.pick(4, 2)]:
        contexts = Gaussian(dim=dim, arms=arms).draw(max(8, entries // (arms * dim)), seed=1).contexts
        for name, solve, sets, least in solvers:
            part = contexts[:sets]
            yield compared(
                f"designs at 1.05·d, ({arms}, {dim}), against {name}",
                partial(g_optimal, contexts, tol=0.05),
                partial(solve, part),
                rounds=rounds,
                each=(len(contexts), len(part)),
                least=least,
            )
    contexts = Gaussian(dim=10, arms=20).draw(setup.pick(20_000, 2000), seed=1).contexts
    if available_cores() > 1:
        one, two = in_turn(
            2 * rounds,
            partial(g_optimal, contexts, tol=0.05, threads=1),
            partial(g_optimal, contexts, tol=0.05, threads=2),
        ).min(axis=0)  # the fastest rounds: that a core is busy with something else is not the library's doing
        what = f"two threads against one, {len(contexts):,} sets (20, 10)"
        yield Row(
            what=what,
            measured=f"{two:.3f} s against {one:.3f} s",
            ratio=f"{one / two:.2f}×",
            must=("1.6×", bool(one >= 1.6 * two)),
        )
    sample, sets = contexts[: setup.pick(1000, 50)], setup.pick(1000, 50)
    play = information(GOptimal(), sample)
    begun = time.perf_counter()
    lengths, matrices = literal_algorithm_2(sample, play, regularization=2.0 / sets, form="argmax")
    slow = time.perf_counter() - begun
    staged = partial(staged_design, sample, regularization=2.0 / sets, form="argmax")
    fast, found = float(np.median(in_turn(rounds, staged))), staged()
    same = found.stage_lengths.tolist() == lengths and np.allclose(found.stage_matrices, matrices, rtol=1e-9, atol=0.0)
    yield Row(
        what=f"Algorithm 2 against the literal loop, d = 10, {sets} sets of 20",
        measured=f"{fast * 1e3:.1f} ms against {slow:.2f} s, {'identical' if same else 'DIFFERENT'} stages",
        ratio=f"{slow / fast:,.0f}× as fast",
        must=("300×, identical", bool(same and slow >= 300.0 * fast)),
    )
    sources: dict[str, ContextDistribution] = {
        "Gaussian": Gaussian(dim=10, arms=20),
        "one-big": OneBig(dim=10, arms=20),
        "one-big with rare types": OneBig(dim=10, arms=20, rare=0.01),
        "anisotropic": Anisotropic(dim=10, arms=20),
    }
    for name, source in list(sources.items())[: setup.pick(4, 1)]:
        inside, outside = (source.draw(n, seed=seed).contexts for n, seed in ((sets, 1), (4 * sets, 2)))
        certified = frank_wolfe_design(inside, regularization=1e-5, g_optimal_share=0.2, tol=0.05)
        paper = staged_design(inside, regularization=1e-5, form="argmax")
        values = [variation(p.policy, x, regularization=1e-5) for p in (certified, paper) for x in (inside, outside)]
        atoms = [len(p.policy.weights) for p in (certified, paper)]
        yield Row(
            what=f"certified Frank-Wolfe design, {name}: V in sample (held out) and atoms",
            measured=f"{values[0]:.2f} ({values[1]:.2f}), {atoms[0]} atoms; Algorithm 2 {values[2]:.2f} "
            f"({values[3]:.2f}), {atoms[1]} atoms",
            must=("V ≤ 1.05·d/0.8, a quarter of the atoms", bool(values[0] <= 10.5 / 0.8 and 4 * atoms[0] <= atoms[1])),
        )


COMMAND = ["-c", "import sys; from rareswitch.cli import main; sys.exit(main())"]
#: An experiment about records in SQLite; prints seconds up to the first decision, and to an update.
FIRST = """
import json, sys, time
import rareswitch
visitors = [{"age": 20 + k % 40, "device": ("ios", "web")[k % 2]} for k in range(60)]
offers = {f"offer-{k}": {"price": k} for k in range(int(sys.argv[1]))}
features = rareswitch.Features.fit(visitors, offers)
with rareswitch.create(f"sqlite:///{sys.argv[2]}", "trial", features=features) as trial:
    trial.decide(visitors[0], offers, id=0)
    decided = time.time()
    trial.decide_many(visitors[1:], offers, ids=range(1, 60))
    trial.reward_many(range(60), [k % 3 for k in range(60)])
    trial.advance(force=True)
    print(json.dumps([decided, time.time()]))
"""


def start(setup: Setup) -> Iterator[Row]:
    """How soon commands answer and the library is there, and the first decision without machine code and warm."""

    def seconds(words: list[str]) -> Callable[[], object]:
        own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return partial(subprocess.run, [sys.executable, *words], capture_output=True, check=False, env=own)

    names = setup.pick(
        ("--help", "--wrong", "experiment create --wrong", "simulate --wrong", "contest --wrong"), ("--help",)
    )
    cases = [(f"rareswitch {name}", [*COMMAND, *name.split()], "numpy", 1.5) for name in names]
    cases.append(("import rareswitch", ["-c", "import rareswitch"], "numba", 1.3))
    for what, words, other, most in cases:
        own, theirs = in_turn(setup.pick(21, 2), seconds(words), seconds(["-c", f"import {other}"])).min(axis=0)
        yield Row(
            what=f"{what}, against import {other}",
            measured=f"{1e3 * own:.0f} ms against {1e3 * theirs:.0f} ms",
            ratio=f"{own / theirs:.2f}×",
            must=at_most(own / theirs, most),
        )
    for arms in setup.pick((8, 80), (8,)):
        with tempfile.TemporaryDirectory() as cache:
            own_cache = {"NUMBA_CACHE_DIR": cache, "HOME": cache, "XDG_CACHE_HOME": cache}
            for what, limit in setup.pick((("no machine code", 8.0), ("warm", 1.5)), (("no machine code", 8.0),)):
                begun = time.time()
                decided, updated = in_process(FIRST, str(arms), f"{cache}/{uuid4().hex}.db", environment=own_cache)
                yield Row(
                    what=f"first decision among {arms} arms, {what} (and first update)",
                    measured=f"{decided - begun:.1f} s ({updated - decided:.1f} s)",
                    must=at_most(decided - begun, limit, " s"),
                )


class FixedHub(Hub):
    """Experiments for whose page it is always the same moment."""

    def now(self) -> float:
        return 60 * 86_400.0


def page(setup: Setup) -> Iterator[Row]:
    """The page of an experiment whose store was just opened, and what is new while decisions come."""
    count, size = setup.pick(100_000, 2_000), 2_000
    arms = [f"offer {k:02}" for k in range(30)]
    visitors: list[dict[str, Any]] = [{"age": 20 + k % 50, "device": ("ios", "web")[k % 2]} for k in range(size)]
    with tempfile.TemporaryDirectory() as folder:
        url, rng = f"sqlite:///{folder}/page.db", np.random.default_rng(1)
        settings: dict[str, Any] = {"rewards": rareswitch.Rewards(window="2d", default=0.0), "now": 0.0}
        features = Features.fit(visitors, arms)
        with rareswitch.create(url, "page", features=features, policies=4, horizon=count, seed=1, **settings) as trial:
            for first in range(0, count, size):
                ids, now = range(first, first + size), 50 * 86_400.0 * first / count
                trial.decide_many(visitors, arms, ids=ids, now=now)
                trial.reward_many(ids[::2], rng.integers(0, 2, size // 2).tolist(), now=now + 3600.0)
                if first in (count // 10 // size * size, count // 2 // size * size):
                    trial.advance(now=now + 3 * 86_400.0, force=True)
        first_answer, refreshes, unchanged = asyncio.run(_page_seconds(url, visitors[0], arms))
    about = f"{count:,} decisions, {len(arms)} arms"
    yield Row(
        what=f"page, {about}: the first answer, with the store to open",
        measured=f"{first_answer:.2f} s",
        must=at_most(first_answer, 1.0, " s"),
    )
    slowest, middle = 1e3 * max(refreshes), 1e3 * float(np.median(refreshes))
    yield Row(
        what=f"page, {about}: what is new after a decision, the slowest of {len(refreshes)}",
        measured=f"{slowest:.0f} ms (median {middle:.0f} ms)",
        must=at_most(slowest, 200, " ms"),
    )
    yield Row(what=f"page, {about}: that nothing is new", measured=f"{1e3 * float(np.median(unchanged)):.0f} ms")


async def _page_seconds(url: str, visitor: dict[str, Any], arms: list[str]) -> tuple[float, list[float], list[float]]:
    """Seconds of the first answer, of answers after a decision, and of answers where nothing is new."""
    service = Service(hub=FixedHub(url), security=Security(tokens=Tokens()))
    token = service.security.tokens.add("admin", ["admin"])
    transport, headers = httpx.ASGITransport(application(service)), {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:

        async def asked(path: str) -> tuple[float, httpx.Response]:
            begun = time.perf_counter()
            answer = await client.get(path)
            return time.perf_counter() - begun, answer

        first, answer = await asked("/experiments/page")
        trial = await service.hub.trial("page")
        changed, unchanged, news = list[float](), list[float](), ""
        for number in range(40):
            poll = re.search(r'hx-get="([^"]*)"', answer.text)
            news = news if poll is None else poll[1]
            await asyncio.sleep(0.25)
            if number % 2:
                trial.decide(visitor, arms, id=f"new {number}", now=service.hub.now())
            seconds, answer = await asked(news)
            (changed if answer.status_code == 200 else unchanged).append(seconds)
    await asyncio.to_thread(service.hub.close)
    return first, changed, unchanged


#: Parses a body of JSON and sends it back, and does nothing else.
BARE = """
import sys
import msgspec, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def echo(request):
    return Response(msgspec.json.encode(msgspec.json.decode(await request.body())), media_type="application/json")

async def alive(request):
    return Response()

app = Starlette(routes=[Route("/healthz", alive), Route("/{rest:path}", echo, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[2]), http="httptools", ws="none", access_log=False, log_level="warning")
"""


class Served:
    """A server, what it is asked, and the rates at which it answered."""

    def __init__(self, server: Server, path: str, bodies: Sequence[bytes], token: str = "", **media: str) -> None:
        sent = [request(server.port, path, body, token=token, **media) for body in bodies]
        self.server, self._scripts, self._first = server, [[one] for one in sent], 0
        #: Of each round requests a second, and processor time of the server for each.
        self.rates, self.costs = list[float](), list[float]()

    def load(self, connections: int, seconds: float, rate: float | None = None) -> Outcome:
        """Ask under ids that are new."""
        self._first += 10**6
        chosen: dict[str, Any] = {"connections": connections, "seconds": seconds, "rate": rate, "first": self._first}
        return Load(port=self.server.port, scripts=self._scripts, **chosen).run()

    def round(self, connections: int, seconds: float) -> None:
        """Ask as fast as it answers."""
        before = self.server.processor_seconds()
        outcome = self.load(connections, seconds)
        if outcome.errors:
            raise RuntimeError(f"{self.server.url} failed: {outcome.statuses}, {outcome.unanswered} unanswered")
        self.rates.append(outcome.rate)
        self.costs.append(1e6 * (self.server.processor_seconds() - before) / outcome.begun)


def against_bare(
    what: str, ours: Served, bare: Served, connections: int, least: float, setup: Setup, more: str = ""
) -> Row:
    """Rates of two servers in turn, after a round that is not counted."""
    for _ in range(setup.pick(7, 1) + 1):
        for asked in (ours, bare):
            asked.round(connections, setup.pick(2.0, 0.5))
    rates, costs = np.array([ours.rates, bare.rates])[:, 1:], np.array([ours.costs, bare.costs])[:, 1:]
    rate, plain = np.median(rates, axis=1)
    cost, least_cost = np.median(costs, axis=1)
    ratio = float(np.median(rates[0] / rates[1]))
    return Row(
        what=f"{what}, {connections} connections, against a route that parses and echoes the same body",
        measured=f"{rate:,.0f} a second against {plain:,.0f}; processor time {cost:.0f} µs against {least_cost:.0f} µs"
        + more,
        ratio=f"{ratio:.2f}",
        must=(f"at least {least:.2f}", ratio >= least),
    )


def service(setup: Setup) -> Iterator[Row]:
    """Requests a second on loopback, asked by another process, beside a route that only parses and echoes."""
    sample, asked = requests(500, 4), requests(50, 1)
    features = Features.fit([user for user, _ in sample], arms=[offer for _, offer in sample])
    bodies = [json.dumps({"id": MARK.decode(), "context": user, "arms": arms}).encode() for user, arms in asked]
    path, alone = "/v1/experiments/policy/decide", foresight(DIM)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        save_policy(foresight(features.dim, features), folder / "records.policy")
        save_policy(alone, folder / "vectors.policy")
        settings: dict[str, Any] = {"features": features, "context_sample_rate": 0.01, "horizon": 10**6}
        rareswitch.create(f"sqlite:///{folder}/trial.db", "policy", **settings).close()

        def served(file: str, *options: str) -> tuple[Server, str]:
            token = Tokens(f"{folder}/{file}.tokens.json").add("load", ["decide"])
            return stack.enter_context(serving(*options, f"{folder}/{file}", RARESWITCH_SEED="7")), token

        bare = Served(stack.enter_context(serving(command=(sys.executable, "-c", BARE))), path, bodies)
        process, token = served("records.policy", "--policy")
        edge = Served(process, path, bodies, token)
        what = "one decision of 20 arms × 12 fields by a policy file"
        yield against_bare(what, edge, bare, 16, 0.5, setup)
        for each, name in ((edge, "by a policy file"), (bare, "of the bare route")):
            rate = float(np.median(each.rates)) / 2.0
            outcome = each.load(16, setup.pick(5.0, 1.0), rate)
            yield Row(what=f"answers {name} at half of its load, {rate:,.0f} a second", measured=within(outcome))
        process, token = served("trial.db")
        store = Served(process, path, bodies, token)
        writes = 200
        disk = writes / float(np.median(in_turn(setup.pick(5, 1), partial(synced, folder, 300, writes))))
        more = f"; the disk syncs {disk:,.0f} writes a second"
        bare = Served(bare.server, path, bodies)
        yield against_bare("one durable decision in SQLite", store, bare, 64, 1 / 3, setup, more)
        outcome = store.load(64, setup.pick(60.0, 2.0), 200.0)
        worst = 1e3 * outcome.latency(0.99)
        yield Row(
            what=f"durable decisions in SQLite, 200 a second for {setup.pick(60, 2)} s",
            measured=f"{within(outcome)}; {outcome.errors} errors of {outcome.begun:,}",
            must=("p99 at most 50 ms, no errors", worst <= 50 and not outcome.errors),
        )
        vectors, ids = drawn(64, 50, DIM), list(range(64))
        body = msgspec.msgpack.encode({"ids": ids, "vectors": vectors.astype("<f8").tobytes(), "dim": DIM})
        process, token = served("vectors.policy", "--policy")
        many = Served(process, f"{path}-many", [body], token, media=MSGPACK)
        seconds = list[list[float]]()
        for _ in range(setup.pick(7, 1) + 1):
            many.round(4, setup.pick(1.0, 0.3))
            own = in_turn(setup.pick(100, 5), partial(alone.decide, vectors, ids=ids, seed=7))
            seconds.append([1.0 / many.rates[-1], float(np.median(own))])
        calls = np.array(seconds[1:])
        ratio, (call, direct) = float(np.median(calls[:, 1] / calls[:, 0])), np.median(calls, axis=0)
        yield Row(
            what=f"64 sets of 50 arms, d = {DIM}, a call, MessagePack, not kept, against decide in process",
            measured=f"{64 / call:,.0f} decisions a second against {64 / direct:,.0f}",
            ratio=f"{ratio:.2f}",
            must=(f"at least {1 / 6:.2f}", ratio >= 1 / 6),
        )


def within(outcome: Outcome) -> str:
    """How soon answers came."""
    return f"p50 {1e3 * outcome.latency(0.5):.1f} ms, p99 {1e3 * outcome.latency(0.99):.1f} ms"


CASES = {
    "decide": Case(decide, "Decisions one at a time and in batches."),
    "records": Case(records, "Records to decisions, from a policy and through an experiment."),
    "rounds": Case(rounds_a_second, "Simulated rounds a second, and the memory of a long run."),
    "foresight-update": Case(foresight_update, "One update of foresight by features and arms."),
    "advance": Case(advance, "An update from 10^6 stored decisions: time and memory."),
    "advance-10M": Case(partial(advance, count=10_000_000, databases=1), "An update from 10^7 decisions in SQLite."),
    "grown": Case(grown, "What grows with what is stored."),
    "commits": Case(commits, "Durable decisions against bare synced writes, and against a policy alone."),
    "evaluate": Case(evaluate, "An evaluation of 10^6 decisions against plain NumPy."),
    "service": Case(service, "The service: requests a second beside a route that only parses and echoes."),
    "page": Case(page, "The page of the service: its first answer, and what is new, over 10^5 decisions."),
    "design": Case(design, "Optimal designs: time and quality, against other solvers."),
    "start": Case(start, "How soon commands answer, and the first decision."),
}

if __name__ == "__main__":
    sys.exit(main("Speed", CASES, description=__doc__))
