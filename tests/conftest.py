"""What holds for every test."""

import warnings

import uvloop
from hypothesis import settings

# An example's duration says nothing while other tests share the processor; pytest's own time limit catches hangs.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")

_close = uvloop.Loop.close


def close(loop: uvloop.Loop) -> None:
    """Close a loop, then warn of what was still open in it.

    uvloop warns first and closes then. Where a warning is an error the handle stays open, and the loop's close waits
    for it in C: for ever, and no signal ends that.
    """
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)
        _close(loop)
    for warning in left:
        warnings.warn(warning.message, stacklevel=2)


uvloop.Loop.close = close  # type: ignore[assignment, method-assign]
