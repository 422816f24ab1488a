"""Faults: kills, servers, hostile files and other processors."""

import gc
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from harness import HERE, TESTS, Case, Row, Setup, main, missing
from rareswitch.core import ContextSets, read_whole, uniforms
from rareswitch.errors import RareswitchError
from rareswitch.experiment import audit, create, open_experiment
from rareswitch.experiment.update import Update
from rareswitch.lab.worlds import make_world
from rareswitch.policy import load_policy
from reference import hostile
from reference.experiment_crowd import Crowd
from reference.experiment_kills import MOMENTS, NOTED, Killed, occurrences
from reference.experiment_play import Findings, Journal, Plan, look
from reference.kills import COMMANDS, Bench, kept_of_two, moments
from reference.postgres import GIVEN, database, server, start
from reference.processors import processors
from reference.served import Server
from reference.served_faults import Asked, free_files, kill, limit_files, no_room, rolled
from reference.trials import planned

#: Phases of an experiment in which its process is killed, by the verb and the point of the moment.
PHASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "while it is created": (("create",), ()),
    "before the write": (("decide", "reward"), ("begun",)),
    "after the write, before the commit": (("decide", "reward"), ("written",)),
    "after the commit, before the answer": (("decide", "reward"), ("committed", "answered")),
    "while an update is frozen": (("freeze",), ()),
    "inside learning": (("learn",), ()),
    "while a policy is published": (("publish",), ("begun", "written")),
    "after it was published": (("publish",), ("committed", "answered")),
}


