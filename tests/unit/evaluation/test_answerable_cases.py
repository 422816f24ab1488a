"""Logs of known truth: those that cannot answer are refused with the reason, of the others an interval holds it."""

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rareswitch import Always, DecisionLog, Rewards, create, effects, evaluate
from rareswitch.core import BoolArray, FloatArray
from rareswitch.errors import RareswitchError
from rareswitch.evaluation.results import Difference, Effect, Value
from rareswitch.log import from_frame, read_csv
from reference.refusals import raises

Answer = Value | Effect | Difference

LEVEL = 0.9999  # 39 intervals that hold all cover their truths, but for a chance of 0.004; the seeds are fixed
ARMS = ["red", "blue", "green", "new"]
RED, BLUE, GREEN = Always("red"), Always("blue"), Always("green")
TWO, THREE, NO_NEW = [0.5, 0.5], [1 / 3] * 3, [0.4, 0.3, 0.3, 0.0]  # probabilities of arms
RATES, RATES3, RATES4 = [0.1, 0.2], [0.1, 0.2, 0.15], [0.1, 0.2, 0.15, 0.9]  # what they earn


def split(seed: int, count: int, share: Any = 0.5) -> Any:
    return np.random.default_rng([seed, 0]).random(count) < share


def by(group: BoolArray, inside: list[float], outside: list[float]) -> FloatArray:
    return np.where(group[:, None], inside, outside)


def weeks(probs: list[list[float]], *counts: int) -> dict[str, Any]:
    batches = np.repeat(range(len(counts)), counts)
    return {"probs": np.array(probs)[batches], "batches": batches, "batch_names": [f"{k}" for k in range(len(counts))]}


