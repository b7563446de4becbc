"""What a partition's log has to know of its topic's configuration.

Every field is named like the topic config it holds, with underscores for dots, so that building one from a topic's configs is
mechanical; the defaults are Kafka's own. Source: ``org.apache.kafka.storage.internals.log.LogConfig``.
"""

from dataclasses import dataclass

INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The effective settings of one topic's logs; sizes in bytes, times in milliseconds."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})  # of "delete" and "compact"; empty keeps everything
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"  # or "uncompressed", "gzip", "snappy", "lz4", "zstd": what batches are stored as
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000  # how long compaction keeps a tombstone once it has met it
    flush_messages: int = INT64_MAX  # after so many records what is kept in files is flushed to the disk
    flush_ms: int = INT64_MAX  # and after so long
    index_interval_bytes: int = 4096  # of a log file between two entries of its index
    max_compaction_lag_ms: int = INT64_MAX  # after so long a record is compacted, however few there are
    max_message_bytes: int = 1_048_588  # of one batch, as it is stored
    message_timestamp_after_max_ms: int = 3_600_000  # how far a record may be ahead of the broker's clock
    message_timestamp_before_max_ms: int = INT64_MAX  # how far a record may lie behind it
    message_timestamp_type: str = "CreateTime"  # or "LogAppendTime"
    min_cleanable_dirty_ratio: float = (
        0.5  # so much of the log has to be new since the last compaction for the next one
    )
    min_compaction_lag_ms: int = 0  # before that a record is not compacted
    retention_bytes: int = -1  # of one partition; -1 is no limit
    retention_ms: int = 604_800_000  # -1 is no limit
    segment_bytes: int = 1_073_741_824  # what retention deletes at a time
    segment_index_bytes: int = 10_485_760  # a segment whose index is so large is closed
    memory_bytes: int = (
        -1
    )  # of one partition, if anything may be deleted; -1 is no limit. No topic config: see topic_config
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
