"""What passes between the coordinator of transactions, the logs and the coordinator of groups (KIP-98, KIP-890).

Sources: ``AddPartitionsToTxnManager``, ``EndTransactionMarker``, ``WriteTxnMarkersRequest.TxnMarkerEntry``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupcoord.core.effects import Call, TransactionMarker
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode

__all__ = ["TopicPartition", "TransactionMarker", "TransactionalWrite", "Verified", "VerifyTransaction"]

TopicPartition = tuple[str, int]
"""A partition, by the name of its topic and its number."""


class TransactionalWrite(NamedTuple):
    """Who is about to write to partitions as part of a transaction.

    ``adds``: partitions that are not in the transaction yet are added to it, as of Produce v12 and TxnOffsetCommit v5 on;
    otherwise they are verified to be in it. ``gives_abortable``: the producer knows TRANSACTION_ABORTABLE.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds: bool
    gives_abortable: bool


Verified = Callable[[HandlerContext, Mapping[TopicPartition, ErrorCode]], None]
"""Told the error of each partition that must not be written to; the others may be."""

VerifyTransaction = Callable[[HandlerContext, Call, TransactionalWrite, Sequence[TopicPartition], Verified], None]
"""Asks the coordinator of a transaction about partitions on behalf of a call; it may answer later, when it has stored it."""
