"""What a member does about each error code of each request it sends to its coordinator.

Sources: the response handlers of ``AbstractCoordinator`` and ``ConsumerCoordinator``. Each table has a default for the
codes that it does not name.
"""

import enum
from collections.abc import Mapping

from groupcoord.protocol.errors import ErrorCode as E


class ErrorReaction(enum.Enum):
    """What to do about an error code; the value is its description in events."""

    GO_ON = "it goes on"
    RETRY = "it tries again after a while"
    REJOIN = "it joins again at once"
    REJOIN_WITH_ID = "it joins again with the id it was given"
    FIND_COORDINATOR = "it looks for the coordinator again"
    RESET_GENERATION = "it forgets its generation and joins again"
    RESET_MEMBER = "it forgets its generation and its id and joins as a newcomer"
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


def to_offset_commit(code: E) -> ErrorReaction:
    """How a member reacts to an error of OffsetCommit."""
    return COMMIT.get(code, ErrorReaction.FAIL)


def to_offset_fetch(code: E) -> ErrorReaction:
    """How a consumer reacts to an error of OffsetFetch: retriable errors are retried, as is UNSTABLE_OFFSET_COMMIT."""
    if code in _SEARCH:
        return ErrorReaction.FIND_COORDINATOR
    return to_find_coordinator(code)
