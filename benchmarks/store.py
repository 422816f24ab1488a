"""Measure the stores: durable commits against bare writes, many callers, and the read at a batch's end against Parquet.

What is compared is timed in turn, round after round; a ratio is the median over the rounds. The folder for temporary
files must be on the disk that is meant: TMPDIR=… chooses another.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import chain, count
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measure import Row, arguments, in_turn, report
from rareswitch import create
from rareswitch.experiment import Experiment
from rareswitch.ids import id_keys, key_bytes
from rareswitch.learner import sample_order
from rareswitch.log import find_parts, summarize_version
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, VersionRow, open_store
from reference.postgres import database, server
from update import DIM, ROWS, begun, make_log, updated

BATCH, CALLERS, ARMS = 100, 64, 20


def made(url: str) -> Store:
    """A new experiment."""
    store = open_store(url, uuid4().hex)
    store.create("{}", VersionRow(1, b"", b"", b"", "{}", "", 0.0))
    return store


def decision(arms: int, number: int | None = None) -> DecisionRow:
    """A decision with a random key, as texts have that are ids, or a number; with its context set where it has arms."""
    names = "[" + ", ".join(f'"offer {k}"' for k in range(arms)) + "]" if arms else None
    contexts = os.urandom(8 * DIM * arms) if arms else None
    key, features, digest = os.urandom(16), os.urandom(8 * DIM), os.urandom(16)
    if number is not None:
        (key,) = key_bytes(id_keys([number]))
    name = f'"{key.hex()}"'
    return DecisionRow(key, name, 1, "offer 3", 3, 0.25, features, digest, 1.8e9, 0.5, None, contexts, names)


def size(row: DecisionRow) -> int:
    """Bytes that a row holds, numbers as eight."""
    return sum(len(value) if isinstance(value, (bytes, str)) else 8 for value in row if value is not None)


class Raw:
    """A file to which bytes are appended, each time down to the disk."""

    def __init__(self, folder: Path) -> None:
        self.file = os.open(folder / f"raw-{uuid4().hex}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def write(self, data: bytes, times: int) -> None:
        for _ in range(times):
            os.write(self.file, data)
            os.fdatasync(self.file)


def batches(
    what: str, store: Store, raw: Raw, arms: int, rounds: int, needed: float | None, *, numbers: bool = False
) -> Row:
    commits, number = 50, count()
    data = os.urandom(sum(size(decision(arms)) for _ in range(BATCH)))
    waiting = [
        [[decision(arms, next(number) if numbers else None) for _ in range(BATCH)] for _ in range(commits)]
        for _ in range(rounds + 1)
    ][::-1]

    def ours() -> None:
        for rows in waiting.pop():
            store.add_decisions(rows)

    seconds = in_turn(rounds, ours, lambda: raw.write(data, commits)) / commits
    ratio = float(np.median(seconds[:, 1] / seconds[:, 0]))
    mine, bare = 1 / np.median(seconds, axis=0)
    kept = (f"{ARMS} vectors kept of each" if arms else "sets not kept") + (", numbers as ids" if numbers else "")
    return Row(
        what=f"{what}: commits of {BATCH} decisions, d = {DIM}, {kept}, against write + fdatasync of the same bytes",
        measured=f"{mine:,.0f} against {bare:,.0f} a second",
        ratio=f"{ratio:.2f}×",
        needed="" if needed is None else f"{needed:.1f}×",
        holds=None if needed is None else ratio >= needed,
    )


def bare(folder: Path, raw: Raw, rounds: int) -> Row:
    """What SQLite itself can do: one table without an index, the same pragmas, nothing between it and the rows."""
    commits = 50
    data = os.urandom(sum(size(decision(0)) for _ in range(BATCH)))
    waiting = [[[decision(0)[:11] for _ in range(BATCH)] for _ in range(commits)] for _ in range(rounds + 1)]
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"CREATE TABLE decisions (seq INTEGER PRIMARY KEY, {', '.join(DecisionRow._fields[:11])})")
        insert = f"INSERT INTO decisions ({', '.join(DecisionRow._fields[:11])}) VALUES (?{', ?' * 10})"

        def theirs() -> None:
            for rows in waiting.pop():
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(insert, rows)
                connection.execute("COMMIT")

        seconds = in_turn(rounds, theirs, lambda: raw.write(data, commits)) / commits
    ratio = float(np.median(seconds[:, 1] / seconds[:, 0]))
    mine, plain = 1 / np.median(seconds, axis=0)
    return Row(
        what=f"for comparison, a bare SQLite table without any index: commits of {BATCH} decisions, d = {DIM}",
        measured=f"{mine:,.0f} against {plain:,.0f} a second",
        ratio=f"{ratio:.2f}×",
    )


def by_experiment(folder: Path, raw: Raw, rounds: int) -> Row:
    """Callers of an experiment, who wait in threads: requests are encoded, decided and kept."""
    many, commits, number = 50 * CALLERS, 300, count()
    vectors = np.random.default_rng(1).standard_normal((CALLERS, ARMS, DIM)) / np.sqrt(DIM)
    with create(f"sqlite:///{folder}/callers.db", "callers", dim=DIM, keep=0.01) as trial:

        def caller(k: int) -> None:
            for _ in range(many // CALLERS):
                trial.decide(vectors[k], id=next(number))

        def ours() -> None:
            threads = [threading.Thread(target=caller, args=(k,)) for k in range(CALLERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        data = os.urandom(size(decision(0)))
        seconds = in_turn(rounds, ours, lambda: raw.write(data, commits))
    ratio = float(np.median(many / seconds[:, 0] * seconds[:, 1] / commits))
    mine, plain = many / np.median(seconds[:, 0]), commits / np.median(seconds[:, 1])
    return Row(
        what=f"an experiment in SQLite: {CALLERS} waiting threads, one decision at a time, {ARMS} arms, d = {DIM}",
        measured=f"{mine:,.0f} against {plain:,.0f} a second",
        ratio=f"{ratio:.1f}×",
        needed="10×",
        holds=ratio >= 10,
    )


def by_threads(store: Store, rows: list[DecisionRow]) -> None:
    def caller(k: int) -> None:
        for row in rows[k::CALLERS]:
            store.add_decisions([row])

    threads = [threading.Thread(target=caller, args=(k,)) for k in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def callers(what: str, store: Store, raw: Raw, rounds: int, asked: bool) -> Row:
    many, commits = 200 * CALLERS, 300
    waiting = [[decision(0) for _ in range(many)] for _ in range(rounds + 1)]
    data = os.urandom(size(decision(0)))
    seconds = in_turn(rounds, lambda: by_threads(store, waiting.pop()), lambda: raw.write(data, commits))
    ratio = float(np.median(many / seconds[:, 0] * seconds[:, 1] / commits))
    mine, bare = many / np.median(seconds[:, 0]), commits / np.median(seconds[:, 1])
    return Row(
        what=f"{what}: {CALLERS} waiting callers, single decisions, against write + fdatasync of one",
        measured=f"{mine:,.0f} against {bare:,.0f} a second",
        ratio=f"{ratio:.1f}×",
        needed="10×" if asked else "",
        holds=ratio >= 10 if asked else None,
    )


def fill(store: Store, paths: list[str]) -> None:
    """The rows of a log, in a store."""
    for path in paths:
        table = parquet.read_table(path)
        keys = id_keys(table["id"].to_numpy())
        vectors = table["features"].combine_chunks().flatten().to_numpy().reshape(-1, DIM)
        columns = (table[name].to_pylist() for name in ("id", "propensity", "reward", "contexts"))
        rows, rewards = [], []
        for key, rank, vector, name, chance, reward, sets in zip(
            key_bytes(keys), sample_order(keys).tolist(), vectors, *columns, strict=True
        ):
            data = None if sets is None else np.array(sets).tobytes()
            shown = key, str(name)
            rows.append(DecisionRow(*shown, 1, "a", 0, chance, vector.tobytes(), shown[0], 0.0, rank, None, data))
            rewards.append(RewardRow(*shown, "", reward, 0.0))
        for begin in range(0, len(rows), 10_000):
            store.add_decisions(rows[begin : begin + 10_000])
            store.add_rewards(rewards[begin : begin + 10_000])


def learned(url: str, name: str, marks: Marks, rows: int) -> str:
    """The id of the policy that is learned from a store, which is opened for it."""
    (learner, state), store = begun(rows), open_store(url, name)
    summary = summarize_version(learner, state, store, version=1, policy_id=state.policy.id, upto=marks)
    store.close()
    return learner.next(state, summary).policy.id


def reading(what: str, store: Store, url: str, paths: list[str], rounds: int, needed: float) -> Row:
    rows = len(paths) * ROWS
    fill(store, paths)
    started = store.start_update(1, "{}")
    assert started is not None
    learner, state = begun(rows)
    seconds = in_turn(
        rounds, lambda: learned(url, store.name, started[1], rows), lambda: updated(learner, state, paths)
    )
    ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
    ours, theirs = np.median(seconds, axis=0)
    return Row(
        what=f"{what}: the update from {rows:,} decisions, d = {DIM}, against the same rows in Parquet",
        measured=f"{ours:.2f} s against {theirs:.2f} s",
        ratio=f"{ratio:.2f}×",
        needed=f"at most {needed:.0f}×",
        holds=ratio <= needed,
    )


FEW, MANY = 2_000, 1_000_000


def grown(url: str, name: str, rewards: int) -> Experiment:
    """An experiment with so many decisions, all of them rewarded."""
    trial = create(url, name, dim=DIM, schedule=[10 * MANY, 20 * MANY], updates=2, seed=1)
    vectors = np.random.default_rng(1).standard_normal((rewards, DIM)) / np.sqrt(DIM)
    for begin in range(0, rewards, 10_000):
        numbers = np.arange(begin, min(begin + 10_000, rewards))
        keys = key_bytes(id_keys(numbers))
        rows = [
            DecisionRow(
                *(key, str(number), 1, "0", 0, 0.5, vectors[number].tobytes(), key, float(number), 0.5),
                contexts=vectors[:5].tobytes() if number < 1000 else None,
            )
            for key, number in zip(keys, numbers.tolist(), strict=True)
        ]
        trial.store.add_decisions(rows)
        trial.store.add_rewards([RewardRow(row.key, row.id, "", 0.5, row.time) for row in rows])
    return trial


def grows(what: str, url: str, rounds: int) -> Iterator[Row]:
    """What a decision, a look and an update cost where much is stored, against little."""
    number, sets = count(2 * MANY), np.eye(DIM)[:5]
    with ExitStack() as stack:
        few, many = (
            stack.enter_context(grown(url.format(rewards), f"grown-{rewards}", rewards)) for rewards in (FEW, MANY)
        )

        def decides(trial: Experiment) -> None:
            for _ in range(100):
                trial.decide(sets, id=next(number))

        seconds = in_turn(5 * rounds, lambda: decides(few), lambda: decides(many)) / 100
        ratio = float(np.median(seconds[:, 1]) / np.median(seconds[:, 0]))
        small, large = 1e3 * np.median(seconds, axis=0)
        yield Row(
            what=f"{what}: a durable decision where {MANY:,} rewards are stored, against {FEW:,}",
            measured=f"{large:.2f} ms against {small:.2f} ms",
            ratio=f"{ratio:.2f}×",
            needed="at most 1.3×",
            holds=ratio <= 1.3,
        )
        calls: dict[str, Callable[[], object]] = {"status": many.status, "an advance that is not due": many.advance}
        for name, call in calls.items():
            taken = 1e3 * float(np.median(in_turn(3 * rounds, call)))
            yield Row(
                what=f"{what}: {name} where {MANY:,} rewards are stored",
                measured=f"{taken:.1f} ms",
                needed="at most 50 ms",
                holds=taken <= 50,
            )
        taken = float(np.median(in_turn(rounds, many.preview)))
        yield Row(what=f"{what}: the preview of an update from {MANY:,} decisions", measured=f"{taken:.2f} s")


PEAK = """
import re, sys
sys.path[:0] = sys.argv[4:]
from rareswitch.store import Marks
from store import learned
learned(*sys.argv[1:3], Marks(int(sys.argv[3]), 1 << 60), int(sys.argv[3]))
print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])
"""


def memory(what: str, store: Store, url: str, rows: int) -> Row:
    """Of the first tenth of the decisions of a store, and of all; they have the sequence numbers from 1."""
    few, many = (
        int(
            subprocess.run(
                [sys.executable, "-c", PEAK, url, store.name, str(count), str(Path(__file__).parent)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        / 1024
        for count in (rows // 10, rows)
    )
    return Row(
        what=f"{what}: peak memory of an update from {rows:,} decisions against {rows // 10:,}",
        measured=f"{many:.0f} MiB against {few:.0f} MiB",
        ratio=f"{many / few:.2f}×",
        needed="at most 1.1×",
        holds=many <= 1.1 * few,
    )


def rows(quick: bool) -> Iterator[Row]:
    rounds, parts, largest = (3, 4, 10) if quick else (5, 20, 200)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(database(stack.enter_context(server(uuid4().hex)), "stores"))
        raw = Raw(folder)
        for what, url in (("SQLite", f"sqlite:///{folder}/commits.db"), ("PostgreSQL", postgres)):
            asked = what == "SQLite"
            for arms in (0, ARMS):
                store = made(url)
                yield batches(what, store, raw, arms, rounds, 0.4 if asked else None)
                if asked:
                    yield batches(what, store, raw, arms, rounds, 0.4, numbers=True)
                store.close()
            store = made(url)
            yield callers(what, store, raw, rounds, asked)
            store.close()
        yield bare(folder, raw, rounds)
        yield by_experiment(folder, raw, rounds)
        make_log(folder, largest)
        paths = find_parts([folder / "*.parquet"])
        for what, url, needed in (("SQLite", f"sqlite:///{folder}/rows.db", 2.0), ("PostgreSQL", postgres, 3.0)):
            store = made(url)
            yield reading(what, store, url, paths[:parts], rounds, needed)
            if what == "SQLite":
                fill(store, paths[parts:])
                yield memory(what, store, url, largest * ROWS)
            store.close()


def grown_rows(quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else 5
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield from grows("SQLite", f"sqlite:///{folder}/grown-{{}}.db", rounds)
        postgres = stack.enter_context(server(uuid4().hex))
        urls = [stack.enter_context(database(postgres, f"grown-{rewards}")) for rewards in (FEW, MANY)]
        yield from grows("PostgreSQL", urls[0].replace(str(FEW), "{}"), rounds)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--grown", action="store_true", help="only what may grow with what is stored")
    options = parser.parse_args()
    chosen = grown_rows if options.grown else lambda quick: chain(rows(quick), grown_rows(quick))
    return report("The stores", chosen(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
