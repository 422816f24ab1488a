"""Measure how soon commands answer and the library is there, against the import of NumPy and of Numba.

Every measurement is a process of its own, started in turn, round after round; a ratio is that of the fastest ones,
which other work on the machine disturbs least.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

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


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Starting", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
