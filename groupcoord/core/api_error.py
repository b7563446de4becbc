"""How a handler refuses a request: it raises, and the entry of the API makes its own kind of error response of it."""

from groupcoord.protocol.errors import ErrorCode


class ApiError(Exception):
    """The answer is ``code``. ``message`` says what was wrong with which field; None where Kafka says no more than the code.

    Source: ``ApiException``, whose message goes into the answers that have a field for it.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code, self.message = code, message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message or self.code.text}"
