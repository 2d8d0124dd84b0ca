"""Measurements of the cost contract: `load/` runs processes beside nginx, `micro/` times single functions."""
