"""DescribeConfigs (API key 32): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_RESOURCE, TOPIC_RESOURCE, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class DescribeConfigsResource:
    """A topic, broker or group, and which of its configurations to show."""

    resource_type: int  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_name: str
    configuration_keys: tuple[str, ...] | None = ()  # null: all


@message
class DescribeConfigsRequest:
    """Describe configurations. v1 adds synonyms (KIP-226), v3 documentation (KIP-569), v4 is flexible."""

    resources: tuple[DescribeConfigsResource, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = False  # v3+


@message
class DescribeConfigsSynonym:
    """Another place where the value could come from; they are in order, the first that has a value wins. v1+ (KIP-226)."""

    name: str
    value: str | None
    source: int  # as config_source below


@message
class DescribeConfigsResourceResult:
    """One configuration. v3 adds type and documentation (KIP-569)."""

    name: str
    value: str | None  # null if sensitive
    read_only: bool = False
    config_source: int = -1  # 1 topic, 2 broker, 3 all brokers, 4 broker's start, 5 default, 6 broker logger, 8 group
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: int = 0  # v3+; 1 bool, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password
    documentation: str | None = None  # v3+


@message
class DescribeConfigsResult:
    """One resource.

    Errors: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION.
    """

    error_code: int = 0
    error_message: str | None = None
    resource_type: int  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


@message
class DescribeConfigsResponse:
    """The configurations. v4 is flexible."""

    throttle_time_ms: int = 0
    results: tuple[DescribeConfigsResult, ...] = ()


def _error_response(request: DescribeConfigsRequest, _version: int, error: ErrorCode) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=tuple(
            DescribeConfigsResult(
                error_code=error,
                error_message=error.text,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=(),
            )
            for resource in request.resources
        )
    )


API = Api(
    key=ApiKey.DESCRIBE_CONFIGS,
    request=DescribeConfigsRequest,
    response=DescribeConfigsResponse,
    min_version=1,
    max_version=4,
    summary="Describe configurations of brokers, topics and groups",
    make_error_response=_error_response,
    groups=(GROUP_RESOURCE,),
    topics=(TOPIC_RESOURCE,),
)
