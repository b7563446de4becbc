"""The exceptions of the client, by what its user can do about them."""

from collections.abc import Iterable

from groupcoord.protocol.errors import ErrorCode


class ClientError(Exception):
    """Base of the exceptions of this client."""


class BrokerError(ClientError):
    """A broker answered with the error ``code``, and the client cannot recover from it by itself."""

    def __init__(self, code: ErrorCode, doing: str) -> None:
        super().__init__(f"{doing}: {code.name}: {code.text}")
        self.code = code


class DisconnectedError(ClientError):
    """The connection to a broker could not be opened, or was closed before the response."""


class RequestTimedOutError(DisconnectedError):
    """There was no response in time, so the connection was closed."""


class UnsupportedVersionError(ClientError):
    """Broker and client have no version of a request in common."""


class RebalanceInProgressError(ClientError):
    """A commit came during a rebalance. Poll until it is over, then commit again."""


class CommitFailedError(ClientError):
    """The member is no longer part of the group, or of the generation it commits for: others may own its partitions."""


class AssignorFailedError(ClientError):
    """The assignor of this member or its leader failed or gave an invalid assignment. The group goes on without this member."""


class CallbackFailedError(ClientError):
    """A callback of the user raised; what it raised is the ``__cause__``. The rebalance went on nevertheless."""


class OffsetError(ClientError):
    """Some partitions have no valid position, and the reset policy is none."""

    def __init__(self, partitions: Iterable[tuple[str, int]], why: str) -> None:
        self.partitions = tuple(sorted(partitions))
        super().__init__(f"{', '.join(f'{topic}-{number}' for topic, number in self.partitions)}: {why}")


class CorruptRecordsError(ClientError):
    """A fetch returned bytes that are no record batches, or whose checksum is wrong."""


class ConsumerClosedError(ClientError):
    """The consumer is not open: its block has not begun or has ended."""
