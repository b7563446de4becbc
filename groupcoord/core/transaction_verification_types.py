"""The verification of transactional writes by the transaction coordinator (KIP-98, KIP-890): its request and callback types.

Sources: ``AddPartitionsToTxnManager``, ``EndTransactionMarker``, ``WriteTxnMarkersRequest.TxnMarkerEntry``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TransactionMarker
from groupcoord.protocol.errors import ErrorCode

__all__ = ["TopicPartition", "TransactionMarker", "TransactionalWrite", "Verified", "VerifyTransaction"]

TopicPartition = tuple[str, int]
"""A partition: topic name and partition index."""


class TransactionalWrite(NamedTuple):
    """A producer that is about to write to partitions in a transaction.

    ``adds``: partitions that are not in the transaction are added to it, as in Produce v12+ and TxnOffsetCommit v5+; otherwise
    it is verified that they are in it. ``gives_abortable``: the producer supports TRANSACTION_ABORTABLE.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds: bool
    gives_abortable: bool


Verified = Callable[[HandlerContext, Mapping[TopicPartition, ErrorCode]], None]
"""Called with the error of each partition that must not be written to; the others may be."""

VerifyTransaction = Callable[[HandlerContext, Call, TransactionalWrite, Sequence[TopicPartition], Verified], None]
"""Verifies partitions with the transaction coordinator on behalf of a call; may call back later, when additions are stored."""
