"""How this interpreter is started anew for another module of the program."""

import os
import sys
from pathlib import Path


def command(module: str, descriptor: int) -> list[str]:
    """`python -m module --fd N`, with the warnings of this process.

    With -P, so that the folder where the gateway is started cannot put its own modules before ours; but where ours are
    found by that folder only (a working copy's `src`) it has to stay.
    """
    here = Path(__file__).parents[2]
    safe = [] if here == Path.cwd() and str(here) not in os.environ.get("PYTHONPATH", "").split(os.pathsep) else ["-P"]
    return [sys.executable, *safe, *(f"-W{one}" for one in sys.warnoptions), "-m", module, "--fd", str(descriptor)]
