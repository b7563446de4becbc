"""The exceptions of a producer, beside those of every client."""

from groupcoord.client.client_errors import ClientError


class ProducerClosedError(ClientError):
    """The producer is not open: it was not started, or was stopped before the record was stored."""


class RecordTooLargeError(ClientError):
    """The record is larger than ``max_request_size`` or ``buffer_memory``."""


class BufferExhaustedError(ClientError):
    """For ``max_block_ms`` there was no memory for the record: records come faster than they are stored."""


class MetadataTimeoutError(ClientError):
    """For ``max_block_ms`` it could not be found out which partitions a topic has."""


class DeliveryTimeoutError(ClientError):
    """The record was not acknowledged within ``delivery_timeout_ms``; if it was sent, it may be stored nevertheless."""


class TransactionAbortedError(ClientError):
    """The record was not sent, because its transaction is aborted."""


class TransactionTimeoutError(ClientError):
    """The transaction was not begun, committed or aborted within ``max_block_ms``; that may be asked for again."""
