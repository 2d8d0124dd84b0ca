"""The command line: one module per command, each a function that Typer calls.

    app                the commands, their help, --version
    serve check migrate simulate explain demo/    the commands
    output             tables for people on a terminal, plain lines otherwise
    configuration      reads the file, or ends with its errors
    signals            how SIGTERM and SIGINT end a command
    entry_view         an entry as words and tables

Exit codes: 0 as it should be, 1 it could not be done, 2 bad usage or a bad file.
"""

from headrace.cli.app import main

__all__ = ["main"]
