"""DescribeCluster (API key 60): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class DescribeClusterRequest:
    """Describe the cluster (KIP-700). v1 adds the type of endpoint (KIP-919), v2 fenced brokers (KIP-1073)."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # v1+; 1 brokers, 2 controllers
    include_fenced_brokers: bool = False  # v2+


@message
class DescribeClusterBroker:
    """One broker. v2 adds whether it is fenced (KIP-1073)."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False  # v2+


@message
class DescribeClusterResponse:
    """The cluster. v1 adds the type of endpoint (KIP-919), v2 fenced brokers (KIP-1073).

    Errors: MISMATCHED_ENDPOINT_TYPE and UNSUPPORTED_ENDPOINT_TYPE (v1+).
    """

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1  # v1+; 1 brokers, 2 controllers
    cluster_id: str
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: int = -2147483648  # a bit per ACL operation, or not asked


API = Api(
    key=ApiKey.DESCRIBE_CLUSTER,
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
    min_version=0,
    max_version=2,
    summary="Describe the cluster and its brokers",
    make_error_response=lambda _request, _version, error: DescribeClusterResponse(
        error_code=error, cluster_id="", brokers=()
    ),
)
