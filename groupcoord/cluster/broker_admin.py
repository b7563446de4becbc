"""UnregisterBroker (version 0): the controller forgets a broker.

Any broker can be asked. Source: ``ControllerApis.handleUnregisterBroker``, ``QuorumController.unregisterBroker``.
"""

from groupcoord.cluster.controller import ClusterController
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from groupcoord.protocol.errors import ErrorCode


def handle_unregister_broker(
    controller: ClusterController, ctx: HandlerContext, call: Call, request: UnregisterBrokerRequest
) -> None:
    """Unregister a broker, whether it runs or not; one that is not registered is refused."""
    if controller.is_registered(request.broker_id):
        ctx.reply(call, UnregisterBrokerResponse())
        controller.unregister(ctx, request.broker_id)
    else:
        text = f"Broker ID {request.broker_id} is not currently registered"
        ctx.reply(call, UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=text))