def commands(setup: Setup) -> Iterator[Row]:
    """Commands killed at each call of a file and at random moments, then read, run again and compared."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench.prepared(Path(name).resolve())
        faults: list[str] = []
        for command in COMMANDS:
            calls = range(1, bench.calls[command.name] + 1, setup.pick(1, 20))
            times = moments(setup.pick(12, 1), bench.seconds[command.name], seed=len(faults))
            kills, before = bench.kills, len(faults)
            for call in calls:
                faults += [f"{fault} (call {call})" for fault in bench.kill_at(command, call)]
            for seconds in times:
                faults += [f"{fault} (after {seconds:.3f} s)" for fault in bench.kill_after(command, seconds)]
            print(*faults[before:][:20], sep="\n", file=sys.stderr)
            yield Row(
                what=f"{command.name}, killed at {len(calls)} calls of files and {len(times)} random moments: kills "
                "that leave something half-written, lost, left over or impossible to run again",
                measured=f"{len(faults) - before} of {bench.kills - kills}",
                must=("none", len(faults) == before),
            )
        pairs = [kept_of_two(bench.root / f"pair-{k}", seeds=8) for k in range(setup.pick(20, 2))]
        whole = sum(runs == wanted for runs, wanted in pairs)
        yield Row(
            what=f"two compares of 8 runs into one file, started together: all {pairs[0][1]} runs are there",
            measured=f"{whole} of {len(pairs)} times",
            must=("always", whole == len(pairs)),
        )


def killed_rows(kind: str, killed: Killed, setup: Setup) -> Iterator[Row]:
    """Kills at named moments and at random ones, and what was lost in all of them."""
    outcomes: list[Findings] = []
    groups = {
        phase: [moment for moment in MOMENTS if moment.verb in verbs and (not points or moment.when in points)]
        for phase, (verbs, points) in PHASES.items()
    }
    for phase, named in (groups | {"after the answer": [NOTED]}).items():
        times = range(setup.pick(4, 1))
        chosen = setup.pick(named, named[:1])
        findings = [killed.at_moment(moment, occurrences(moment, seed)) for seed in times for moment in chosen]
        outcomes += findings
        yield wrong_row(f"{kind}, killed {phase}", findings)
    at_random = [killed.after(seconds) for seconds in moments(setup.pick(40, 3), killed.seconds(), seed=1)]
    at_random = [finding for finding in at_random if finding.killed or not finding.clean]
    outcomes += at_random
    yield wrong_row(f"{kind}, killed at random moments", at_random)
    lost, doubled = sum(finding.lost for finding in outcomes), sum(finding.doubled for finding in outcomes)
    acknowledged, kills = (sum(getattr(finding, name) for finding in outcomes) for name in ("acknowledged", "killed"))
    yield Row(
        what=f"{kind}, of {acknowledged:,} decisions and rewards that were acknowledged before {kills} kills",
        measured=f"{lost} lost, {doubled} doubled",
        must=("none, in 100 kills or more", not lost and not doubled and (setup.quick or kills >= 100)),
    )


def wrong_row(what: str, findings: list[Findings]) -> Row:
    """How many kills left something wrong."""
    wrong = [finding for finding in findings if not finding.clean]
    print(*wrong[:5], sep="\n", file=sys.stderr, end="\n" if wrong else "")
    updating = sum(finding.updating for finding in findings)
    text = f"{len(wrong)} of {len(findings)} wrong" + (f"; {updating} updates broken off" if updating else "")
    return Row(what=what, measured=text, must=("none", not wrong))


def control_row(kind: str, folder: Path, url: str | None, setup: Setup) -> Row:
    """The negative control: a store that answers before it commits must be noticed."""
    killed = Killed(folder, url, Plan(batches=0, more=300), early=True)
    lost = [killed.at_moment(NOTED, 20 + 12 * k).lost for k in range(setup.pick(10, 1))]
    what = f"{kind}, a store that answers 30 ms before it commits: lost by a kill, {len(lost)} kills"
    return Row(what=what, measured=f"{min(lost)} to {max(lost)}", must=("5, every time", min(lost) >= 5))


def crowd_rows(kind: str, folder: Path, url: str, setup: Setup) -> Iterator[Row]:
    """Four processes that decide, reward and advance one experiment."""
    for together in (True, False):
        findings = Crowd(folder, url, setup.pick(10, 1), together=together).run()
        yield Row(
            what=f"{kind}, 4 processes {'all at once' if together else 'each when it likes'}, "
            f"{findings.acknowledged:,} decisions and rewards: one policy a batch, all kept once, as audited",
            measured="yes" if findings.clean else str(findings),
            must=("yes", findings.clean),
        )


def without_store(
    folder: Path, url: str, gone: Callable[[], None], back: Callable[[], None], *, seconds: float, learning: bool
) -> Findings:
    """Callers whose store is gone for some time, from a decision or an update on; and what is there afterwards."""
    plan, name, found = Plan(batches=3), f"gone-{uuid4().hex}", Findings()
    journal, failed, timers = Journal(folder / name), list[BaseException](), list[threading.Timer]()
    learn, once = Update.learn, threading.Lock()

    def leave() -> None:
        if once.acquire(blocking=False):
            gone()
            timers.append(threading.Timer(seconds, back))
            timers[0].start()

    def learns(*given: Any, **more: Any) -> Any:
        leave()
        return learn(*given, **more)

    def say(what: str, *more: Any) -> None:
        journal.say(what, *more)
        if not learning and what == "decided" and len(journal.read("decided")) > 6:
            leave()

    with plan.create(url, name) as trial:
        try:
            if learning:
                Update.learn = learns  # type: ignore[method-assign]
            plan.play(trial, say)
        except Exception as error:
            failed.append(error)
        finally:
            Update.learn = learn  # type: ignore[method-assign]
            for timer in timers:
                timer.join()
        found.faults += [f"an error came through: {error}" for error in failed]
        look(trial, journal, found)
        found.acknowledged = len(journal.numbers("paid"))
        if [policy.id for policy in trial.policies] != plan.policies():
            found.faults.append("other policies were learned")
        if not timers:
            found.faults.append("the store was never gone")
    return found


def gone_rows(
    kind: str, folder: Path, url: str, gone: Callable[[], Any], back: Callable[[], Any], setup: Setup
) -> Iterator[Row]:
    """A store that is away for a while."""
    seconds = setup.pick(5.0, 1.0)
    for learning in (False, True):
        findings = without_store(folder, url, gone, back, seconds=seconds, learning=learning)
        yield Row(
            what=f"{kind}, gone for {seconds:.0f} s while {'an update learns' if learning else 'decisions are made'}: "
            "errors, losses, other policies",
            measured="none" if findings.clean else str(findings),
            must=("none", findings.clean),
        )


def sqlite_kills(setup: Setup) -> Iterator[Row]:
    """An experiment in SQLite whose process is killed, and a control that must lose."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        yield from killed_rows("SQLite", Killed(folder), setup)
        yield control_row("SQLite", folder, None, setup)
        yield from crowd_rows("SQLite", folder, f"sqlite:///{folder}/crowd.db", setup)
        file = folder / "gone.db"
        with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
            lock, unlock = (lambda: other.execute("BEGIN IMMEDIATE")), (lambda: other.execute("COMMIT"))
            yield from gone_rows("SQLite, locked by another", folder, f"sqlite:///{file}", lock, unlock, setup)


