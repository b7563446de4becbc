"""The records of transactional ids in ``__transaction_state``: dataclasses, reading and writing.

A key is an int16 record type, 0, and the transactional id; a value is an int16 version and its fields; a null value is a
tombstone. Sources: ``TransactionLogKey.json``, ``TransactionLogValue.json`` and ``TransactionLog``.
"""

import struct
from types import MappingProxyType

from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.coordinator_records.group_records import schema_of
from groupcoord.protocol.coordinator_records.schemas import RecordField, RecordStruct, RecordType
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.message_dataclass import message

TRANSACTION_LOG = 0
"""The record type of a transactional id (``CoordinatorRecordType``)."""
PLAIN_VALUE_VERSION, FLEXIBLE_VALUE_VERSION = 0, 1
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""The states of a transaction by their numbers (``TransactionState``)."""


@message
class TransactionLogKey:
    """A transactional id."""

    transactional_id: str


@message
class PartitionsOfTopic:
    """Partitions of one topic in the transaction."""

    topic: str
    partition_ids: tuple[int, ...] = ()


@message
class TransactionLogValue:
    """A transactional id and its transaction: versions 0 and 1.

    ``partitions`` is null while there is no transaction. ``next_producer_id`` is the one after this transaction, when the
    epochs of ``producer_id`` are exhausted (KIP-890).
    """

    producer_id: int
    previous_producer_id: int = -1  # v1+, tag 0
    next_producer_id: int = -1  # v1+, tag 1
    producer_epoch: int
    next_producer_epoch: int = -1  # v1+, tag 3; of prepared transactions that were kept (KIP-939); not used
    timeout_ms: int
    status: int
    partitions: tuple[PartitionsOfTopic, ...] | None
    last_update_timestamp_ms: int
    start_timestamp_ms: int
    client_transaction_version: int = 0  # v1+, tag 2


_FLEXIBLE = range(1, 2)
_KEY = RecordStruct("TransactionLogKey", (RecordField("transactionalId", "string"),), flexible_from=1)
_PARTITIONS = RecordStruct(
    "PartitionsSchema",
    (RecordField("topic", "string"), RecordField("partitionIds", "int32", is_array=True)),
    flexible_from=FLEXIBLE_VALUE_VERSION,
)
_VALUE = RecordStruct(
    "TransactionLogValue",
    (
        RecordField("producerId", "int64"),
        RecordField("previousProducerId", "int64", versions=_FLEXIBLE, tag=0, default=-1),
        RecordField("nextProducerId", "int64", versions=_FLEXIBLE, tag=1, default=-1),
        RecordField("producerEpoch", "int16"),
        RecordField("nextProducerEpoch", "int16", versions=_FLEXIBLE, tag=3, default=-1),
        RecordField("transactionTimeoutMs", "int32"),
        RecordField("transactionStatus", "int8"),
        RecordField("transactionPartitions", "struct", is_array=True, is_nullable=True, struct=_PARTITIONS),
        RecordField("transactionLastUpdateTimestampMs", "int64"),
        RecordField("transactionStartTimestampMs", "int64"),
        RecordField("clientTransactionVersion", "int16", versions=_FLEXIBLE, tag=2, default=0),
    ),
    flexible_from=FLEXIBLE_VALUE_VERSION,
)
TRANSACTION_STATE_TYPES = MappingProxyType(
    {TRANSACTION_LOG: RecordType(TRANSACTION_LOG, "TransactionLog", _KEY, _VALUE, range(2))}
)
"""The one record type of ``__transaction_state``, by its number."""
_KEY_CODEC: Codec[TransactionLogKey] = Codec(schema_of(TransactionLogKey, _KEY, 0))
_VALUE_CODECS: tuple[Codec[TransactionLogValue], ...] = tuple(
    Codec(schema_of(TransactionLogValue, _VALUE, version)) for version in (PLAIN_VALUE_VERSION, FLEXIBLE_VALUE_VERSION)
)
_INT16 = struct.Struct(">h")


def write_key(transactional_id: str) -> bytes:
    """The key of the records of ``transactional_id``. Raises StringTooLongError."""
    return _INT16.pack(TRANSACTION_LOG) + _KEY_CODEC.encode(TransactionLogKey(transactional_id=transactional_id))


def value_version(transaction_version: int) -> int:
    """The version of values at that level of ``transaction.version`` (``transactionLogValueVersion``)."""
    return FLEXIBLE_VALUE_VERSION if transaction_version >= 1 else PLAIN_VALUE_VERSION


def write_value(value: TransactionLogValue, version: int) -> bytes:
    """The bytes of ``value`` at ``version``."""
    return _INT16.pack(version) + _VALUE_CODECS[version].encode(value)


def read_key(data: bytes) -> str | None:
    """The transactional id in ``data``; None for another record type. Raises WireError."""
    if _int16(data, "record type") != TRANSACTION_LOG:
        return None
    return _KEY_CODEC.decode(data, _INT16.size).transactional_id


def read_value(data: bytes) -> TransactionLogValue | None:
    """The value in ``data``; None for an unknown version. Raises WireError."""
    version = _int16(data, "version")
    if not 0 <= version < len(_VALUE_CODECS):
        return None
    return _VALUE_CODECS[version].decode(data, _INT16.size)


def _int16(data: bytes, field: str) -> int:
    if len(data) < _INT16.size:
        raise WireError(f"a record of __transaction_state cannot have {len(data)} bytes", offset=0, field=field)
    number: int = _INT16.unpack_from(data)[0]
    return number
