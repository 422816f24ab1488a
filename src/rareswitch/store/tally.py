"""What an experiment holds, counted up to some sequence numbers and kept: only what came since is counted again.

So status and schedules cost the same whatever is stored. What was counted then is also compared with what is read by an
update: rows that are missing from a damaged index would go unnoticed otherwise.
"""

import json
import zlib
from typing import NamedTuple

from rareswitch.errors import StoreError
from rareswitch.store.connections import Connection
from rareswitch.store.rows import Counts, Marks

#: Beyond all sequence numbers.
ALL = Marks(1 << 62, 1 << 62)


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

    marks: Marks = Marks(0, 0)
    #: With those that were superseded, and those whose decision has not come.
    rewards: int = 0
    versions: dict[int, Tallied] = {}  # noqa: RUF012 (never changed)

    def counts(self) -> list[Counts]:
        """Of the versions that have decided."""
        decided = sorted((version, counted) for version, counted in self.versions.items() if counted.decisions)
        return [Counts(version, of.decisions, of.rewarded, of.first_time, of.last_time) for version, of in decided]


def kept_tally(connection: Connection, number: int, upto: Marks = ALL) -> Tally:
    """The last one that was kept; an empty one where there is none, or it lies beyond these marks."""
    query = f"SELECT decisions, rewards, counted FROM rareswitch_tallies WHERE experiment = {number}"
    row = connection.execute(query).fetchone()
    if row is None:
        return Tally()
    checksum, _, text = str(row[2]).partition(" ")
    if checksum != _checksum(row[0], row[1], text):
        raise StoreError(
            f"the counts of experiment number {number} are damaged: they do not match their checksum. Restore a backup."
        )
    if row[0] > upto.decisions or row[1] > upto.rewards:
        return Tally()
    counted = json.loads(text)
    versions = {int(version): Tallied(*values) for version, values in counted["versions"].items()}
    return Tally(Marks(int(row[0]), int(row[1])), int(counted["rewards"]), versions)


def keep_tally(connection: Connection, number: int, tally: Tally) -> None:
    """Keep it, in place of the one before."""
    text = json.dumps({"rewards": tally.rewards, "versions": tally.versions})
    connection.execute(
        "INSERT INTO rareswitch_tallies (experiment, decisions, rewards, counted) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (experiment) DO UPDATE SET decisions = excluded.decisions, rewards = excluded.rewards, "
        "counted = excluded.counted",
        (number, *tally.marks, f"{_checksum(*tally.marks, text)} {text}"),
    )


def _checksum(decisions: int, rewards: int, text: str) -> str:
    return f"{zlib.crc32(f'{decisions} {rewards} {text}'.encode()):08x}"


def tallied(connection: Connection, number: int, upto: Marks = ALL) -> Tally:
    """What there is up to marks, by counting what came since the last tally that was kept before them.

    Queries hold whole numbers only, so there is nothing to escape. A sum is in no index, so that a range of sequence
    numbers is taken.
    """
    before = kept_tally(connection, number, upto)
    after, versions = before.marks, dict(before.versions)
    late = {row[0]: row[1:] for row in connection.execute(_late_query(number, after, upto))}
    version: int | None = 0
    while (version := _next_version(connection, number, version or 0)) is not None:
        known = versions.get(version, Tallied())
        decisions, first, last = connection.execute(
            f"SELECT count(*), min(time), max(time) FROM rareswitch_decisions WHERE experiment = {number} "
            f"AND version = {version} AND seq > {after.decisions} AND seq <= {upto.decisions}"
        ).fetchone()
        rewards, rewarded = connection.execute(  # of these decisions, whenever they came
            f"SELECT count(*), count(DISTINCT decision) FROM rareswitch_rewards WHERE experiment = {number} "
            f"AND version = {version} AND decision > {after.decisions} AND decision <= {upto.decisions} "
            f"AND seq <= {upto.rewards}"
        ).fetchone()
        late_rewards, late_rewarded = late.get(version, (0, 0))
        versions[version] = Tallied(
            known.decisions + decisions,
            known.rewarded + rewarded + late_rewarded,
            known.rewards + rewards + late_rewards,
            known.first_time if first is None else min(known.first_time, first),
            known.last_time if last is None else max(known.last_time, last),
        )
    return Tally(upto, before.rewards + count_rewards(connection, number, after, upto), versions)


def _next_version(connection: Connection, number: int, after: int) -> int | None:
    query = f"SELECT min(version) FROM rareswitch_decisions WHERE experiment = {number} AND version > {after}"
    version: int | None = connection.execute(query).fetchone()[0]
    return version


def _late_query(number: int, after: Marks, upto: Marks) -> str:
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


def count_rewards(connection: Connection, number: int, after: Marks, upto: Marks) -> int:
    """Rewards between marks, those too whose decision has not come."""
    query = (
        f"SELECT count(*) FROM rareswitch_rewards WHERE seq > {after.rewards} AND seq <= {upto.rewards} "
        f"AND experiment + 0 = {number}"
    )
    return int(connection.execute(query).fetchone()[0])
