"""Where one experiment is kept: few verbs, append-only, durable when a call returns."""

import json
import struct
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, groupby
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rareswitch.errors import DeletedError, ExistsError, StoreError
from rareswitch.store.columns import ALL, ROWS, Slice, damaged, damaged_row, keep_tally, kept_tally, tallied
from rareswitch.store.connections import Connection, Database, Job, OvertakenError, Transaction
from rareswitch.store.rows import (
    EXPERIMENT_TABLES,
    Counts,
    DecisionRow,
    Marks,
    RewardRow,
    Totals,
    VersionRow,
    counter_names,
    of_contexts,
    of_decisions,
    of_rewards,
    waiting_seq,
)

__all__ = ["Store"]

K = TypeVar("K")
T = TypeVar("T")
#: Rows that may come before all is tallied anew.
STEP = 5000
#: Decisions and context sets that are read at a time where all are wanted, and keys that one query names at the most.
PAGE, SETS, KEYS = 2000, 200, 500
#: The columns of a decision that lie in its own table.
OWN = DecisionRow._fields[: DecisionRow._fields.index("contexts")]
_OWN = ", ".join(f"d.{name}" for name in OWN)
_REWARD, _VERSION = ", ".join(RewardRow._fields), ", ".join(VersionRow._fields)
#: What keeps a row of each kind; {seq} is its number, or None for the next one.
_ADD_DECISION = (
    f"INSERT INTO rareswitch_decisions (seq, experiment, {', '.join(OWN)}, checksum) "
    f"VALUES ({{seq}}, ?{', ?' * len(OWN)}, ?) ON CONFLICT (experiment, key) DO NOTHING"
)
_ADD_CONTEXTS = (
    "INSERT INTO rareswitch_contexts (seq, experiment, version, rank, data, names, checksum) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_ADD_RECORD = "INSERT INTO rareswitch_records (seq, experiment, record) VALUES (?, ?, ?)"
_OF_KEY = "FROM rareswitch_decisions WHERE experiment = ? AND key = ? AND seq > 0"
_ADD_REWARD = (
    f"INSERT INTO rareswitch_rewards (seq, experiment, {_REWARD}, checksum, decision, version) "
    f"VALUES ({{seq}}, ?{', ?' * len(RewardRow._fields)}, ?, (SELECT seq {_OF_KEY}), (SELECT version {_OF_KEY})) "
    "ON CONFLICT (experiment, key, event) WHERE superseded IS NULL DO NOTHING RETURNING key, event, decision"
)
#: Decisions with what lies in other tables, and the columns of it.
_MORE = "c.data, c.names, r.record"
_JOINED = (
    "rareswitch_decisions d LEFT JOIN rareswitch_contexts c ON c.seq = d.seq "
    "LEFT JOIN rareswitch_records r ON r.seq = d.seq"
)


class Store(Database):
    """Where one experiment is kept, in a database. All methods may be called from several threads.

    Whatever a call was given is durable when it returns. Stores know nothing of learners: policies, states and
    descriptions are text and bytes. Nothing is touched before it is first used; :meth:`create` makes what is not there,
    all others want it to be there.

    Reading uses connections of a pool; what is written goes through one queue, where all callers that wait share a
    commit. What can be tried again, as when another process holds the lock or the server is gone, is tried for ten
    seconds: all verbs may be carried out again, since decisions and rewards have keys.
    """

    #: By which a database finds rewards whose decision has not come, and no others.
    unmatched_hint = ""
    #: And reads many rows in their order.
    scan_hint = ""
    #: And keeps rows that were read from being changed by others until the commit.
    row_lock = ""
    #: And numbers the rows of a table, where a parameter does not say their number.
    seq = "?"
    #: And makes whole numbers of others that are not negative.
    floored = "CAST({} AS INTEGER)"

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name)
        #: Rows that this process wrote since it looked whether to tally: at once for the first.
        self._since = STEP
        self._add_decision = _ADD_DECISION.format(seq=self.seq.format(table="decisions"))
        self._add_reward = _ADD_REWARD.format(seq=self.seq.format(table="rewards"))
        #: Keys of decisions that are new, and of rewards whose decision is not there, of the transaction under way.
        self._loose: list[bytes] = []

    # what kinds of databases differ in

    @abstractmethod
    def _next_seq(self, connection: Connection, table: str) -> int:
        """The next sequence number of decisions or rewards, which is given out."""

    @abstractmethod
    def faults(self) -> list[str]:
        """What is damaged in the files of the store, as far as their structure tells; all of it is read."""

    @abstractmethod
    def backup(self, path: str | Path) -> None:
        """Write a copy of the whole store, as of one moment, while it is used: a new file that can be opened."""

    # the experiment and its versions

    def create(self, description: str, first: VersionRow) -> None:
        """Begin the experiment; an error if it is there already."""
        begun = False

        def call(connection: Connection) -> None:
            nonlocal begun
            query = "SELECT description FROM rareswitch_experiments WHERE name = ?"
            row = connection.execute(query, (self.name,)).fetchone()
            if begun and row == (description,):
                return  # by this very call, whose commit was not seen to end
            if row is not None:
                raise ExistsError(
                    f"there is an experiment '{self.name}' in {self.url} already. Open it (rareswitch.open, rareswitch "
                    "experiment status), or choose another name."
                )
            begun = True
            query = "INSERT INTO rareswitch_experiments (name, description) VALUES (?, ?) RETURNING number"
            ((number,),) = connection.execute(query, (self.name, description)).fetchall()
            self._add_version(connection, number, first)

        self._ready(create=True)
        self._write(call)

    def _add_version(self, connection: Connection, number: int, version: VersionRow, to: str = "versions") -> None:
        query = f"INSERT INTO rareswitch_{to} (experiment, {_VERSION}) VALUES (?{', ?' * len(version)})"
        connection.execute(query, (number, *version))

    def names(self) -> list[str]:
        """The experiments of this database, the oldest first."""
        return [name for (name,) in self._rows("SELECT name FROM rareswitch_experiments ORDER BY number")]

    @cached_property
    def number(self) -> int:
        """The number of this experiment in its rows."""
        rows = self._rows("SELECT number FROM rareswitch_experiments WHERE name = ?", self.name)
        if not rows:
            known = ", ".join(f"'{name}'" for name in self.names()[:20]) or "none"
            raise StoreError(f"there is no experiment '{self.name}' in {self.url}; there are: {known}.")
        return int(rows[0][0])

    def description(self) -> str:
        """What it was created with."""
        query = "SELECT description FROM rareswitch_experiments WHERE number = ?"
        return str(self._rows(query, self.number)[0][0])

    def ended(self) -> float | None:
        """When it was ended, in seconds since 1970; None where it goes on. An error where it was deleted."""
        rows = self._rows("SELECT ended FROM rareswitch_experiments WHERE number = ?", self.number)
        if not rows:
            raise self._deleted()
        return None if rows[0][0] is None else float(rows[0][0])

    def _deleted(self) -> DeletedError:
        return DeletedError(f"experiment '{self.name}' in {self.url} was deleted. Nothing can be added to it or read.")

    def end(self, time: float) -> None:
        """Note when it was ended; the first time counts."""
        query = "UPDATE rareswitch_experiments SET ended = ? WHERE number = ? AND ended IS NULL"
        number = self.number
        self._write(lambda connection: connection.execute(query, (time, number)) and None)

    def delete(self) -> None:
        """Remove the experiment and all that was kept of it: its name is free again. Other experiments stay."""
        number = self.number

        def call(connection: Connection) -> None:
            for table in EXPERIMENT_TABLES:
                connection.execute(f"DELETE FROM rareswitch_{table} WHERE experiment = ?", (number,))
            connection.execute("DELETE FROM rareswitch_experiments WHERE number = ?", (number,))

        self._write(call)
        self.close()

    def head(self) -> int:
        """The number of the newest version; cheap."""
        return self._read(partial(_head, number=self.number))

    def versions(self, after: int = 0) -> list[VersionRow]:
        """Those after the given one, the oldest first."""
        query = f"SELECT {_VERSION} FROM rareswitch_versions WHERE experiment = ? AND number > ? ORDER BY number"
        return [VersionRow(*row) for row in self._rows(query, self.number, after)]

    def publish(self, version: VersionRow) -> VersionRow:
        """Make it the head, in one transaction, if its parent, the number before, is the head now.

        Otherwise nothing is changed, and the version that has this number is returned; an error where none has.
        """
        number = self.number

        def call(connection: Connection) -> bool:
            head = _head(connection, number)
            if head == version.number - 1:
                self._add_version(connection, number, version)
                _withdraw(connection, number)
            elif head < version.number:
                raise StoreError(f"version {version.number} needs version {version.number - 1}; the head is {head}.")
            return head == version.number - 1

        return version if self._write(call) else self.versions(version.number - 1)[0]

    def _at_head(self, parent: int, change: Callable[[Connection, int], T]) -> T | None:
        """Change the experiment of this number in one transaction, if a version is its head; otherwise None."""
        number = self.number
        return self._write(
            lambda connection: change(connection, number) if _head(connection, number) == parent else None
        )

    def check_writable(self) -> None:
        """Raise if nothing can be kept: a row of the experiment is written as it is."""
        query = "UPDATE rareswitch_experiments SET name = name WHERE number = ?"
        number = self.number
        self._write(lambda connection: connection.execute(query, (number,)))

    # proposals

    def propose(self, version: VersionRow) -> bool:
        """Keep a version until it is approved, in place of the one before, and forget what its update froze.

        Nothing is changed, and the answer is False, where its parent is not the head.
        """

        def change(connection: Connection, number: int) -> bool:
            _withdraw(connection, number)
            self._add_version(connection, number, version, "proposals")
            _forget(connection, number, version.number - 1)
            return True

        return self._at_head(version.number - 1, change) is not None

    def proposal(self) -> VersionRow | None:
        """The version that waits for approval, if there is one."""
        rows = self._rows(f"SELECT {_VERSION} FROM rareswitch_proposals WHERE experiment = ?", self.number)
        return VersionRow(*rows[0]) if rows else None

    def withdraw(self) -> None:
        """Forget the version that waits for approval."""
        self._write(partial(_withdraw, number=self.number))

    # updates

    def marks(self) -> Marks:
        """Up to where there are decisions and rewards now."""
        return self._read(_newest)

    def started(self, parent: int) -> bool:
        """Whether an update of this version was begun, and has not ended."""
        number = self.number

        def call(connection: Connection) -> bool:
            return _head(connection, number) == parent and _frozen(connection, number, parent) is not None

        return self._read(call)

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks] | None:
        """Freeze what the update of a version looks at: the plan, JSON, and the marks of now.

        The first call for a parent decides; later ones get what it froze. None where the parent is not the head.
        """

        def change(connection: Connection, number: int) -> tuple[str, Marks]:
            if (frozen := _frozen(connection, number, parent)) is not None:
                return frozen
            if self._unmatched(connection):
                self._match(connection)
            marks = _newest(connection)
            keep_tally(connection, number, tallied(connection, number, marks))
            columns = "experiment, parent, plan, decisions, rewards"
            query = f"INSERT INTO rareswitch_updates ({columns}) VALUES (?, ?, ?, ?, ?)"
            connection.execute(query, (number, parent, plan, *marks))
            return plan, marks

        return self._at_head(parent, change)

    def abandon_update(self, parent: int) -> None:
        """Forget what was frozen, where nothing could be learned."""
        self._at_head(parent, partial(_forget, parent=parent))

    def refuse_update(self, parent: int, number: int, report: str) -> None:
        """Forget what was frozen, and keep why the policy that was learned is not published, at once.

        Refusals of a parent are numbered from 1. Nothing is changed where this number is not the next one, or the
        parent is not the head: of several who learned the same, one is heard, and once.
        """

        def change(connection: Connection, experiment: int) -> None:
            query = "SELECT count(*) FROM rareswitch_refusals WHERE experiment = ? AND parent = ?"
            (before,) = connection.execute(query, (experiment, parent)).fetchone()
            if before == number - 1:
                query = "INSERT INTO rareswitch_refusals (experiment, parent, number, report) VALUES (?, ?, ?, ?)"
                connection.execute(query, (experiment, parent, number, report))
                _forget(connection, experiment, parent)

        self._at_head(parent, change)

    def refusals(self, parent: int) -> list[str]:
        """The reports of updates of a version that were refused, the first first."""
        query = "SELECT report FROM rareswitch_refusals WHERE experiment = ? AND parent = ? ORDER BY number"
        return [report for (report,) in self._rows(query, self.number, parent)]

    # decisions and rewards are added

    def add_decisions(self, rows: Sequence[DecisionRow]) -> Sequence[DecisionRow]:
        """Keep decisions, and return what is kept of each id: the row itself, or one that was there before."""
        return self._kept(Job(decisions=rows)).stored

    def add_rewards(self, rows: Sequence[RewardRow], *, overwrite: bool = False) -> Sequence[RewardRow | None]:
        """Keep rewards, and return for each the row that was there before, if there was one.

        One that is there stays, unless ``overwrite``: then the new value takes its place.
        """
        return self._kept(Job(rewards=rows, overwrite=overwrite)).before

    def activate(self, activations: Sequence[tuple[bytes, float]]) -> Sequence[bool | None]:
        """Let deferred decisions count, each from a time on; see :class:`Job` for what is returned of each key."""
        return self._kept(Job(activations=activations)).activated

    def _kept(self, job: Job) -> Job:
        """A job that is done; what is empty needs no commit."""
        _ = self.number  # which raises where there is no such experiment
        if job.decisions or job.rewards or job.activations:
            self.submit(job)
        return job

    def _keep(self, connection: Connection, jobs: Sequence[Job]) -> None:
        """Keep all rows of a group of callers, in their order, and fill in the results."""
        counted: defaultdict[str, int] = defaultdict(int)
        self._loose = []
        decisions = [row for job in jobs for row in job.decisions]
        if decisions:
            stored = self._keep_decisions(connection, decisions, counted)
            at = 0
            for job in jobs:
                job.stored = stored[at : at + len(job.decisions)]
                at += len(job.decisions)
        if activations := {key: time for job in reversed(jobs) for key, time in reversed(job.activations)}:
            fresh = self._activate(connection, activations)
            there = {row.key for part in _parts([*activations]) for row in self._decisions_of(connection, part)}
            for job in jobs:
                job.activated = [key in fresh if key in there else None for key, _ in job.activations]
        unmatched = connection.execute(self.unmatched_query).fetchone()
        if unmatched is None:  # rows would belong to nothing
            raise self._deleted()
        if self._loose and unmatched[0]:
            self._match(connection, self._loose)
        rewards = [(row, job.overwrite) for job in jobs for row in job.rewards]
        if rewards:
            known = iter(self._keep_rewards(connection, rewards, counted))
            for job in jobs:
                own = [next(known) for _ in job.rewards]
                job.before = [before for before, _ in own]
                job.unmatched = sum(decision is None for _, decision in own)
        for names in _parts(sorted(counted)) if counted else ():
            values = ", ".join(["(?, ?, ?)"] * len(names))
            connection.execute(
                f"INSERT INTO rareswitch_counters (experiment, name, count) VALUES {values} "
                "ON CONFLICT (experiment, name) DO UPDATE SET count = rareswitch_counters.count + excluded.count",
                [value for name in names for value in (self.number, name, counted[name])],
            )

    def _match(self, connection: Connection, keys: Sequence[bytes] | None = None) -> None:
        """Find the decisions of rewards that came before them: of all rewards, or of those of some keys."""
        number = self.number
        query = (
            f"UPDATE rareswitch_rewards AS reward {self.unmatched_hint} "
            "SET decision = made.seq, version = made.version "
            f"FROM rareswitch_decisions AS made WHERE made.experiment = {number} AND made.key = reward.key "
            f"AND made.seq > 0 AND reward.experiment = {number} AND reward.decision IS NULL"
        )
        if keys is None:
            connection.execute(query)
        for part in _parts(keys or ()):
            connection.execute(f"{query} AND reward.key IN ({', '.join('?' * len(part))})", part)

    def _unmatched(self, connection: Connection) -> bool:
        """Whether there are rewards whose decision has not come."""
        return bool(connection.execute(self.unmatched_query).fetchone() == (1,))

    @cached_property
    def unmatched_query(self) -> str:
        """1 or 0; no row where the experiment was deleted."""
        waiting = f"{self.unmatched_hint} WHERE experiment = {self.number} AND decision IS NULL"
        # in the order of an index of these rewards alone
        known = f"SELECT key FROM rareswitch_rewards {waiting} ORDER BY experiment, key LIMIT 1"
        return f"SELECT EXISTS ({known}) FROM rareswitch_experiments WHERE number = {self.number}"

    def _insert_decisions(self, connection: Connection, rows: Sequence[DecisionRow]) -> dict[bytes, int]:
        """Keep those whose keys are new, of several with one key the first; their sequence numbers."""
        number, added = self.number, zip(rows, of_decisions(rows), strict=True)
        values = [
            (waiting_seq() if row.deferred and row.waits else None, number, *row[: len(OWN)], total)
            for row, total in added
        ]
        new = connection.added(self._add_decision, values)
        first = rows if len(new) == len(rows) else {row.key: row for row in reversed(rows) if row.key in new}.values()
        if sets := [row for row in first if row.contexts is not None]:
            columns = ((row.version, row.rank, row.contexts, row.names) for row in sets)
            totals = zip(sets, columns, of_contexts(sets), strict=True)
            connection.each(_ADD_CONTEXTS, [(new[row.key], number, *own, total) for row, own, total in totals])
        if records := [(new[row.key], number, row.record) for row in first if row.record is not None]:
            connection.each(_ADD_RECORD, records)
        self._loose += new
        return new

    def _insert_rewards(
        self, connection: Connection, rows: Sequence[RewardRow], seq: int | None = None
    ) -> dict[tuple[bytes, str], int | None]:
        """Keep those whose keys and events are new: of each the sequence number of its decision, if that is there."""
        number, added = self.number, zip(rows, of_rewards(rows), strict=True)
        values = [(seq, number, *row, total, number, row.key, number, row.key) for row, total in added]
        new = {(key, event): decision for key, event, decision in connection.each(self._add_reward, values)}
        self._loose += [key for (key, _), decision in new.items() if decision is None]
        return new

    def _replace_reward(self, connection: Connection, row: RewardRow, before: RewardRow, seq: int) -> int:
        """Let a reward take the place of another one, which has this sequence number; its own."""
        # the old one must step back before the index lets the new one in, so its number is drawn first
        new = self._next_seq(connection, "rewards")
        step_back = "UPDATE rareswitch_rewards SET superseded = ?, checksum = ? WHERE seq = ? AND superseded IS NULL"
        if connection.execute(step_back, (new, *of_rewards([before], [new]), seq)).rowcount != 1:
            raise OvertakenError(f"{self.url} is changed by others at the same time.")
        self._insert_rewards(connection, [row], new)
        return new

    def _keep_decisions(
        self, connection: Connection, rows: Sequence[DecisionRow], counted: defaultdict[str, int]
    ) -> Sequence[DecisionRow]:
        new = self._insert_decisions(connection, rows)
        first = rows if len(new) == len(rows) else {row.key: row for row in reversed(rows) if row.key in new}.values()
        for cautions, times in Counter([row.cautions for row in first]).items():
            for name in counter_names(cautions):
                counted[name] += times
        if first is rows:
            return rows
        old = list({row.key for row in rows} - new.keys())
        known = {row.key: row for part in _parts(old) for row in self._decisions_of(connection, part)}
        counted["repeated_decisions"] += len(rows) - len(new)
        stored = [known.setdefault(row.key, row) for row in rows]
        shown = {row.key: row.time for row in reversed(rows) if not row.waits and known[row.key].waits}
        if shown:  # of a deferred decision, and asked for again to be shown at once
            self._activate(connection, shown)
            stored = [
                row._replace(activated=shown[row.key]) if row.key in shown and not own.waits else row
                for row, own in zip(stored, rows, strict=True)
            ]
        return stored

    def _activate(self, connection: Connection, times: Mapping[bytes, float]) -> set[bytes]:
        """Give those that wait sequence numbers, as if they came now; the keys of these."""
        activated, number = set[bytes](), self.number
        for keys in _parts(sorted(times)):
            query = (
                "SELECT key, seq FROM rareswitch_decisions WHERE experiment = ? AND seq < 0 "
                f"AND key IN ({', '.join('?' * len(keys))}) ORDER BY key {self.row_lock}"
            )
            for key, before in connection.execute(query, (number, *keys)).fetchall():
                seq = self._next_seq(connection, "decisions")
                for table in ("decisions", "contexts", "records"):
                    connection.execute(f"UPDATE rareswitch_{table} SET seq = ? WHERE seq = ?", (seq, before))
                query = "UPDATE rareswitch_decisions SET activated = ? WHERE seq = ?"
                connection.execute(query, (times[key], seq))
                activated.add(bytes(key))
        self._loose += activated
        return activated

    def _keep_rewards(
        self, connection: Connection, rows: Sequence[tuple[RewardRow, bool]], counted: defaultdict[str, int]
    ) -> Sequence[tuple[RewardRow | None, int | None]]:
        """For each the reward that was there before, and the sequence number of its decision, if they are there."""
        fresh = self._insert_rewards(connection, [row for row, _ in rows])
        if len(fresh) == len(rows):
            return [(None, fresh[row.key, row.event]) for row, _ in rows]
        keys = list({row.key for row, _ in rows})
        pairs = [pair for part in _parts(keys) for pair in self._rewards_of(connection, part)]
        held = {(row.key, row.event): (row, seq, decision) for row, seq, decision in pairs}
        known: list[tuple[RewardRow | None, int | None]] = []
        for row, overwrite in rows:
            name = row.key, row.event
            if name in fresh:
                known.append((None, fresh.pop(name)))
                continue
            before, seq, decision = held[name]
            known.append((before, decision))
            if before.value == row.value:
                counted["repeated_rewards"] += 1
            elif overwrite:
                held[name] = row, self._replace_reward(connection, row, before, seq), decision
                counted["overwritten"] += 1
        return known

    def _count(self, jobs: Sequence[Job]) -> None:
        """By the leader of the queue, when those who wait were answered: tally what has come, if that is much."""
        for job in jobs:
            self._since += len(job.decisions) + len(job.rewards) + len(job.activations)
        if self._since >= STEP and not self._closed:
            self._since = 0
            with suppress(StoreError):  # of a store that is closed, busy or gone: another time
                if self._read(self._to_tally) >= STEP:
                    self._commit([Transaction(self._tally)])

    def _to_tally(self, connection: Connection) -> int:
        """Rows that have come since they were counted last, those of other experiments included."""
        return sum(_newest(connection)) - sum(kept_tally(connection, self.number).marks)

    def _tally(self, connection: Connection) -> None:
        """Count what has come since it was counted last."""
        if self._to_tally(connection) >= STEP:  # else another process was faster
            if self._unmatched(connection):
                self._match(connection)
            keep_tally(connection, self.number, tallied(connection, self.number, _newest(connection)))

    # what is there

    def find(self, keys: Sequence[bytes]) -> list[tuple[DecisionRow, list[RewardRow]] | None]:
        """What is kept of these decisions, with the rewards in force."""

        def page(connection: Connection, part: Sequence[bytes]) -> dict[bytes, tuple[DecisionRow, list[RewardRow]]]:
            known = {row.key: (row, list[RewardRow]()) for row in self._decisions_of(connection, part)}
            for reward, *_ in self._rewards_of(connection, part):
                if reward.key in known:
                    known[reward.key][1].append(reward)
            return known

        stored: dict[bytes, tuple[DecisionRow, list[RewardRow]]] = {}
        for part in _parts(keys):
            stored |= self._read(partial(page, part=part))
        return [stored.get(key) for key in keys]

    def _decisions_of(self, connection: Connection, keys: Sequence[bytes]) -> list[DecisionRow]:
        """Those of these keys; they are not checked, as an audit shall see what is there."""
        query = (
            f"SELECT {_OWN}, {_MORE} FROM {_JOINED} "
            f"WHERE d.experiment = ? AND d.key IN ({', '.join('?' * len(keys))}) ORDER BY d.seq"
        )
        return [DecisionRow(*row) for row in connection.execute(query, (self.number, *keys))]

    def _rewards_of(self, connection: Connection, keys: Sequence[bytes]) -> list[tuple[RewardRow, int, int | None]]:
        """The rewards of these keys that are in force now, with their sequence numbers and those of their decisions."""
        query = (
            f"SELECT {_REWARD}, seq, decision FROM rareswitch_rewards WHERE experiment = ? AND superseded IS NULL "
            f"AND key IN ({', '.join('?' * len(keys))}) ORDER BY seq"
        )
        return [(RewardRow(*row[:5]), row[5], row[6]) for row in connection.execute(query, (self.number, *keys))]

    def counts(self, upto: Marks | None = None) -> list[Counts]:
        """By version, those with a decision at least; up to these marks."""
        counted = self._read(partial(tallied, number=self.number, upto=upto or ALL)).versions
        return [counted[version] for version in sorted(counted)]

    def totals(self) -> Totals:
        """What has been seen besides."""
        number = self.number

        def call(connection: Connection) -> Totals:
            rewards = tallied(connection, number).rewards
            counted = dict.fromkeys(("repeated_rewards", "overwritten", "repeated_decisions"), 0)
            query = f"SELECT name, count FROM rareswitch_counters WHERE experiment = {number}"
            counted |= {name: int(count) for name, count in connection.execute(query) if name in counted}
            alone = f"experiment = {number} AND decision IS NULL AND superseded IS NULL"
            query = f"SELECT count(*) FROM rareswitch_rewards {self.unmatched_hint} WHERE {alone}"
            (unmatched,) = connection.execute(query).fetchone()
            query = f"SELECT count(*) FROM rareswitch_decisions WHERE seq < 0 AND experiment + 0 = {number}"
            (deferred,) = connection.execute(query).fetchone()
            return Totals(rewards - counted["overwritten"], int(unmatched), **counted, deferred=int(deferred))

        return self._read(call)

    def cautions(self) -> dict[tuple[str, str], int]:
        """Decisions by field and by what was not as described of it."""
        rows = self._rows("SELECT name, count FROM rareswitch_counters WHERE experiment = ?", self.number)
        named = ((json.loads(name), int(count)) for name, count in rows if name.startswith("["))
        return {(field, what): count for (field, what), count in named}

    def younger(self, moment: float) -> int:
        """Decisions that were made after a moment, in seconds since 1970."""
        query = "SELECT count(*) FROM rareswitch_decisions WHERE experiment = ? AND time > ? AND seq > 0"
        return int(self._rows(query, self.number, moment)[0][0])

    # what is learned from and exported

    def slices(
        self, version: int, upto: Marks, *, sums: bool, window: float | None = None, size: int = ROWS
    ) -> Sequence[Slice]:
        """The decisions of a version up to the marks, ``size`` a slice, and the rest in the last.

        Where rewards are summed, those that came later than ``window`` seconds after their decision are left out of
        the sum; where all of them did, all are in it.
        """
        mine = f"experiment = {self.number} AND version = {int(version)} AND seq <= {int(upto.decisions)}"

        def call(connection: Connection) -> list[Slice]:
            parts: list[Slice] = []
            after = total = 0
            while True:
                part = f"FROM rareswitch_decisions WHERE {mine} AND seq > {after}"
                first = connection.execute(f"SELECT seq, length(features) {part} ORDER BY seq LIMIT 1").fetchone()
                if first is None:
                    self._check_tallied(connection, version, upto, total)
                    return parts
                query = f"SELECT seq {part} ORDER BY seq LIMIT 1 OFFSET {size - 1}"
                last, count = connection.execute(query).fetchone(), size
                if last is None:
                    *last, count = connection.execute(f"SELECT max(seq), count(*) {part}").fetchone()
                after, total = last[0], total + count
                seqs: dict[str, int] = {"first": first[0], "last": after, "rows": count, "width": first[1]}
                parts.append(Slice(store=self, version=version, upto=upto, sums=sums, window=window, **seqs))

        return self._read(call)

    def read_arrays(self, *queries: tuple[str, np.dtype[np.void]]) -> list[NDArray[np.void]]:
        """The rows of queries as structured arrays."""
        return self._read(
            lambda connection: [np.fromiter(connection.execute(query), kinds) for query, kinds in queries]
        )

    def _check_tallied(self, connection: Connection, version: int, upto: Marks, decisions: int) -> None:
        """Raise if what was tallied when it came is not there any more."""
        expected = tallied(connection, self.number, upto).versions.get(version, Counts(version))
        query = (
            f"SELECT count(*) FROM rareswitch_rewards WHERE experiment = {self.number} AND version = {int(version)} "
            f"AND decision <= {int(upto.decisions)} AND seq <= {int(upto.rewards)}"
        )
        (rewards,) = connection.execute(query).fetchone()
        if (decisions, rewards) != (expected.decisions, expected.rewards):
            raise damaged(
                self.name,
                f"{expected.decisions} decisions of policy {version} with {expected.rewards} rewards, and has "
                f"{decisions} with {rewards}",
            )

    def sample(self, version: int, upto: Marks) -> Iterator[tuple[bytes, bytes]]:
        """Keys and contexts of decisions whose sets were kept, by rank; read as far as one likes."""
        return chain.from_iterable(self._sets(version, upto))

    def _sets(self, version: int, upto: Marks) -> Iterator[list[tuple[bytes, bytes]]]:
        query = (
            f"SELECT c.rank, c.seq, c.checksum, {_OWN}, c.data, c.names FROM rareswitch_contexts c "
            "JOIN rareswitch_decisions d ON c.seq = d.seq "
            f"WHERE c.experiment = ? AND c.version = ? AND c.seq BETWEEN 1 AND ? "
            f"AND (c.rank, c.seq) > (?, ?) ORDER BY c.rank, c.seq LIMIT {SETS}"
        )
        rank, seq = -1.0, 0
        while page := self._rows(query, self.number, version, upto.decisions, rank, seq):
            rows = [DecisionRow(*columns) for _, _, _, *columns in page]
            for (rank, seq, checksum, *_), row, expected in zip(page, rows, of_contexts(rows), strict=True):
                if expected != checksum or rank != row.rank:
                    raise damaged_row(self.name, "context set of decision", seq)
            yield [(row.key, row.contexts or b"") for row in rows]

    def rows(self, after: int, upto: Marks) -> Iterator[list[tuple[DecisionRow, list[RewardRow]]]]:
        """All decisions after a sequence number, some at a time, with their rewards: for exports."""
        _ = self.number
        while page := self._read(partial(self._page, after=after, upto=upto)):
            after = page[-1][0]
            yield [(row, rewards) for _, row, rewards in page]

    def _page(self, connection: Connection, after: int, upto: Marks) -> list[tuple[int, DecisionRow, list[RewardRow]]]:
        """Some decisions after a sequence number, each with its own and with its rewards in force at the mark."""
        # a sum is in no index: else SQLite looks up and sorts, for each page, all decisions that are left
        query = (
            f"SELECT {_OWN}, {_MORE}, d.seq, d.checksum, c.checksum FROM {_JOINED} "
            f"WHERE d.experiment + 0 = ? AND d.seq > ? AND d.seq <= ? ORDER BY d.seq LIMIT {PAGE}"
        )
        stored = connection.execute(query, (self.number, after, upto.decisions)).fetchall()
        if not stored:
            return []
        decisions = [DecisionRow(*row[:-3]) for row in stored]
        numbers = [int(row[-3]) for row in stored]
        versions = ", ".join(str(int(version)) for version in sorted({row.version for row in decisions}))
        query = (
            f"SELECT {_REWARD}, decision, superseded, checksum FROM rareswitch_rewards WHERE experiment = ? "
            f"AND version IN ({versions}) AND decision BETWEEN ? AND ? AND seq <= ? "
            "AND (superseded IS NULL OR superseded > ?) ORDER BY decision, seq"
        )
        ends = self.number, numbers[0], numbers[-1], upto.rewards, upto.rewards
        held = connection.execute(query, ends).fetchall()
        rewards = [RewardRow(*row[:5]) for row in held]
        try:
            expected = of_decisions(decisions)
            sets = of_contexts(decisions)
            paid = of_rewards(rewards, [row[6] or 0 for row in held])
        except (ArithmeticError, TypeError, ValueError, struct.error) as error:
            raise damaged(self.name, f"numbers and vectors, not these ({error})") from error
        for seq, row, checksum, set_checksum in zip(numbers, stored, expected, sets, strict=True):
            if row[-2] != checksum or row[-1] != set_checksum:
                raise damaged_row(self.name, "decision", seq)
        for row, checksum in zip(held, paid, strict=True):
            if row[7] != checksum:
                raise damaged_row(self.name, "reward of decision", row[5])
        pairs = groupby(zip(held, rewards, strict=True), key=lambda pair: int(pair[0][5]))
        of = {seq: [reward for _, reward in group] for seq, group in pairs}
        return [(seq, row, of.get(seq, [])) for seq, row in zip(numbers, decisions, strict=True)]


