"""IncrementalAlterConfigs (versions 0–1) and AlterConfigs (0–2).

Source: ``KafkaApis.handleIncrementalAlterConfigsRequest`` and ``.handleAlterConfigsRequest``.
"""

from collections import Counter
from collections.abc import Sequence

from groupcoord.broker.broker import Broker
from groupcoord.broker.config_control import AlterConfigOpType, ResourceType, alter, check_form
from groupcoord.config.broker_config import ConfigResource
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from groupcoord.protocol.apis.alter_configs import AlterConfigsResource as Replacement
from groupcoord.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from groupcoord.protocol.errors import ErrorCode

_UNKNOWN_TYPE = 0


def handle_incremental_alter_configs(
    broker: Broker, ctx: HandlerContext, call: Call, request: IncrementalAlterConfigsRequest
) -> None:
    """Change the configuration of each resource, or say why not; a resource that is named twice is not changed at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses = []
    for asked in request.resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        changes = asked.configs if times[resource] == 1 else None
        responses.append(_altered(broker, call, resource, changes, validate_only=request.validate_only))
    ctx.reply(call, IncrementalAlterConfigsResponse(responses=tuple(responses)))


def handle_alter_configs(broker: Broker, ctx: HandlerContext, call: Call, request: AlterConfigsRequest) -> None:
    """Replace the configuration of each resource, or say why not.

    If a resource is named twice, there is no answer: Kafka fails over it when it counts the errors of its response. All
    unknown types count as one.
    """
    types = set(ResourceType)
    times = Counter(
        ConfigResource(asked.resource_type if asked.resource_type in types else _UNKNOWN_TYPE, asked.resource_name)
        for asked in request.resources
    )
    responses = []
    for asked in request.resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        changes = _replacing(broker, asked) if times[resource] <= 1 else None
        responses.append(_altered(broker, call, resource, changes, validate_only=request.validate_only, legacy=True))
    if all(count == 1 for count in times.values()):
        ctx.reply(call, AlterConfigsResponse(responses=tuple(responses)))


def _replacing(broker: Broker, asked: Replacement) -> list[AlterableConfig]:
    """The changes after which a resource has the configurations asked for, and no others."""
    topic = broker.topics.get(asked.resource_name) if asked.resource_type == ResourceType.TOPIC else None
    resource = ConfigResource(asked.resource_type, asked.resource_name)
    present = broker.config.dynamic.get(resource, {}) if topic is None else topic.configs
    given = {config.name for config in asked.configs}
    kept = [
        AlterableConfig(name=one.name, config_operation=AlterConfigOpType.SET, value=one.value) for one in asked.configs
    ]
    gone = [AlterableConfig(name=name, config_operation=AlterConfigOpType.DELETE, value=None) for name in present]
    return kept + [change for change in gone if change.name not in given]


def _altered(
    broker: Broker,
    call: Call,
    resource: ConfigResource,
    changes: Sequence[AlterableConfig] | None,
    *,
    validate_only: bool,
    legacy: bool = False,
) -> AlterConfigsResourceResponse:
    """Alter one resource. ``changes`` is None for a resource that is named more than once.

    ``legacy``: by AlterConfigs, which knows no loggers.
    """
    error, text = ErrorCode.NONE, None
    try:
        if changes is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        if resource.type == ResourceType.BROKER_LOGGER and legacy:
            check_form(changes)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")
        own = broker.cluster.config_of(broker.config, call) if call.broker else None
        alter(broker, resource, changes, validate_only=validate_only, own=own)
    except ApiError as refused:
        error, text = refused.code, refused.message
    return AlterConfigsResourceResponse(
        error_code=error, error_message=text, resource_type=resource.type, resource_name=resource.name
    )
