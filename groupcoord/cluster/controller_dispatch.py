"""The controller's handlers by API key, for requests that brokers forward to the controller, and the handler of
UnregisterBroker, which clients can send to any broker.

Sources: ``ControllerApis.handle``, ``QuorumController.unregisterBroker``. CreateTopics and other requests about topics are in
``broker/topic_and_log_dispatch.py``.
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
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from groupcoord.protocol.errors import ErrorCode


def handle_unregister_broker(
    controller: ClusterController,
    _topics: TopicStore,
    ctx: HandlerContext,
    call: Call,
    request: UnregisterBrokerRequest,
) -> None:
    """Unregister a broker, whether it is running or not; refused if it is not registered."""
    if controller.is_registered(request.broker_id):
        ctx.reply(call, UnregisterBrokerResponse())
        controller.unregister(ctx, request.broker_id)
    else:
        text = f"Broker ID {request.broker_id} is not currently registered"
        ctx.reply(call, UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=text))


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
