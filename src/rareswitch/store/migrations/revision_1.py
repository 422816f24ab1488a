"""The first schema."""

from typing import Any

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    import sqlalchemy as sa
    from alembic import op

    sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    number, large, data, text = sa.Integer(), sa.BigInteger(), sa.LargeBinary(), sa.Text()
    real: Any = sa.Double()

    def table(name: str, columns: dict[str, Any], key: tuple[str, ...], empty: tuple[str, ...] = ()) -> None:
        counted = len(key) == 1 and name not in ("contexts", "tallies")  # whose numbers are those of others
        made = [
            sa.Column(column, kind, nullable=column in empty, autoincrement=counted and column in key)
            for column, kind in columns.items()
        ]
        op.create_table(f"rareswitch_{name}", *made, sa.PrimaryKeyConstraint(*key))

    def index(name: str, columns: tuple[str, ...], unique: bool = False, where: str = "") -> None:
        only = sa.text(where) if where else None
        settings: Any = {"unique": unique, "sqlite_where": only, "postgresql_where": only}
        op.create_index(f"rareswitch_{name}", f"rareswitch_{name.partition('_')[0]}", list(columns), **settings)

    table("experiments", {"number": number, "name": text, "description": text}, ("number",))
    index("experiments_name", ("name",), unique=True)
    version = {"policy": data, "state": data, "summaries": data, "report": text, "signature": text, "time": real}
    table("versions", {"experiment": number, "number": number, **version}, ("experiment", "number"))
    update = {"plan": text, "decisions": sequence, "rewards": sequence}
    table("updates", {"experiment": number, "parent": number, **update}, ("experiment", "parent"))
    decision = {"key": data, "id": text, "version": number, "arm": text, "place": number, "propensity": real}
    decision |= {"features": data, "digest": data, "time": real, "rank": real, "baseline": number}
    decision |= {"checksum": large}
    table("decisions", {"seq": sequence, "experiment": number, **decision}, ("seq",), empty=("baseline",))
    index("decisions_key", ("experiment", "key"), unique=True)
    index("decisions_version", ("experiment", "version", "seq", "time"))
    index("decisions_time", ("experiment", "time"))
    context = {"version": number, "rank": real, "data": data, "names": text, "checksum": large}
    table("contexts", {"seq": sequence, "experiment": number, **context}, ("seq",), empty=("names",))
    index("contexts_rank", ("experiment", "version", "rank", "seq"))
    reward = {"key": data, "id": text, "event": text, "value": real, "time": real}
    later = {"decision": sequence, "version": number, "superseded": sequence}
    columns = {"seq": sequence, "experiment": number, **reward, **later, "checksum": large}
    table("rewards", columns, ("seq",), empty=tuple(later))
    index("rewards_key", ("experiment", "key", "event"), unique=True, where="superseded IS NULL")
    index("rewards_unmatched", ("experiment", "key"), where="decision IS NULL")
    read = ("superseded", "value", "time", "checksum")
    index("rewards_decision", ("experiment", "version", "decision", "seq", *read))
    table("counters", {"experiment": number, "name": text, "count": large}, ("experiment", "name"))
    tally = {"decisions": sequence, "rewards": sequence, "counted": text}
    table("tallies", {"experiment": number, **tally}, ("experiment",))