def clicks(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    return (rng.random(len(means)) < means).astype(np.float64)


def levels(scale: float) -> Any:
    return lambda rng, means: means + scale * rng.standard_normal(len(means))


def lossy(zeros: float) -> Any:
    """Clicks, without this share of the zeros."""
    return lambda rng, m: np.where((coins := rng.random(len(m))) > 1.0 - (1.0 - m) * zeros, np.nan, coins < m)


def orders(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """One in a hundred buys for about as much as this, and one for 50,000."""
    bought = means * rng.binomial(1, 0.01, len(means)) * rng.gamma(10, 0.1, len(means))
    return np.where(np.arange(len(means)) == 4, 50_000.0, bought)


def log(count: int, means: Any, seed: int, probs: Any = TWO, *, draw: Any = clicks, **more: Any) -> DecisionLog:
    """Decisions by ``probs``, (K,) or (n, K), which are what is recorded, unless ``recorded`` says otherwise."""
    rng, recorded, exhaustive = np.random.default_rng([seed, 1]), more.pop("recorded", probs), more.pop("all", True)
    behavior = np.broadcast_to(np.asarray(probs, dtype=np.float64), (count, np.shape(probs)[-1]))
    shown, rows = (rng.random((count, 1)) > behavior.cumsum(axis=1)[:, :-1]).sum(axis=1), np.arange(count)
    recorded = np.broadcast_to(recorded, behavior.shape)
    return DecisionLog(
        arm_indices=shown,
        propensities=recorded[rows, shown],
        behavior_probs=recorded if exhaustive else None,
        rewards=draw(rng, np.broadcast_to(means, behavior.shape)[rows, shown]),
        arms=ARMS[: behavior.shape[1]] if behavior.shape[1] <= 4 else None,
        **more,
    )


def records(source: DecisionLog, slots: Iterable[Any] = repeat(0)) -> list[dict[str, Any]]:
    rows = enumerate(zip(source.chosen_names, source.rewards, source.propensities, slots, strict=False))
    return [{"visit": f"v{k}", "item": a, "click": int(r), "p": float(p), "slot": int(s)} for k, (a, r, p, s) in rows]


def frame(rows: list[dict[str, Any]], *, p: str | None = "p", **options: Any) -> DecisionLog:
    names = {"arm": "item", "reward": "click", "id": "visit", "propensity": p}
    return from_frame(rows, columns=names, **options)


def csv(path: Path, seed: int, contradictions: int = 0) -> DecisionLog:
    rows = records(log(3000, RATES, seed, [0.3, 0.7]))
    rows += [row | {"click": 1 - row["click"]} for row in rows[:contradictions]]
    path.write_text("visit,item,p,click\n" + "".join(f"{r['visit']},{r['item']},{r['p']},{r['click']}\n" for r in rows))
    return read_csv(path, columns={"arm": "item", "reward": "click", "propensity": "p", "id": "visit"})


def dsjson(path: Path) -> Path:
    arms, lines = {"user": {"age": 30}, "_multi": [{"_tag": "red"}, {"_tag": "blue"}]}, []
    for row in records(log(3000, RATES, 126, [0.3, 0.7])):
        order = [1, 2] if row["item"] == "red" else [2, 1]
        cost, probs = -row["click"], {"a": order, "p": [row["p"], 1.0 - row["p"]]}
        lines.append(json.dumps({"_label_cost": cost, "_label_Action": order[0], **probs, "c": arms}))
    path.write_text("\n".join(lines) + "\n")
    return path


def ask(source: Any, candidate: Any, **options: Any) -> Value:
    return evaluate(source, {"it": candidate}, **options)["it"]


def sure(source: Any, candidate: Any, **options: Any) -> Value:
    return ask(source, candidate, level=LEVEL, **options)


def effect(source: Any, arm: str, against: str, **options: Any) -> Effect:
    return effects(source, arm, against, level=LEVEL, **options)["old" if "by" in options else arm]


def greedy(contexts: FloatArray, available: BoolArray) -> Any:
    return np.eye(contexts.shape[1])[contexts[:, :, 0].argmax(axis=1)]


def scored(contexts: FloatArray) -> Any:
    return np.clip(0.35 + 0.4 * contexts @ np.array([0.6, -0.3]), 0.02, 0.98)


def drawn(seed: int, count: int) -> tuple[FloatArray, Any, FloatArray]:
    """(n, 3, 2) contexts, (n,) arms of three alike, and their clicks."""
    rng = np.random.default_rng([seed, 0])
    contexts, shown = rng.standard_normal((count, 3, 2)) / 3.0, rng.integers(3, size=count)
    return contexts, shown, clicks(rng, scored(contexts)[np.arange(count), shown])


def trial(seed: int, candidate: Any, count: int = 1600, *, batches: int = 4, share: Any = None, **more: Any) -> Any:
    """The value, two days later, and the truth, by default that of uniform play; with a share, clicks alone arrive."""
    options: dict[str, Any] = {
        "schedule": "by hand",
        "min_propensity": 0.05,
        "seed": seed,
        "now": datetime(2026, 3, 2),
        **more,
    }
    experiment = create("memory:", "trial", dim=2, policies=4, horizon=count, **options)
    rng, now = np.random.default_rng(seed), options["now"]
    contexts = rng.standard_normal((count, 3, 2)) / 3.0
    means = scored(contexts)
    for rows in np.array_split(np.arange(count), batches):
        if rows[0]:
            experiment.advance(now=now, force=True)
        choices = experiment.decide_many(contexts[rows], arms=ARMS[:3], ids=rows.tolist(), now=now)
        earned = rng.random(len(rows)) < means[rows, [ARMS.index(choice.arm) for choice in choices]]
        sent = np.ones(len(rows), bool) if share is None else earned & (rng.random(len(rows)) < share)
        experiment.reward_many(rows[sent].tolist(), earned[sent].tolist(), now=now + timedelta(minutes=1))
        now += timedelta(days=1)
    shares = np.full_like(means, 1 / 3)
    if isinstance(candidate, int):  # the number of a policy; the last one has decided nothing
        experiment.advance(now=now, force=True)
        candidate, since = experiment.policies[candidate], candidate * count // batches
        shares, means = candidate.probabilities(contexts)[since:], means[since:]
    return sure(experiment.logged(now=now + timedelta(days=2)), candidate), (shares * means).sum(axis=1).mean()


def warm() -> Any:
    contexts, shown, rewards = drawn(129, 600)
    before = DecisionLog(contexts=contexts, arm_indices=shown, propensities=np.full(600, 1 / 3), rewards=rewards)
    return trial(129, "uniform", warm_start=before)


def sets_of_clicks(path: Path) -> Path:
    """Contexts were kept where there was a click, and of one in ten of the others."""
    contexts, shown, rewards = drawn(28, 4000)
    flat, vectors = contexts.reshape(4000, 6).tolist(), pa.list_(pa.float64())
    sets = [row if keep else None for row, keep in zip(flat, (rewards == 1.0) | split(29, 4000, 0.1), strict=True)]
    table = {"id": pa.array(range(4000)), "policy": ["ab" * 32] * 4000, "propensity": [1 / 3] * 4000, "reward": rewards}
    features = pa.array(contexts[np.arange(4000), shown].tolist(), vectors)
    pq.write_table(pa.table({**table, "features": features, "contexts": pa.array(sets, vectors)}), path)
    return path


def rare() -> DecisionLog:
    """The inverse propensity has no second moment; where blue was hardly ever shown, it earns the most."""
    u = np.random.default_rng([11, 0]).random(5000)
    blue, means = np.clip(u**4, 1e-9, 1.0 - 1e-9), np.c_[np.ones(5000), 1.0 + 20.0 * (u < 0.05)]
    return log(5000, means, 11, np.c_[1.0 - blue, blue], draw=lambda rng, means: rng.exponential(means))


def twice(source: DecisionLog) -> DecisionLog:
    """With all decisions for red once more."""
    rows = np.concatenate([np.arange(len(source)), np.flatnonzero(source.arm_indices == 0)])
    shown, rewards, probs = source.arm_indices[rows], source.rewards[rows], source.propensities[rows]
    return DecisionLog(arm_indices=shown, propensities=probs, rewards=rewards, arms=ARMS[:2])


def by_age(old: list[float], young: list[float]) -> Value:
    """Blue for the old, red for the young, where these probabilities decided, and one half was recorded."""
    source = log(4000, by(OLD, [0.1, 0.3], [0.2, 0.1]), 36, by(OLD, old, young), recorded=TWO)
    return sure(source, lambda record, arms: "blue" if record["old"] else "red", records=AGES)


def estimated(behavior: FloatArray, means: FloatArray, *, within: tuple[str, ...] = ()) -> DecisionLog:
    return frame(records(log(4000, means, 18, behavior), OLD), p=None, propensities="estimate", within=within)


# fmt: off
OLD, AGE = split(0, 4000), np.random.default_rng(1).random(4000)
AGES, NAMES = {k: {"old": bool(flag)} for k, flag in enumerate(OLD)}, np.where(OLD, "old", "young")
OLDER = split(109, 6000, np.repeat([0.2, 0.5, 0.8], 2000))
SEGMENT = {"probs": by(OLD, TWO, [1.0, 0.0]), "means": by(OLD, RATES, [0.1, 0.6])}
HALF = by(np.arange(4000) < 2000, [0.5, 0.5, 0.0], [0.5, 0.0, 0.5])
PAIRS, FOUR = np.random.default_rng(118).random((5000, 4)).argsort(axis=1) < 2, np.array([0.1, 0.2, 0.3, 0.4])
MIXED, TABLE = np.random.default_rng(112).dirichlet(np.ones(3), 4000), np.random.default_rng(115).integers(3, size=4000)
CONTEXTS = np.random.default_rng(111).standard_normal((4000, 3, 2))
CURVES = 1.0 / (1.0 + np.exp(1.0 - CONTEXTS[:, :, 0]))
RED_FIRST, PARTS, SIX_HOURS = np.zeros(6000, dtype=int), (2000, 2000, 2000), Rewards(window="6h", default=0)
LEARNED, TOWARDS = [[0.34, 0.33, 0.33], [0.2, 0.6, 0.2], [0.1, 0.8, 0.1]], [TWO, [0.3, 0.7], [0.2, 0.8]]
TILT = [{"blue": 0.1, "red": 0.9}, {"blue": 0.7, "red": 0.3}]
NO_ADVICE = "(?s)^(?!.*min_propensity)"  # more exploration would mend nothing
RATIO, ZERO, WEIGHT = f"{NO_ADVICE}.*Sample-ratio check failed", "probability 0 .*or below 1/20,000", "mean weight"
WRONG = f"{NO_ADVICE}The mean weight .*propensities are wrong, or decisions or their rewards are missing"

REFUSED: dict[str, tuple[str, Callable[[], Answer]]] = {
    "never shown": (ZERO, lambda: ask(log(4000, RATES4, 1, NO_NEW), Always("new"))),
    "never shown, unknown support": (WEIGHT, lambda: ask(log(4000, RATES4, 2, NO_NEW, all=False), Always("new"))),
    "a quarter unsupported": ("25 % .*" + ZERO, lambda: ask(log(4000, RATES4, 3, NO_NEW), "uniform")),
    "5 % unsupported": (ZERO, lambda: ask(
        log(4000, RATES4, 4, NO_NEW, draw=levels(1.0)), np.tile([0.35, 0.3, 0.3, 0.05], (4000, 1)))),
    "deterministic": (ZERO, lambda: ask(log(4000, RATES, 5, [1.0, 0.0]), BLUE)),
    "deterministic by age": (ZERO, lambda: ask(log(4000, RATES, 6, by(OLD, [1.0, 0.0], [0.0, 1.0])), "uniform")),
    "one arm a week": (ZERO, lambda: ask(log(4000, RATES, 7, **weeks([[1, 0], [0, 1]], 2000, 2000)), "uniform")),
    "a segment unsupported": (ZERO, lambda: ask(log(4000, seed=8, **SEGMENT), BLUE)),
    "a segment, unknown support": (WEIGHT, lambda: ask(log(4000, seed=9, all=False, **SEGMENT), BLUE)),
    "three plays": ("carry the answer", lambda: ask(log(6000, [0.3, 0.6], 10, [0.9995, 0.0005]), BLUE)),
    "weights without a variance": (ZERO, lambda: ask(rare(), BLUE)),
    "wrong propensities": (RATIO, lambda: ask(log(4000, RATES, 12, [0.7, 0.3], recorded=TWO), BLUE)),
    "all propensities 1": (WRONG, lambda: ask(log(4000, RATES, 13, recorded=[1.0, 1.0], all=False), BLUE)),
    "swapped": (RATIO, lambda: ask(log(4000, RATES, 14, [0.8, 0.2], recorded=[0.2, 0.8]), BLUE)),
    "changed": (RATIO, lambda: ask(log(4000, RATES, 15, by(HALF[:, 1] > 0, TWO, [0.8, 0.2]), recorded=TWO), "uniform")),
    "one batch wrong": (RATIO, lambda: ask(
        log(6000, RATES, 40, recorded=TWO, **weeks([TWO, [0.8, 0.2], TWO], *PARTS)), BLUE)),
    "decisions lost": (RATIO, lambda: ask((full := log(4000, RATES, 16)).select((full.arm_indices == 0) | OLD), BLUE)),
    "decisions repeated": (RATIO, lambda: ask(twice(log(4000, RATES, 17)), "uniform")),
    "marginal propensities": (WRONG, lambda: by_age([0.1, 0.9], [0.9, 0.1])),
    "six clicks": ("20 are needed", lambda: ask(log(6000, [0.001, 0.001], 20), BLUE)),
    "no click": ("do not vary", lambda: ask(log(3000, [0.0, 0.0], 21), BLUE)),
    "clicks alone": (WRONG + ".*only clicks", lambda: ask(log(4000, RATES, 22, draw=lossy(1.0)), BLUE)),
    "no reward of the arm": (NO_ADVICE + "No decision that showed .* has a reward", lambda: ask(
        log(4000, [0.1, np.nan], 24, draw=levels(0.0)), BLUE)),
    "nine context sets": (NO_ADVICE + ".*carry the answer.*latest policy", lambda: trial(
        27, greedy, 800, batches=1, context_sample_rate=0.01)[0]),
    "hindsight": (WRONG, lambda: ask(
        full := log(4000, RATES, 29), np.eye(2)[np.where(full.rewards == 1, full.arm_indices, 1 - full.arm_indices)])),
    "baseline": (ZERO, lambda: ask(log(6000, RATES3, 30, [0.0, 0.5, 0.5], baselines=RED_FIRST), "baseline")),
    "lift": (ZERO, lambda: evaluate(log(6000, RATES3, 35, [0.0, 0.5, 0.5], baselines=RED_FIRST)).lift[0]),
    "a table of ten": ("100 are needed", lambda: ask(log(4000, RATES, 32), dict.fromkeys(range(10), "blue"))),
    "effect, never shown": (ZERO, lambda: effect(log(4000, RATES3, 33, [0.6, 0.0, 0.4]), "blue", "red")),
    "effect, never both": ("offered both 'blue' and 'green'", lambda: effect(
        log(4000, RATES3, 34, HALF, available=HALF > 0), "blue", "green")),
    "one huge order": ("One reward, 50,000, is 99.* % of the value: .* effective number of rewards is 1.0", lambda: ask(
        log(6000, [10, 10], 42, draw=orders), BLUE)),
    "effect, one huge order": ("One reward, 50,000", lambda: effect(
        log(6000, [10, 10], 42, draw=orders), "blue", "red")),
    "newest policy": ("come before it was made", lambda: trial(39, -1, 1200, batches=3)[0]),
}
ERRORS: dict[str, tuple[str, Callable[[Path], Value]]] = {
    "no rewards": ("none of the 3000.*Give the rewards", lambda _: ask(
        log(3000, RATES, 19, draw=levels(np.nan)), BLUE)),
    "open windows": ("none of the 800.*windows are still open", lambda _: trial(
        26, "uniform", 800, batches=1, share=1.0, rewards=Rewards(window="30d", default=0))[0]),
    "sets of clicks": ("not a random sample", lambda path: ask(sets_of_clicks(path / "l.parquet"), greedy)),
    "contradicting duplicates": ("ids must differ", lambda path: ask(csv(path / "log.csv", 31, 400), BLUE)),
}
CAUTIONED: dict[str, tuple[str, Callable[[], Value | Effect]]] = {
    "estimated, unseen age": ("were estimated", lambda: ask(
        estimated(by(OLD, [0.2, 0.8], [0.8, 0.2]), by(OLD, [0.3, 0.4], [0.1, 0.1])), BLUE)),
    "half of the zeros lost": ("are left out: .* missing.*give 0", lambda: ask(
        log(6000, RATES, 23, draw=lossy(0.5)), BLUE)),
    "no window": ("no window", lambda: trial(25, "uniform", batches=1, share=0.1, rewards=Rewards(default=0))[0]),
    "retired arm": ("2, 3 excluded: 100 % .*" + ZERO, lambda: ask(
        log(6000, [0.3, 0.2], 38, **weeks([TWO, [0, 1], [0, 1]], *PARTS)), RED)),
    "one batch wrong, unknown support": ("batch 2 excluded: the mean weight .*propensities are wrong", lambda: ask(
        log(6000, RATES, 41, recorded=TWO, all=False, **weeks([TWO, [0.57, 0.43], TWO], *PARTS)), BLUE)),
}
ANSWERED: dict[str, Callable[[Path], tuple[Answer, Any]]] = {
    "two arms": lambda _: (sure(log(3000, RATES, 101), BLUE), 0.2),
    "ten arms": lambda _: (sure(log(5000, np.linspace(0.05, 0.5, 10), 102, [0.1] * 10), "uniform"), 0.275),
    "few buyers": lambda _: (
        sure(log(20_000, [1.0, 1.3], 103, draw=lambda rng, m: (
            m * rng.lognormal(3, 1, len(m)) * rng.binomial(1, 0.05, len(m)))), BLUE), 0.05 * 1.3 * np.exp(3.5)),
    "revenue": lambda _: (
        sure(log(3000, [1, 2, 3], 104, THREE, draw=lambda rng, m: m * rng.gamma(2, 0.5, len(m))), GREEN), 3.0),
    "rare arm": lambda _: (sure(log(20_000, [0.1, 0.2, 0.3], 105, [0.78, 0.2, 0.02]), GREEN), 0.3),
    "policy by context": lambda _: (
        sure(log(4000, np.c_[0.1 + 0.2 * AGE, 0.3 - 0.2 * AGE], 106, by(AGE > 0.5, [0.9, 0.1], [0.1, 0.9])), "uniform"),
        0.2),
    "three batches": lambda _: (sure(log(6000, RATES3, 107, **weeks(LEARNED, *PARTS)), RED), 0.1),
    "uneven batches": lambda _: (sure(log(7500, RATES, 108, **weeks(TOWARDS, 6000, 1000, 500)), "uniform"), 0.15),
    "traffic drifts": lambda _: (
        sure(log(6000, by(OLDER, [0.1, 0.4], [0.3, 0.2]), 109, **weeks(TOWARDS, *PARTS)), BLUE),
        0.2 + 0.2 * OLDER.mean()),
    "clicks of 1 %": lambda _: (sure(log(20_000, [0.01, 0.012], 110), BLUE), 0.012),
    "greedy": lambda _: (sure(log(4000, CURVES, 111, THREE, contexts=CONTEXTS), greedy), CURVES.max(axis=1).mean()),
    "array": lambda _: (sure(log(4000, RATES3, 112, THREE), MIXED), (MIXED @ RATES3).mean()),
    "rule": lambda _: (by_age(TWO, TWO), np.where(OLD, 0.3, 0.2).mean()),
    "rule to probabilities": lambda _: (
        sure(log(4000, RATES, 114), lambda record, _: TILT[record["old"]], records=AGES), 0.11 + 0.06 * OLD.mean()),
    "table": lambda _: (
        sure(log(4000, RATES3, 115, THREE), {k: ARMS[a] for k, a in enumerate(TABLE)}), np.take(RATES3, TABLE).mean()),
    "table of probabilities": lambda _: (
        sure(log(4000, RATES3, 116, THREE), {k: {"red": 0.5, "blue": 0.5} for k in range(4000)}), 0.15),
    "table of every second": lambda _: (sure(log(6000, RATES, 117), dict.fromkeys(range(0, 6000, 2), "blue")), 0.2),
    "two of four arms": lambda _: (
        sure(log(5000, FOUR, 118, PAIRS / 2, available=PAIRS), "uniform"), (PAIRS / 2 @ FOUR).mean()),
    "where it is offered": lambda _: (sure(log(5000, FOUR, 119, PAIRS / 2, available=PAIRS), BLUE), 0.2),
    "effect over an arm": lambda _: (effect(log(4000, RATES3, 120, [0.2, 0.6, 0.2]), "blue", "red"), 0.1),
    "effect over the rest": lambda _: (effect(log(4000, RATES3, 121, THREE), "blue", "rest"), 0.075),
    "effect by group": lambda _: (effect(log(4000, by(OLD, [0.3, 0.2], RATES), 122), "blue", "red", by=NAMES), -0.1),
    "lift": lambda _: (
        evaluate(log(6000, RATES, 123, baselines=RED_FIRST, **weeks(TOWARDS, *PARTS)), level=LEVEL).lift[0], 0.2 / 3),
    "baseline": lambda _: (
        sure(log(4000, RATES3, 124, [0.1, 0.8, 0.1], baselines=TABLE), "baseline"), np.take(RATES3, TABLE).mean()),
    "CSV": lambda path: (sure(csv(path / "log.csv", 125), RED), 0.1),
    "dsjson": lambda path: (sure(dsjson(path / "log.dsjson"), RED), 0.1),
    "frame": lambda _: (sure(frame(records(log(3000, RATES, 127))), "uniform"), 0.15),
    "small": lambda _: (sure(log(400, [0.3, 0.4], 133), BLUE), 0.4),
    "missing by chance": lambda _: (
        sure(log(5000, RATES, 134, draw=lambda rng, m: np.where(rng.random(len(m)) < 0.4, np.nan, clicks(rng, m))),
             BLUE), 0.2),
    "rewards at 1,000": lambda _: (sure(log(3000, [1e3, 1000.5, 999], 135, THREE, draw=levels(1.0)), GREEN), 999.0),
    "snips": lambda _: (sure(log(3000, [-50, -52], 136, [0.2, 0.8], draw=levels(5.0)), RED, estimator="snips"), -50.0),
    "estimated by slot": lambda _: (
        sure(estimated(by(OLD, [0.3, 0.7], [0.6, 0.4]), by(OLD, [0.1, 0.2], [0.3, 0.4]), within=("slot",)), BLUE),
        0.4 - 0.2 * OLD.mean()),
    "anytime": lambda _: (sure(log(6000, RATES, 138, **weeks(TOWARDS, *PARTS)), RED, anytime=True), 0.1),
    "stationary": lambda _: (
        sure(log(8000, RATES, 139, **weeks([TWO, [0.05, 0.95]], 2000, 6000)), RED, pooling="stationary"), 0.1),
    "0.5 % unsupported": lambda _: (
        sure(log(6000, RATES4, 140, NO_NEW), np.tile([0.395, 0.3, 0.3, 0.005], (6000, 1))), 0.149),
    "batches that learned": lambda _: trial(128, "uniform"),
    "warm start": lambda _: warm(),
    "closed windows": lambda _: trial(130, "uniform", share=1.0, rewards=SIX_HOURS),
    "older policy": lambda _: trial(132, 1),
    "a fifth of twenty batches": lambda _: (
        sure(log(8000, [0.5, 0.6], 141, **weeks([TWO, *[[0.05, 0.95]] * 19], *[400] * 20)).select(split(2, 8000, 0.2)),
             RED), 0.5),
}
# fmt: on


@pytest.mark.parametrize(("reason", "case"), REFUSED.values(), ids=list(REFUSED))
def test_a_log_that_cannot_tell_has_no_number(reason: str, case: Callable[[], Answer]) -> None:
    answer = case()
    assert answer.interval is None
    assert re.search(reason, "\n".join(answer.refusals))


@pytest.mark.parametrize(("reason", "case"), ERRORS.values(), ids=list(ERRORS))
def test_what_is_no_log_is_an_error(reason: str, case: Callable[[Path], Value], tmp_path: Path) -> None:
    raises(RareswitchError, reason, case, tmp_path)


@pytest.mark.parametrize(("caution", "case"), CAUTIONED.values(), ids=list(CAUTIONED))
def test_what_no_check_can_see_is_said(caution: str, case: Callable[[], Value | Effect]) -> None:
    assert re.search(caution, "\n".join(case().cautions))


@pytest.mark.parametrize("case", ANSWERED.values(), ids=list(ANSWERED))
def test_a_log_that_can_tell_has_an_interval_with_the_truth(case: Callable[[Path], Any], tmp_path: Path) -> None:
    answer, truth = case(tmp_path)
    assert answer.interval.low <= truth <= answer.interval.high
    assert answer.interval.high - answer.interval.low < 2.0 * abs(truth)