def bystander_kills(setup: Setup) -> Iterator[Row]:
    """The same while another process opens, reads and closes the file, and this one has two stores of it."""
    with tempfile.TemporaryDirectory() as name:
        killed = Killed(Path(name).resolve(), bystander="always")
        yield from killed_rows("SQLite, with a bystander", killed, setup)
        yield Row(what="how often the bystander opened and closed the file", measured=f"{killed.looks:,}")


def postgres_kills(setup: Setup) -> Iterator[Row]:
    """The same in PostgreSQL, and a server that stops."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        own = None if os.environ.get(GIVEN) else start(folder / "server")
        address = os.environ[GIVEN] if own is None else str(own.get_uri())
        try:
            with database(address, "kills") as url:
                yield from killed_rows("PostgreSQL", Killed(folder, url), setup)
                yield control_row("PostgreSQL", folder, url, setup)
                yield from crowd_rows("PostgreSQL", folder, url, setup)
            if own is not None:
                yield from gone_rows("PostgreSQL, stopped", folder, address, own.stop, own.start, setup)
        finally:
            if own is not None:
                own.cleanup()


#: A file may take ten times its size and this many bytes, and this many seconds; a process of a chunk this much memory.
SPARE_BYTES, SECONDS, LIMIT, CHUNK = 50_000_000, 1.0, 8 << 30, 1000


def read_file(kind: str, path: Path) -> Any:
    """What the library makes of a file."""
    if kind == "policy":
        return load_policy(path)
    if kind in hostile.LOGS:  # whose form is known by the name
        named = path.rename(path.with_name(f"{path.name}{kind}"))
        try:
            return hostile.load_log(named)
        finally:
            named.rename(path)
    return hostile.load(kind, read_whole(path))


def read_all(kind: str, folder: Path) -> None:
    """In a process of its own: read every file of a folder, and print what came of each."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    for path in sorted(folder.glob("intact-*")):
        read_file(kind, path)
    gc.collect()
    gc.freeze()
    for path in sorted(folder.glob("[0-9]*")):
        trials = []
        for _ in range(3):  # what takes long may have waited for others: the shortest counts
            gc.collect()
            Path("/proc/self/clear_refs").write_text("5")
            before, begun = _memory("VmRSS"), time.perf_counter()
            try:
                read_file(kind, path)
                outcome = "loaded"
            except RareswitchError:
                outcome = "refused"
            except BaseException as error:
                outcome = f"{type(error).__name__}: {error}"[:200]
            trials.append((time.perf_counter() - begun, _memory("VmHWM") - before))
            if trials[0][0] <= SECONDS:
                break
        print(json.dumps([int(path.name), outcome, min(trials)[0], max(taken for _, taken in trials)]), flush=True)


def _memory(which: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(which))


