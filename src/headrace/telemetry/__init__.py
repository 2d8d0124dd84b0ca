"""Formats of logs, metrics and traces."""
