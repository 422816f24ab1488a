"""Measure how soon commands answer and the library is there, against the import of NumPy and of Numba.

Every measurement is a process of its own, started in turn, round after round; a ratio is that of the fastest ones,
which other work on the machine disturbs least. A first decision, and a first update after it, are measured with no
machine code on the disk, after ``rareswitch warm-up``, and once more; seconds of wall time, and of the processor.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain

from measure import Row, arguments, in_turn, report

NUMPY, NUMBA = ["-c", "import numpy"], ["-c", "import numba"]
COMMAND = ["-c", "import sys; from rareswitch.cli import main; sys.exit(main())"]
#: They take the settings of all learners, or name what they choose from.
HEAVY = ("experiment create", "simulate", "compare", "contest", "recommend", "design")
CASES: tuple[tuple[str, list[str], list[str], float | None], ...] = (
    ("rareswitch --help", [*COMMAND, "--help"], NUMPY, 1.5),
    ("rareswitch --wrong", [*COMMAND, "--wrong"], NUMPY, 1.5),
    ("rareswitch experiment decide --wrong", [*COMMAND, "experiment", "decide", "--wrong"], NUMPY, 1.5),
    *((f"rareswitch {name} --wrong", [*COMMAND, *name.split(), "--wrong"], NUMPY, 1.5) for name in HEAVY),
    ("rareswitch learners", [*COMMAND, "learners"], NUMPY, None),
    ("import rareswitch", ["-c", "import rareswitch"], NUMBA, 1.3),
    ("from rareswitch import Foresight, simulate", ["-c", "from rareswitch import Foresight, simulate"], NUMBA, 1.3),
)


def start(arguments: list[str]) -> None:
    # as NumPy does, an installed rareswitch has its bytecode beside it
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command, silent = [sys.executable, *arguments], subprocess.DEVNULL
    subprocess.run(command, stdout=silent, stderr=silent, check=False, env=own)


def rows(quick: bool) -> Iterator[Row]:
    for what, command, against, most in CASES:
        seconds = in_turn(5 if quick else 21, lambda c=command: start(c), lambda a=against: start(a))  # type: ignore[misc]
        own, other = seconds.min(axis=0)
        yield Row(
            what=f"{what}, against {against[1]}",
            measured=f"{1e3 * own:.0f} ms against {1e3 * other:.0f} ms",
            ratio=f"{own / other:.2f}×",
            needed="" if most is None else f"at most {most}×",
            holds=None if most is None else bool(own <= most * other),
        )


#: An experiment about records in SQLite; arguments: arms. Prints seconds up to the first decision, and to an update.
FIRST = """
import sys, time
import rareswitch
visitors = [{"age": 20 + k % 40, "device": ("ios", "web")[k % 2]} for k in range(60)]
offers = {f"offer-{k}": {"price": k} for k in range(int(sys.argv[1]))}
with rareswitch.create("sqlite:///first.db", "trial", features=rareswitch.Features.fit(visitors, offers)) as trial:
    trial.decide(visitors[0], offers, id=0)
    print(time.time(), time.process_time())
    trial.decide_many(visitors[1:], offers, ids=range(1, 60))
    trial.reward_many(range(60), [k % 3 for k in range(60)])
    trial.advance(anyway=True)
    print(time.time(), time.process_time())
"""


def first_decisions() -> Iterator[Row]:
    """Few arms, whose design needs no linear algebra, and many."""
    for arms in (8, 80):
        with tempfile.TemporaryDirectory() as cache:
            own = os.environ | {"NUMBA_CACHE_DIR": cache, "HOME": cache, "XDG_CACHE_HOME": cache}
            for what, most in (("no machine code", 8.0), ("after warm-up", 1.5), ("warm", 1.5)):
                if what == "after warm-up":
                    for path in sorted(os.scandir(cache), key=lambda entry: entry.name):
                        subprocess.run(["rm", "-r", path.path], check=True)
                    subprocess.run([sys.executable, *COMMAND, "warm-up"], env=own, check=True, capture_output=True)
                with tempfile.TemporaryDirectory() as folder:
                    began = time.time()
                    command = [sys.executable, "-c", FIRST, str(arms)]
                    text = subprocess.run(command, env=own, cwd=folder, check=True, capture_output=True, text=True)
                decided, updated = ([*map(float, line.split())] for line in text.stdout.splitlines())
                yield Row(
                    what=f"first decision among {arms} arms, {what} (and first update)",
                    measured=f"{decided[0] - began:.1f} s ({updated[0] - decided[0]:.1f} s)",
                    ratio=f"{decided[1]:.1f} s ({updated[1] - decided[1]:.1f} s) of the processor",
                    needed=f"at most {most:g} s",
                    holds=bool(decided[0] - began <= most),
                )


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Starting", chain(rows(options.quick), first_decisions()), options.out)


if __name__ == "__main__":
    sys.exit(main())
