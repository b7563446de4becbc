"""ListConfigResources (API key 74): request and response messages, and their Api.

Version 0 was called ListClientMetricsResources.
"""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class ListConfigResourcesRequest:
    """Which resources can be described by DescribeConfigs? v1 adds their types (KIP-1142); v0 asks for client metrics."""

    resource_types: tuple[int, ...] = ()  # v1+; empty: all types


@message
class ConfigResource:
    """A topic, broker, broker logger, client metrics subscription or group."""

    resource_name: str
    resource_type: int = 16  # v1+: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group


@message
class ListConfigResourcesResponse:
    """The resources. Errors: UNSUPPORTED_VERSION for an unknown type."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: tuple[ConfigResource, ...] = ()


API = Api(
    key=ApiKey.LIST_CONFIG_RESOURCES,
    request=ListConfigResourcesRequest,
    response=ListConfigResourcesResponse,
    min_version=0,
    max_version=1,
    summary="List what has configurations",
)
