"""UnregisterBroker (version 0): removes the registration of a broker from the metadata.

Clients can send it to any broker. Source: ``ControllerApis.handleUnregisterBroker``, ``QuorumController.unregisterBroker``.
"""

from groupcoord.broker.topic_store import TopicStore
from groupcoord.cluster.controller import ClusterController
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
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