def hostile_files(setup: Setup) -> Iterator[Row]:
    """Mutated files of all kinds: none loads wrongly, takes much memory or long, or ends in a foreign error."""
    count = setup.pick(2000, 24)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in (*hostile.KINDS, *hostile.LOGS):
            outcomes, wrong = Counter[str](), list[str]()
            slowest, excess, largest = 0.0, -np.inf, 0
            for first in range(0, count, CHUNK):
                files = {k: _mutated(kind, k) for k in range(first, min(first + CHUNK, count))}
                for number, outcome, seconds, memory in _read_apart(kind, files, _intact(kind)):
                    data = files[number]
                    fault = "" if outcome == "refused" else outcome
                    if outcome == "loaded":
                        fault = _fault(kind, number, data, folder)
                        outcome = "wrong" if fault else "the same" if data in _intact(kind) else "valid, edited"
                    outcomes["a foreign error" if fault and outcome != "wrong" else outcome] += 1
                    wrong += [f"{kind} {number}: {fault}"] if fault else []
                    slowest, largest = max(slowest, seconds), max(largest, len(data))
                    excess = max(excess, memory - 10 * len(data))
            print(*wrong[:20], sep="\n", file=sys.stderr, end="\n" if wrong else "")
            yield Row(
                what=f"{kind}: {count:,} files of up to {largest / 1e6:.1f} MB",
                measured=", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common()),
                ratio=f"{max(0.0, excess) / 1e6:.0f} MB above ten times the file; {slowest:.2f} s",
                must=("0 wrong, 50 MB, 1 s", not wrong and excess <= SPARE_BYTES and slowest <= SECONDS),
            )


def _intact(kind: str) -> list[bytes]:
    if kind in hostile.LOGS:
        return [] if kind.endswith(".gz") else [hostile.intact_log(kind)]
    return [file.data for file in hostile.intact()[kind]]


def _mutated(kind: str, number: int) -> bytes:
    if kind in hostile.LOGS:
        return hostile.mutated_log(kind, number)
    return hostile.mutated(kind, number)[2]


def _fault(kind: str, number: int, data: bytes, folder: Path) -> str:
    """What is wrong with what a file was loaded as."""
    path = folder / "single"
    path.write_bytes(data)
    if kind in hostile.LOGS:
        return hostile.log_fault(read_file(kind, path))
    return hostile.fault(hostile.mutated(kind, number)[1], data, read_file(kind, path))


