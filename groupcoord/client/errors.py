"""What can go wrong for a consumer, by what its user can do about it."""

from collections.abc import Iterable

from groupcoord.protocol.errors import ErrorCode


class ClientError(Exception):
    """Everything that this client raises by itself."""


class BrokerError(ClientError):
    """A broker answered ``code`` and there is nothing the client can do about it by itself."""

    def __init__(self, code: ErrorCode, doing: str) -> None:
        super().__init__(f"{doing}: {code.name}: {code.text}")
        self.code = code


class DisconnectedError(ClientError):
    """The connection to a broker ended, or never began, before there was an answer."""


class RequestTimedOutError(DisconnectedError):
    """There was no answer in time, so the connection was given up."""


class UnsupportedVersionError(ClientError):
    """The broker does not speak a version of a request that this client speaks."""


class RebalanceInProgressError(ClientError):
    """A commit came at a moment at which the group is between two generations. Poll until it is over, then commit again."""


class CommitFailedError(ClientError):
    """The member is no longer part of the group, or of the generation it commits for: others may own its partitions."""


class AssignorFailedError(ClientError):
    """An assignor, this member's or the leader's, gave no answer that makes sense. The group goes on without this member."""


class CallbackFailedError(ClientError):
    """A callback of the user raised; what it raised is the ``__cause__``. The rebalance went on nevertheless."""


class OffsetError(ClientError):
    """There is no place to read from in some partitions, and no reset policy that finds one."""

    def __init__(self, partitions: Iterable[tuple[str, int]], why: str) -> None:
        self.partitions = tuple(sorted(partitions))
        super().__init__(f"{', '.join(f'{topic}-{number}' for topic, number in self.partitions)}: {why}")


class CorruptRecordsError(ClientError):
    """A partition holds bytes that are no record batches, or that are not what they were when they were written."""


class ConsumerClosedError(ClientError):
    """The consumer is not open: its block has not begun or has ended."""
