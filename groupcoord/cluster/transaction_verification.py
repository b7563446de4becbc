"""Offsets in a transaction: whether the log that they go into is a part of it.

Sources: ``CoordinatorPartitionWriter.maybeStartTransactionVerification`` and
``ReplicaManager.maybeStartTransactionVerificationForPartition``.
"""

from collections.abc import Sequence

from groupcoord.broker.broker import Broker
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.transactional_write import TopicPartition, TransactionalWrite, Verified, VerifyTransaction
from groupcoord.protocol.batches.record_batch import NO_SEQUENCE, BatchError


def verify_offsets(broker: Broker, verify: VerifyTransaction) -> VerifyTransaction:
    """Asks ``verify`` about one partition of ``__consumer_offsets``, unless the transaction is open in it already."""

    def verify_unless_open(
        ctx: HandlerContext,
        call: Call,
        write: TransactionalWrite,
        partitions: Sequence[TopicPartition],
        verified: Verified,
    ) -> None:
        (partition,) = partitions
        log = broker.log(*partition)
        if log is None:
            raise AssertionError(f"{partition} has a coordinator and no log")
        if not (write.adds or broker.config["transaction.partition.verification.enable"]):
            verified(ctx, {})
            return
        try:
            shown = log.producers.start_verification(
                write.producer_id, write.producer_epoch, NO_SEQUENCE, ctx.now_ms, adds=write.adds
            )
        except BatchError as problem:
            verified(ctx, {partition: problem.error})
            return
        if shown is None:
            verified(ctx, {})
        else:
            verify(ctx, call, write, partitions, verified)

    return verify_unless_open
