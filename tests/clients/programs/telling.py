"""The stdin and stdout protocol of the client programs in Python: reading commands, and reporting results."""

import sys


def told() -> dict[str, str]:
    """The arguments ``name=value``."""
    return dict(argument.split("=", 1) for argument in sys.argv[1:])


def say(*words: object) -> None:
    """Say a line."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()
