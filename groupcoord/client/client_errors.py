"""The exceptions of the client, by what its user can do about them; and what a member does about error codes by itself.

Sources of the reactions: the response handlers of ``AbstractCoordinator`` and ``ConsumerCoordinator``. Each table has a default
for the codes that it does not name.
"""

import enum
from collections.abc import Iterable, Mapping

from groupcoord.core.events import partition_names
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.errors import ErrorCode as E


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
    """A broker closed a connection before it answered, as one does whose listener wants TLS or a login."""


class RequestTimedOutError(DisconnectedError):
    """There was no response in time, so the connection was closed."""


class UnsupportedVersionError(ClientError):
    """Broker and client have no version of a request in common."""


class AuthenticationError(ClientError):
    """The certificate of a broker is not trusted, or the broker does not accept who the client says it is."""


class NoGroupError(ClientError):
    """What was asked for needs a group, and the consumer has no ``group_id``."""


class NotSubscribedError(ClientError):
    """The consumer polls, and has neither a subscription nor an assignment."""


class RecordDeserializationError(ClientError):
    """A deserializer raised; what it raised is the ``__cause__``. The position stays at the record: seek to go on behind it."""

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
    """The assignor of this member or its leader failed or gave an invalid assignment. The group goes on without this member."""


class CallbackFailedError(ClientError):
    """A callback of the user raised; what it raised is the ``__cause__``. The rebalance went on nevertheless."""


class OffsetError(ClientError):
    """Some partitions have no valid position, and the reset policy is none."""

    def __init__(self, partitions: Iterable[tuple[str, int]], why: str) -> None:
        self.partitions = tuple(sorted(partitions))
        super().__init__(f"{partition_names(self.partitions)}: {why}")


class CorruptRecordsError(ClientError):
    """A fetch returned bytes that are no record batches, or whose checksum is wrong."""


class ConsumerClosedError(ClientError):
    """The consumer is not open: its block has not begun or has ended."""


class ErrorReaction(enum.Enum):
    """What to do about an error code; the value is its description in events."""

    GO_ON = "it goes on"
    RETRY = "it tries again after a while"
    REJOIN = "it joins again at once"
    REJOIN_WITH_ID = "it joins again with the id it was given"
    FIND_COORDINATOR = "it looks for the coordinator again"
    RESET_GENERATION = "it forgets its generation and joins again"
    RESET_MEMBER = "it forgets its generation and its id and joins as a newcomer"
    FENCED = "it loses what it owned and joins again with epoch 0"
    TELL = "it tells its user and tries again after a while"
    FAIL = "it gives up"


_SEARCH = dict.fromkeys((E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR), ErrorReaction.FIND_COORDINATOR)

JOIN: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.MEMBER_ID_REQUIRED: ErrorReaction.REJOIN_WITH_ID,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
}
"""Of JoinGroup; another error ends the member: FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT,
INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, GROUP_MAX_SIZE_REACHED, UNSUPPORTED_VERSION, and unexpected codes."""

SYNC: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    # Deviation: to Kafka's consumer this one is unexpected and ends the poll with an error; a broker that is loading has it.
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
    E.ILLEGAL_GENERATION: ErrorReaction.RESET_GENERATION,
}
"""Errors of SyncGroup; what is not here ends the member: FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED and the unexpected."""

HEARTBEAT: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
    E.ILLEGAL_GENERATION: ErrorReaction.RESET_GENERATION,
    E.FENCED_INSTANCE_ID: ErrorReaction.FAIL,
}
"""Errors of Heartbeat; other errors are retried, like a missed heartbeat, until the session ends."""

CONSUMER_HEARTBEAT: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.FENCED_MEMBER_EPOCH: ErrorReaction.FENCED,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.FENCED,
    E.TOPIC_AUTHORIZATION_FAILED: ErrorReaction.TELL,
}
"""Errors of ConsumerGroupHeartbeat (``AbstractHeartbeatRequestManager.onErrorResponse``); what is not here ends the member:
UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED,
GROUP_ID_NOT_FOUND, INVALID_REQUEST, UNSUPPORTED_VERSION, GROUP_AUTHORIZATION_FAILED and the unexpected."""

COMMIT: Mapping[E, ErrorReaction] = {
    E.NONE: ErrorReaction.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.UNKNOWN_TOPIC_OR_PARTITION: ErrorReaction.RETRY,
    # Those of topic ids, which Kafka's classic consumer never sends: what they name may exist again in a moment.
    E.UNKNOWN_TOPIC_ID: ErrorReaction.RETRY,
    **_SEARCH,
    E.REQUEST_TIMED_OUT: ErrorReaction.FIND_COORDINATOR,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
    E.ILLEGAL_GENERATION: ErrorReaction.RESET_GENERATION,
    # Of the consumer protocol: a heartbeat on its way brings the new epoch.
    E.STALE_MEMBER_EPOCH: ErrorReaction.RETRY,
    # OffsetCommit v9 says so where older versions say ILLEGAL_GENERATION: the group is gone, and the member with it.
    E.GROUP_ID_NOT_FOUND: ErrorReaction.RESET_MEMBER,
}
"""Of OffsetCommit; another error is raised: FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED,
OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE and the unexpected."""


def to_find_coordinator(code: E) -> ErrorReaction:
    """How a member reacts to an error of FindCoordinator: retriable errors are retried."""
    if code == E.NONE:
        return ErrorReaction.GO_ON
    return ErrorReaction.RETRY if code.retriable else ErrorReaction.FAIL


def to_join_group(code: E) -> ErrorReaction:
    """How a member reacts to an error of JoinGroup."""
    return JOIN.get(code, ErrorReaction.FAIL)


def to_sync_group(code: E) -> ErrorReaction:
    """How a member reacts to an error of SyncGroup."""
    return SYNC.get(code, ErrorReaction.FAIL)


def to_heartbeat(code: E) -> ErrorReaction:
    """How a member reacts to an error of Heartbeat."""
    return HEARTBEAT.get(code, ErrorReaction.RETRY)


def to_consumer_group_heartbeat(code: E) -> ErrorReaction:
    """How a member reacts to an error of ConsumerGroupHeartbeat."""
    return CONSUMER_HEARTBEAT.get(code, ErrorReaction.FAIL)


def to_offset_commit(code: E) -> ErrorReaction:
    """How a member reacts to an error of OffsetCommit."""
    return COMMIT.get(code, ErrorReaction.FAIL)


def to_offset_fetch(code: E) -> ErrorReaction:
    """How a consumer reacts to an error of OffsetFetch: retriable errors are retried, as is UNSTABLE_OFFSET_COMMIT.

    So are STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID of a member of the consumer protocol: its next heartbeat brings the new
    epoch, or says that it is fenced. Deviation: UNKNOWN_MEMBER_ID ends the fetch, and with it the poll, of Kafka's consumer.
    """
    if code in _SEARCH:
        return ErrorReaction.FIND_COORDINATOR
    if code in (E.STALE_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID):
        return ErrorReaction.RETRY
    return to_find_coordinator(code)
