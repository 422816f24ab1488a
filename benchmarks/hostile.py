"""Try 10,000 files that claim more than they hold: none may load wrongly, or take much memory or time.

Each file is read from the disk in a process of its chunk, whose peak memory is set back before it. What loads is then
compared with what the file holds, and used: a policy decides, a summary is learned from, a state goes on.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from measure import Row, arguments, report
from rareswitch.errors import RareswitchError
from rareswitch.files import read_whole
from rareswitch.lab import Run, load_runs, sweep
from rareswitch.learner import make_learner
from rareswitch.policy import load_policy
from reference import hostile

#: Bytes that a file may take beside ten times its own.
ROOM, SECONDS = 50_000_000, 1.0
#: Files read by one process, and the most memory that it may ask for.
CHUNK, LIMIT = 1000, 8 << 30
RAW = tuple(hostile.CHANGES)[:6]


class Results:
    """Crafted and mutated files of runs."""

    def __init__(self, folder: Path) -> None:
        path = folder / "intact.parquet"
        learners = {
            name: lambda world, t, seed, name=name: make_learner(name, dim=world.dim, arms=world.arms, horizon=t)
            for name in ("batch-linucb-kw", "oful")
        }
        sweep(learners, {"gaussian": hostile.WORLD}, horizons=[50, 100], seeds=range(5), path=path, quiet=True)
        self.data, self.runs, self.table = path.read_bytes(), load_runs(path), parquet.read_table(path)

    def mutated(self, number: int) -> tuple[str, bytes]:
        rng = np.random.default_rng([7, number])
        how = (*RAW, "table", "bomb")[number % 8]
        if how in RAW:
            return how, hostile.CHANGES[how](hostile.File("results", self.data), rng)
        buffer = pa.BufferOutputStream()
        if how == "bomb":  # the same run over and over takes next to no bytes
            rows = int(rng.choice([1000, 100_000, 3_000_000]))
            table = self.table.take(np.zeros(rows, dtype=np.int64)) if rows < 10_000 else _wide(self.table, rows)
            parquet.write_table(table.replace_schema_metadata(self.table.schema.metadata), buffer, compression="zstd")
        else:
            parquet.write_table(self._edited(rng), buffer)
        return how, bytes(buffer.getvalue())

    def _edited(self, rng: Any) -> Any:
        at = int(rng.integers(self.table.num_columns))
        name, column = self.table.column_names[at], self.table.column(at)
        choice = int(rng.integers(6))
        if choice == 0:
            return self.table.drop_columns([name])
        if choice == 1:
            return self.table.rename_columns([n + "2" if n == name else n for n in self.table.column_names])
        if choice == 2:
            return self.table.replace_schema_metadata({b"format": (b"rareswitch-runs-1", b"x", b"")[at % 3]})
        made = [pa.nulls(len(column)), pa.array(["x"] * len(column)), pa.array([[-1.0]] * len(column))]
        return self.table.set_column(at, name, made[choice - 3])

    def fault(self, how: str, found: dict[str, Run]) -> str:
        """What is wrong with runs that were loaded: of an edited table they must at least be whole."""
        if how in RAW and not _same(found, self.runs):
            return "other runs than were written"
        for run in found.values():
            kinds = all(isinstance(getattr(run, name), int) for name in ("horizon", "seed", "updates"))
            if not kinds or not isinstance(run.regret, float) or run.times.shape != run.regrets.shape:
                return f"not a run: {run}"
        return ""


def _wide(table: Any, rows: int) -> Any:
    """A table of one row whose lists have so many equal numbers."""
    one = table.slice(0, 1)
    for name in ("times", "regrets"):
        at = one.column_names.index(name)
        one = one.set_column(at, name, pa.array([np.zeros(rows)]).cast(table.schema.field(name).type))
    return one


def _same(found: dict[str, Run], runs: dict[str, Run]) -> bool:
    return found.keys() == runs.keys() and all(
        np.array_equal(getattr(found[key], name), part) for key in runs for name, part in vars(runs[key]).items()
    )


def read(kind: str, path: Path) -> Any:
    """What the library makes of a file."""
    if kind == "policy":
        return load_policy(path)
    if kind in hostile.LOGS:  # whose form is known by the name
        named = path.rename(path.with_name(f"{path.name}{kind}"))
        try:
            return hostile.load_log(named)
        finally:
            named.rename(path)
    return load_runs(path) if kind == "results" else hostile.load(kind, read_whole(path))


def memory() -> dict[str, int]:
    """Bytes that this process takes, and took at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}


