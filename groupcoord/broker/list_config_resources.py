"""ListConfigResources (versions 0–1, KIP-1142): the names of the resources that have configurations.

Source: ``KafkaApis.handleListConfigResources``.
"""

from groupcoord.broker.alter_configs import ResourceType
from groupcoord.broker.broker import Broker
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_order, string_hash
from groupcoord.protocol.apis.list_config_resources import ConfigResource as ListedResource
from groupcoord.protocol.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from groupcoord.protocol.errors import ErrorCode

_LISTED_TYPES = frozenset(ResourceType)


def handle_list_config_resources(
    broker: Broker, ctx: HandlerContext, call: Call, request: ListConfigResourcesRequest
) -> None:
    """Respond with the resources of the requested types: groups, client metrics, loggers, brokers, topics, in this order."""
    supported = _LISTED_TYPES if call.version else {ResourceType.CLIENT_METRICS}
    types = set(request.resource_types) or supported
    if types - supported:
        ctx.reply(call, ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    dynamic = broker.config.dynamic
    brokers = [str(one.id) for one in broker.cluster.brokers(broker.config)]
    names = {
        ResourceType.GROUP: hash_order(one.name for one in dynamic if one.type == ResourceType.GROUP),
        ResourceType.CLIENT_METRICS: hash_order(one.name for one in dynamic if one.type == ResourceType.CLIENT_METRICS),
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.BROKER: brokers,
        # ``TopicsImage`` has the topics in a tree that is ordered by their hash codes.
        ResourceType.TOPIC: sorted((topic.name for topic in broker.topics), key=string_hash),
    }
    resources = tuple(
        ListedResource(resource_name=name, resource_type=kind)
        for kind, listed in names.items()
        if kind in types
        for name in listed
    )
    ctx.reply(call, ListConfigResourcesResponse(config_resources=resources))
