"""Rows of an experiment, read back from a database."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rareswitch.store.sql_tables import tables
from rareswitch.store.store import DecisionRow, Marks, RewardRow

#: Decisions that are read at a time where all are wanted.
PAGE = 2000
#: Keys that one query names at the most.
KEYS = 500


def kept_page(
    connection: Any, number: int, after: int, upto: Marks
) -> list[tuple[int, tuple[DecisionRow, list[RewardRow]]]]:
    """Some decisions after a sequence number, each with its own and with its rewards in force at the mark."""
    import sqlalchemy as sa

    decisions, rewards = tables().decisions.c, tables().rewards.c
    # a sum is in no index: else SQLite looks up and sorts, for each page, all decisions that are left
    mine = decisions.experiment + 0 == number
    picked = (mine, decisions.seq > after, decisions.seq <= upto.decisions)
    page = _decisions(connection, picked, PAGE)
    if not page:
        return []
    held = sa.select(rewards.decision, *(rewards[name] for name in RewardRow._fields)).where(
        rewards.experiment == number,
        rewards.version.in_({row.version for row, _ in page}),
        rewards.decision.between(page[0][1], page[-1][1]),
        rewards.seq <= upto.rewards,
        sa.or_(rewards.superseded.is_(None), rewards.superseded > upto.rewards),
    )
    by_decision = groupby(connection.execute(held.order_by(rewards.decision, rewards.seq)), key=lambda row: row[0])
    found = {seq: [RewardRow(*row[1:]) for row in rows] for seq, rows in by_decision}
    return [(seq, (row, found.get(seq, []))) for row, seq in page]


def kept_decisions(connection: Any, number: int, keys: Sequence[bytes]) -> list[tuple[DecisionRow, int]]:
    """The decisions of these keys that are kept, with their sequence numbers."""
    decisions = tables().decisions.c
    return _decisions(connection, (decisions.experiment == number, decisions.key.in_(keys)))


def _decisions(connection: Any, picked: tuple[Any, ...], limit: int | None = None) -> list[tuple[DecisionRow, int]]:
    import sqlalchemy as sa

    decisions, contexts = tables().decisions.c, tables().contexts.c
    own = [decisions[name] for name in DecisionRow._fields[:11]]
    query = sa.select(*own, contexts.data, contexts.names, decisions.seq).where(*picked).order_by(decisions.seq)
    query = query.outerjoin_from(tables().decisions, tables().contexts, contexts.seq == decisions.seq).limit(limit)
    return [(DecisionRow(*row[:13]), int(row[13])) for row in connection.execute(query)]


def kept_rewards(connection: Any, number: int, keys: Sequence[bytes]) -> list[tuple[RewardRow, int]]:
    """The rewards of these keys that are in force now, with their sequence numbers."""
    import sqlalchemy as sa

    rewards = tables().rewards.c
    query = sa.select(*(rewards[name] for name in RewardRow._fields), rewards.seq).order_by(rewards.seq)
    query = query.where(rewards.experiment == number, rewards.key.in_(keys), rewards.superseded.is_(None))
    return [(RewardRow(*row[:5]), int(row[5])) for row in connection.execute(query)]
