"""Addresses of brokers, as users write them."""

from collections.abc import Iterable

Address = tuple[str, int]
DEFAULT_PORT = 9092


def parse_addresses(bootstrap: str | Iterable[str], *, default_port: int | None = DEFAULT_PORT) -> tuple[Address, ...]:
    """``host:port`` of several brokers, separated by commas or in several strings. Raises ValueError, also for none."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    found = tuple(parse_address(text, default_port=default_port) for text in texts if text.strip())
    if not found:
        raise ValueError("no address of a broker was given")
    return found


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """``host:port``; without ``default_port`` the port must be there. An IPv6 host is in brackets. Raises ValueError."""
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        if default_port is None:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return text.strip("[]"), default_port
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
        raise ValueError(f"{text}: {port} is not a port")
    return host.strip("[]"), int(port)
