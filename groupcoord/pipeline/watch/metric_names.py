"""The Prometheus metrics that a watch serves: names, labels, types and help texts.

Names and labels are those of kafka_exporter where it has the metric; the others follow them. The numbers of statuses are
Burrow's, as its own metrics have them.
"""

from typing import Literal, NamedTuple

LIMIT = 10_000
"""The default of the most series that a metric has."""


class Metric(NamedTuple):
    """One metric. ``name`` is without ``_total``, which Prometheus adds to counters; ``help`` is one line."""

    name: str
    labels: tuple[str, ...]
    help: str
    kind: Literal["gauge", "counter"] = "gauge"

    @property
    def served_name(self) -> str:
        """The name for queries: of a counter, with ``_total``."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


STATUS_NUMBERS = {"OK": 1, "WARN": 2, "STOP": 4, "STALL": 5, "REWIND": 6}
"""Burrow's numbers of statuses; 0 (NOTFOUND) and 3 (ERR) do not occur here."""

_GROUP = ("consumergroup",)
_PARTITION = ("consumergroup", "topic", "partition")

CURRENT_OFFSET = Metric("kafka_consumergroup_current_offset", _PARTITION, "committed offset")
GROUP_LAG = Metric(
    "kafka_consumergroup_lag", _PARTITION, "records from the committed offset to the end of the partition"
)
LAG_SECONDS = Metric(
    "kafka_consumergroup_lag_seconds", _PARTITION, "how old the first record is that the group has not read"
)
RECORDS_LOST = Metric(
    "kafka_consumergroup_records_lost",
    _PARTITION,
    "offsets behind the committed one that were deleted before the group read them",
)
LAG_SUM = Metric(
    "kafka_consumergroup_lag_sum", ("consumergroup", "topic"), "sum of what is known of the lags of a topic"
)
STATUS = Metric(
    "kafka_consumergroup_partition_status",
    _PARTITION,
    "status by Burrow's rules: " + ", ".join(f"{number} {name}" for name, number in STATUS_NUMBERS.items()),
)
MEMBERS = Metric("kafka_consumergroup_members", _GROUP, "members in the group")
STATE = Metric(
    "kafka_consumergroup_state",
    (*_GROUP, "kind", "state"),
    "always 1: the state and the kind of the group are in the labels",
)
REBALANCES = Metric(
    "kafka_consumergroup_rebalances", _GROUP, "rebalances that this process has read of in the log", "counter"
)
STORMS = Metric(
    "kafka_consumergroup_rebalance_storms", _GROUP, "storms of rebalances, those of the past included", "counter"
)
STORM = Metric("kafka_consumergroup_rebalance_storm", _GROUP, "1 while a storm of rebalances goes on, else 0")
OPEN = Metric("kafka_open_transactions", (), "open transactions in the topics of groups")
HANGING = Metric("kafka_hanging_transactions", (), "of these, those that hang")
OPEN_SINCE = Metric(
    "kafka_topic_partition_open_transaction_start_timestamp_seconds",
    ("topic", "partition"),
    "when the oldest open transaction of the partition wrote its first record",
)
STABLE_OFFSET_LAG = Metric(
    "kafka_topic_partition_last_stable_offset_lag",
    ("topic", "partition"),
    "offsets behind the begin of that transaction, which consumers that read committed do not get",
)
LOG_BEHIND = Metric(
    "groupcoord_watch_log_offsets_behind", (), "offsets of __consumer_offsets that are still to be read"
)
RECORDS = Metric("groupcoord_watch_records", (), "records read of the log, in all runs of the watch", "counter")
VIEWS_AT = Metric("groupcoord_watch_views_timestamp_seconds", (), "the time of the views, and so of these metrics")
BATCH_AT = Metric(
    "groupcoord_watch_last_batch_timestamp_seconds", (), "when the last batch was written by this process"
)
BATCH_TOOK = Metric("groupcoord_watch_last_batch_duration_seconds", (), "how long it took")
LEFT_OUT = Metric("groupcoord_watch_series_left_out", ("metric",), "series of a metric that are above --metrics-limit")

METRICS: tuple[Metric, ...] = tuple(found for found in list(globals().values()) if isinstance(found, Metric))
"""All of them, in the order of the docs."""