def _head(connection: Connection, number: int) -> int:
    query = f"SELECT max(number) FROM rareswitch_versions WHERE experiment = {number}"
    return int(connection.execute(query).fetchone()[0] or 0)


def _frozen(connection: Connection, number: int, parent: int) -> tuple[str, Marks] | None:
    """What was frozen of the update of a version."""
    query = "SELECT plan, decisions, rewards FROM rareswitch_updates WHERE experiment = ? AND parent = ?"
    row = connection.execute(query, (number, parent)).fetchone()
    return None if row is None else (str(row[0]), Marks(int(row[1]), int(row[2])))


def _withdraw(connection: Connection, number: int) -> None:
    connection.execute("DELETE FROM rareswitch_proposals WHERE experiment = ?", (number,))


def _forget(connection: Connection, number: int, parent: int) -> None:
    query = "DELETE FROM rareswitch_updates WHERE experiment = ? AND parent = ?"
    connection.execute(query, (number, parent))


def _newest(connection: Connection) -> Marks:
    """The sequence numbers that were given out last."""
    queries = (f"SELECT max(seq) FROM rareswitch_{table}" for table in Marks._fields)
    return Marks(*(max(0, int(connection.execute(query).fetchone()[0] or 0)) for query in queries))


def _parts(keys: Sequence[K]) -> Iterator[Sequence[K]]:
    return (keys[at : at + KEYS] for at in range(0, len(keys), KEYS))
