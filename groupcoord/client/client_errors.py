"""The exceptions that the consumer, the producer and their connections raise; ``ClientError`` is their base."""

from collections.abc import Iterable

from groupcoord.core.events import partition_names
from groupcoord.protocol.errors import ErrorCode


class ClientError(Exception):
    """Base of the exceptions of this client."""


class BrokerError(ClientError):
    """A broker answered with the error ``code``, and the client cannot recover from it by itself."""

    def __init__(self, code: ErrorCode, doing: str, said: str = "") -> None:
        super().__init__(f"{doing}: {code.name}: {said or code.text}")
        self.code = code


class DisconnectedError(ClientError):
    """The connection to a broker could not be opened, or was closed before the response."""


class ConnectionClosedError(DisconnectedError):
    """The connection was closed by this client itself, while a request waited for its response."""


class UnsecuredConnectionError(DisconnectedError):
    """A broker closed a connection without a response, as a listener does that requires TLS or SASL."""


class RequestTimedOutError(DisconnectedError):
    """There was no response in time, so the connection was closed."""


class UnsupportedVersionError(ClientError):
    """Broker and client have no version of a request in common."""


class AuthenticationError(ClientError):
    """The certificate of a broker is not trusted, or the broker rejected the client's credentials."""


class NoGroupError(ClientError):
    """The call needs a group, and the consumer has no ``group_id``."""


class NotSubscribedError(ClientError):
    """The consumer polls, and has neither a subscription nor an assignment."""


class RecordDeserializationError(ClientError):
    """A deserializer raised; ``__cause__`` is its exception. The position stays at the record: seek past it to skip it."""

    def __init__(self, partition: tuple[str, int], offset: int, part: str) -> None:
        self.partition, self.offset = partition, offset
        super().__init__(
            f"the {part} of the record at offset {offset} of {partition[0]}-{partition[1]} cannot be deserialized; "
            f"seek({partition}, {offset + 1}) passes over it"
        )


class RebalanceInProgressError(ClientError):
    """A commit came during a rebalance. Poll until it is over, then commit again."""


class CommitFailedError(ClientError):
    """The member is no longer part of the group, or of the generation it commits for: others may own its partitions."""


class AssignorFailedError(ClientError):
    """The assignor of this member or its leader failed or returned an invalid assignment. This member leaves the group."""


class CallbackFailedError(ClientError):
    """A rebalance callback of the user raised; ``__cause__`` is its exception. The rebalance continued nevertheless."""


class OffsetError(ClientError):
    """Some partitions have no valid position, and the reset policy is none."""

    def __init__(self, partitions: Iterable[tuple[str, int]], why: str) -> None:
        self.partitions = tuple(sorted(partitions))
        super().__init__(f"{partition_names(self.partitions)}: {why}")


class CorruptRecordsError(ClientError):
    """A fetch returned bytes that are not record batches, or whose checksum is wrong."""


class ConsumerClosedError(ClientError):
    """The consumer is used before or after its ``async with`` block."""
