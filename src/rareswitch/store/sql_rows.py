"""Rows of an experiment, read back from a database."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from rareswitch.store.checksums import of_contexts, of_decisions, of_rewards
from rareswitch.store.sql_slices import damaged, damaged_row
from rareswitch.store.sql_tables import tables
from rareswitch.store.store import DecisionRow, Marks, RewardRow

#: Decisions that are read at a time where all are wanted.
PAGE = 2000
#: Keys that one query names at the most.
KEYS = 500


def kept_page(
    connection: Any, number: int, after: int, upto: Marks, name: str = ""
) -> list[tuple[int, tuple[DecisionRow, list[RewardRow]]]]:
    """Some decisions after a sequence number, each with its own and with its rewards in force at the mark."""
    import sqlalchemy as sa

    decisions, rewards = tables().decisions.c, tables().rewards.c
    # a sum is in no index: else SQLite looks up and sorts, for each page, all decisions that are left
    mine = decisions.experiment + 0 == number
    picked = (mine, decisions.seq > after, decisions.seq <= upto.decisions)
    page = _decisions(connection, picked, PAGE, name=name)
    if not page:
        return []
    held = sa.select(rewards.decision, *_reward_columns()).where(
        rewards.experiment == number,
        rewards.version.in_({row.version for row, _ in page}),
        rewards.decision.between(page[0][1], page[-1][1]),
        rewards.seq <= upto.rewards,
        sa.or_(rewards.superseded.is_(None), rewards.superseded > upto.rewards),
    )
    rows = _rewards(connection, held.order_by(rewards.decision, rewards.seq), name)
    by_decision = groupby(rows, key=lambda row: row[0])
    found = {seq: [row for _, row in rows] for seq, rows in by_decision}
    return [(seq, (row, found.get(seq, []))) for row, seq in page]


def kept_decisions(connection: Any, number: int, keys: Sequence[bytes]) -> list[tuple[DecisionRow, int]]:
    """The decisions of these keys that are kept, with their sequence numbers."""
    decisions = tables().decisions.c
    return _decisions(connection, (decisions.experiment == number, decisions.key.in_(keys)))


def _decisions(
    connection: Any, picked: tuple[Any, ...], limit: int | None = None, name: str = ""
) -> list[tuple[DecisionRow, int]]:
    import sqlalchemy as sa

    decisions, contexts = tables().decisions.c, tables().contexts.c
    own = [decisions[name] for name in DecisionRow._fields[:11]]
    more = contexts.data, contexts.names, decisions.seq, decisions.checksum, contexts.checksum
    query = sa.select(*own, *more).where(*picked).order_by(decisions.seq)
    query = query.outerjoin_from(tables().decisions, tables().contexts, contexts.seq == decisions.seq).limit(limit)
    kept = [(DecisionRow(*row[:13]), *row[13:]) for row in connection.execute(query)]
    expected = _checked(of_decisions, [row for row, *_ in kept], name=name)
    for (row, seq, checksum, other), wanted in zip(kept, expected, strict=True):
        if checksum != wanted or (row.contexts is not None and other != of_contexts(row)):
            raise damaged_row(name, "decision", seq)
    return [(row, int(seq)) for row, seq, *_ in kept]


def kept_rewards(connection: Any, number: int, keys: Sequence[bytes]) -> list[tuple[RewardRow, int]]:
    """The rewards of these keys that are in force now, with their sequence numbers."""
    import sqlalchemy as sa

    rewards = tables().rewards.c
    query = sa.select(rewards.seq, *_reward_columns()).order_by(rewards.seq)
    query = query.where(rewards.experiment == number, rewards.key.in_(keys), rewards.superseded.is_(None))
    return [(row, seq) for seq, row in _rewards(connection, query)]


def _reward_columns() -> list[Any]:
    rewards = tables().rewards.c
    return [*(rewards[name] for name in RewardRow._fields), rewards.superseded, rewards.checksum]


def _rewards(connection: Any, query: Any, name: str = "") -> list[tuple[int, RewardRow]]:
    """Rewards, each with the number that comes first in the query."""
    kept = [(int(row[0]), RewardRow(*row[1:6]), row[6] or 0, row[7]) for row in connection.execute(query)]
    expected = _checked(of_rewards, [row for _, row, _, _ in kept], [other for _, _, other, _ in kept], name=name)
    for (seq, _, _, checksum), wanted in zip(kept, expected, strict=True):
        if checksum != wanted:
            raise damaged_row(name, "reward", seq)
    return [(seq, row) for seq, row, _, _ in kept]


def _checked(checksums: Callable[..., list[int]], *rows: Any, name: str) -> list[int]:
    try:
        return checksums(*rows)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise damaged(name, f"numbers and vectors, not these ({error})") from error
