"""ApiError, which a handler raises to refuse a request; it becomes an error response of the API."""

from groupcoord.protocol.errors import ErrorCode


class ApiError(Exception):
    """A request is refused with ``code``. ``message`` has the details; None where Kafka sends only the code.

    Source: ``ApiException``, whose message is sent in responses that have a field for it.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code, self.message = code, message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message or self.code.text}"
