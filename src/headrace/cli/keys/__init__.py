"""`headrace keys`: the keys of the database, beside those that the file declares.

secret      what a client sends: made here, shown once, kept as a digest
fields      the options that make up a key, as a document
view        keys as tables, and for programs
command     the commands
"""

from headrace.cli.keys.command import app

__all__ = ["app"]
