"""Stage 1: accepts clients and writes to them."""
