"""What all families of benchmarks share: options, a table of cases, runs in all cores, results that name their commit.

A family is a script with a table of cases. A case yields rows. ``--out FILE.jsonl`` keeps the rows of each case with
the commit, the processor and the versions that they were measured with, in place of that case's earlier ones, and
renders the page of docs/evidence; ``python benchmarks/harness.py`` renders all pages. Linear algebra has one thread, so
that times are comparable.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
T = TypeVar("T")
#: What a row promises, and whether it holds; None where nothing is promised, or where it was but looked at.
Promise = tuple[str, bool | None]
NOTHING: Promise = ("", None)

HERE = Path(__file__).parent
ROOT = HERE.parent
#: The slow references and the kill machinery of the tests.
TESTS = ROOT / "tests"
#: The figures that the README, the pages and the demo say, which the package has with it.
HEADLINE = ROOT / "src" / "rareswitch" / "lab" / "headline.json"
#: Where results become pages.
EVIDENCE = ROOT / "docs" / "evidence"
HEADER = ("what", "measured", "ratio", "must be", "holds")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
PACKAGES = ("numpy", "numba", "pyarrow", "obp", "vowpalwabbit", "mabwiser", "bayesianbandits", "contextualbandits")

sys.path.append(str(TESTS))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table."""

    what: str
    measured: str
    ratio: str = ""
    must: Promise = NOTHING


class Case(NamedTuple):
    """One measurement of a family."""

    run: Callable[["Setup"], Iterable[Row]]
    about: str
    #: How many seeds by default; few enough for a look with ``--quick``.
    seeds: int = 1
    quick_seeds: int = 2
    first_seed: int = 0
    #: Whether its promises are judged with ``--quick``, too: those that do not hang on sizes.
    exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a case is run with."""

    case: str
    quick: bool
    seeds: range
    #: Folders of MovieLens ratings, of tables, and of the Open Bandit Dataset.
    data: Path | None
    tables: Path | None
    shop: Path | None
    #: Results of single runs, by their key; kept in a file where one is named.
    results: "Results"
    #: What another version kept, to compare with.
    before: Mapping[str, Any]
    #: Where a case that has a picture draws it.
    picture: Path | None

    def pick(self, full: T, quick: T) -> T:
        """One of two sizes."""
        return quick if self.quick else full

    @property
    def folders(self) -> dict[str, str | None]:
        """By the names that worlds ask for."""
        named = {"data": self.data, "tables": self.tables}
        return {name: None if path is None else str(path) for name, path in named.items()}

    def key(self, *job: Any) -> str:
        """What a run of this case is kept under."""
        return json.dumps([self.case, *job])

    def map(self, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """``function(*job)`` for each job, in all cores; what was kept is not run again.

        The function is one of a module's top level; what it returns is plain JSON.
        """
        waiting = [job for job in dict.fromkeys(jobs) if self.key(*job) not in self.results]
        began = reported = time.monotonic()
        # quickly in one process, where every kernel is compiled once
        outcomes = map(_call, [function] * len(waiting), waiting) if self.quick else _pool_map(function, waiting)
        for done, (job, outcome) in enumerate(zip(waiting, outcomes, strict=True), start=1):
            self.results.add(self.key(*job), outcome)
            if (now := time.monotonic()) > reported + 20.0:
                reported, left = now, (now - began) * (len(waiting) / done - 1.0)
                print(f"{self.case}: {done:,} of {len(waiting):,}, {left / 60.0:.0f} min left", file=sys.stderr)
        return [self.results[self.key(*job)] for job in jobs]


def _call(function: Callable[..., Any], job: tuple[Any, ...]) -> Any:
    return json.loads(json.dumps(function(*job)))


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(available_cores())


def _pool_map(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """In all cores, by processes that stay."""
    return _pool().map(_call, [function] * len(jobs), jobs)


class Results(dict[str, Any]):
    """Results of single runs, appended to a file as they come."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self.path = path
        if path is not None and path.exists():
            self.update(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
            if (begun := self.get("commit")) not in (None, commit()):
                raise SystemExit(f"{path} was begun at commit {begun}, this is {commit()}: name another file to keep.")
        elif path is not None:
            self.add("commit", commit())

    def add(self, key: str, value: Any) -> None:
        """Keep a result."""
        self[key] = value
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, value]) + "\n")


