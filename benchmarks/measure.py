"""What all benchmarks share: timing in turn, peak memory, the rows of a table, the machine."""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. ``holds`` is None where nothing is promised."""

    what: str
    measured: str
    ratio: str = ""
    needed: str = ""
    holds: bool | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        verdict = {True: "yes", False: "NO", None: "–"}[self.holds]
        return self.what, self.measured, self.ratio, self.needed, verdict


HEADER = ("what", "measured", "ratio", "at least", "holds")


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turn(rounds: int, *calls: Callable[[], Any]) -> FloatArray:
    """Seconds of every call in every round, (rounds, calls), after one round that is not counted."""
    for call in calls:
        call()
    return np.array([[timed(call) for call in calls] for _ in range(rounds)])


def peak_memory(script: str, *words: str) -> list[float]:
    """What a script prints in a process of its own, which may ``print(peak())``: its peak memory so far in MiB.

    The script finds the benchmarks in its path, and ``words`` in ``sys.argv[1:]``.
    """
    # not ru_maxrss, which a child inherits
    known = "import re, sys; sys.path.append(sys.argv.pop(1)); peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+)', "
    known += "open('/proc/self/status').read())[1]) / 1024; "
    command = [sys.executable, "-c", known + script, str(Path(__file__).parent), *words]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [float(line) for line in said.splitlines()]


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        info = Path("/proc/cpuinfo").read_text()
        model = next(line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return (
        f"{model}, {available_cores()} cores; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}"
    )


def as_text(table: list[Row]) -> str:
    lines = [HEADER, *(row.cells for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds, for a look")
    parser.add_argument("--out", type=Path, help="also write the table there, as Markdown")
    return parser


def report(title: str, rows: Iterable[Row], out: Path | None, note: str = "") -> int:
    """Print rows as they come and the table at the end; status 1 if a row does not hold."""
    table = []
    for row in rows:
        print(f"{row.what}: {row.measured} {row.ratio}", file=sys.stderr, flush=True)
        table.append(row)
    print(f"\n{as_text(table)}\n\n{machine()}")
    if out:
        out.write_text(as_markdown(title, table) + (f"\n{note}\n" if note else ""), encoding="utf-8")
    return int(any(row.holds is False for row in table))


def as_markdown(title: str, table: list[Row]) -> str:
    lines = [HEADER, ("---",) * len(HEADER), *(row.cells for row in table)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# {title}\n\n{body}\n\n{machine()}\n"