def _read_apart(kind: str, files: dict[int, bytes], intact: list[bytes]) -> Iterator[tuple[int, str, float, int]]:
    """What a process of its own says of these files; those it did not come to have crashed it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, data in enumerate(intact):
            (folder / f"intact-{k}").write_bytes(data)
        for number, data in files.items():
            (folder / f"{number:06d}").write_bytes(data)
        script = f"import sys; sys.path[:0] = {[str(HERE), str(TESTS)]!r}; from pathlib import Path; import faults; "
        command = [sys.executable, "-c", f"{script}faults.read_all({kind!r}, Path({name!r}))"]
        lines = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        read = {number: (outcome, seconds, memory) for number, outcome, seconds, memory in map(json.loads, lines)}
        for number in files:
            yield number, *read.get(number, ("the process crashed", 0.0, 0))


ARMS = 8
#: World, whether rewards are clicks, learner and settings of the experiments that are learned on other processors.
EXPERIMENTS: dict[str, tuple[str, bool, str, dict[str, Any]]] = {
    **{
        f"foresight, {world}": (world, False, "foresight", {"policies": 6})
        for world in ("gaussian", "segments", "varying", "fixed", "plain", "drifting")
    },
    "foresight, intercept": ("gaussian", False, "foresight", {"policies": 6, "intercept": True}),
    "foresight, reserve": ("segments", False, "foresight", {"policies": 6, "reserve": 2}),
    "foresight, clicks": ("gaussian", True, "foresight", {"policies": 6, "intercept": True}),
    "foresight, clicks of segments": ("segments", True, "foresight", {"policies": 6, "intercept": True}),
    "thompson-grid": ("gaussian", False, "thompson-grid", {"arms": ARMS, "policies": 6}),
    "rho": ("varying", False, "rho", {"arms": ARMS, "policies": 6}),
}


def play_experiment(folder: Path, number: int, decisions: int) -> list[int]:
    """Create and play an experiment; the arms of all decisions."""
    place, clicks, learner, settings = list(EXPERIMENTS.values())[number]
    world, seed = make_world(place, dim=6, arms=ARMS, noise=0.5, horizon=decisions), 100 + number
    sizes: dict[str, Any] = {"dim": world.dim, "horizon": decisions, "seed": seed, "now": 0.0}
    arms = list[int]()
    trial = create(f"sqlite:///{folder}/trials.db", f"trial-{number}", learner=learner, **sizes, **settings)
    with closing(trial.store):
        while len(arms) < decisions:
            first = len(arms)
            count = min(planned(trial), decisions - first)
            rounds, ids = world.draw(count, seed=seed, first=first), list(range(first, first + count))
            available = np.ones(rounds.means.shape, dtype=np.bool_) if rounds.available is None else rounds.available
            sets = ContextSets.from_ragged([x[there] for x, there in zip(rounds.contexts, available, strict=True)])
            arms += [int(choice.arm) for choice in trial.decide_many(sets, ids=ids, now=float(first))]
            means = np.array([rounds.means[s][available[s]][arm] for s, arm in enumerate(arms[first:])])
            rewards = world.rewards(means, seed=seed, first=first)
            if clicks:
                rates = 1.0 / (1.0 + np.exp(2.0 - 2.0 * means))
                rewards = np.where(uniforms(seed, "clicks", first, count)[:, 0] < rates, 1.0, 0.0)
            trial.reward_many(ids, rewards.tolist(), now=float(first))
            if len(arms) < decisions:
                trial.advance(now=float(len(arms)), force=True)
    return arms


def on_processor(folder: str, original: str, decisions: int, experiments: int) -> None:
    """In a process of its own: play all experiments, verify those that were learned elsewhere, print both."""
    arms = [play_experiment(Path(folder), number, decisions) for number in range(experiments)]
    audit.REQUESTS = decisions  # all that are stored
    url = f"sqlite:///{original}/trials.db"
    verified = [open_experiment(url, f"trial-{number}").verify() for number in range(experiments)]
    found = [found.as_dict() | {"holds": found.holds} for found in verified]
    print(json.dumps({"arms": arms, "verified": found}))


def other_processors(setup: Setup) -> Iterator[Row]:
    """Experiments learned on this processor, verified and played anew under other kernels of OpenBLAS."""
    decisions, experiments = setup.pick(10_000, 500), setup.pick(len(EXPERIMENTS), 2)

    def outcome(environment: dict[str, str], folder: Path) -> dict[str, Any]:
        folder.mkdir()
        script = "import sys; sys.path[:0] = sys.argv[3:]; import faults; "
        script += f"faults.on_processor(*sys.argv[1:3], {decisions}, {experiments})"
        command = [sys.executable, "-c", script, str(folder), str(folder.parent / "here"), str(HERE), str(TESTS)]
        done = subprocess.run(command, env=os.environ | environment, check=True, stdout=subprocess.PIPE, text=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    with tempfile.TemporaryDirectory() as name:
        plain = outcome({}, Path(name) / "here")
        for processor in processors()[: setup.pick(100, 2)]:
            what = f"learned here, verified and played anew on: {processor.name}"
            if processor.missing():
                yield from missing(what, f"this processor lacks {processor.missing()}")
                continue
            other = outcome(dict(processor.environment), Path(name) / processor.name.replace(" ", "-"))
            holding = [entry["holds"] for entry in other["verified"]]
            policies = [policy for entry in other["verified"] for policy in entry["policies"]]
            rounded = [policy for policy in policies if policy["verdict"] == "rounding"]
            pairs = zip(plain["arms"], other["arms"], strict=True)
            differing = sum(arm != its for mine, theirs in pairs for arm, its in zip(mine, theirs, strict=True))
            yield Row(
                what=what,
                measured=f"{sum(holding)} of {len(holding)} experiments verify; {len(rounded)} of {len(policies)} "
                f"policies differ by rounding, with the same arm for all "
                f"{sum(policy['decisions'] for policy in rounded):,} stored requests; played anew, {differing} of "
                f"{sum(map(len, plain['arms'])):,} decisions differ",
                must=("all verify, no decision differs", all(holding) and not differing),
            )


def servers(setup: Setup) -> Iterator[Row]:
    """Servers that are killed, have no room, or get new policies, while 16 connections decide and reward."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        address = stack.enter_context(server(uuid4().hex))
        stores = {"SQLite": None, "PostgreSQL": stack.enter_context(database(address, "served"))}
        for kind, url in stores.items():
            kills = setup.pick(30, 2)
            findings = kill(Asked(folder, url), kills)
            yield served_row(f"{kind}, a server killed {kills} times under load, and asked again for all", findings)
        findings = kill(Asked(folder, early=True), setup.pick(3, 1))
        what = "SQLite, a server whose store answers 30 ms before it commits: lost by kills"
        yield Row(what=what, measured=f"{findings.lost:,}", must=("5 or more", findings.lost >= 5))
        findings = no_room(Asked(folder), limit_files, free_files, seconds=setup.pick(5.0, 1.5))
        yield served_row("SQLite, a server whose files cannot grow for a while", findings)
        if mounted := small_disk(stack, folder / "small"):
            findings = no_room(
                Asked(mounted), partial(fill_disk, mounted), partial(clear_disk, mounted), seconds=setup.pick(5.0, 1.5)
            )
            yield served_row("SQLite, a server whose disk is full for a while", findings)
        else:
            yield from missing("SQLite, a server whose disk is full for a while", "only root can mount a small one")
        policies = setup.pick(10, 3)
        findings = rolled(folder, policies)
        yield served_row(f"an edge server under load, {policies} policies in turn, a broken file before each", findings)


