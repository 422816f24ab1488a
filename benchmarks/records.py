"""Measure records: what deciding about them costs beside vectors, and whether a policy file is all that others need.

With `--data`, also on users, items and affinities of a real log, that of the Open Bandit Dataset: features are fitted,
shown and frozen, and an experiment of eight updates is run on them, with clicks that are simulated by a ridge
regression on the log's own, ten times as frequent.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rareswitch
from measure import FloatArray, Row, arguments, in_turn, report
from rareswitch.design import GOptimal
from rareswitch.features import Arms, Category, Features, Flag, Hashed, Number
from rareswitch.policy import Blend, Elimination, Policy, PosteriorDraws, load_policy, save_policy
from rareswitch.rng import uniforms

ARMS, CALLS, MOST = 20, 20, 4.0
DEVICES, KINDS = ("ios", "android", "web", "tv"), ("shirt", "shoe", "hat")
#: Of the simulated experiment: decisions, updates, how much more frequent clicks are than in the log.
DECISIONS, UPDATES, BOOST = 10_000, 8, 10.0


def described() -> dict[str, Features]:
    """Three encodings of the same users and items: shared features, own parameters, and hashes with crossings."""
    error: Any = {"missing": "error"}
    users = [Number("age", mean=40, scale=12, alone=False, **error), Flag("member", alone=False, **error)]
    users += [Category("device", levels=DEVICES, alone=False, missing="unknown")]
    users += [Number("visits", mean=4, scale=2, alone=False, **error)]
    prices = [Number(f"price {k}", of="arm", mean=20, scale=5, **error) for k in range(6)]
    kinds = [Category(f"kind {k}", of="arm", levels=KINDS, missing="unknown") for k in range(4)]
    flags = [Flag(f"flag {k}", of="arm", **error) for k in range(2)]
    crossings = [("age", "price 0"), ("device", "kind 0"), ("visits", "price 1"), ("member", "kind 1")]
    shared = Features(fields=[*users, *prices, *kinds, *flags], crossings=crossings, constant=True)
    own = Features(
        fields=[*users, prices[0]],
        arms=Arms(ids=[f"item {k}" for k in range(ARMS)], room=4, own=["age", "member"]),
        crossings=[("device", "price 0"), ("visits", "price 0")],
    )
    hashed = Features(
        fields=[Hashed("device", columns=5), Number("age", mean=40, scale=12), Hashed("kind 0", of="arm", columns=4)],
        crossings=[("device", "kind 0"), ("age", "kind 0")],
    )
    return {"shared features": shared, "own parameters": own, "hashes and crossings": hashed}


def requests(count: int, seed: int) -> list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    rng = np.random.default_rng(seed)

    def item() -> dict[str, Any]:
        prices = {f"price {k}": round(float(rng.normal(20, 8)), 2) for k in range(6)}
        kinds = {f"kind {k}": KINDS[int(rng.integers(3))] for k in range(4)}
        return prices | kinds | {f"flag {k}": bool(rng.integers(2)) for k in range(2)}

    items = [item() for _ in range(200)]
    found = []
    for _ in range(count):
        user = {"age": round(float(rng.normal(40, 20)), 1), "device": str(rng.choice([*DEVICES, "watch"]))}
        user |= {"member": bool(rng.integers(2)), "visits": int(rng.poisson(4))}
        found.append((user, {f"item {k}": items[int(rng.integers(len(items)))] for k in range(ARMS)}))
    return found


def foresight(features: Features) -> Policy:
    """A policy such as foresight's: the best arm of one of 128 draws, an explorer, intervals that all arms survive."""
    rng, dim = np.random.default_rng(features.dim), features.dim
    x = rng.standard_normal((400, dim)) / np.sqrt(dim)
    estimate, precision = rng.standard_normal(dim) / 3, x.T @ x + np.eye(dim)
    draws = estimate + rng.standard_normal((128, dim)) @ np.linalg.cholesky(np.linalg.inv(precision)).T
    sampler = Blend(main=PosteriorDraws(draws=draws), explorer=GOptimal(tol=1.0), share=0.0003)
    past = (Elimination.of(estimate, precision, 20.0),)
    return Policy(dim=dim, sampler=sampler, eliminations=past, features=features)


