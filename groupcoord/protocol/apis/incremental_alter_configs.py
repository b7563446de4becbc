"""IncrementalAlterConfigs (API key 44): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_RESOURCE, TOPIC_RESOURCE, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class AlterableConfig:
    """A change of one configuration."""

    name: str
    config_operation: int  # 0 set, 1 delete, 2 append, 3 subtract
    value: str | None  # null only to delete


@message
class AlterConfigsResource:
    """Changes of one topic, broker or group."""

    resource_type: int  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_name: str
    configs: tuple[AlterableConfig, ...] = ()


@message
class IncrementalAlterConfigsRequest:
    """Change configurations and leave the others as they are (KIP-339). v1 is flexible."""

    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False


@message
class AlterConfigsResourceResponse:
    """The result for one resource: all of its changes are made, or none.

    Errors: INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION.
    """

    error_code: int = 0
    error_message: str | None = None
    resource_type: int
    resource_name: str


@message
class IncrementalAlterConfigsResponse:
    """The results for the resources. v1 is flexible."""

    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()


def _error_response(
    request: IncrementalAlterConfigsRequest, _version: int, error: ErrorCode
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=error, resource_type=resource.resource_type, resource_name=resource.resource_name
            )
            for resource in request.resources
        )
    )


API = Api(
    key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    request=IncrementalAlterConfigsRequest,
    response=IncrementalAlterConfigsResponse,
    min_version=0,
    max_version=1,
    summary="Change single properties of brokers, topics and groups",
    make_error_response=_error_response,
    groups=(GROUP_RESOURCE,),
    topics=(TOPIC_RESOURCE,),
)
