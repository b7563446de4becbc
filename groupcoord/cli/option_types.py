"""Parsers of option values that several commands share."""


def listen_address(text: str) -> tuple[str, int] | None:
    """Host and port of HOST:PORT; the port may be 0, and an IPv6 address is in brackets. None if ``text`` is invalid."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_number(text: str, most: int) -> bool:
    """Whether ``text`` is a whole number from 1 to ``most``, in ASCII digits."""
    return text.isascii() and text.isdecimal() and 0 < int(text) <= most