def singles(rounds: int) -> Iterator[Row]:
    sample = requests(500, 4)
    fitted = Features.fit([context for context, _ in sample], arms=[offer for _, offer in sample])
    yield single("as Features.fit proposes them", fitted, rounds)
    yield single("fewer, written by hand", described()["shared features"], rounds)


def cpu_in_turn(rounds: int, *calls: Callable[[], Any]) -> FloatArray:
    """As in_turn, in seconds of this thread on a processor: what other programs take of a busy machine is left out."""

    def timed(call: Callable[[], Any]) -> float:
        start = time.thread_time()
        call()
        return time.thread_time() - start

    for call in calls:
        call()
    return np.array([[timed(call) for call in calls] for _ in range(rounds)])


def single(which: str, features: Features, rounds: int) -> Row:
    policy, asked = foresight(features), requests(CALLS, 1)
    vectors = [features.encode(*request).vectors for request in asked]
    seconds = cpu_in_turn(
        rounds,
        lambda: [policy.decide_records(*request, id=f"request {k}", seed=7) for k, request in enumerate(asked)],
        lambda: [policy.decide(x, ids=f"request {k}", seed=7) for k, x in enumerate(vectors)],
    )
    mine, other = np.median(seconds / CALLS * 1e6, axis=0)
    ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
    return Row(
        what=f"one request of {ARMS} arms × 12 fields and a user of 4, features {which}, d = {features.dim}: "
        "decide_records against decide on ready vectors",
        measured=f"{mine:.1f} µs against {other:.1f} µs of CPU time",
        ratio=f"{ratio:.2f}×",
        needed=f"at most {MOST:g}×",
        holds=ratio <= MOST,
    )


def many(rounds: int, count: int) -> Row:
    features, asked = described()["shared features"], requests(count, 2)
    policy = foresight(features)
    contexts, arms = [context for context, _ in asked], [offer for _, offer in asked]
    sets = features.encode_many(contexts, arms).sets
    seconds = in_turn(
        rounds,
        lambda: features.encode_many(contexts, arms),
        lambda: policy.decide(sets, ids=range(count), seed=7),
    )
    mine, other = np.median(seconds / count * 1e6, axis=0)
    return Row(
        what=f"{count} such requests at once: encode_many against decide, each",
        measured=f"{mine:.1f} µs against {other:.1f} µs",
        ratio=f"{float(np.median(seconds[:, 0] / seconds[:, 1])):.2f}×",
    )


def decided(policy: Policy, asked: Any) -> list[list[Any]]:
    made = [policy.decide_records(context, arms, id=k, seed=5) for k, (context, arms) in enumerate(asked)]
    return [[choice.arm, choice.propensity.hex(), sorted(choice.counts.items())] for choice in made]


def elsewhere(count: int) -> Iterator[Row]:
    """Decisions of another process, which has the policy file and the records alone, and other hashes of its own."""
    asked = requests(count, 3)
    for name, features in described().items():
        policy = foresight(features)
        with tempfile.TemporaryDirectory() as folder:
            save_policy(policy, f"{folder}/p.policy")
            Path(folder, "asked.json").write_text(json.dumps(asked))
            command = [sys.executable, __file__, "--decide", folder]
            env = os.environ | {"PYTHONHASHSEED": "4711"}
            out = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
        here = json.loads(json.dumps(decided(policy, asked)))
        same = sum(a == b for a, b in zip(here, json.loads(out), strict=True))
        yield Row(
            what=f"{count} requests decided in another process from the policy file alone, {name}, d = {features.dim}",
            measured=f"{same} arms, propensities and counts identical",
            needed="all",
            holds=same == count,
        )