def served_row(what: str, findings: Findings) -> Row:
    """How a server came through."""
    text = f"{findings.acknowledged:,} acknowledged, {findings.lost} lost, {findings.doubled} doubled, "
    text += f"{len(findings.faults)} other faults"
    print(*findings.faults[:5], sep="\n", file=sys.stderr)
    return Row(what=what, measured=text, must=("nothing lost, all answered, the same again", findings.clean))


def small_disk(stack: ExitStack, folder: Path) -> Path | None:
    """A folder with a disk of its own, where that can be had."""
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(folder)], capture_output=True)
    if made.returncode:
        return None
    stack.callback(subprocess.run, ["umount", str(folder)], check=True)
    return folder


def fill_disk(folder: Path, _: Server) -> None:
    """Leave no room."""
    with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def clear_disk(folder: Path, _: Server) -> None:
    """Make room again."""
    (folder / "ballast").unlink()


CASES = {
    "commands": Case(commands, "Commands that are killed at each call of a file and at random moments.", exact=True),
    "sqlite": Case(sqlite_kills, "Experiments in SQLite whose process is killed; a control must lose.", exact=True),
    "bystander": Case(
        bystander_kills,
        "Experiments in SQLite whose process is killed while another opens, reads and closes the file.",
        exact=True,
    ),
    "postgres": Case(postgres_kills, "The same in PostgreSQL.", exact=True),
    "servers": Case(servers, "Servers that are killed, have no room, or get new policies under load.", exact=True),
    "files": Case(hostile_files, "Files that claim more than they hold, or were edited.", exact=True),
    "processors": Case(other_processors, "Learned on one processor, verified and played on others.", exact=True),
}

if __name__ == "__main__":
    sys.exit(main("Faults", CASES, description=__doc__))
