"""What an experiment holds, counted up to some sequence numbers and kept: only what came since is counted again.

So status and schedules cost the same whatever is stored. What was counted then is also compared with what is read by an
update: rows that are missing from a damaged index would go unnoticed otherwise.
"""

import json
import zlib
from typing import Any, NamedTuple

from rareswitch.errors import StoreError
from rareswitch.store.sql_tables import tables
from rareswitch.store.store import Counts, Marks

#: Rows that may come before all is tallied anew.
STEP = 5000


class Tallied(NamedTuple):
    """What there is of one policy."""

    decisions: int = 0
    #: Decisions with a reward at least.
    rewarded: int = 0
    #: Rewards of its decisions, with those that were superseded.
    rewards: int = 0
    first_time: float = float("inf")
    last_time: float = float("-inf")


class Tally(NamedTuple):
    """What there is up to these marks."""

    marks: Marks
    #: With those that were superseded, and those whose decision has not come.
    rewards: int
    versions: dict[int, Tallied]

    def within(self, marks: Marks) -> bool:
        """Whether nothing in it lies beyond these."""
        return self.marks.decisions <= marks.decisions and self.marks.rewards <= marks.rewards

    def counts(self) -> list[Counts]:
        """Of the versions that have decided."""
        held = sorted((version, one) for version, one in self.versions.items() if one.decisions)
        return [Counts(version, one.decisions, one.rewarded, one.first_time, one.last_time) for version, one in held]


def kept_tally(connection: Any, number: int) -> Tally:
    """The last one that was kept."""
    import sqlalchemy as sa

    table = tables().tallies.c
    wanted = sa.select(table.decisions, table.rewards, table.counted).where(table.experiment == number)
    row = connection.execute(wanted).first()
    if row is None:
        return Tally(Marks(0, 0), 0, {})
    checksum, _, text = str(row[2]).partition(" ")
    if checksum != _checksum(row[0], row[1], text):
        raise StoreError(
            f"the counts of experiment number {number} are damaged: they do not match their checksum. Restore a backup."
        )
    counted = json.loads(text)
    versions = {int(version): Tallied(*one) for version, one in counted["versions"].items()}
    return Tally(Marks(int(row[0]), int(row[1])), int(counted["rewards"]), versions)


def keep_tally(connection: Any, number: int, tally: Tally) -> None:
    """Keep it, in place of the one before."""
    import sqlalchemy as sa

    text = json.dumps({"rewards": tally.rewards, "versions": tally.versions})
    counted = f"{_checksum(*tally.marks, text)} {text}"
    connection.execute(
        sa.text(
            "INSERT INTO rareswitch_tallies (experiment, decisions, rewards, counted) "
            "VALUES (:experiment, :decisions, :rewards, :counted) ON CONFLICT (experiment) DO UPDATE SET "
            "decisions = excluded.decisions, rewards = excluded.rewards, counted = excluded.counted"
        ),
        {"experiment": number, "counted": counted, **tally.marks._asdict()},
    )


def _checksum(decisions: int, rewards: int, text: str) -> str:
    return f"{zlib.crc32(f'{decisions} {rewards} {text}'.encode()):08x}"


def tallied(connection: Any, number: int, before: Tally, upto: Marks) -> Tally:
    """What there is up to marks at or after those of another tally, by counting what came between."""
    late = {row[0]: row[1:] for row in connection.exec_driver_sql(late_query(number, before.marks, upto))}
    versions = dict(before.versions)
    version: int | None = 0
    while (version := connection.exec_driver_sql(version_query(number, version or 0)).scalar()) is not None:
        known = versions.get(version, Tallied())
        decisions, first, last = connection.exec_driver_sql(decisions_query(number, version, before.marks, upto)).one()
        rewards, rewarded = connection.exec_driver_sql(rewarded_query(number, version, before.marks, upto)).one()
        late_rewards, late_rewarded = late.get(version, (0, 0))
        versions[version] = Tallied(
            known.decisions + decisions,
            known.rewarded + rewarded + late_rewarded,
            known.rewards + rewards + late_rewards,
            known.first_time if first is None else min(known.first_time, first),
            known.last_time if last is None else max(known.last_time, last),
        )
    more = connection.exec_driver_sql(all_rewards_query(number, before.marks, upto)).scalar()
    return Tally(upto, before.rewards + more, versions)


# queries: whole numbers only, so nothing to escape; a sum is in no index, so that a range of sequence numbers is taken


def version_query(number: int, after: int) -> str:
    """The next version that has decided."""
    return f"SELECT min(version) FROM rareswitch_decisions WHERE experiment = {number} AND version > {after}"


def decisions_query(number: int, version: int, after: Marks, upto: Marks) -> str:
    """Decisions of a version between marks, with the first and the last time."""
    return (
        f"SELECT count(*), min(time), max(time) FROM rareswitch_decisions WHERE experiment = {number} "
        f"AND version = {version} AND seq > {after.decisions} AND seq <= {upto.decisions}"
    )


def rewards_query(number: int, version: int, upto: Marks) -> str:
    """All rewards of a version up to marks."""
    return (
        f"SELECT count(*) FROM rareswitch_rewards WHERE experiment = {number} AND version = {version} "
        f"AND decision <= {upto.decisions} AND seq <= {upto.rewards}"
    )


def rewarded_query(number: int, version: int, after: Marks, upto: Marks) -> str:
    """Rewards of these decisions, whenever they came, and how many of the decisions have one."""
    return (
        f"SELECT count(*), count(DISTINCT decision) FROM rareswitch_rewards WHERE experiment = {number} "
        f"AND version = {version} AND decision > {after.decisions} AND decision <= {upto.decisions} "
        f"AND seq <= {upto.rewards}"
    )


def late_query(number: int, after: Marks, upto: Marks) -> str:
    """By version, rewards between marks of decisions before them, and how many of the decisions had none before."""
    earlier = (
        "SELECT 1 FROM rareswitch_rewards AS other WHERE other.experiment = reward.experiment "
        "AND other.version = reward.version AND other.decision = reward.decision "
        f"AND other.seq <= {after.rewards}"
    )
    return (
        f"SELECT version, count(*), count(DISTINCT CASE WHEN NOT EXISTS ({earlier}) THEN decision END) "
        f"FROM rareswitch_rewards AS reward WHERE seq > {after.rewards} AND seq <= {upto.rewards} "
        f"AND experiment + 0 = {number} AND decision + 0 <= {after.decisions} GROUP BY version"
    )


def all_rewards_query(number: int, after: Marks, upto: Marks) -> str:
    """Rewards between marks, those too whose decision has not come."""
    return (
        f"SELECT count(*) FROM rareswitch_rewards WHERE seq > {after.rewards} AND seq <= {upto.rewards} "
        f"AND experiment + 0 = {number}"
    )
