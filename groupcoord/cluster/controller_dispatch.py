"""The controller's handlers by API key, for requests that brokers forward to the controller. Source: ``ControllerApis.handle``.

CreateTopics and other requests about topics are in ``broker/topic_and_log_dispatch.py``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from groupcoord.broker.topic_store import TopicStore
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.metadata_quorum import handle_describe_quorum
from groupcoord.cluster.partition_admin import (
    handle_alter_partition_reassignments,
    handle_elect_leaders,
    handle_list_partition_reassignments,
)
from groupcoord.cluster.unregister_broker import handle_unregister_broker
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey

ControllerHandler = Callable[[ClusterController, TopicStore, HandlerContext, Call, Any], None]

CONTROLLER_HANDLERS: Mapping[ApiKey, ControllerHandler] = {
    ApiKey.ELECT_LEADERS: handle_elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: handle_alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: handle_list_partition_reassignments,
    ApiKey.DESCRIBE_QUORUM: lambda controller, _, ctx, call, request: handle_describe_quorum(
        controller.quorum, ctx, call, request
    ),
    ApiKey.UNREGISTER_BROKER: handle_unregister_broker,
}
