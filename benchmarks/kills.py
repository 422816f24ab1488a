"""Commands that are killed: nothing half-written, nothing lost that was reported, everything can be run again.

Compare and contest are killed (SIGKILL) at each call of a file
that they make, writes in their middle, and at random moments. What is there is read, the command is run again, its
output is compared with that of an undisturbed run, and hidden files are looked for. Also: two compares into one file,
started together.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import Row, arguments, report

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference.kills import COMMANDS, Bench, kept_of_two, moments

AT_RANDOM, PAIRS = 12, 20


def rows(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        bench = Bench.prepared(Path(name).resolve())
        everything: list[str] = []
        for command in COMMANDS:
            calls = range(1, bench.calls[command.name] + 1, 7 if quick else 1)
            times = moments(AT_RANDOM // 3 if quick else AT_RANDOM, bench.seconds[command.name], seed=len(everything))
            before, faults = bench.kills, []
            for call in calls:
                faults += [f"{fault} (call {call})" for fault in bench.kill_at(command, call)]
            for seconds in times:
                faults += [f"{fault} (after {seconds:.3f} s)" for fault in bench.kill_after(command, seconds)]
            print(*faults[:20], sep="\n", file=sys.stderr, end="\n" if faults else "")
            yield Row(
                what=f"{command.name}, killed at {len(calls)} calls of files and {len(times)} random moments: kills "
                "after which something is half-written, lost, left over or cannot be run again",
                measured=f"{len(faults)} of {bench.kills - before}",
                needed="none",
                holds=not faults,
            )
            everything += faults
        yield Row(
            what="all of these kills",
            measured=f"{len(everything)} of {bench.kills}",
            needed="none of at least 80",
            holds=not everything and (quick or bench.kills >= 80),
        )
        pairs = [kept_of_two(bench.root / f"pair-{k}", seeds=8) for k in range(PAIRS // 5 if quick else PAIRS)]
        whole = sum(kept == wanted for kept, wanted in pairs)
        yield Row(
            what=f"two compares of 8 runs into one file, started together: all {pairs[0][1]} runs kept",
            measured=f"{whole} of {len(pairs)} times",
            needed="always",
            holds=whole == len(pairs),
        )


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Commands that are killed", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
