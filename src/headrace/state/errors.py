"""What can go wrong with a database, for those who know none. No message holds an address's password or a value."""


class StateError(Exception):
    """The text says what is wrong and what to do."""


class DatabaseAwayError(StateError):
    """The database cannot do it now: no connection, a lost one, a time limit, a fault of its own.

    Whether a transaction was committed is not known when its end is lost: look before trying again.
    """


class ConflictError(StateError):
    """A row that was to be new is there already. Nothing was changed."""


class PositionMovedError(StateError):
    """Someone else has taken these records already: ask for the position and go on from there."""


class OtherVersionError(StateError):
    """The tables are those of another version of this program. Nothing was touched."""
