"""Server-sent events as pure bytes: where events end, and what one event says."""
