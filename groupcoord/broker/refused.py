"""A request that the broker refuses, in part or whole."""

from groupcoord.protocol.errors import ErrorCode


class Refused(Exception):
    """What was asked for is answered with ``error``; ``text`` is the message beside it, None where Kafka sends none."""

    def __init__(self, error: ErrorCode, text: str | None = None) -> None:
        self.error, self.text = error, text
        super().__init__(text or error.text)
