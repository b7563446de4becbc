"""What a member does about each error code of each request it sends to its coordinator.

Sources: the response handlers of ``AbstractCoordinator`` and ``ConsumerCoordinator``. A code that a table does not name is
answered by the table's last resort.
"""

import enum
from collections.abc import Mapping

from groupcoord.protocol.errors import ErrorCode as E


class Verdict(enum.Enum):
    """What to do; the value says it to people."""

    GO_ON = "it goes on"
    RETRY = "it tries again after a while"
    AGAIN = "it joins again at once"
    TAKE_ID = "it joins again with the id it was given"
    SEARCH = "it looks for the coordinator again"
    NEW_GENERATION = "it forgets its generation and joins again"
    NEW_MEMBER = "it forgets its generation and its id and joins as a newcomer"
    FAIL = "it gives up"


_SEARCH = dict.fromkeys((E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR), Verdict.SEARCH)

JOIN: Mapping[E, Verdict] = {
    **_SEARCH,
    E.NONE: Verdict.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    E.REBALANCE_IN_PROGRESS: Verdict.AGAIN,
    E.MEMBER_ID_REQUIRED: Verdict.TAKE_ID,
    E.UNKNOWN_MEMBER_ID: Verdict.NEW_MEMBER,
}
"""Of JoinGroup; what is not here ends the member: FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT,
INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, GROUP_MAX_SIZE_REACHED, UNSUPPORTED_VERSION, and whatever nobody expects."""

SYNC: Mapping[E, Verdict] = {
    **_SEARCH,
    E.NONE: Verdict.GO_ON,
    # Deviation: to Kafka's consumer this one is unexpected and ends the poll with an error; a broker that is loading has it.
    E.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    E.REBALANCE_IN_PROGRESS: Verdict.AGAIN,
    E.UNKNOWN_MEMBER_ID: Verdict.NEW_MEMBER,
    E.ILLEGAL_GENERATION: Verdict.NEW_GENERATION,
}
"""Of SyncGroup; what is not here ends the member: FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED and the unexpected."""

HEARTBEAT: Mapping[E, Verdict] = {
    **_SEARCH,
    E.NONE: Verdict.GO_ON,
    E.REBALANCE_IN_PROGRESS: Verdict.AGAIN,
    E.UNKNOWN_MEMBER_ID: Verdict.NEW_MEMBER,
    E.ILLEGAL_GENERATION: Verdict.NEW_GENERATION,
    E.FENCED_INSTANCE_ID: Verdict.FAIL,
}
"""Of Heartbeat; what is not here is tried again, as any missed beat: until the session is over it has done no harm."""

COMMIT: Mapping[E, Verdict] = {
    E.NONE: Verdict.GO_ON,
    E.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    E.UNKNOWN_TOPIC_OR_PARTITION: Verdict.RETRY,
    # Those of topic ids, which Kafka's classic consumer never sends: what they name may exist again in a moment.
    E.UNKNOWN_TOPIC_ID: Verdict.RETRY,
    **_SEARCH,
    E.REQUEST_TIMED_OUT: Verdict.SEARCH,
    E.REBALANCE_IN_PROGRESS: Verdict.AGAIN,
    E.UNKNOWN_MEMBER_ID: Verdict.NEW_MEMBER,
    E.ILLEGAL_GENERATION: Verdict.NEW_GENERATION,
    # OffsetCommit v9 says so where older versions say ILLEGAL_GENERATION: the group is gone, and the member with it.
    E.GROUP_ID_NOT_FOUND: Verdict.NEW_MEMBER,
}
"""Of OffsetCommit; what is not here is raised: FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED,
OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE and the unexpected."""


def of_find(code: E) -> Verdict:
    """Of FindCoordinator: whatever may pass is tried again."""
    if code == E.NONE:
        return Verdict.GO_ON
    return Verdict.RETRY if code.retriable else Verdict.FAIL


def of_join(code: E) -> Verdict:
    """Of JoinGroup."""
    return JOIN.get(code, Verdict.FAIL)


def of_sync(code: E) -> Verdict:
    """Of SyncGroup."""
    return SYNC.get(code, Verdict.FAIL)


def of_heartbeat(code: E) -> Verdict:
    """Of Heartbeat."""
    return HEARTBEAT.get(code, Verdict.RETRY)


def of_commit(code: E) -> Verdict:
    """Of OffsetCommit."""
    return COMMIT.get(code, Verdict.FAIL)


def of_offset_fetch(code: E) -> Verdict:
    """Of OffsetFetch: whatever may pass is tried again, UNSTABLE_OFFSET_COMMIT among it."""
    if code in _SEARCH:
        return Verdict.SEARCH
    return of_find(code)
