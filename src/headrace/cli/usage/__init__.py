"""`headrace usage`: what was used and what it cost, out of the ledger.

sums        the rows as numbers, and their total
table       rows for people, CSV and JSON for programs
plot        bars for a terminal
command     the command
"""

from headrace.cli.usage.command import usage

__all__ = ["usage"]
