"""How a handler says no: raise, and the API's entry makes its own kind of error response of it."""

from groupcoord.protocol.errors import ErrorCode


class Refused(Exception):
    """The request is refused with ``code``; ``why`` says in words what was wrong with which field."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        self.code, self.why = code, why
        super().__init__(f"{code.name}: {why}")
