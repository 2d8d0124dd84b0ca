"""Money: what entries cost, what superseded it, what budgets count; and a number that objects' changes move."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """From 0001. Entries that are there have unknown costs, and count for nothing: nobody had a budget."""
    op.add_column("incarnation", sa.Column("ended_at", sa.Double))
    op.add_column("incarnation", sa.Column("settled", sa.Boolean, nullable=False, server_default=sa.false()))
    _extend_entry()
    op.create_table(
        "amendment",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("cost", sa.BigInteger),
        sa.Column("charge", sa.BigInteger),
        sa.Column("counted", sa.BigInteger, nullable=False),
        sa.Column("price", sa.Text, nullable=False),
        sa.Column("multiplier", sa.BigInteger, nullable=False),
        sa.Column("money", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "spending",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("slot", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("incarnation", sa.Text, primary_key=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    change = op.create_table("object_change", sa.Column("number", sa.BigInteger, nullable=False))
    op.bulk_insert(change, [{"number": 0}])


def _extend_entry() -> None:
    for name in ("cache_write_5m", "cache_write_30m", "cache_write_12h", "image_input", "image_output"):
        op.add_column("entry", sa.Column(name, sa.BigInteger))
    op.add_column("entry", sa.Column("tier", sa.Text, nullable=False, server_default=""))
    op.add_column("entry", sa.Column("cost", sa.BigInteger))
    op.add_column("entry", sa.Column("charge", sa.BigInteger))
    op.add_column("entry", sa.Column("counted", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("entry", sa.Column("price", sa.Text, nullable=False, server_default=""))
    op.add_column("entry", sa.Column("multiplier", sa.BigInteger, nullable=False, server_default="1000000000"))
    op.add_column("entry", sa.Column("labels", sa.Text))
