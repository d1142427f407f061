"""The errors that a caller can cause.

`InputError` is the only exception that the public interface raises on purpose. Its text is one
line: the problem, its place and a remedy. Only the errors of a rule file take several lines. The
command line prints the text and exits with code 2. Any other exception is a defect of eqsat.
"""


class InputError(ValueError):
    """The caller's model, option or file cannot be used; the text is one line for people."""

    located = False  # whether each line of the text begins with its own place in a file

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
