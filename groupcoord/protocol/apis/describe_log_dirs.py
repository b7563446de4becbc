"""DescribeLogDirs (API key 35): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class DescribableLogDirTopic:
    """The partitions of a topic whose logs are asked for."""

    topic: str
    partitions: tuple[int, ...] = ()


@message
class DescribeLogDirsRequest:
    """Describe the log directories of the broker that is asked (KIP-113). v2 is flexible."""

    topics: tuple[DescribableLogDirTopic, ...] | None  # null: all


@message
class DescribeLogDirsPartition:
    """A log in a directory."""

    partition_index: int
    partition_size: int  # bytes
    offset_lag: int  # from the end of this copy to the high watermark
    is_future_key: bool = False  # whether it is being copied from another directory


@message
class DescribeLogDirsTopic:
    """The logs of a topic."""

    name: str
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


@message
class DescribeLogDirsResult:
    """A directory. v4 adds the size of its volume (KIP-827), v5 whether it takes no new logs (KIP-1066)."""

    error_code: int = 0
    log_dir: str
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1  # v4+; -1: unknown
    usable_bytes: int = -1  # v4+; -1: unknown
    is_cordoned: bool = False  # v5+


@message
class DescribeLogDirsResponse:
    """The directories. v3 adds an error for the whole request."""

    throttle_time_ms: int = 0
    results: tuple[DescribeLogDirsResult, ...] = ()
    error_code: int = 0  # v3+


API = Api(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    request=DescribeLogDirsRequest,
    response=DescribeLogDirsResponse,
    min_version=1,
    max_version=5,
    summary="Describe the log directories of a broker",
    make_error_response=lambda _request, _version, error: DescribeLogDirsResponse(error_code=error),
    topics=(RequestField("topics[].topic"),),
    partitions=(RequestField("topics[].partitions[]"),),
)
