"""WriteTxnMarkers (API key 27): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class WritableTxnMarkerTopic:
    """Partitions of one topic."""

    name: str
    partition_indexes: tuple[int, ...] = ()


@message
class WritableTxnMarker:
    """The end of one transaction."""

    producer_id: int
    producer_epoch: int
    transaction_result: bool = False  # true: committed, false: aborted
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: int  # of the partition of __transaction_state
    transaction_version: int = 0  # v2+: 2 if the producer goes by KIP-890


@message
class WriteTxnMarkersRequest:
    """Write the control records that end transactions into partitions; only coordinators ask for it (KIP-98).

    v2 says by which rules a transaction goes (KIP-1228).
    """

    markers: tuple[WritableTxnMarker, ...] = ()


@message
class WritableTxnMarkerPartitionResult:
    """The result for one partition."""

    partition_index: int
    error_code: int = 0


@message
class WritableTxnMarkerTopicResult:
    """Partitions of one topic."""

    name: str
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


@message
class WritableTxnMarkerResult:
    """Partitions of one transaction."""

    producer_id: int
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


@message
class WriteTxnMarkersResponse:
    """The results for all partitions.

    Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
    UNSUPPORTED_FOR_MESSAGE_FORMAT, CLUSTER_AUTHORIZATION_FAILED.
    """

    markers: tuple[WritableTxnMarkerResult, ...] = ()


API = Api(
    key=ApiKey.WRITE_TXN_MARKERS,
    request=WriteTxnMarkersRequest,
    response=WriteTxnMarkersResponse,
    min_version=1,
    max_version=2,
    summary="Write the ends of transactions into partitions",
    make_error_response=lambda request, _version, error: WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=item.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=part.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=part, error_code=error)
                            for part in part.partition_indexes
                        ),
                    )
                    for part in item.topics
                ),
            )
            for item in request.markers
        )
    ),
    topics=(RequestField("markers[].topics[].name"),),
    partitions=(RequestField("markers[].topics[].partition_indexes[]"),),
)
