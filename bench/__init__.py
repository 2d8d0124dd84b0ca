"""Measurements of the cost contract (SPEC 15): `load/` runs processes beside nginx, `micro/` times single functions."""
