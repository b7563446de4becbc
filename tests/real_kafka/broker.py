"""The common interface of a real broker in a container or as a child process, and the errors of both."""

from types import TracebackType
from typing import Protocol, Self

LINES_OF_LOG = 60


class RealKafkaUnavailable(Exception):
    """No real broker can be started here; the text says what is missing."""


class BrokerFailed(Exception):
    """A broker was started and ended or never answered; the text has the end of its log."""


class Broker(Protocol):
    """A lone real broker, which as a context manager runs until its block ends."""

    what: str
    """``container of apache/kafka:4.3.1``, for reports."""

    @property
    def bootstrap_servers(self) -> str:
        """``127.0.0.1:PORT``."""

    def log(self) -> str:
        """Everything that the broker has logged so far."""

    def __enter__(self) -> Self:
        """Start it. Returns when it coordinates all groups. Raises BrokerFailed."""

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None, /
    ) -> None:
        """Stop it and remove everything of it."""


def end_of_log(what: str, log: str) -> str:
    """The last lines of ``log``, under a title."""
    lines = log.splitlines()[-LINES_OF_LOG:]
    return "\n".join([f"The end of the log of the {what}:", *(f"  {line}" for line in lines)])
