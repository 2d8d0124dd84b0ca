"""Alembic's folder: how the tables came to be what they are.

A new version: change `schema`, add the next file in `versions` by hand, forwards only; tests/state/test_migration.py
says whether the two agree. Versions that were released are never changed.
"""
