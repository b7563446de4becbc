"""DescribeConfigs (versions 1–4) and IncrementalAlterConfigs (0–1).

Source: ``ConfigHelper.describeConfigs`` and ``KafkaApis.handleIncrementalAlterConfigsRequest``.
"""

import re
from collections import Counter

from groupcoord.broker import describe_configs, topic_names
from groupcoord.broker.broker import Broker
from groupcoord.broker.config_control import ResourceType, alter
from groupcoord.broker.describe_configs import Options
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from groupcoord.protocol.apis.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from groupcoord.protocol.errors import ErrorCode

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


def handle_describe_configs(broker: Broker, ctx: HandlerContext, call: Call, request: DescribeConfigsRequest) -> None:
    """Answer with the configurations of each resource, all of them or those it names."""
    options = Options(request.include_synonyms, request.include_documentation)
    results = []
    for asked in request.resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        error, text, entries = ErrorCode.NONE, "", list[DescribeConfigsResourceResult]()
        try:
            entries = _entries(broker, call, resource, options)
        except ApiError as refused:
            error, text = refused.code, refused.message or ""
        if asked.configuration_keys:
            entries = [entry for entry in entries if entry.name in asked.configuration_keys]
        results.append(
            DescribeConfigsResult(
                error_code=error,
                error_message=text,
                resource_type=resource.type,
                resource_name=resource.name,
                configs=tuple(entries),
            )
        )
    ctx.reply(call, DescribeConfigsResponse(results=tuple(results)))


def _entries(
    broker: Broker, call: Call, resource: ConfigResource, options: Options
) -> list[DescribeConfigsResourceResult]:
    config = broker.cluster.config_of(broker.config, call)
    match resource.type:
        case ResourceType.TOPIC:
            return _topic_entries(broker, resource.name, options)
        case ResourceType.BROKER if not resource.name:
            return describe_configs.of_all_brokers(config, options)
        case ResourceType.BROKER:
            expected = f"Unexpected broker id, expected {config.node_id} or empty string, but received"
            _check_broker_id(config, resource.name, expected)
            return describe_configs.of_broker(config, options)
        case ResourceType.BROKER_LOGGER:
            _check_named(resource.name, "Broker id")
            _check_broker_id(config, resource.name, f"Unexpected broker id, expected {config.node_id} but received")
            return []  # Deviation (scope-of-a-stand-in): see cluster/api_versions.py
        case ResourceType.GROUP:
            _check_named(resource.name, "Group name")
            return describe_configs.of_group(resource, config, options)
        case ResourceType.CLIENT_METRICS:
            _check_named(resource.name, "Client metrics subscription name")
            return describe_configs.of_client_metrics(resource, config, options)
        case _:
            raise ApiError(ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text)


def _topic_entries(broker: Broker, name: str, options: Options) -> list[DescribeConfigsResourceResult]:
    fault = topic_names.fault_text(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    topic = broker.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return describe_configs.of_topic(topic, broker.config, options)


def _check_named(name: str, what: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")


def _check_broker_id(config: BrokerConfig, name: str, unexpected: str) -> None:
    if not _INTEGER.fullmatch(name):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != config.node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{unexpected} {name}")


def handle_incremental_alter_configs(
    broker: Broker, ctx: HandlerContext, call: Call, request: IncrementalAlterConfigsRequest
) -> None:
    """Change the configuration of each resource, or say why not; a resource that is named twice is not changed at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses = []
    for asked in request.resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        error, text = ErrorCode.NONE, None
        try:
            if times[resource] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            own = broker.cluster.config_of(broker.config, call) if call.broker else None
            alter(broker, resource, asked.configs, validate_only=request.validate_only, own=own)
        except ApiError as refused:
            error, text = refused.code, refused.message
        responses.append(
            AlterConfigsResourceResponse(
                error_code=error, error_message=text, resource_type=resource.type, resource_name=resource.name
            )
        )
    ctx.reply(call, IncrementalAlterConfigsResponse(responses=tuple(responses)))
