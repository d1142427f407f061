"""The exit codes of all commands, and the line that tells a person why a command failed."""

from __future__ import annotations

import os

from eqsat.errors import InputError

DONE = 0
DIFFERENT = 1
"""`eqsat verify` found a difference."""
CALLER = 2
"""A bad model, file or option; nothing was written."""
UNVERIFIED = 3
"""`eqsat verify` could not tell, or `--require-verified` refused a result."""
FAULT = 4
"""A defect of eqsat."""
INTERRUPTED = 130
CLOSED_PIPE = 141
"""The reader of standard output went away. Shells report the signal of a closed pipe so."""


def failure(error: Exception) -> tuple[int, str]:
    """Returns the exit code for an exception, and its text for standard error.

    Raises a defect of eqsat again if EQSAT_TRACEBACK asks for its traceback.
    """
    if isinstance(error, InputError):
        # Each problem in a rule file has a line with its place.
        return CALLER, str(error) if error.located else f"eqsat: error: {error}"
    if os.environ.get("EQSAT_TRACEBACK"):
        raise error
    text = " ".join(str(error).split())[:300]
    return FAULT, f"eqsat: internal error: {type(error).__name__}: {text} (please report it; EQSAT_TRACEBACK=1 shows more)"