def real(folder: Path, rounds: int) -> Iterator[Row]:
    """The log of a shop: fitted, frozen, and played with simulated clicks."""
    import pandas as pd

    log = pd.concat([pd.read_csv(folder / f"{name}.csv.gz", index_col=0) for name in ("random", "bts")])
    items = pd.read_csv(folder / "items.csv", index_col=0)
    drop = ["click", "propensity_score", "timestamp"]
    features = Features.fit(log, arms=items, key="item_id", drop=drop)
    print(features, file=sys.stderr)
    users = log.drop(columns=[*drop, "item_id"])
    encoded = features.encode_many(users, items)
    yield Row(
        what="the real log: users and items of 20,000 rows",
        measured=f"{features.dim} columns; counted: {dict(encoded.counts) or 'nothing'}",
    )
    shown = encoded.vectors[np.arange(len(log)), log["item_id"].to_numpy()]
    clicks = log["click"].to_numpy(dtype=np.float64)
    ridge = shown.T @ shown + np.eye(features.dim)
    theta = np.linalg.solve(ridge, shown.T @ (clicks - clicks.mean()))
    rates = np.clip(BOOST * (clicks.mean() + encoded.vectors @ theta), 0.0, 1.0)
    for seed in range(rounds):
        got, updates = play(features, users, items, rates, seed)
        best, uniform = rates[rows_of(seed, len(users))].max(axis=1).mean(), rates[rows_of(seed, len(users))].mean()
        yield Row(
            what=f"an experiment on them, {DECISIONS} decisions, {updates} policies, run {seed}: clicks a decision; "
            f"uniform play {uniform:.4f}, the best arms {best:.4f}",
            measured=f"{got:.4f}",
            ratio=f"{(got - uniform) / (best - uniform):.0%} of the way",
            needed="above uniform",
            holds=got > uniform,
        )


def rows_of(seed: int, count: int) -> Any:
    return np.random.default_rng(seed).integers(count, size=DECISIONS)


def play(features: Features, users: Any, items: Any, rates: FloatArray, seed: int) -> tuple[float, int]:
    """The mean click rate of what an experiment chose, and how many policies it had."""
    rows = rows_of(seed, len(users))
    arms = items["item_id"].tolist()
    with rareswitch.create(
        "memory:", "shop", features=features, updates=UPDATES, horizon=DECISIONS, seed=seed
    ) as trial:
        ends = np.cumsum(trial.description.learner.begin().ahead)
        start, earned = 0, 0.0
        for end in ends.tolist():
            part, ids = rows[start:end], range(start, end)
            choices = trial.decide_many(users.iloc[part], items, ids=list(ids))
            chosen = rates[part, [arms.index(int(choice.arm)) for choice in choices]]
            clicks = uniforms(seed, "clicks", start, end - start)[:, 0] < chosen
            trial.reward_many(list(ids), clicks.tolist())
            earned += float(chosen.sum())
            if end < DECISIONS:
                trial.advance(anyway=True)
            start = end
        return earned / DECISIONS, len(ends)


def rows(quick: bool, data: Path | None) -> Iterator[Row]:
    yield from singles(51 if quick else 501)
    yield many(3 if quick else 11, 1000)
    yield from elsewhere(500 if quick else 10_000)
    if data is None or not (data / "items.csv").exists():
        print(f"the real log is not there ({data}): name its folder with --data", file=sys.stderr)
    else:
        yield from real(data, 1 if quick else 3)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the Open Bandit Dataset's men's campaign")
    parser.add_argument(
        "--decide", type=Path, help="decide about the records in this folder, and print what was decided"
    )
    options = parser.parse_args()
    if options.decide:
        asked = json.loads((options.decide / "asked.json").read_text())
        print(json.dumps(decided(load_policy(options.decide / "p.policy"), asked)))
        return 0
    return report("Records", rows(options.quick, options.data), options.out)


if __name__ == "__main__":
    sys.exit(main())
