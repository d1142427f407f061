"""The errors a caller can cause.

`InputError` is the only exception that the public interface raises on purpose: its text is one
line that says what is wrong, where, and what to do; the command line prints it and exits with 2.
Everything else that escapes is a defect of eqsat.
"""


class InputError(ValueError):
    """The caller's model, option or file can not be used; the text is one line for a person."""

    located = False  # whether each line of the text begins with its own place in a file

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