def timed(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of a call."""
    start = clock()
    call()
    return clock() - start


def in_turn(rounds: int, *calls: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> FloatArray:
    """Seconds of every call in every round, (rounds, calls), after one round that is not counted."""
    for call in calls:
        call()
    return np.array([[timed(call, clock) for call in calls] for _ in range(rounds)])


def compared(
    what: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    rounds: int,
    each: tuple[float, float] = (1.0, 1.0),
    most: float | None = None,
    least: float | None = None,
    unit: str = "µs",
    clock: Callable[[], float] = time.perf_counter,
) -> Row:
    """Two calls timed in turn: medians of each, and the median of their ratios.

    ``each`` says how many things a call does; ``most`` bounds our time over theirs, ``least`` theirs over ours.
    """
    seconds = in_turn(rounds, ours, theirs, clock=clock) / np.array(each)
    mine, other = np.median(seconds, axis=0) * {"s": 1.0, "ms": 1e3, "µs": 1e6, "ns": 1e9}[unit]
    slower = float(np.median(seconds[:, 0] / seconds[:, 1]))
    faster = float(np.median(seconds[:, 1] / seconds[:, 0]))
    return Row(
        what=what,
        measured=f"{mine:.3g} {unit} against {other:.3g} {unit}",
        ratio=f"{slower:.2f}×" if least is None else f"{faster:.3g}× as fast",
        must=at_most(slower, most) if least is None else (f"{least:g}× as fast", faster >= least),
    )


def at_most(value: float, most: float | None, unit: str = "×") -> Promise:
    """A promise, where there is one."""
    return NOTHING if most is None else (f"at most {most:g}{unit}", bool(value <= most))


def peak_memory() -> float:
    """MiB that this process took at most; not ru_maxrss, which a child inherits."""
    match = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else float("nan")


def in_process(script: str, *words: str, environment: Mapping[str, str] | None = None) -> Any:
    """What a script prints as JSON in a process of its own; the benchmarks and the tests are in its path."""
    path = os.pathsep.join([str(HERE), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    own.pop("PYTHONDONTWRITEBYTECODE", None)  # or every process would compile all sources again
    command = [sys.executable, "-c", script, *words]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=own).stdout)


def available_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> str:
    """The commit of the working tree, with a plus where it was changed."""
    try:
        command = ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def measured_with() -> dict[str, str]:
    """The commit, the processor and the versions."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    machine = {"processor": f"{model}, {available_cores()} cores", "versions": ", ".join(versions)}
    return {"commit": commit(), **machine, "date": time.strftime("%Y-%m-%d", time.gmtime())}


def table(rows: Iterable[Row]) -> str:
    """Rows as Markdown."""
    lines = [HEADER, ("---",) * len(HEADER)]
    for row in rows:
        verdict = {True: "yes", False: "NO", None: "–"}[row.must[1]]
        lines.append((row.what, row.measured, row.ratio, row.must[0], verdict))
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def as_markdown(title: str, entries: Iterable[Mapping[str, Any]]) -> str:
    """The page of a family: a table for each case, and what it was measured with."""
    parts = [f"# {title}"]
    for entry in entries:
        origin = f"Commit {entry['commit']}, {entry['date']}; {entry['processor']}; {entry['versions']}."
        rows = table(Row(**row) for row in entry["rows"])
        parts += [f"## {entry['case']}", entry["about"], rows, f"`{entry['command']}`. {origin}"]
    return "\n\n".join(parts) + "\n"


def kept(path: Path) -> dict[str, dict[str, Any]]:
    """The cases of a result file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {entry["case"]: entry for entry in map(json.loads, lines)}


def write(path: Path, title: str, entry: Mapping[str, Any]) -> None:
    """Put a case in the place of what the file has of it, and render its page, of our files in docs/evidence."""
    entries = kept(path) | {entry["case"]: dict(entry)}
    path.write_text("".join(json.dumps(part, ensure_ascii=False) + "\n" for part in entries.values()), encoding="utf-8")
    if path.resolve().parent == HERE:
        render()
    else:
        path.with_suffix(".md").write_text(as_markdown(title, entries.values()), encoding="utf-8")


def pages() -> dict[str, str]:
    """The pages of the result files that are kept here, by their names, and that of all rows that miss their aim."""
    files = {path.stem: kept(path) for path in sorted(HERE.glob("*.jsonl"))}
    texts = {f"{name}.md": as_markdown(name.title(), entries.values()) for name, entries in files.items()}
    return texts | {"misses.md": misses(files)}


def misses(files: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """What was measured and does not hold."""
    lines = ["| where | what | measured | ratio | must be |", "| --- | --- | --- | --- | --- |"]
    for name, entries in files.items():
        for case, entry in entries.items():
            for row in (Row(**row) for row in entry["rows"]):
                if row.must[1] is False:
                    cells = (row.what, row.measured, row.ratio, row.must[0])
                    lines.append(
                        f"| [{name}]({name}.md#{case}) | {' | '.join(cell.replace('|', '/') for cell in cells)} |"
                    )
    about = "Every row of these pages that misses its aim, as `python benchmarks/harness.py` collects them."
    return "\n".join(["# What misses its aim", "", about, "", *lines, ""])


def render() -> None:
    """Write all pages, and the figures that others say."""
    for name, text in pages().items():
        (EVIDENCE / name).write_text(text, encoding="utf-8")
    HEADLINE.write_text(headline(), encoding="utf-8")


def headline() -> str:
    """What eight policies lose beside an update after every decision, to a tenth, which every processor agrees on."""
    entry = kept(HERE / "regret.jsonl")["schedules"]
    ratios = {row["what"].partition(" (")[0]: float(row["ratio"].partition("×")[0]) for row in entry["rows"]}
    facts = {name: round(ratios[name], 1) for name in ("best", "weekly", "never")}
    facts |= {"worlds": len(entry["rows"][0]["measured"].split(", ")), "seeds": int(entry["command"].split()[-1])}
    return json.dumps(facts | {"command": entry["command"], "commit": entry["commit"]}, indent=1) + "\n"


def main(title: str, cases: Mapping[str, Case], *, description: str | None) -> int:
    """Run the cases that are asked for; status 1 if a row does not hold."""
    if any(os.environ.get(name) != "1" for name in THREADS):  # BLAS reads them when it is loaded
        environment = os.environ | dict.fromkeys(THREADS, "1")
        return subprocess.run([sys.executable, *sys.argv], env=environment).returncode
    listed = "\n".join(f"  {name:18} {case.about}" for name, case in cases.items())
    parser = argparse.ArgumentParser(
        description=f"{description}\n\nCases:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cases_asked: dict[str, Any] = {"nargs": "+", "choices": list(cases), "default": list(cases), "metavar": "NAME"}
    parser.add_argument("--case", **cases_asked, help="which; all")
    parser.add_argument("--quick", action="store_true", help="small sizes and few seeds, for a look")
    parser.add_argument("--seeds", type=int, help="how many; by default what the case has")
    parser.add_argument("--first-seed", type=int, help="develop on 1000 and up, report on what the case has")
    parser.add_argument("--out", type=Path, help="JSON lines to keep results in, which are rendered as a page")
    parser.add_argument("--keep", type=Path, help="file that keeps single runs, so that they can be resumed")
    parser.add_argument("--before", type=Path, help="file that another version kept, to compare with")
    parser.add_argument("--picture", type=Path, help="also draw there, where a case has a picture: schedules")
    parser.add_argument("--data", type=Path, help="folder of MovieLens ratings")
    parser.add_argument("--tables", type=Path, help="folder of tables")
    parser.add_argument("--shop", type=Path, help="folder of the Open Bandit Dataset's men's campaign")
    options = parser.parse_args()
    results, before = Results(options.keep), dict[str, Any]()
    if options.before is not None:
        before = dict(map(json.loads, options.before.read_text(encoding="utf-8").splitlines()))
    failed = False
    for name in options.case:
        case = cases[name]
        first = case.first_seed if options.first_seed is None else options.first_seed
        count = options.seeds or (min(case.seeds, case.quick_seeds) if options.quick else case.seeds)
        chosen = {option: getattr(options, option) for option in ("quick", "data", "tables", "shop", "picture")}
        setup = Setup(case=name, seeds=range(first, first + count), results=results, before=before, **chosen)
        rows, begun = [], time.monotonic()
        for row in case.run(setup):
            print(f"{name}: {row.what}: {row.measured} {row.ratio}", file=sys.stderr, flush=True)
            rows.append(replace(row, must=(row.must[0], None)) if options.quick and not case.exact else row)
        failed |= any(row.must[1] is False for row in rows)
        print(f"\n{name}: {case.about}\n{table(rows)}\n{time.monotonic() - begun:.0f} s\n", flush=True)
        if options.out is not None:
            quick = " --quick" if options.quick else ""
            command = f"python benchmarks/{Path(sys.argv[0]).name} --case {name} --seeds {count}{quick}"
            entry = {"case": name, "about": case.about, "command": command, **measured_with()}
            write(options.out, title, entry | {"rows": [asdict(row) for row in rows]})
    print(", ".join(measured_with().values()))
    return int(failed)


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive numbers."""
    return float(np.exp(np.mean(np.log(list(values)))))


def standard_error(values: FloatArray) -> float:
    """Of a mean; NaN of a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def missing(what: str, reason: str) -> Iterator[Row]:
    """A row for what cannot be measured where it is run."""
    yield Row(what=what, measured=f"skipped: {reason}")


if __name__ == "__main__":
    render()
