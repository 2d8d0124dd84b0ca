"""Stage 7: the record that survives."""
