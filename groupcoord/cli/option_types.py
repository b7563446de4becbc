"""Parsers of option values that several commands share. ``error`` is the text of an error, in which ``{text}`` is the value."""

import argparse
import math
from collections.abc import Callable


def whole_number(error: str, lowest: int = 1, highest: float = math.inf) -> Callable[[str], int]:
    """A parser of whole numbers from ``lowest`` to ``highest``, in ASCII digits."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and lowest <= int(text) <= highest):
            raise argparse.ArgumentTypeError(error.format(text=text))
        return int(text)

    return read


def positive_number(error: str) -> Callable[[str], float]:
    """A parser of finite numbers above 0."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number < math.inf:
            raise argparse.ArgumentTypeError(error.format(text=text))
        return number

    return read


def listen_address(error: str) -> Callable[[str], tuple[str, int]]:
    """A parser of HOST:PORT; the port may be 0, and an IPv6 address is in brackets."""

    def read(text: str) -> tuple[str, int]:
        host, colon, port = text.rpartition(":")
        if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
            raise argparse.ArgumentTypeError(error.format(text=text))
        return host.removeprefix("[").removesuffix("]"), int(port)

    return read
