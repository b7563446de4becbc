"""AlterConfigs (API key 33): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_RESOURCE, TOPIC_RESOURCE, Api, ApiKey
from groupcoord.protocol.apis.incremental_alter_configs import AlterConfigsResourceResponse
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class AlterableConfig:
    """One configuration of the new set."""

    name: str
    value: str | None  # null is refused


@message
class AlterConfigsResource:
    """All configurations of one topic, broker or group."""

    resource_type: int  # 2 topic, 4 broker, 16 client metrics, 32 group
    resource_name: str
    configs: tuple[AlterableConfig, ...] = ()


@message
class AlterConfigsRequest:
    """Replace all configurations of each resource: what is not named goes back to its default. v2 is flexible."""

    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False


@message
class AlterConfigsResponse:
    """What became of the resources. v2 is flexible."""

    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()


def _error_response(request: AlterConfigsRequest, _version: int, error: ErrorCode) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=error, resource_type=resource.resource_type, resource_name=resource.resource_name
            )
            for resource in request.resources
        )
    )


API = Api(
    key=ApiKey.ALTER_CONFIGS,
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
    min_version=0,
    max_version=2,
    summary="Replace all properties of brokers, topics and groups",
    make_error_response=_error_response,
    groups=(GROUP_RESOURCE,),
    topics=(TOPIC_RESOURCE,),
)
