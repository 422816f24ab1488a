"""The tables of experiments, the same for SQLite and PostgreSQL; several experiments share one database.

What is kept is only added to. Two columns are filled in later: the decision of a reward that came first, and by which
reward another one was superseded. Sequence numbers (``seq``) order decisions, and rewards, as they came.
"""

from functools import cache
from typing import Any, NamedTuple


class Tables(NamedTuple):
    """All tables of an experiment, as SQLAlchemy knows them."""

    metadata: Any
    schema: Any
    experiments: Any
    versions: Any
    updates: Any
    refusals: Any
    decisions: Any
    contexts: Any
    rewards: Any
    counters: Any
    tallies: Any


@cache
def tables() -> Tables:
    """The tables, made once.

    >>> tables().decisions.name
    'rareswitch_decisions'
    """
    import sqlalchemy as sa

    metadata = sa.MetaData()
    number, real, data = sa.Integer, sa.Double, sa.LargeBinary
    # a column that is the rowid of SQLite must be INTEGER there
    sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def table(name: str, *parts: Any) -> Any:
        return sa.Table(f"rareswitch_{name}", metadata, *parts)

    def needed(name: str, kind: Any, **settings: Any) -> Any:
        return sa.Column(name, kind, nullable=False, **settings)

    schema = table("schema", needed("version", number, primary_key=True, autoincrement=False))
    experiments = table(
        "experiments",
        needed("number", number, primary_key=True),
        needed("name", sa.Text),
        needed("description", sa.Text),
        sa.Index("rareswitch_experiments_name", "name", unique=True),
    )
    versions = table(
        "versions",
        needed("experiment", number, primary_key=True),
        needed("number", number, primary_key=True, autoincrement=False),
        needed("policy", data),
        needed("state", data),
        needed("summaries", data),
        needed("report", sa.Text),
        needed("signature", sa.Text),
        needed("time", real),
    )
    updates = table(
        "updates",
        needed("experiment", number, primary_key=True),
        needed("parent", number, primary_key=True, autoincrement=False),
        needed("plan", sa.Text),
        needed("decisions", sequence),
        needed("rewards", sequence),
    )
    refusals = table(
        "refusals",
        needed("experiment", number, primary_key=True),
        needed("parent", number, primary_key=True, autoincrement=False),
        needed("number", number, primary_key=True, autoincrement=False),
        needed("report", sa.Text),
    )
    decisions = table(
        "decisions",
        needed("seq", sequence, primary_key=True),
        needed("experiment", number),
        needed("key", data),
        needed("id", sa.Text),
        needed("version", number),
        needed("arm", sa.Text),
        needed("place", number),
        needed("propensity", real),
        needed("features", data),
        needed("digest", data),
        needed("time", real),
        needed("rank", real),
        sa.Column("baseline", number),
        needed("checksum", sa.BigInteger),
        sa.Index("rareswitch_decisions_key", "experiment", "key", unique=True),
        sa.Index("rareswitch_decisions_version", "experiment", "version", "seq", "time"),
        sa.Index("rareswitch_decisions_time", "experiment", "time"),
    )
    contexts = table(
        "contexts",
        needed("seq", sequence, primary_key=True, autoincrement=False),
        needed("experiment", number),
        needed("version", number),
        needed("rank", real),
        needed("data", data),
        sa.Column("names", sa.Text),
        needed("checksum", sa.BigInteger),
        sa.Index("rareswitch_contexts_rank", "experiment", "version", "rank", "seq"),
    )
    rewards = table(
        "rewards",
        needed("seq", sequence, primary_key=True),
        needed("experiment", number),
        needed("key", data),
        needed("id", sa.Text),
        needed("event", sa.Text),
        needed("value", real),
        needed("time", real),
        sa.Column("decision", sequence),
        sa.Column("version", number),
        sa.Column("superseded", sequence),
        needed("checksum", sa.BigInteger),
    )
    read_of_rewards = ("superseded", "value", "time", "checksum")
    held, alone = rewards.c.superseded.is_(None), rewards.c.decision.is_(None)
    for name, columns, unique, where in (
        ("key", ("experiment", "key", "event"), True, held),
        ("unmatched", ("experiment", "key"), False, alone),
        ("decision", ("experiment", "version", "decision", "seq", *read_of_rewards), False, None),
    ):
        picked = [rewards.c[column] for column in columns]
        sa.Index(f"rareswitch_rewards_{name}", *picked, unique=unique, sqlite_where=where, postgresql_where=where)
    counters = table(
        "counters",
        needed("experiment", number, primary_key=True),
        needed("name", sa.Text, primary_key=True),
        needed("count", sa.BigInteger),
    )
    tallies = table(
        "tallies",
        needed("experiment", number, primary_key=True, autoincrement=False),
        needed("decisions", sequence),
        needed("rewards", sequence),
        needed("counted", sa.Text),
    )
    made = (experiments, versions, updates, refusals, decisions, contexts, rewards, counters, tallies)
    return Tables(metadata, schema, *made)
