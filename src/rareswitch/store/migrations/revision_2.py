"""Updates that were refused."""

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    import sqlalchemy as sa
    from alembic import op

    names = ("experiment", "parent", "number")
    numbers = [sa.Column(name, sa.Integer(), nullable=False, autoincrement=False) for name in names]
    report = sa.Column("report", sa.Text(), nullable=False)
    op.create_table("rareswitch_refusals", *numbers, report, sa.PrimaryKeyConstraint(*names))
