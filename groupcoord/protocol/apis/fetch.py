"""Fetch (API key 1): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import TOPIC_ID, Api, ApiKey, RequestField
from groupcoord.protocol.codec.flexible_versions import LazyBytes
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class FetchPartition:
    """Where to read in one partition.

    v5 adds the follower's start of the log, v9 the leader epoch (KIP-320), v12 the last fetched epoch (KIP-595), v17 the
    directory (KIP-853), v18 the follower's high watermark (KIP-1166).
    """

    partition: int
    current_leader_epoch: int = -1  # v9+; what the reader takes it to be; -1: does not say
    fetch_offset: int
    last_fetched_epoch: int = -1  # v12+
    log_start_offset: int = -1  # v5+
    partition_max_bytes: int
    replica_directory_id: uuid.UUID | None = None  # v17+, tag 0
    high_watermark: int = 9223372036854775807  # v18+, tag 1


@message
class FetchTopic:
    """Partitions of one topic."""

    topic: str = ""  # v4–12
    partitions: tuple[FetchPartition, ...] = ()
    topic_id: uuid.UUID | None = None  # v13+


@message
class ForgottenTopic:
    """Partitions that leave the session: v7+ (KIP-227)."""

    topic: str = ""  # v7–12
    partitions: tuple[int, ...] = ()
    topic_id: uuid.UUID | None = None  # v13+


@message
class ReplicaState:
    """Which broker asks: v15+ (KIP-903)."""

    replica_id: int = -1
    replica_epoch: int = -1


@message
class FetchRequest:
    """Read record batches, and wait for more if there are fewer than ``min_bytes``.

    v4 adds the isolation level (KIP-98), v7 sessions (KIP-227), v10 may bring zstd (KIP-110), v11 adds the rack (KIP-392),
    v12 is flexible and detects truncation (KIP-595), v13 has topic ids in place of names (KIP-516), v15 moves the replica id
    into a tag (KIP-903).
    """

    replica_id: int = -1  # v4–14; -1: a consumer
    max_wait_ms: int  # the broker answers after this time at the latest
    min_bytes: int  # the broker answers once it has so many
    max_bytes: int = 2147483647  # of all partitions; the first batch comes whole, whatever its size
    isolation_level: int = 0  # 0 read uncommitted, 1 read committed
    session_id: int = 0  # v7+; 0: none
    session_epoch: int = -1  # v7+; -1: no session, 0: a new one
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()  # v7+
    rack_id: str = ""  # v11+
    cluster_id: str | None = None  # v12+, tag 0
    replica_state: ReplicaState = ReplicaState()  # v15+, tag 1


@message
class AbortedTransaction:
    """A transaction whose records a reader of committed records must skip."""

    producer_id: int
    first_offset: int


@message
class EpochEndOffset:
    """Where the reader's log leaves the leader's: v12+ (KIP-595)."""

    epoch: int = -1
    end_offset: int = -1


@message
class LeaderIdAndEpoch:
    """Who leads now: v12+ (KIP-595, KIP-951)."""

    leader_id: int = -1
    leader_epoch: int = -1


@message
class SnapshotId:
    """The snapshot a follower needs: v12+ (KIP-630)."""

    end_offset: int = -1
    epoch: int = -1


@message
class PartitionData:
    """Records of one partition.

    v5 adds the start of the log, v11 the preferred replica (KIP-392), v12 truncation and leader (KIP-595).
    Errors: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID and INCONSISTENT_TOPIC_ID (v13+),
    NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, CORRUPT_MESSAGE.
    """

    partition_index: int
    error_code: int = 0
    high_watermark: int  # where consumers stop; -1 with an error
    last_stable_offset: int = -1  # where readers of committed records stop
    log_start_offset: int = -1  # v5+
    diverging_epoch: EpochEndOffset = EpochEndOffset()  # v12+, tag 0
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()  # v12+, tag 1
    snapshot_id: SnapshotId = SnapshotId()  # v12+, tag 2
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()  # null for readers of uncommitted records
    preferred_read_replica: int = -1  # v11+
    records: LazyBytes | None  # batches, the first of which may begin before the offset asked for


@message
class FetchableTopicResponse:
    """Partitions of one topic."""

    topic: str = ""  # v4–12
    partitions: tuple[PartitionData, ...] = ()
    topic_id: uuid.UUID | None = None  # v13+


@message
class NodeEndpoint:
    """Where a current leader is: v16+, and of Produce v10+ (KIP-951)."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@message
class FetchResponse:
    """The records. v7 adds sessions and an error at the top (KIP-227), v12 is flexible, v13 has topic ids (KIP-516).

    Errors at the top: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR (v13+).
    """

    throttle_time_ms: int = 0
    error_code: int = 0  # v7+
    session_id: int = 0  # v7+
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()  # v16+, tag 0


def _error_response(request: FetchRequest, version: int, error: ErrorCode) -> FetchResponse:
    # From v13 on, when topics have ids, the code at the top is enough; before v7 there is none at the top.
    topics = request.topics if version < 13 else ()
    return FetchResponse(
        error_code=error,
        session_id=request.session_id,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(
                    PartitionData(
                        partition_index=partition.partition,
                        error_code=error,
                        high_watermark=-1,
                        aborted_transactions=(),
                        records=b"",
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


API = Api(
    key=ApiKey.FETCH,
    request=FetchRequest,
    response=FetchResponse,
    min_version=4,
    max_version=18,
    summary="Read record batches; waits for new ones",
    make_error_response=_error_response,
    topics=(RequestField("topics[].topic"), TOPIC_ID),
    partitions=(RequestField("topics[].partitions[].partition"),),
    may_wait=True,
)
