"""What values stand for."""

import pytest

from groupcoord.dissect.meanings import meaning_of


@pytest.mark.parametrize(
    ("api", "name", "kafka_type", "value", "meaning"),
    [
        ("Fetch", "max_wait_ms", "timedelta_i32", 500, "ms"),
        ("Fetch", "max_wait_ms", "timedelta_i32", 0, "ms"),
        ("Fetch", "max_wait_ms", "timedelta_i32", 30_000, "30 s"),
        ("Fetch", "max_wait_ms", "timedelta_i32", 90_000, "90 s"),
        ("Fetch", "max_wait_ms", "timedelta_i32", 7_200_000, "2 h"),
        ("OffsetCommit", "retention_time_ms", "timedelta_i64", 86_400_000, "1 d"),
        ("Fetch", "max_bytes", "int32", 1, "bytes"),
        ("Fetch", "isolation_level", "int8", 1, "READ_COMMITTED"),
        ("ListOffsets", "timestamp_ms", "datetime_i64", -2, "earliest: the start of the log"),
        ("ListOffsets", "timestamp_ms", "datetime_i64", 0, "1970-01-01T00:00:00.000Z"),
        ("DescribeConfigs", "resource_type", "int8", 32, "GROUP"),
        ("CreateAcls", "resource_type", "int8", 3, "GROUP"),
        ("CreateAcls", "resource_type", "int8", 99, ""),
        ("ApiVersions", "api_key", "int16", 999, "999 is no API of Kafka 4.3"),
        ("Heartbeat", "error_code", "error_code", 0, "NONE"),
        ("Heartbeat", "error_code", "error_code", 999, "UNKNOWN_999: Error code 999 is not in this table."),
        ("EndTxn", "committed", "bool", True, "COMMIT"),
        ("Heartbeat", "group_id", "string", "g", ""),
        ("Heartbeat", "generation_id", "int32", 4, ""),
        ("", "commitTimestamp", "", -1, "none"),
    ],
)
def test_a_value_says_what_it_stands_for(api: str, name: str, kafka_type: str, value: object, meaning: str) -> None:
    assert meaning_of(api, name, kafka_type, value) == meaning
