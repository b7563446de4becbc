"""The exceptions that only a producer raises; ``client_errors`` has those of all clients."""

from groupcoord.client.client_errors import ClientError


class ProducerClosedError(ClientError):
    """The producer is not open: it was not started, or was stopped before the record was stored."""


class RecordTooLargeError(ClientError):
    """The record is larger than ``max_request_size`` or ``buffer_memory``."""


class BufferExhaustedError(ClientError):
    """There was no buffer memory for the record within ``max_block_ms``: records are sent faster than brokers store them."""


class MetadataTimeoutError(ClientError):
    """The metadata of a topic could not be fetched within ``max_block_ms``."""


class DeliveryTimeoutError(ClientError):
    """The record was not acknowledged within ``delivery_timeout_ms``; it may be stored nevertheless, if it was sent."""


class TransactionAbortedError(ClientError):
    """The record was not sent, because its transaction is aborted."""


class TransactionTimeoutError(ClientError):
    """The transaction was not initialised, committed or aborted within ``max_block_ms``; the call may be repeated."""
