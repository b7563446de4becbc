"""How a consumer's group member reacts to the error codes of each request to its coordinator: one table per API.

Sources: the response handlers of ``AbstractCoordinator``, ``ConsumerCoordinator`` and ``AbstractHeartbeatRequestManager``. The
``to_…`` functions add the default for the codes that a table does not name.
"""

import enum
from collections.abc import Mapping

from groupcoord.protocol.errors import ErrorCode as E


class ErrorReaction(enum.Enum):
    """What the member does about an error code; the value is its description in events."""

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
"""Errors of JoinGroup; any other error ends the member: FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL,
INVALID_SESSION_TIMEOUT, INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, GROUP_MAX_SIZE_REACHED, UNSUPPORTED_VERSION,
unexpected codes."""

SYNC: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    # Deviation: Kafka's consumer raises this one as unexpected; but a coordinator that is loading returns it.
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
    E.ILLEGAL_GENERATION: ErrorReaction.RESET_GENERATION,
}
"""Errors of SyncGroup; any other error ends the member: FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED, unexpected codes."""

HEARTBEAT: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
    E.ILLEGAL_GENERATION: ErrorReaction.RESET_GENERATION,
    E.FENCED_INSTANCE_ID: ErrorReaction.FAIL,
}
"""Errors of Heartbeat; any other error is retried, like a missed heartbeat, until the session times out."""

CONSUMER_HEARTBEAT: Mapping[E, ErrorReaction] = {
    **_SEARCH,
    E.NONE: ErrorReaction.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.FENCED_MEMBER_EPOCH: ErrorReaction.FENCED,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.FENCED,
    E.TOPIC_AUTHORIZATION_FAILED: ErrorReaction.TELL,
}
"""Errors of ConsumerGroupHeartbeat (``AbstractHeartbeatRequestManager.onErrorResponse``); any other error ends the member:
UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED,
GROUP_ID_NOT_FOUND, INVALID_REQUEST, UNSUPPORTED_VERSION, GROUP_AUTHORIZATION_FAILED, unexpected codes."""

COMMIT: Mapping[E, ErrorReaction] = {
    E.NONE: ErrorReaction.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: ErrorReaction.RETRY,
    E.UNKNOWN_TOPIC_OR_PARTITION: ErrorReaction.RETRY,
    # Only for topic ids, which Kafka's classic consumer never sends: the id may become known in a moment.
    E.UNKNOWN_TOPIC_ID: ErrorReaction.RETRY,
    **_SEARCH,
    E.REQUEST_TIMED_OUT: ErrorReaction.FIND_COORDINATOR,
    E.REBALANCE_IN_PROGRESS: ErrorReaction.REJOIN,
    E.UNKNOWN_MEMBER_ID: ErrorReaction.RESET_MEMBER,
    E.ILLEGAL_GENERATION: ErrorReaction.RESET_GENERATION,
    # Only by the consumer protocol: the heartbeat in flight brings the new epoch.
    E.STALE_MEMBER_EPOCH: ErrorReaction.RETRY,
    # The group no longer exists, nor the member. OffsetCommit before v9 returns ILLEGAL_GENERATION in this case.
    E.GROUP_ID_NOT_FOUND: ErrorReaction.RESET_MEMBER,
}
"""Errors of OffsetCommit; any other error is raised: FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED,
TOPIC_AUTHORIZATION_FAILED, OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE, unexpected codes."""


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
    """How a consumer reacts to an error of OffsetFetch: it retries retriable errors and UNSTABLE_OFFSET_COMMIT.

    It also retries STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID, by the consumer protocol: the next heartbeat brings the new
    epoch, or says that the member is fenced. Deviation: UNKNOWN_MEMBER_ID ends the fetch, and with it the poll, of Kafka's
    consumer.
    """
    if code in _SEARCH:
        return ErrorReaction.FIND_COORDINATOR
    if code in (E.STALE_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID):
        return ErrorReaction.RETRY
    return to_find_coordinator(code)
