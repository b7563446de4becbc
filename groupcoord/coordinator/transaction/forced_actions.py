"""Actions on transactions from outside of the protocol, which have the effects of what happens in Kafka by itself."""

from groupcoord.coordinator.transaction.coordinator import TransactionCoordinator
from groupcoord.coordinator.transaction.events import AbortReason
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.core.api_error import ApiError
from groupcoord.core.handler_context import HandlerContext


def abort_transaction(coordinator: TransactionCoordinator, ctx: HandlerContext, transactional_id: str) -> None:
    """Abort the ongoing transaction of ``transactional_id`` as its timeout would do it: its producer is fenced.

    Raises ValueError if that is not coordinated here, not known, not ongoing, or if its last change is still being stored.
    """
    shard = coordinator.runtime.shard_of(transactional_id)
    if shard.partition not in coordinator.runtime.deleted:  # else there was never a transactional id
        try:
            shard.require_active()
        except ApiError as refusal:
            raise ValueError(refusal.message) from refusal
    metadata = shard.machine.transactions.get(transactional_id)
    if metadata is None:
        names = (repr(name) for other in coordinator.shards for name in other.machine.transactions)
        known = ", ".join(sorted(names)) or "none; a producer has to be initialised with one first"
        raise ValueError(f"there is no transactional id {transactional_id!r}; transactional ids: {known}")
    state = metadata.data.state
    if metadata.pending is not None:
        raise ValueError(f"the last change of {transactional_id!r}, in state {state.value}, is still being stored")
    if state is not TransactionState.ONGOING:
        raise ValueError(f"only an ongoing transaction can be aborted; that of {transactional_id!r} is {state.value}")
    try:
        shard.run(ctx, lambda machine: machine.abort(ctx, metadata, AbortReason.FORCED, lambda _later, _error: None))
    except ApiError as refusal:
        raise ValueError(f"there is no producer id with which {transactional_id!r} could go on: {refusal}") from refusal
