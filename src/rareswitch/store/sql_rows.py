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
    connection: Any, number: int, after: int, upto: Marks, name: str
) -> list[tuple[int, tuple[DecisionRow, list[RewardRow]]]]:
    """Some decisions after a sequence number, each with its own and with its rewards in force at the mark.

    Rows that are not what was kept are an error that names the experiment.
    """
    import sqlalchemy as sa

    decisions, rewards = tables().decisions.c, tables().rewards.c
    # a sum is in no index: else SQLite looks up and sorts, for each page, all decisions that are left
    mine = decisions.experiment + 0 == number
    picked = (mine, decisions.seq > after, decisions.seq <= upto.decisions)
    page = _decisions(connection, picked, PAGE, name=name)
    if not page:
        return []
    columns = [rewards[column] for column in ("decision", *RewardRow._fields, "superseded", "checksum")]
    held = sa.select(*columns).where(
        rewards.experiment == number,
        rewards.version.in_({row.version for row, _ in page}),
        rewards.decision.between(page[0][1], page[-1][1]),
        rewards.seq <= upto.rewards,
        sa.or_(rewards.superseded.is_(None), rewards.superseded > upto.rewards),
    )
    kept = list(connection.execute(held.order_by(rewards.decision, rewards.seq)))
    rows = [RewardRow(*row[1:6]) for row in kept]
    expected = _checked(of_rewards, rows, [row.superseded or 0 for row in kept], name=name)
    for row, wanted in zip(kept, expected, strict=True):
        if row.checksum != wanted:
            raise damaged_row(name, "reward of decision", row.decision)
    by_decision = groupby(zip(kept, rows, strict=True), key=lambda pair: pair[0].decision)
    found = {seq: [row for _, row in pairs] for seq, pairs in by_decision}
    return [(seq, (row, found.get(seq, []))) for row, seq in page]


def kept_decisions(connection: Any, number: int, keys: Sequence[bytes]) -> list[tuple[DecisionRow, int]]:
    """The decisions of these keys that are kept, with their sequence numbers."""
    decisions = tables().decisions.c
    return _decisions(connection, (decisions.experiment == number, decisions.key.in_(keys)))


def _decisions(
    connection: Any, picked: tuple[Any, ...], limit: int | None = None, name: str | None = None
) -> list[tuple[DecisionRow, int]]:
    """With the name of the experiment they are checked; an audit shall see what is there."""
    import sqlalchemy as sa

    decisions, contexts = tables().decisions.c, tables().contexts.c
    own = [decisions[column] for column in DecisionRow._fields[:11]]
    more = contexts.data, contexts.names, decisions.seq, decisions.checksum, contexts.checksum
    query = sa.select(*own, *more).where(*picked).order_by(decisions.seq)
    query = query.outerjoin_from(tables().decisions, tables().contexts, contexts.seq == decisions.seq).limit(limit)
    kept = [(DecisionRow(*row[:13]), *row[13:]) for row in connection.execute(query)]
    if name is not None:
        rows = [row for row, *_ in kept]
        expected, sets = (_checked(checksums, rows, name=name) for checksums in (of_decisions, _of_sets))
        for (row, seq, *kept_with), *wanted in zip(kept, expected, sets, strict=True):
            if kept_with[0] != wanted[0] or (row.contexts is not None and kept_with[1] != wanted[1]):
                raise damaged_row(name, "decision", seq)
    return [(row, int(seq)) for row, seq, *_ in kept]


def kept_rewards(connection: Any, number: int, keys: Sequence[bytes]) -> list[tuple[RewardRow, int]]:
    """The rewards of these keys that are in force now, with their sequence numbers."""
    import sqlalchemy as sa

    rewards = tables().rewards.c
    query = sa.select(*(rewards[name] for name in RewardRow._fields), rewards.seq).order_by(rewards.seq)
    query = query.where(rewards.experiment == number, rewards.key.in_(keys), rewards.superseded.is_(None))
    return [(RewardRow(*row[:5]), int(row[5])) for row in connection.execute(query)]


def _of_sets(rows: Sequence[DecisionRow]) -> list[int]:
    return [0 if row.contexts is None else of_contexts(row) for row in rows]


def _checked(checksums: Callable[..., list[int]], *rows: Any, name: str) -> list[int]:
    try:
        return checksums(*rows)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise damaged(name, f"numbers and vectors, not these ({error})") from error
