"""An experiment in a database: what is the same in SQLite and PostgreSQL."""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rareswitch.errors import StoreError
from rareswitch.store.checksums import of_contexts
from rareswitch.store.sql_database import SqlDatabase
from rareswitch.store.sql_rows import KEYS, kept_decisions, kept_page, kept_rewards
from rareswitch.store.sql_slices import ROWS, Stretch, damaged, damaged_row
from rareswitch.store.sql_tables import tables
from rareswitch.store.sql_tally import (
    STEP,
    Tallied,
    Tally,
    all_rewards_query,
    keep_tally,
    kept_tally,
    rewards_query,
    tallied,
)
from rareswitch.store.sql_writer import Job
from rareswitch.store.store import Counts, DecisionRow, Marks, RewardRow, Slice, Totals, VersionRow, exists, parentless

#: Context sets that are read at a time.
SETS = 200
#: Beyond all sequence numbers.
ALL = Marks(1 << 62, 1 << 62)
NO_TALLY = Tally(Marks(0, 0), 0, {})


class SqlStore(SqlDatabase):
    """An experiment in a database.

    :meth:`create` makes what is not there, all others want it to be there. All verbs may be carried out again, since
    decisions and rewards have keys.
    """

    #: By which a database finds rewards whose decision has not come, and no others.
    unmatched_hint = ""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url)
        self.name = name
        self._number: int | None = None
        #: Rows that this process wrote since it looked whether to tally: at once for the first.
        self._since = STEP

    @abstractmethod
    def _slice(self, stretch: Stretch) -> Slice:
        """Decisions of a version between two sequence numbers."""

    @abstractmethod
    def faults(self) -> list[str]:
        """What is damaged in the files of the store, as far as their structure tells."""

    @abstractmethod
    def backup(self, path: str | Path) -> None:
        """Write a copy of the whole store."""

    # versions

    def create(self, description: str, first: VersionRow) -> None:
        import sqlalchemy as sa

        begun = False

        def call(connection: Any) -> None:
            nonlocal begun
            self._alone(connection)
            known = sa.select(tables().experiments.c.description).where(tables().experiments.c.name == self.name)
            found = connection.execute(known).scalar()
            if begun and found == description:
                return  # by this very call, whose commit was not seen to end
            if found is not None:
                raise exists(self.name, self.url)
            begun = True
            made = sa.insert(tables().experiments).values(name=self.name, description=description)
            number = connection.execute(made).inserted_primary_key[0]
            connection.execute(sa.insert(tables().versions).values(experiment=number, **first._asdict()))

        self._open(create=True)
        self._submit(Job(call=call))

    def names(self) -> list[str]:
        """The experiments of this database."""
        import sqlalchemy as sa

        listed = sa.select(tables().experiments.c.name).order_by(tables().experiments.c.number)
        return self._read(lambda connection: list(connection.execute(listed).scalars()))

    @property
    def number(self) -> int:
        """By which the rows of this experiment are told from others."""
        import sqlalchemy as sa

        if self._number is None:
            wanted = sa.select(tables().experiments.c.number).where(tables().experiments.c.name == self.name)
            self._number = self._read(lambda connection: connection.execute(wanted).scalar())
        if self._number is None:
            known = ", ".join(f"'{name}'" for name in self.names()[:20]) or "none"
            raise StoreError(f"there is no experiment '{self.name}' in {self.url}; there are: {known}.")
        return self._number

    def description(self) -> str:
        import sqlalchemy as sa

        wanted = sa.select(tables().experiments.c.description).where(tables().experiments.c.number == self.number)
        return str(self._read(lambda connection: connection.execute(wanted).scalar()))

    def head(self) -> int:
        number = self.number
        return self._read(lambda connection: self._head(connection, number))

    def _head(self, connection: Any, number: int) -> int:
        query = f"SELECT max(number) FROM rareswitch_versions WHERE experiment = {number}"
        return int(connection.exec_driver_sql(query).scalar() or 0)

    def versions(self, after: int = 0) -> list[VersionRow]:
        import sqlalchemy as sa

        table = tables().versions
        wanted = sa.select(*(table.c[name] for name in VersionRow._fields)).order_by(table.c.number)
        wanted = wanted.where(table.c.experiment == self.number, table.c.number > after)
        return self._read(lambda connection: [VersionRow(*row) for row in connection.execute(wanted)])

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks] | None:
        import sqlalchemy as sa

        updates, number = tables().updates, self.number

        def call(connection: Any) -> tuple[str, Marks] | None:
            self._alone(connection)
            if self._head(connection, number) != parent:
                return None
            known = sa.select(updates.c.plan, updates.c.decisions, updates.c.rewards)
            found = connection.execute(known.where(updates.c.experiment == number, updates.c.parent == parent)).first()
            if found is not None:
                return str(found[0]), Marks(int(found[1]), int(found[2]))
            self._recording(connection).match_all()
            marks = _newest(connection)
            keep_tally(connection, number, tallied(connection, number, kept_tally(connection, number), marks))
            row = {"experiment": number, "parent": parent, "plan": plan, **marks._asdict()}
            connection.execute(sa.insert(updates).values(**row))
            return plan, marks

        return self._submit(Job(call=call))  # type: ignore[no-any-return]

    def abandon_update(self, parent: int) -> None:
        import sqlalchemy as sa

        updates, number = tables().updates, self.number

        def call(connection: Any) -> None:
            self._alone(connection)
            if self._head(connection, number) == parent:
                mine = sa.delete(updates).where(updates.c.experiment == number, updates.c.parent == parent)
                connection.execute(mine)

        self._submit(Job(call=call))

    def refuse_update(self, parent: int, number: int, report: str) -> None:
        import sqlalchemy as sa

        updates, refused, experiment = tables().updates, tables().refusals, self.number

        def call(connection: Any) -> None:
            self._alone(connection)
            kept = sa.select(sa.func.count()).where(refused.c.experiment == experiment, refused.c.parent == parent)
            if self._head(connection, experiment) == parent and connection.execute(kept).scalar() == number - 1:
                row = {"experiment": experiment, "parent": parent, "number": number, "report": report}
                connection.execute(sa.insert(refused).values(**row))
                mine = sa.delete(updates).where(updates.c.experiment == experiment, updates.c.parent == parent)
                connection.execute(mine)

        self._submit(Job(call=call))

    def refusals(self, parent: int) -> list[str]:
        import sqlalchemy as sa

        refused = tables().refusals.c
        mine = sa.select(refused.report).where(refused.experiment == self.number, refused.parent == parent)
        return self._read(lambda connection: list(connection.execute(mine.order_by(refused.number)).scalars()))

    def publish(self, version: VersionRow) -> VersionRow:
        import sqlalchemy as sa

        number = self.number

        def call(connection: Any) -> bool:
            self._alone(connection)
            head = self._head(connection, number)
            if head == version.number - 1:
                connection.execute(sa.insert(tables().versions).values(experiment=number, **version._asdict()))
            elif head < version.number:
                raise StoreError(parentless(version.number, head))
            return head == version.number - 1

        return version if self._submit(Job(call=call)) else self.versions(version.number - 1)[0]

    def marks(self) -> Marks:
        return self._read(_newest)

    def started(self, parent: int) -> bool:
        import sqlalchemy as sa

        updates, number = tables().updates, self.number
        known = sa.select(updates.c.plan).where(updates.c.experiment == number, updates.c.parent == parent)
        return parent == self.head() and self._read(lambda connection: connection.execute(known).first()) is not None

    def younger(self, moment: float) -> int:
        import sqlalchemy as sa

        decisions = tables().decisions.c
        known = sa.select(sa.func.count()).where(decisions.experiment == self.number, decisions.time > moment)
        return int(self._read(lambda connection: connection.execute(known).scalar()))

    # rows

    def add_decisions(self, rows: Sequence[DecisionRow]) -> list[DecisionRow]:
        _ = self.number  # which raises where there is no such experiment
        return self._submit(Job(decisions=rows)) if rows else []

    def post_decisions(
        self, rows: Sequence[DecisionRow], then: Callable[[list[DecisionRow] | StoreError], None]
    ) -> None:
        """As :meth:`add_decisions`, without waiting: for event loops, where thousands wait in one thread.

        What it would have returned, or raised, goes to ``then``, which is called in the thread of the writer and must
        not take long. Where the store is busy the call itself raises.
        """
        _ = self.number
        self._open()
        assert self._writer is not None  # since it is open
        self._writer.post(Job(decisions=rows, then=lambda job: then(job.error or job.result)))

    def add_rewards(self, rows: Sequence[RewardRow], *, overwrite: bool = False) -> list[RewardRow | None]:
        _ = self.number
        return self._submit(Job(rewards=rows, overwrite=overwrite)) if rows else []

    def find(self, keys: Sequence[bytes]) -> list[tuple[DecisionRow, list[RewardRow]] | None]:
        number = self.number

        def page(connection: Any, part: Sequence[bytes]) -> dict[bytes, tuple[DecisionRow, list[RewardRow]]]:
            decisions = {row.key: row for row, _ in kept_decisions(connection, number, part)}
            rewards: dict[bytes, list[RewardRow]] = {}
            for row, _ in kept_rewards(connection, number, part):
                rewards.setdefault(row.key, []).append(row)
            return {key: (row, rewards.get(key, [])) for key, row in decisions.items()}

        found: dict[bytes, tuple[DecisionRow, list[RewardRow]]] = {}
        for at in range(0, len(keys), KEYS):
            found |= self._read(partial(page, part=keys[at : at + KEYS]))
        return [found.get(key) for key in keys]

    def counts(self, upto: Marks | None = None) -> list[Counts]:
        return self._read(partial(self._tallied, number=self.number, upto=upto)).counts()

    def _tallied(self, connection: Any, number: int, upto: Marks | None) -> Tally:
        """What there is up to marks: counted from the last tally, or from the beginning where that is beyond them."""
        upto, tally = upto or ALL, kept_tally(connection, number)
        return tallied(connection, number, tally if tally.within(upto) else NO_TALLY, upto)

    def _commit(self, jobs: list[Job]) -> None:
        super()._commit(jobs)
        if jobs[0].call is None:
            self._since += sum(len(job.decisions) + len(job.rewards) for job in jobs)
            if self._since >= STEP:
                with suppress(StoreError):  # of a store that is closed, busy or gone: another time
                    self._look()

    def _look(self) -> None:
        """Let what has come be counted when those who wait were answered, if that is much."""
        self._since = 0
        if self._read(partial(_to_tally, number=self.number)) >= STEP and self._writer is not None:
            self._writer.post(Job(call=self._tally, then=lambda _: None))

    def _tally(self, connection: Any) -> None:
        """Count what has come since it was counted last."""
        self._alone(connection)
        if _to_tally(connection, self.number) >= STEP:  # else another process was faster
            self._recording(connection).match_missed()
            upto, before = _newest(connection), kept_tally(connection, self.number)
            keep_tally(connection, self.number, tallied(connection, self.number, before, upto))

    def totals(self) -> Totals:
        import sqlalchemy as sa

        counters, number = tables().counters.c, self.number
        seen = sa.select(counters.name, counters.count).where(counters.experiment == number)
        alone = f"experiment = {number} AND decision IS NULL AND superseded IS NULL"

        def call(connection: Any) -> Totals:
            tally = kept_tally(connection, number)
            query = all_rewards_query(number, tally.marks, ALL)
            rewards = tally.rewards + connection.exec_driver_sql(query).scalar()
            counted = dict.fromkeys(("repeated_rewards", "overwritten", "repeated_decisions"), 0)
            counted |= {name: int(count) for name, count in connection.execute(seen) if name in counted}
            query = f"SELECT count(*) FROM rareswitch_rewards {self.unmatched_hint} WHERE {alone}"
            unmatched = connection.exec_driver_sql(query).scalar()
            return Totals(rewards - counted["overwritten"], unmatched, **counted)

        return self._read(call)

    def cautions(self) -> dict[tuple[str, str], int]:
        import sqlalchemy as sa

        counters = tables().counters.c
        wanted = sa.select(counters.name, counters.count).where(
            counters.experiment == self.number, counters.name.startswith("[")
        )
        rows = self._read(lambda connection: connection.execute(wanted).all())
        return {(field, what): int(count) for name, count in rows for field, what in [json.loads(name)]}

    def slices(
        self, version: int, upto: Marks, *, sums: bool, window: float | None = None, propensities: bool = False
    ) -> Sequence[Slice]:
        import sqlalchemy as sa

        decisions, number = tables().decisions.c, self.number
        mine = (decisions.experiment == number, decisions.version == version, decisions.seq <= upto.decisions)

        def call(connection: Any) -> list[Slice]:
            found: list[Slice] = []
            after = total = 0
            while True:
                rest = sa.select(decisions.seq).where(*mine, decisions.seq > after).order_by(decisions.seq)
                first = connection.execute(rest.limit(1)).scalar()
                if first is None:
                    self._check_tallied(connection, number, version, upto, total)
                    return found
                last = connection.execute(rest.limit(1).offset(ROWS - 1)).scalar()
                count = ROWS
                if last is None:
                    rest = sa.select(sa.func.max(decisions.seq), sa.func.count()).where(*mine, decisions.seq > after)
                    last, count = connection.execute(rest).one()
                how = sums, window, propensities, self.name, count
                found.append(self._slice(Stretch(number, version, first, last, upto, *how)))
                after, total = last, total + count

        return self._read(call)

    def _check_tallied(self, connection: Any, number: int, version: int, upto: Marks, decisions: int) -> None:
        """Raise if what was tallied when it came is not there any more."""
        tally = kept_tally(connection, number)
        if not tally.within(upto):
            return
        expected = tallied(connection, number, tally, upto).versions.get(version, Tallied())
        rewards = connection.exec_driver_sql(rewards_query(number, version, upto)).scalar()
        if (decisions, rewards) != (expected.decisions, expected.rewards):
            raise damaged(
                self.name,
                f"{expected.decisions} decisions of policy {version} with {expected.rewards} rewards, and has "
                f"{decisions} with {rewards}",
            )

    def sample(self, version: int, upto: Marks) -> Iterator[tuple[bytes, bytes]]:
        import sqlalchemy as sa

        contexts, decisions, number = tables().contexts.c, tables().decisions.c, self.number
        own = [decisions[name] for name in DecisionRow._fields[:11]]
        wanted = sa.select(contexts.rank, contexts.seq, contexts.checksum, *own, contexts.data, contexts.names)
        wanted = wanted.join_from(tables().contexts, tables().decisions, contexts.seq == decisions.seq)
        wanted = wanted.where(
            contexts.experiment == number, contexts.version == version, contexts.seq <= upto.decisions
        ).order_by(contexts.rank, contexts.seq)
        page: list[Any] = []
        while True:
            rest = wanted
            if page:
                rest = wanted.where(sa.tuple_(contexts.rank, contexts.seq) > sa.tuple_(*page[-1][:2]))
            page = self._read(partial(_all, rest.limit(SETS)))
            for rank, seq, checksum, *own in page:
                row = DecisionRow(*own)
                if of_contexts(row) != checksum or rank != row.rank:
                    raise damaged_row(self.name, "context set of decision", seq)
                yield row.key, bytes(row.contexts or b"")
            if not page:
                return

    def rows(self, after: int, upto: Marks) -> Iterator[tuple[int, list[tuple[DecisionRow, list[RewardRow]]]]]:
        number = self.number
        while page := self._read(partial(kept_page, number=number, after=after, upto=upto, name=self.name)):
            after = page[-1][0]
            yield after, [row for _, row in page]


def _newest(connection: Any) -> Marks:
    """The sequence numbers that were given out last."""
    queries = (f"SELECT max(seq) FROM rareswitch_{table}" for table in Marks._fields)
    return Marks(*(int(connection.exec_driver_sql(query).scalar() or 0) for query in queries))


def _to_tally(connection: Any, number: int) -> int:
    """Rows that have come since they were counted last, those of other experiments included."""
    return sum(_newest(connection)) - sum(kept_tally(connection, number).marks)


def _all(query: Any, connection: Any) -> list[Any]:
    return list(connection.execute(query))
