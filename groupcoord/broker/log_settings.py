"""What a partition's log has to know of its topic's configuration.

Every field is named like the topic config it holds, with underscores for dots, so that building one from a topic's configs is
mechanical; the defaults are Kafka's own. Source: ``org.apache.kafka.storage.internals.log.LogConfig``.
"""

from dataclasses import dataclass

INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The effective settings of one topic's logs; sizes in bytes, times in milliseconds."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})  # of "delete" and "compact"; empty keeps everything
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"  # or "uncompressed", "gzip", "snappy", "lz4", "zstd": what batches are stored as
    compression_zstd_level: int = 3
    max_message_bytes: int = 1_048_588  # of one batch, as it is stored
    message_timestamp_after_max_ms: int = 3_600_000  # how far a record may be ahead of the broker's clock
    message_timestamp_before_max_ms: int = INT64_MAX  # how far a record may lie behind it
    message_timestamp_type: str = "CreateTime"  # or "LogAppendTime"
    retention_bytes: int = -1  # of one partition; -1 is no limit
    retention_ms: int = 604_800_000  # -1 is no limit
    segment_bytes: int = 1_073_741_824  # what retention deletes at a time
    segment_ms: int = 604_800_000  # a segment older than this is closed at the next append

    @property
    def compact(self) -> bool:
        """Does the topic keep the newest record of each key? Then every record needs a key."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Does the topic drop old segments by time and size?"""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Are records stamped with the broker's clock instead of the producer's?"""
        return self.message_timestamp_type == "LogAppendTime"
