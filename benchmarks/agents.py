"""Measure learning with many agents: what it costs, and that engines do not matter. One thread.

What engines do when workers die is tested (tests/unit/engine, tests/unit/sim/test_collaborate.py) and counted here.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from measure import Row, arguments, report
from rareswitch import simulate
from rareswitch.engine import Dask, Engine, Processes, Serial
from rareswitch.errors import EngineError
from rareswitch.lab import Collaboration, collaborate
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Learner, make_learner

DIM, ARMS, NOISE, SEED = 10, 20, 0.5, 1
WORLD = make_world("gaussian", dim=DIM, arms=ARMS, noise=NOISE)


def learner(name: str, horizon: int) -> Learner:
    settings = {"confidence": 1.0} if name == "oful" else {}
    told = {} if name == "foresight" else {"noise": NOISE}
    return make_learner(name, dim=DIM, arms=ARMS, horizon=horizon, **settings, **told)


def run(name: str, horizon: int, agents: int, engine: Engine | None = None) -> Collaboration:
    return collaborate(learner(name, horizon), WORLD, agents=agents, seed=SEED, engine=engine)


def collaborative(horizon: int, many: tuple[int, ...]) -> Iterator[Row]:
    for name in ("foresight", "batch-linucb-kw", "batch-linucb-dg-certified"):
        found = {agents: run(name, horizon, agents) for agents in (1, *many)}
        one = found[1]
        same = all(
            other.decisions == one.decisions
            and other.run.regret == one.run.regret
            and [m.policy_id for m in other.meetings] == [m.policy_id for m in one.meetings]
            for other in found.values()
        )
        most = max(many)
        listed = ", ".join(f"{agents:,}" for agents in found)
        yield Row(
            what=f"{name}, T = {horizon:,}, {listed} agents: decisions, policies and regret",
            measured="the same" if same else "differ",
            ratio=f"regret {one.run.regret:,.1f}",
            needed="equal",
            holds=same,
        )
        rounds = {len(other.meetings) for other in found.values()}
        yield Row(
            what=f"{name}: rounds of communication, with {one.run.updates} policies",
            measured=", ".join(map(str, rounds)),
            needed="exactly M",
            holds=rounds == {one.run.updates},
        )
        shares = {agents: found[agents].parallel_time / (horizon / agents + one.run.updates) for agents in many}
        yield Row(
            what=f"{name}: longest shares of all rounds, of {listed.removeprefix('1, ')} agents",
            measured=" / ".join(f"{found[agents].parallel_time:,}" for agents in many),
            ratio=" / ".join(f"{share:.2f}" for share in shares.values()) + " of T/A + M",
            needed="at most T/A + M",
            holds=max(shares.values()) <= 1.0,
        )
        received = [meeting.received for meeting in found[most].meetings]
        contexts = (one.meetings[-1].stop - one.meetings[-1].start) * ARMS * DIM * 8
        yield Row(
            what=f"{name}: bytes from {most:,} agents, round by round",
            measured=" / ".join(f"{size:,}" for size in received),
            ratio=f"the contexts of the last batch alone are {contexts:,}",
        )


def concurrent(horizon: int, many: tuple[int, ...]) -> Iterator[Row]:
    for name in ("oful", "rarely-switch-suplinucb"):
        alone = simulate(learner(name, horizon), WORLD, seed=SEED)
        cells, holds = [], True
        for agents in many:
            found = simulate(learner(name, horizon), WORLD, seed=SEED, agents=agents)
            extra, allowed = found.regret - alone.regret, found.updates * agents
            cells.append(f"A = {agents}: {extra:+,.0f} of {allowed:,}")
            holds = holds and extra <= allowed
        yield Row(
            what=f"{name}, T = {horizon:,}, agents at each step: regret beside one agent's {alone.regret:,.0f}, of M·A",
            measured="; ".join(cells),
            needed="at most M·A more",
            holds=holds,
        )


def engines(horizon: int) -> Iterator[Row]:
    here = run("foresight", horizon, 8)
    for workers in (1, 2, 4):
        for make in (partial(Serial, threads=workers), partial(Processes, workers), partial(Dask, workers=workers)):
            with make() as engine:
                there = run("foresight", horizon, 8, engine)
                name = engine.name
            same = there.decisions == here.decisions and [m.policy_id for m in there.meetings] == [
                m.policy_id for m in here.meetings
            ]
            yield Row(
                what=f"foresight, T = {horizon:,}, 8 agents on {name} ({workers}): decisions and policies",
                measured="as serial" if same else "differ",
                needed="identical",
                holds=same,
            )


def die_once(folder: str, shard: int) -> int:
    """Square a number; the third shard's worker dies in the middle the first time."""
    with (Path(folder) / str(shard)).open("a") as file:
        file.write("x")
    if shard == 2 and not (Path(folder) / "died").exists():
        (Path(folder) / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return shard * shard


def die_always(shard: int) -> int:
    if shard == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return shard


def losses() -> Iterator[Row]:
    for make in (partial(Processes, 2), partial(Dask, workers=2)):
        with make() as engine, tempfile.TemporaryDirectory() as folder:
            found = list(engine.map(partial(die_once, folder), range(8)))
            starts = sum(len((Path(folder) / str(shard)).read_text()) for shard in range(8))
            right = found == [shard * shard for shard in range(8)]
            try:
                list(engine.map(die_always, range(8)))
                refusal = "no error"
            except EngineError as error:
                refusal = str(error).split(".")[0]
            usable = list(engine.map(abs, [-1])) == [1]
            yield Row(
                what=f"{engine.name}: a worker killed in the middle of 8 shards",
                measured=f"all results, {starts - 8} extra executions" if right else "wrong results",
                needed="at most 2 extra",
                holds=right and starts - 8 <= 2,
            )
            yield Row(
                what=f"{engine.name}: a shard that kills its worker every time",
                measured=f"{refusal}; {'usable' if usable else 'not usable'} afterwards",
                needed="an error, and usable",
                holds=usable and refusal != "no error",
            )


def rows(quick: bool) -> Iterator[Row]:
    horizon, many = (5000, (2, 16)) if quick else (100_000, (2, 4, 8, 16, 32, 64))
    yield from collaborative(horizon, (*many, 1000) if quick else (2, 8, 64, 1000, 10_000))
    yield from concurrent(horizon, many)
    yield from engines(3000 if quick else 20_000)
    yield from losses()


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Many agents", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
