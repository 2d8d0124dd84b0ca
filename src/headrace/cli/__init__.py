"""The command line: one module per command, each a function that Typer calls.

    app                the commands, their help, --version
    init serve check migrate connect try_ explain verify usage/ simulate demo/    the commands
    keys/ owners models prices/        commands about what is declared
    output             tables for people on a terminal, plain lines otherwise
    configuration      reads the file, or ends with its errors
    signals            how SIGTERM and SIGINT end a command
    providers, starting_file, private_file    what init knows, writes, and how
    gateway_file, target    where the gateway is and its keys are, for commands beside it
    snippets           what connect prints
    asking, reading    a client of the gateway: HTTP, and what events say
    state_child        asks the database, through a process that carries its libraries
    registry, standing    what the file and the database declare, and the way to change it
    allowance, object_document, option_groups, moments    values on the command line, and what they come to
    entry_lookup       the exchange that a command is about
    entry_summary, entry_view    an exchange as words and tables

Exit codes: 0 as it should be, 1 it could not be done, 2 bad usage or a bad file.
"""

from headrace.cli.app import main

__all__ = ["main"]
