"""IncrementalAlterConfigs: versions 0–1."""

from groupcoord.protocol.codec.message import message


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
    """What became of one resource: all of its changes are made, or none.

    Errors: INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION.
    """

    error_code: int = 0
    error_message: str | None = None
    resource_type: int
    resource_name: str


@message
class IncrementalAlterConfigsResponse:
    """What became of the resources. v1 is flexible."""

    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
