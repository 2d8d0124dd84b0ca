"""What Alembic runs: the versions that are missing, in the transaction that `migration` has begun and will commit."""

from alembic import context
from sqlalchemy import Connection

from headrace.state.schema import metadata

connection = context.config.attributes["connection"]
assert isinstance(connection, Connection)
context.configure(connection=connection, target_metadata=metadata)
context.run_migrations()
