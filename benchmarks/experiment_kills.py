"""Experiments whose processes are killed: nothing lost that was acknowledged, nothing doubled, the same policies.

Three threads of a process create an experiment, decide, reward and advance it; the process is killed (SIGKILL) at named
moments and at random ones. Before anything is tried again, what is kept is compared with what was acknowledged, every
decision is audited and every version is read; then the callers go on, and the policies are compared with those of an
experiment that was never disturbed. Also: the same with a store that answers before it commits, which must be noticed;
processes that decide and advance one experiment at once; and stores that are gone for five seconds.
"""

import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure import Row, arguments, report

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference.experiment_crowd import Crowd, without_store
from reference.experiment_kills import MOMENTS, NOTED, Killed, Moment, occurrences
from reference.experiment_play import Findings, Plan
from reference.kills import moments
from reference.postgres import GIVEN, database, start

#: What moments are called in the table.
GROUPS: dict[str, Callable[[Moment], bool]] = {
    "while it is created": lambda moment: moment.verb == "create",
    "before the write": lambda moment: moment.verb in ("decide", "reward") and moment.when == "begun",
    "after the write, before the commit": lambda moment: (
        moment.verb in ("decide", "reward") and moment.when == "written"
    ),
    "after the commit, before the answer": lambda moment: (
        moment.verb in ("decide", "reward") and moment.when not in ("begun", "written")
    ),
    "after the answer": lambda moment: moment == NOTED,
    "while an update freezes what it looks at": lambda moment: moment.verb == "freeze",
    "inside learning": lambda moment: moment.verb == "learn",
    "before and while a policy is published": lambda moment: (
        moment.verb == "publish" and moment.when in ("begun", "written")
    ),
    "after it was published": lambda moment: moment.verb == "publish" and moment.when in ("committed", "answered"),
}
NOTE = (
    "Wrong is a kill after which, before anything is tried again, the experiment does not open, something acknowledged "
    "is lost, doubled or another, something is kept that nobody asked for, an audit does not match or a version is not "
    "whole; or after which the callers, going on, are led to other policies than callers who were never disturbed. An "
    "update that was broken off is made again after more decisions, rewards and an overwritten reward have come."
)
TIMES, AT_RANDOM, CONTROLS, ROUNDS, GONE = 4, 40, 10, 10, 5.0


#: Another process opens, reads and closes the file all the while, and this one has two stores of it.
BESIDE = "SQLite, with a bystander"


def killed_rows(kind: str, killed: Killed, quick: bool, *, named: bool = True) -> Iterator[Row]:
    everything: list[Findings] = []
    for group, belongs in GROUPS.items() if named else ():
        found = [
            killed.at_moment(moment, occurrences(moment, seed))
            for seed in range(1 if quick else TIMES)
            for moment in (*MOMENTS, NOTED)
            if belongs(moment)
        ]
        everything += found
        yield kill_row(f"{kind}, killed {group}", found)
    times = moments(AT_RANDOM // 5 if quick else AT_RANDOM, killed.seconds(), seed=1)
    found = [one for one in map(killed.after, times) if one.killed or not one.clean]
    everything += found
    yield kill_row(f"{kind}, killed at random moments", found)
    lost, doubled = sum(one.lost for one in everything), sum(one.doubled for one in everything)
    acknowledged, kills = sum(one.acknowledged for one in everything), sum(one.killed for one in everything)
    yield Row(
        what=f"{kind}, of {acknowledged:,} decisions and rewards that were acknowledged before {kills} kills",
        measured=f"{lost} lost, {doubled} doubled",
        needed="none" + (", in 100 kills or more" if named else ""),
        holds=not lost and not doubled and (quick or not named or kills >= 100),
    )


def kill_row(what: str, found: list[Findings]) -> Row:
    wrong = [one for one in found if not one.clean]
    print(*wrong[:5], sep="\n", file=sys.stderr, end="\n" if wrong else "")
    updating = sum(one.updating for one in found)
    return Row(
        what=what,
        measured=f"{len(wrong)} of {len(found)} wrong" + (f"; {updating} updates broken off" if updating else ""),
        needed="none",
        holds=not wrong,
    )


def control_row(kind: str, folder: Path, url: str | None, quick: bool) -> Row:
    killed = Killed(folder, url, Plan(batches=0, more=300), early=True)
    lost = [killed.at_moment(NOTED, 20 + 12 * k).lost for k in range(3 if quick else CONTROLS)]
    return Row(
        what=f"{kind}, the same with a store that answers 30 ms before it commits: lost by a kill, {len(lost)} kills",
        measured=f"{min(lost)} to {max(lost)}",
        needed="5, every time",
        holds=min(lost) >= 5,
    )


def crowd_rows(kind: str, folder: Path, url: str, quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else ROUNDS
    for together in (True, False):
        found = Crowd(folder, url, rounds, together=together).run()
        print(*[] if found.clean else [found], sep="\n", file=sys.stderr)
        how = "all at once" if together else "each when it likes, while others decide"
        yield Row(
            what=f"{kind}, 4 processes decide, reward and advance {how}, {rounds} rounds, {found.acknowledged:,} "
            "decisions and rewards: one policy for each batch, all kept once, learned from and as audited",
            measured="yes" if found.clean else str(found),
            needed="yes",
            holds=found.clean,
        )


def gone_rows(kind: str, folder: Path, url: str, gone: Callable[[], Any], back: Callable[[], Any]) -> Iterator[Row]:
    for learning in (False, True):
        found = without_store(folder, url, gone, back, seconds=GONE, learning=learning)
        when = "while an update learns" if learning else "while decisions are made"
        yield Row(
            what=f"{kind}, gone for {GONE:.0f} s {when}: errors, losses, other policies",
            measured="none" if found.clean else str(found),
            needed="none",
            holds=found.clean,
        )


def rows(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        yield from killed_rows("SQLite", Killed(folder), quick)
        yield from beside_rows(quick)
        yield control_row("SQLite", folder, None, quick)
        yield from crowd_rows("SQLite", folder, f"sqlite:///{folder}/crowd.db", quick)
        file = folder / "gone.db"
        other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        lock, unlock = (lambda: other.execute("BEGIN IMMEDIATE")), (lambda: other.execute("COMMIT"))
        yield from gone_rows("SQLite, locked by another", folder, f"sqlite:///{file}", lock, unlock)
        other.close()
        server = None if os.environ.get(GIVEN) else start(folder / "server")
        address = os.environ[GIVEN] if server is None else str(server.get_uri())
        try:
            with database(address, "kills") as url:
                yield from killed_rows("PostgreSQL", Killed(folder, url), quick)
                yield control_row("PostgreSQL", folder, url, quick)
                yield from crowd_rows("PostgreSQL", folder, url, quick)
            if server is not None:
                yield from gone_rows("PostgreSQL, stopped", folder, address, server.stop, server.start)
        finally:
            if server is not None:
                server.cleanup()


def beside_rows(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        killed = Killed(Path(name).resolve(), bystander="always")
        yield from killed_rows(BESIDE, killed, quick)
        yield Row(what=f"{BESIDE}: how often it opened and closed a file", measured=f"{killed.looks:,}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--bystander", action="store_true", help="only SQLite with a bystander")
    options = parser.parse_args()
    chosen = beside_rows if options.bystander else rows
    return report("Experiments whose processes are killed", chosen(options.quick), options.out, NOTE)


if __name__ == "__main__":
    sys.exit(main())
