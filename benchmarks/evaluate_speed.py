"""Measure an evaluation of logged decisions in Parquet against NumPy that reads the same files and computes IPS alone.

Each is run in a fresh process, in turn, round after round; a ratio is the median over the rounds. Both read with what
pyarrow takes by default; linear algebra has one thread.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report

DIM, ARMS, PART = 20, 10, 1 << 16
"""Features, arms of a set, rows of a part."""
PIECE = 1 << 14
"""Rows that plain NumPy reads at a time: it takes a third less time than with whole parts."""
SEED = 10
LOGGED, CANDIDATE = 20.0, 60.0
"""γ of the inverse gaps of the policy that decided, and of the one that is evaluated: both play every arm."""


def estimates() -> FloatArray:
    """(2, d) what the two policies think of features; rewards follow the second."""
    return np.random.default_rng(SEED).standard_normal((2, DIM))


def make_log(folder: Path, count: int) -> None:
    """Decisions of one frozen policy, with all that an experiment exports of them."""
    import pyarrow as pa

    from rareswitch.lab.rivals import InverseGap
    from rareswitch.log import log_schema
    from rareswitch.log.writer import write_table
    from rareswitch.policy import Policy, save_policy

    first, second = estimates()
    logger = Policy(dim=DIM, sampler=InverseGap(estimate=first, gamma=LOGGED))
    candidate = Policy(dim=DIM, sampler=InverseGap(estimate=second, gamma=CANDIDATE))
    save_policy(logger, folder / "logger.policy")
    save_policy(candidate, folder / "candidate.policy")
    rng = np.random.default_rng(SEED + 1)
    for start in range(0, count, PART):
        size = min(PART, count - start)
        contexts = rng.standard_normal((size, ARMS, DIM)) / np.sqrt(DIM)
        ids = np.arange(start, start + size)
        decided = logger.decide(contexts, ids=ids, seed=1)
        chosen = contexts[np.arange(size), decided.arms]
        schema = log_schema(DIM)
        ends = np.arange(size + 1, dtype=np.int32) * ARMS * DIM
        columns = {
            "id": ids,
            "policy": pa.DictionaryArray.from_arrays(np.zeros(size, dtype=np.int32), pa.array([logger.id])),
            "features": pa.FixedSizeListArray.from_arrays(
                pa.array(chosen.reshape(-1)), type=schema.field("features").type
            ),
            "propensity": decided.propensities,
            "reward": chosen @ second + rng.standard_normal(size),
            "contexts": pa.ListArray.from_arrays(ends, pa.array(contexts.reshape(-1))).cast(
                schema.field("contexts").type
            ),
        }
        table = pa.table([columns[name] for name in schema.names], schema=schema)
        table = table.append_column("place", pa.array(decided.arms))
        write_table(folder / f"part-{start // PART:04d}.parquet", table)


def plain(folder: Path) -> float:
    """IPS of the candidate as a few lines of NumPy have it."""
    import pyarrow.parquet as parquet

    theta, total, count = estimates()[1], 0.0, 0
    for path in sorted(folder.glob("*.parquet")):
        columns = ["contexts", "place", "propensity", "reward"]
        for batch in parquet.ParquetFile(path).iter_batches(PIECE, columns=columns):
            places, propensities, rewards = (batch[name].to_numpy() for name in columns[1:])
            scores = (batch["contexts"].flatten().to_numpy().reshape(-1, DIM) @ theta).reshape(-1, ARMS)
            rows, best = np.arange(len(scores)), scores.argmax(axis=1)
            probabilities = 1.0 / (ARMS + CANDIDATE * (scores[rows, best][:, None] - scores))
            probabilities[rows, best] = 0.0
            probabilities[rows, best] = 1.0 - probabilities.sum(axis=1)
            total += float((probabilities[rows, places] / propensities * rewards).sum())
            count += len(rows)
    return total / count


def evaluated(folder: Path, *, policies: bool, estimator: Any = "dr") -> float:
    """The same candidate, as the library evaluates it."""
    from rareswitch import evaluate
    from rareswitch.log import ParquetLog
    from rareswitch.policy import load_policy

    known = [load_policy(folder / "logger.policy")] if policies else []
    log = ParquetLog(folder / "*.parquet", known)
    found = evaluate(log, {"candidate": load_policy(folder / "candidate.policy")}, estimator=estimator)
    interval = found["candidate"].interval
    assert interval is not None, found["candidate"]
    return float(interval.value)


CALLS: dict[str, Callable[[Path], float]] = {
    "plain": plain,
    "evaluate": lambda folder: evaluated(folder, policies=False),
    "with policies": lambda folder: evaluated(folder, policies=True),
    "ips": lambda folder: evaluated(folder, policies=False, estimator="ips"),
}


def measured(folder: Path, call: str) -> dict[str, float]:
    """What one run costs, without the start of Python and its imports; run in a process of its own."""
    import pyarrow.parquet  # noqa: F401

    import rareswitch

    if call != "plain":
        import numba  # noqa: F401

        import rareswitch.log  # noqa: F401
    start, before = time.perf_counter(), time.process_time()
    value = CALLS[call](folder)
    wall, cpu = time.perf_counter() - start, time.process_time() - before
    peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return {"value": value, "wall": wall, "cpu": cpu, "peak": int(peak[1]) / 1024 if peak else 0.0}


def run(folder: Path, call: str) -> dict[str, float]:
    """The same in a fresh process, with the seconds that it took in all."""
    start = time.perf_counter()
    command = [sys.executable, __file__, "--call", call, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found | {"whole": time.perf_counter() - start}


def rows(count: int, rounds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_log(folder, count)
        names = ("plain", "evaluate", "with policies")
        for call in names:
            run(folder, call)  # files come into memory, kernels are compiled
        found = [{call: run(folder, call) for call in names} for _ in range(rounds)]
        for call, text in zip(names[1:], ("", ", whose policy is at hand"), strict=True):
            for part, what, needed in (
                ("wall", "", 3.0),
                ("cpu", ", seconds of the processor", None),
                ("whole", ", with the start of Python and all imports", None),
            ):
                ratio = float(np.median([one[call][part] / one["plain"][part] for one in found]))
                ours, theirs = (float(np.median([one[who][part] for one in found])) for who in (call, "plain"))
                yield Row(
                    what=f"an evaluation of {count:,} logged decisions{text}, (d, K) = ({DIM}, {ARMS}), against NumPy "
                    f"that reads the same Parquet and computes IPS alone{what}",
                    measured=f"{ours:.2f} s against {theirs:.2f} s",
                    ratio=f"{ratio:.2f}×",
                    needed="" if needed is None else f"at most {needed:g}×",
                    holds=None if needed is None else ratio <= needed,
                )
        peaks = [float(np.median([one[call]["peak"] for one in found])) for call in names]
        yield Row(
            what="peak memory of these processes",
            measured=f"{peaks[1]:.0f} MiB, with the policy {peaks[2]:.0f} MiB, against {peaks[0]:.0f} MiB",
            ratio=f"{peaks[1] / peaks[0]:.2f}×",
        )
        own, plainly = run(folder, "ips")["value"], found[0]["plain"]["value"]
        yield Row(
            what="IPS of both",
            measured=f"{own:.12f} and {plainly:.12f}",
            ratio=f"{abs(own - plainly):.1e} apart",
            needed="at most 1e-10",
            holds=abs(own - plainly) <= 1e-10,
        )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--decisions", type=int, default=10**6, help="logged decisions (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of runs that are counted (default %(default)s)")
    parser.add_argument("--call", choices=[*CALLS], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        print(json.dumps(measured(options.folder, options.call)))
        return 0
    count, rounds = (200_000, 3) if options.quick else (options.decisions, options.rounds)
    return report("The speed of an evaluation", rows(count, rounds), options.out)


if __name__ == "__main__":
    sys.exit(main())
