"""An experiment in a database: what is the same in SQLite and PostgreSQL."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from rareswitch.errors import MissingExtraError, StoreError
from rareswitch.store.sql_attempts import attempt
from rareswitch.store.sql_recording import Recording
from rareswitch.store.sql_rows import kept_decisions, kept_page, kept_rewards
from rareswitch.store.sql_schema import check_revision, found_revision, migrate
from rareswitch.store.sql_slices import ROWS
from rareswitch.store.sql_tables import tables
from rareswitch.store.sql_writer import Job, Writer
from rareswitch.store.store import Counts, DecisionRow, Marks, RewardRow, Slice, Totals, VersionRow

T = TypeVar("T")
#: Context sets that are read at a time, and keys that one query names.
SETS, KEYS = 200, 500
#: Of the pool of connections for reading.
CONNECTIONS: dict[str, Any] = {"pool_size": 8, "max_overflow": 0}
#: Beyond all sequence numbers.
ALL = Marks(1 << 62, 1 << 62)


class SqlStore(ABC):
    """An experiment in a database.

    Nothing is touched before the first call: :meth:`create` makes what is not there, all others want it to be there.
    Reading uses connections of a pool; everything that is written goes through one thread, see
    :class:`~rareswitch.store.sql_writer.Writer`. What can be tried again, as when another process holds the lock or
    the server is gone, is tried for ten seconds; all verbs may be repeated, since decisions and rewards have keys.
    """

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self._lock = threading.RLock()
        self._engine: Any = None
        self._reading: Any = None
        self._writer: Writer | None = None
        self._writing: Any = None  # the writer's connection, used by its thread alone
        self._process = os.getpid()
        self._closed = False
        self._number: int | None = None

    # what the two databases differ in

    @abstractmethod
    def _connect(self, create: bool) -> tuple[Any, Any]:
        """Two SQLAlchemy engines, for writing and for reading, over one pool; the database is made if it may be."""

    @abstractmethod
    def _judged(self, error: Exception) -> tuple[bool, str]:
        """Whether what failed may be tried again; and what to say, '' where it is the fault of what was given."""

    @abstractmethod
    def _recording(self, connection: Any) -> Recording:
        """What keeps the rows of a group of callers."""

    @abstractmethod
    def _alone(self, connection: Any) -> None:
        """From here to the end of the transaction nobody else adds to the experiment, and all before is visible."""

    @abstractmethod
    def _begin(self, connection: Any) -> None:
        """What a transaction that writes begins with."""

    @abstractmethod
    def _slice(self, version: int, first: int, last: int, upto: Marks, sums: bool, window: float | None) -> Slice:
        """Decisions of a version between two sequence numbers."""

    # connections

    def _open(self, create: bool = False) -> Any:
        """The engine, connected and at the newest revision."""
        if os.getpid() != self._process:
            raise StoreError("the store was opened in another process. Open it again in this one.")
        if self._closed:
            raise StoreError("the store is closed. Open it again.")
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    attempt(partial(self._start, create), self._judged)
        return self._engine

    def _start(self, create: bool) -> None:
        try:
            import alembic  # noqa: F401
            import sqlalchemy  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(
                "experiments in a database need more packages. Install them with: pip install 'rareswitch[experiment]'"
            ) from error
        engine, reading = self._connect(create)
        try:
            with engine.connect() as connection:
                found = found_revision(connection)
            if found is None and not create:
                raise StoreError(f"{self.url} holds no experiments. Create one first, or correct the address.")
            if check_revision(found, self.url):
                with engine.begin() as connection:
                    self._begin(connection)
                    self._alone(connection)
                    if check_revision(found_revision(connection), self.url):
                        migrate(connection)
        except BaseException:
            engine.dispose()
            raise
        self._writer = Writer(self._commit, self._end)
        self._engine, self._reading = engine, reading

    def _read(self, call: Callable[[Any], T]) -> T:
        self._open()

        def one() -> T:
            from sqlalchemy.exc import TimeoutError as NoConnection

            try:
                connection = self._reading.connect()
            except NoConnection as error:
                raise StoreError(f"{self.url} is busy: all connections are in use. Try again.") from error
            with connection:
                return call(connection)

        return attempt(one, self._judged)

    def _submit(self, job: Job) -> Any:
        self._open()
        assert self._writer is not None  # since it is open
        return self._writer.submit(job)

    def _commit(self, jobs: list[Job]) -> None:
        """In the thread of the writer: carry out jobs in one transaction."""
        attempt(partial(self._try_commit, jobs), self._judged)

    def _try_commit(self, jobs: list[Job]) -> None:
        if self._writing is None:
            self._writing = self._engine.connect()
        try:
            with self._writing.begin():
                self._begin(self._writing)
                if jobs[0].call is not None:
                    jobs[0].result = jobs[0].call(self._writing)
                    return
                recording = self._recording(self._writing)
                recording.keep(jobs)
            recording.settle()
        except BaseException:
            broken, self._writing = self._writing, None
            broken.invalidate()
            broken.close()
            raise

    def _end(self) -> None:
        if self._writing is not None:
            self._writing.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._writer is not None and os.getpid() == self._process:
                self._writer.close()
                self._engine.dispose()

    # versions

    def create(self, description: str, first: VersionRow) -> None:
        import sqlalchemy as sa

        def call(connection: Any) -> None:
            self._alone(connection)
            known = sa.select(tables().experiments.c.number).where(tables().experiments.c.name == self.name)
            if connection.execute(known).first() is not None:
                raise StoreError(
                    f"there is an experiment '{self.name}' in {self.url} already. Open it, or choose another name."
                )
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
            newest = (sa.select(sa.func.max(table.c.seq)) for table in (tables().decisions, tables().rewards))
            marks = Marks(*(int(connection.execute(query).scalar() or 0) for query in newest))
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

    def publish(self, version: VersionRow) -> VersionRow:
        import sqlalchemy as sa

        number = self.number

        def call(connection: Any) -> bool:
            self._alone(connection)
            head = self._head(connection, number)
            if head == version.number - 1:
                connection.execute(sa.insert(tables().versions).values(experiment=number, **version._asdict()))
            elif head < version.number:
                raise StoreError(f"version {version.number} needs version {version.number - 1}; the head is {head}.")
            return head == version.number - 1

        return version if self._submit(Job(call=call)) else self.versions(version.number - 1)[0]

    def marks(self) -> Marks:
        import sqlalchemy as sa

        newest = [sa.select(sa.func.max(table.c.seq)) for table in (tables().decisions, tables().rewards)]
        return self._read(lambda connection: Marks(*(int(connection.execute(query).scalar() or 0) for query in newest)))

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
        import sqlalchemy as sa

        decisions, rewards, marks = tables().decisions.c, tables().rewards.c, upto or ALL
        number = self.number
        made = sa.select(
            decisions.version, sa.func.count(), sa.func.min(decisions.time), sa.func.max(decisions.time)
        ).where(decisions.experiment == number, decisions.seq <= marks.decisions)
        # a reward is never taken back, only superseded: any row up to the mark says that one is in force
        paid = sa.select(rewards.version, sa.func.count(rewards.decision.distinct())).where(
            rewards.experiment == number, rewards.decision <= marks.decisions, rewards.seq <= marks.rewards
        )

        def call(connection: Any) -> list[Counts]:
            rewarded = dict(map(tuple, connection.execute(paid.group_by(rewards.version))))
            rows = connection.execute(made.group_by(decisions.version).order_by(decisions.version))
            return [Counts(row[0], row[1], rewarded.get(row[0], 0), row[2], row[3]) for row in rows]

        return self._read(call)

    def totals(self) -> Totals:
        import sqlalchemy as sa

        rewards, counters = tables().rewards.c, tables().counters.c
        here = rewards.experiment == self.number
        held = sa.select(sa.func.count()).where(here, rewards.superseded.is_(None))
        seen = sa.select(counters.name, counters.count).where(counters.experiment == self.number)

        def call(connection: Any) -> Totals:
            counted = dict.fromkeys(("repeated_rewards", "overwritten", "repeated_decisions"), 0)
            counted |= {name: int(count) for name, count in connection.execute(seen)}
            alone = held.where(rewards.decision.is_(None))
            return Totals(connection.execute(held).scalar(), connection.execute(alone).scalar(), **counted)

        return self._read(call)

    def slices(self, version: int, upto: Marks, *, sums: bool, window: float | None = None) -> Sequence[Slice]:
        import sqlalchemy as sa

        decisions, number = tables().decisions.c, self.number
        mine = (decisions.experiment == number, decisions.version == version, decisions.seq <= upto.decisions)

        def call(connection: Any) -> list[Slice]:
            found: list[Slice] = []
            after = 0
            while True:
                rest = sa.select(decisions.seq).where(*mine, decisions.seq > after).order_by(decisions.seq)
                first = connection.execute(rest.limit(1)).scalar()
                if first is None:
                    return found
                last = connection.execute(rest.limit(1).offset(ROWS - 1)).scalar()
                if last is None:
                    last = connection.execute(sa.select(sa.func.max(decisions.seq)).where(*mine)).scalar()
                found.append(self._slice(version, first, last, upto, sums, window))
                after = last

        return self._read(call)

    def sample(self, version: int, upto: Marks) -> Iterator[tuple[bytes, bytes]]:
        import sqlalchemy as sa

        contexts, decisions, number = tables().contexts.c, tables().decisions.c, self.number
        wanted = sa.select(decisions.key, contexts.data, contexts.rank, contexts.seq)
        wanted = wanted.join_from(tables().contexts, tables().decisions, contexts.seq == decisions.seq)
        wanted = wanted.where(
            contexts.experiment == number, contexts.version == version, contexts.seq <= upto.decisions
        ).order_by(contexts.rank, contexts.seq)
        page: list[Any] = []
        while True:
            rest = wanted
            if page:
                rest = wanted.where(sa.tuple_(contexts.rank, contexts.seq) > sa.tuple_(page[-1][2], page[-1][3]))
            page = self._read(partial(_all, rest.limit(SETS)))
            yield from ((bytes(key), bytes(data)) for key, data, _, _ in page)
            if not page:
                return

    def rows(self, after: int, upto: Marks) -> Iterator[tuple[int, list[tuple[DecisionRow, list[RewardRow]]]]]:
        number = self.number
        while page := self._read(partial(kept_page, number=number, after=after, upto=upto)):
            after = page[-1][0]
            yield after, [row for _, row in page]


def _all(query: Any, connection: Any) -> list[Any]:
    return list(connection.execute(query))
