"""UnregisterBroker (version 0), and the table of handlers that also has DescribeQuorum (see quorum.py).

Clients can send them to any broker. Source: ``ControllerApis.handleUnregisterBroker``, ``QuorumController.unregisterBroker``.
"""

from collections.abc import Mapping

from groupcoord.broker.topic_store import TopicStore
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.partition_admin import ControllerHandler
from groupcoord.cluster.quorum import handle_describe_quorum
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
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


BROKER_ADMIN: Mapping[ApiKey, ControllerHandler] = {
    ApiKey.DESCRIBE_QUORUM: lambda controller, _, ctx, call, request: handle_describe_quorum(
        controller.quorum, ctx, call, request
    ),
    ApiKey.UNREGISTER_BROKER: handle_unregister_broker,
}
