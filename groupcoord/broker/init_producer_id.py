"""InitProducerId of an idempotent producer without a transactional id (KIP-98).

Source: ``TransactionCoordinator.handleInitProducerId``.
"""

from groupcoord.broker.broker import Broker
from groupcoord.broker.producer_state_manager import NO_EPOCH
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, BatchError
from groupcoord.protocol.errors import ErrorCode


def handle_init_producer_id(broker: Broker, ctx: HandlerContext, call: Call, request: InitProducerIdRequest) -> None:
    """Respond with the next producer id, and epoch 0; a producer that asks again gets another id."""
    error = ErrorCode.INVALID_REQUEST
    if (request.producer_id == NO_PRODUCER_ID) == (request.producer_epoch == NO_EPOCH):
        try:
            ctx.reply(call, InitProducerIdResponse(producer_id=broker.new_producer_id(call.broker), producer_epoch=0))
            return
        except BatchError as problem:
            error = problem.error
    ctx.reply(call, InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH))
