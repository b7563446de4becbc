"""The meanings of field values as text: names of errors, APIs and enum constants; times, durations and sizes with units."""

from collections.abc import Mapping
from types import MappingProxyType

from groupcoord.dissect.message_schemas import api_name
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from groupcoord.protocol.coordinator_records.record_formatting import moment
from groupcoord.protocol.errors import ErrorCode, WireError


def _numbered(names: str) -> dict[int, str]:
    return dict(enumerate(names.split()))


_CONFIG_RESOURCES = {0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_ACL_RESOURCES = {
    0: "UNKNOWN",
    1: "ANY",
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
_PATTERNS = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
_OPERATIONS = _numbered(
    "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS "
    "IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT"
)
_PERMISSIONS = {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"}
_LIST_OFFSETS_TIMES = {
    -1: "latest: the end of the log",
    -2: "earliest: the start of the log",
    -3: "the largest timestamp",
    -4: "earliest that is on the broker",
    -5: "latest in tiered storage",
}
_NUMBERS: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        "acks": {-1: "all in-sync replicas", 0: "no answer is wanted", 1: "the leader alone"},
        "isolation_level": {0: "READ_UNCOMMITTED", 1: "READ_COMMITTED"},
        "key_type": {0: "GROUP", 1: "TRANSACTION", 2: "SHARE"},
        "resource_type": _CONFIG_RESOURCES,
        "resource_type_filter": _ACL_RESOURCES,
        "pattern_type": _PATTERNS,
        "pattern_type_filter": _PATTERNS,
        "resource_pattern_type": _PATTERNS,
        "operation": _OPERATIONS,
        "permission_type": _PERMISSIONS,
        "config_operation": {0: "SET", 1: "DELETE", 2: "APPEND", 3: "SUBTRACT"},
        "config_source": _numbered(
            "UNKNOWN DYNAMIC_TOPIC_CONFIG DYNAMIC_BROKER_CONFIG DYNAMIC_DEFAULT_BROKER_CONFIG STATIC_BROKER_CONFIG "
            "DEFAULT_CONFIG DYNAMIC_BROKER_LOGGER_CONFIG CLIENT_METRICS_CONFIG GROUP_CONFIG"
        ),
        "config_type": _numbered("UNKNOWN BOOLEAN STRING INT SHORT LONG DOUBLE LIST CLASS PASSWORD"),
        "endpoint_type": {1: "brokers", 2: "controllers"},
        "replica_id": {-1: "a consumer, no replica"},
        "timestamp_ms": _LIST_OFFSETS_TIMES,
        "member_epoch": {-2: "a static member leaves for a time", -1: "the member leaves", 0: "the member joins"},
        "generation_id": {-1: "no generation"},
        "generation_id_or_member_epoch": {-1: "no generation"},
        "session_epoch": {-1: "no session", 0: "a new session"},
        "leader_id": {-1: "none"},
        "controller_id": {-1: "none"},
        "producer_id": {-1: "none"},
        "producer_epoch": {-1: "none"},
        "committed_offset": {-1: "none"},
        "transaction_result": {0: "ABORT", 1: "COMMIT"},
        "committed": {0: "ABORT", 1: "COMMIT"},
        "topic_authorized_operations": {-(1 << 31): "not asked for"},
        "cluster_authorized_operations": {-(1 << 31): "not asked for"},
        "authorized_operations": {-(1 << 31): "not asked for"},
    }
)
_ACL_APIS = ("DescribeAcls", "CreateAcls", "DeleteAcls")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def meaning_of(api: str, name: str, kafka_type: str, value: object) -> str:
    """The meaning of ``value`` of the field ``name`` (without path); empty if the value needs no explanation."""
    if not isinstance(value, int):
        return ""
    if kafka_type == "error_code":
        error = ErrorCode(value)
        return error.name if error == ErrorCode.NONE else f"{error.name}: {error.text}"
    if name in ("api_key", "request_api_key"):
        return _api(value)
    if name == "resource_type" and api in _ACL_APIS:
        return _ACL_RESOURCES.get(value, "")
    found = _NUMBERS.get(name, {}).get(value)
    if found is not None:
        return found
    if name.lower().endswith(("timestamp", "timestamp_ms", "timestampms")) or kafka_type == "datetime_i64":
        return time_text(value)
    if name.endswith("_ms"):
        return duration_text(value)
    return "bytes" if name.endswith("_bytes") else ""


def _api(key: int) -> str:
    try:
        return api_name(key)
    except WireError as problem:
        return problem.reason


def time_text(at_ms: int) -> str:
    """The time in UTC; -1 is none."""
    return "none" if at_ms == -1 else moment(at_ms)


def duration_text(value_ms: int) -> str:
    """The duration in the largest unit of which it is a whole multiple."""
    for size, unit in _UNITS:
        if value_ms and value_ms % size == 0:
            return f"{value_ms // size} {unit}"
    return "ms"


def batch_attributes_text(attributes: int) -> str:
    """The names of the bits that are set in a batch's attributes."""
    number = attributes & COMPRESSION_MASK
    compression = (
        Compression(number).name.lower() if number in set(Compression) else f"compression {number}, which is none"
    )
    return ", ".join(
        [
            "not compressed" if compression == "none" else compression,
            "time of append" if attributes & LOG_APPEND_TIME else "time of creation",
            *(["transactional"] if attributes & TRANSACTIONAL else []),
            *(["control batch"] if attributes & CONTROL else []),
            *(["base timestamp is the delete horizon"] if attributes & DELETE_HORIZON else []),
        ]
    )
