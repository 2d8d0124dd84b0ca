"""The ledger, what is open, how far the journals were taken, and declared objects."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """From nothing."""
    op.create_table(
        "incarnation",
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("slot", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("byte", sa.BigInteger, nullable=False),
        sa.Column("damaged_bytes", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
    )
    op.create_table(
        "open_exchange",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("incarnation", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("opened", sa.LargeBinary, nullable=False),
        sa.Column("reached", sa.LargeBinary),
    )
    op.create_index("open_exchange_incarnation", "open_exchange", ["node", "slot", "incarnation"])
    _create_entry()
    op.create_table(
        "object",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )


def _create_entry() -> None:
    op.create_table(
        "entry",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        sa.Column("first_event_s", sa.Double),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("protocol", sa.Text, nullable=False),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("served_model", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("credential", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("stream", sa.Boolean, nullable=False),
        sa.Column("end", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("input_total", sa.BigInteger),
        sa.Column("cached_input", sa.BigInteger),
        sa.Column("cache_write", sa.BigInteger),
        sa.Column("cache_write_1h", sa.BigInteger),
        sa.Column("audio_input", sa.BigInteger),
        sa.Column("output_total", sa.BigInteger),
        sa.Column("reasoning", sa.BigInteger),
        sa.Column("audio_output", sa.BigInteger),
        sa.Column("usage_origin", sa.Text, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    owned = sa.text("owner <> ''")
    op.create_index("entry_at", "entry", ["at"])
    op.create_index("entry_key_at", "entry", ["key", "at"])
    op.create_index("entry_owner_at", "entry", ["owner", "at"], sqlite_where=owned, postgresql_where=owned)
