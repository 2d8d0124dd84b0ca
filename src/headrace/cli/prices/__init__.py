"""`headrace prices`: what models cost, in the file and in the database.

fields      the options that make up a price, as a document
view        prices as tables, and for programs; `headrace models` shows them so, too
command     the commands
"""

from headrace.cli.prices.command import app

__all__ = ["app"]
