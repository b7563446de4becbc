"""InitProducerId: ids for idempotent producers. Source: ``TransactionCoordinator.handleInitProducerId``."""

from groupcoord.broker.broker import Broker
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, BatchError
from groupcoord.protocol.errors import ErrorCode

_NO_EPOCH = -1


def handle_init_producer_id(broker: Broker, ctx: HandlerContext, call: Call, request: InitProducerIdRequest) -> None:
    """Hand out the next producer id, with epoch 0. A producer that asks again gets another one."""
    error = _refusal(broker, request)
    if not error:
        try:
            ctx.reply(call, InitProducerIdResponse(producer_id=broker.new_producer_id(call.broker), producer_epoch=0))
            return
        except BatchError as problem:
            error = problem.error
    ctx.reply(call, InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=_NO_EPOCH))


def _refusal(broker: Broker, request: InitProducerIdRequest) -> ErrorCode:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == _NO_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= broker.config.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    # Deviation (no-transactions): there are no transactions here. An InitProducerId with a transactional id and a Produce with
    # a transactional batch are refused as by a broker whose rules let nobody have any, and every client gives up at once. The
    # coordinator of a transactional id is found at once, without a topic for it. Logs that a real broker wrote may hold
    # transactions all the same; a Fetch of them does not say which were aborted.
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
