"""The tables. They are made and changed by `migrations`; a test holds the two together.

    incarnation     how far the journal of each worker process has been taken
    open_exchange   begun and not ended, as the journals say
    entry           the ledger: one row for each exchange that has ended, never changed
    amendment       other amounts for an entry, a row for each time that it was rated again, never changed
    spending        what budgets count, by key and by owner, hour and journal
    object          what is declared and not in the file
    object_change   how often that was changed

Columns that came with a later version stand last, as they do in a database that was there before. Money is in
nano-units, factors are in billionths.

Times are seconds since the epoch, durations seconds. What a column holds stands in docs/reference/ledger.md.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    false,
    text,
)

metadata = MetaData()

incarnation = Table(
    "incarnation",
    metadata,
    Column("node", Text, primary_key=True),
    Column("slot", Integer, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("segment", BigInteger, nullable=False),
    Column("byte", BigInteger, nullable=False),
    Column("damaged_bytes", BigInteger, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("ended_at", Double),
    Column("settled", Boolean, nullable=False, server_default=false()),
)

open_exchange = Table(
    "open_exchange",
    metadata,
    Column("id", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("incarnation", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("opened", LargeBinary, nullable=False),
    Column("reached", LargeBinary),
    Index("open_exchange_incarnation", "node", "slot", "incarnation"),
)

entry = Table(
    "entry",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("duration_s", Double, nullable=False),
    Column("first_event_s", Double),
    Column("node", Text, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("served_model", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("credential", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("end", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("status", Integer),
    Column("input_total", BigInteger),
    Column("cached_input", BigInteger),
    Column("cache_write", BigInteger),
    Column("cache_write_1h", BigInteger),
    Column("audio_input", BigInteger),
    Column("output_total", BigInteger),
    Column("reasoning", BigInteger),
    Column("audio_output", BigInteger),
    Column("usage_origin", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("cache_write_5m", BigInteger),
    Column("cache_write_30m", BigInteger),
    Column("cache_write_12h", BigInteger),
    Column("image_input", BigInteger),
    Column("image_output", BigInteger),
    Column("tier", Text, nullable=False, server_default=""),
    Column("cost", BigInteger),
    Column("charge", BigInteger),
    Column("counted", BigInteger, nullable=False, server_default="0"),
    Column("price", Text, nullable=False, server_default=""),
    Column("multiplier", BigInteger, nullable=False, server_default="1000000000"),
    Column("labels", Text),
    Index("entry_at", "at"),
    Index("entry_key_at", "key", "at"),
    Index(
        "entry_owner_at",
        "owner",
        "at",
        sqlite_where=text("owner <> ''"),
        postgresql_where=text("owner <> ''"),
    ),
)

amendment = Table(
    "amendment",
    metadata,
    Column("id", Text, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("cost", BigInteger),
    Column("charge", BigInteger),
    Column("counted", BigInteger, nullable=False),
    Column("price", Text, nullable=False),
    Column("multiplier", BigInteger, nullable=False),
    Column("money", LargeBinary, nullable=False),
)

spending = Table(
    "spending",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("node", Text, primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("incarnation", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

object = Table(
    "object",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("document", Text, nullable=False),
    Column("updated_at", Double, nullable=False),
)

object_change = Table("object_change", metadata, Column("number", BigInteger, nullable=False))
