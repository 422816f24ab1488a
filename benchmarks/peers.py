"""Peers: other libraries' bandits in our worlds, and obp's estimates beside ours.

A library that is not installed is skipped by name: ``make peers`` makes an environment that has them.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import obp_peer
import rareswitch
from harness import Case, FloatArray, Row, Setup, at_most, main, missing
from peer_learners import PEERS, CannotExpressError
from rareswitch.core import uniforms
from rareswitch.decisions import DecisionLog
from rareswitch.evaluation import Evaluation, Interval
from rareswitch.lab import SUITES, learner_for, left_out, simulate, world_at
from rareswitch.lab.report.runs import regret_ratio
from rareswitch.lab.simulate import draw_chunks
from rareswitch.learner import geometric_grid
from rareswitch.log import from_obp, read_csv

#: Ours, by label: learner and settings. The yardstick is the best of the adaptive ones on the runs shown.
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "LinUCB 1, every step": ("linucb", {"confidence": 1.0}),
    "LinUCB 0.5, every step": ("linucb", {"confidence": 0.5}),
    "Thompson 0.5, every step": ("thompson", {"scale": 0.5}),
    "Thompson 1, every step": ("thompson", {"scale": 1.0}),
    "foresight, 8 policies": ("foresight", {"policies": 8}),
}


def contest_run(label: str, batches: int | None, name: str, horizon: int, seed: int, data: str | None) -> Any:
    """Regret and seconds of a run; None where the library cannot say the task."""
    warnings.simplefilter("ignore")
    world = world_at(name, {"data": data, "tables": None})(horizon)
    if label in OURS:
        learner, settings = OURS[label]
        made = learner_for(world, learner, horizon=horizon, seed=seed, noise=0.5, **settings)
        run = simulate(made, world, seed=seed)
        return [run.regret, run.seconds]
    peer = PEERS[label]
    try:
        player = peer.make(world, seed, *peer.settings)
    except CannotExpressError:
        return None
    ends = None if batches is None else set(geometric_grid(horizon, batches).ends)
    regret, seconds = 0.0, 0.0
    for drawn in draw_chunks(world, seed=seed, stop=horizon, chunk=1000):
        coins, available = uniforms(seed, "peers", drawn.first, len(drawn))[:, 0], drawn.sets.available
        rewards = np.column_stack([drawn.rewards(np.full(len(drawn), arm)) for arm in range(world.arms)])
        arms, begun = np.empty(len(drawn), dtype=np.int64), time.perf_counter()
        for i, x in enumerate(drawn.sets.contexts):
            arms[i] = player.decide(x, available[i], float(coins[i]))
            player.tell(x, int(arms[i]), float(rewards[i, arms[i]]))
            if ends is None or drawn.first + i + 1 in ends:
                player.learn()
        seconds += time.perf_counter() - begun
        regret += float(drawn.regrets(arms).sum())
    return [regret, seconds]


def contest(setup: Setup) -> Iterator[Row]:
    """Peers with every setting, after every step and in 8 batches; the best settings are chosen afterwards."""
    installed = {label: peer for label, peer in PEERS.items() if find_spec(peer.package)}
    for package in dict.fromkeys(peer.package for label, peer in PEERS.items() if label not in installed):
        yield from missing(package, "not installed: pip install -r benchmarks/peers-requirements.txt")
    folders = setup.folders | {"tables": None}
    worlds = [name for name in SUITES["ten"].worlds if not left_out([name], folders)][: setup.pick(10, 2)]
    horizon = setup.pick(10_000, 300)
    entries: list[tuple[str, int | None]] = [(label, None) for label in OURS]
    entries += [(label, None) for label, peer in installed.items() if not peer.slow]
    entries += [(label, 8) for label in installed]
    runs: dict[str, dict[str, FloatArray]] = {}
    for label, batches in entries:
        named = label if label in OURS else f"{label}, {'every step' if batches is None else f'{batches} batches'}"
        runs[named] = {}
        for name in worlds:
            jobs = [(label, batches, name, horizon, seed, setup.folders["data"]) for seed in setup.seeds]
            outcomes = setup.map(contest_run, jobs)
            if None not in outcomes:
                runs[named][name] = np.array(outcomes)
    adaptive = [label for label in OURS if "every step" in label]

    def ratio(label: str, other: str, names: list[str]) -> Any:
        own, base = (np.column_stack([runs[who][name][:, 0] for name in names]) for who in (label, other))
        return regret_ratio(own, base)

    yardstick = min(adaptive, key=lambda label: ratio(label, adaptive[0], worlds).value)
    order = sorted(runs, key=lambda k: ratio(k, yardstick, worlds).value if len(runs[k]) == len(worlds) else np.inf)
    for label in order:
        names = [name for name in worlds if name in runs[label]]
        if not names:
            yield Row(what=label, measured="cannot express any of these worlds")
            continue
        whole, seconds = ratio(label, yardstick, names), np.mean([runs[label][name][:, 1].mean() for name in names])
        each = ", ".join(f"{name} {ratio(label, yardstick, [name]).marked.strip()}" for name in names)
        yield Row(
            what=label + (" (yardstick)" if label == yardstick else ""),
            measured=f"{each}; {seconds:.1f} s a run, T = {horizon:,}, {len(setup.seeds)} seeds",
            ratio=f"{whole.value:.2f}× ({whole.interval or 'too few seeds'})"
            + (
                "" if len(names) == len(worlds) else f" in {len(names)} of {len(worlds)} worlds, others not expressible"
            ),
        )


def our_estimates(log: DecisionLog, candidate: FloatArray, model: FloatArray) -> dict[str, float] | None:
    """IPS, SNIPS and DR with a given model; None where they are refused."""
    value = rareswitch.evaluate(log, {"candidate": candidate}, model=model)["candidate"]
    return {name: interval.value for name, interval in value.others.items()} if value.answered else None


def obp(setup: Setup) -> Iterator[Row]:
    """IPS, SNIPS and DR against obp 0.4.1, on the same logs, candidates and predictions."""
    if not obp_peer.available():
        yield from missing("estimates against obp", f"no environment in {obp_peer.ENVIRONMENT.name}: make peers")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = ["--synthetic", str(setup.pick(20, 2)), "--rounds", str(setup.pick(10_000, 2000))]
        theirs = obp_peer.estimates(folder, *sizes, *(["--data", str(setup.shop)] if setup.shop else []))
        for candidate in ("uniform", "softmax", "best-arm"):
            logs = [log for log in theirs if log.endswith(candidate)]
            apart, answered = 0.0, 0
            for log in logs:
                feedback, chances, model = obp_peer.loaded(folder / f"{log}.npz")
                ours = our_estimates(from_obp(feedback), chances[:, :, 0], model[:, :, 0])
                if ours is not None:
                    answered += 1
                    apart = max(apart, *(abs(ours[kind] - theirs[log]["all"][kind]) for kind in ("ips", "snips", "dr")))
            yield Row(
                what=f"{len(logs)} logs that obp made up, 10 actions, candidate {candidate}: the largest difference",
                measured=f"{apart:.1e}; {answered} answered, {len(logs) - answered} refused",
                must=at_most(apart, 1e-10, ""),
            )
        if setup.shop is not None:
            yield from shop(setup.shop, folder, theirs["obd"])


def shop(data: Path, folder: Path, theirs: dict[str, dict[str, float]]) -> Iterator[Row]:
    """The Open Bandit Dataset's men's campaign: uniform play from the Thompson log, beside its own log and obp."""
    columns = {"arm": "item_id", "reward": "click", "propensity": "propensity_score", "time": "timestamp"}
    with np.load(folder / "obd.npz") as held:
        order, position = held["rows"], held["position"]
    raw = np.load(folder / "obd.npy")
    model, where = np.empty(raw.shape[:2]), np.empty(len(order), dtype=np.int64)
    model[order], where[order] = raw[np.arange(len(order)), :, position], position
    for which in ("all", "1", "2", "3"):
        rows = None if which == "all" else {"position": which}
        thompson, random = (read_csv(data / f"{log}.csv.gz", where=rows, columns=columns) for log in ("bts", "random"))
        chosen = model if which == "all" else model[where == int(which) - 1]
        ours = our_estimates(thompson, np.full(thompson.available.shape, 1.0 / thompson.available.shape[1]), chosen)
        text = "refused" if ours is None else ", ".join(f"{k} {abs(ours[k] - theirs[which][k]):.1e}" for k in ours)
        yield Row(what=f"shop, positions {which}: differences to obp, uniform play", measured=text)
        found, earned = rareswitch.evaluate(thompson, "uniform"), rareswitch.evaluate(random, "logged").earned
        yield shop_row(which, found, earned)


def shop_row(which: str, found: Evaluation, earned: Interval | None) -> Row:
    """Our interval beside what random play earned itself; half-widths of independent logs add as errors do."""
    interval, what = found["uniform"].interval, f"shop, positions {which}: what uniform play earns"
    if interval is None or earned is None:
        return Row(what=what, measured="refused: " + "; ".join(found["uniform"].refusals), must=("an interval", False))
    halves = (interval.high - interval.low) / 2.0, (earned.high - earned.low) / 2.0
    return Row(
        what=what,
        measured=f"{interval.value:.3%} ({interval.low:.3%} to {interval.high:.3%}); its own log: {earned.value:.3%}",
        must=("the same within both errors", bool(abs(interval.value - earned.value) <= np.hypot(*halves))),
    )


CASES = {
    "contest": Case(contest, "Vowpal Wabbit, bayesianbandits, MABWiser and contextualbandits in the ten worlds.", 5, 1),
    "obp": Case(obp, "Estimates beside obp's; with --shop also on a real log.", exact=True),
}

if __name__ == "__main__":
    sys.exit(main("Peers", CASES, description=__doc__))