def measured(kind: str, folder: Path) -> None:
    """In a process of its own: read every file of a folder, and print what came of each."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    for path in sorted(folder.glob("intact-*")):
        read(kind, path)
    gc.collect()
    gc.freeze()  # what is there already need not be looked through again
    for path in sorted(folder.glob("[0-9]*")):
        found = []
        for _ in range(3):  # what takes long may have waited for others: the shortest counts
            gc.collect()
            Path("/proc/self/clear_refs").write_text("5")
            before, start = memory()["VmRSS"], time.perf_counter()
            try:
                read(kind, path)
                outcome = "loaded"
            except RareswitchError:
                outcome = "refused"
            except BaseException as error:
                outcome = f"{type(error).__name__}: {error}"[:200]
            found.append((time.perf_counter() - start, memory()["VmHWM"] - before))
            if found[0][0] <= SECONDS:
                break
        seconds, taken = min(found)[0], max(taken for _, taken in found)
        print(json.dumps({"name": path.name, "outcome": outcome, "seconds": seconds, "memory": taken}), flush=True)


def chunk(kind: str, files: dict[int, bytes], intact: list[bytes]) -> Iterator[dict[str, Any]]:
    """What a process of its own says of these files; those it did not come to have crashed it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, data in enumerate(intact):
            (folder / f"intact-{k}").write_bytes(data)
        for number, data in files.items():
            (folder / f"{number:06d}").write_bytes(data)
        command = [sys.executable, __file__, "--measure", kind, str(folder)]
        lines = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        found = {int(entry["name"]): entry for entry in map(json.loads, lines)}
        for number, data in files.items():
            crashed = {"outcome": "the process crashed", "seconds": 0.0, "memory": 0}
            yield {"number": number, "size": len(data)} | found.get(number, crashed)


def rows(count: int, folder: Path) -> Iterator[Row]:
    results = Results(folder)
    for kind in (*hostile.KINDS, "results", *hostile.LOGS):
        outcomes: Counter[str] = Counter()
        wrong: list[str] = []
        entries: list[dict[str, Any]] = []
        if kind in hostile.LOGS:
            intact = [] if kind.endswith(".gz") else [hostile.intact_log(kind)]
        else:
            intact = [results.data] if kind == "results" else [file.data for file in hostile.intact()[kind]]
        for first in range(0, count // 5, CHUNK):
            numbers = range(first, min(first + CHUNK, count // 5))
            made = {k: _mutated(kind, k, results) for k in numbers}
            for entry in chunk(kind, made, intact):
                entries.append(entry)
                outcome, data = entry["outcome"], made[entry["number"]]
                if outcome == "loaded":
                    fault = _fault(kind, entry["number"], data, results, folder)
                    outcome = "wrong" if fault else "the same" if data in intact else "other content, valid"
                    wrong += [f"{kind} {entry['number']}: {fault}"] if fault else []
                elif outcome != "refused":
                    wrong.append(f"{kind} {entry['number']}: {outcome}")
                    outcome = "a foreign error"
                outcomes[outcome] += 1
        for text in wrong[:20]:
            print(text, file=sys.stderr)
        slowest = max(entry["seconds"] for entry in entries)
        fullest = max(entries, key=lambda entry: entry["memory"] - 10 * entry["size"])
        within = fullest["memory"] <= 10 * fullest["size"] + ROOM
        told = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common())
        yield Row(
            what=f"{kind}: {len(entries):,} files of up to {max(e['size'] for e in entries) / 1e6:.1f} MB",
            measured=told,
            ratio=f"most {fullest['memory'] / 1e6:.0f} MB for a file of {fullest['size'] / 1e6:.2f}; {slowest:.2f} s",
            needed="0 wrong, 10 × file + 50 MB, 1 s",
            holds=not wrong and within and slowest <= SECONDS,
        )


def _mutated(kind: str, number: int, results: Results) -> bytes:
    if kind in hostile.LOGS:
        return hostile.mutated_log(kind, number)
    return results.mutated(number)[1] if kind == "results" else hostile.mutated(kind, number)[2]


def _fault(kind: str, number: int, data: bytes, results: Results, folder: Path) -> str:
    """What is wrong with what a file was loaded as."""
    path = folder / "one"
    path.write_bytes(data)
    if kind in hostile.LOGS:
        return hostile.log_fault(read(kind, path))
    if kind == "results":
        return results.fault(results.mutated(number)[0], load_runs(path))
    return hostile.fault(hostile.mutated(kind, number)[1], data, read(kind, path))


def main() -> int:
    if sys.argv[1:2] == ["--measure"]:
        measured(sys.argv[2], Path(sys.argv[3]))
        return 0
    options = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = rows(1000 if options.quick else 10_000, Path(name))
        note = "Other content that loads was edited and given the hashes that fit: it is valid, and can be used."
        return report("Files that claim more than they hold", found, options.out, note)


if __name__ == "__main__":
    sys.exit(main())
