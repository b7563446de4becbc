"""When committed offsets expire, if nothing changes until then.

Kafka removes offsets that nobody has needed for ``offsets.retention.minutes`` (KIP-211). From when on that counts: in an empty
classic group from when it became empty; of a topic that no member subscribes to, and in a group that only commits, from the
commit. An offset whose commit said when it expires (value version 1) keeps that time. Of a group with members nothing expires
unless they are consumers and all their subscriptions can be read. What is in an open transaction keeps its offset longer;
that is not told here. Sources: ``OffsetExpirationConditionImpl``, ``ClassicGroup.offsetExpirationCondition``,
``OffsetMetadataManager.cleanupExpiredOffsets``.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import LATEST_MS

RETENTION_MS = 7 * 86_400_000
"""Kafka's default of ``offsets.retention.minutes``, which a cluster may have changed."""
_BASE = """case
    when kind = 'share' then null
    when kind is null or kind = 'simple' or (kind = 'classic' and protocol_type = '') then commit_ts
    when kind = 'classic' and state = 'Empty' then coalesce(state_ts, commit_ts)
    when kind = 'classic' and protocol_type <> 'consumer' then null
    when subscribed is null or array_contains(subscribed, topic) then null
    else commit_ts
    end"""


def with_expiry(current: DataFrame, groups: DataFrame, retention_ms: int | None) -> DataFrame:
    """``current`` (CURRENT_OFFSETS) with ``expire_ts`` of every offset that will expire; null: it does not while ``groups``
    (CURRENT_GROUPS) are as they are. ``retention_ms`` None is Kafka's default."""
    retention = RETENTION_MS if retention_ms is None else retention_ms
    of_group = groups.selectExpr(
        *("`group`", "kind", "state", "coalesce(protocol_type, '') as protocol_type", "state_ts"),
        "flatten(members.topics) as subscribed",  # null if one of them is
    )
    by_default = f"timestamp_millis(least(unix_millis(base) + {retention}, {LATEST_MS}))"
    return (
        current.join(of_group, "group", "left")
        .withColumn("base", F.expr(_BASE))
        .withColumn("expire_ts", F.expr(f"if(base is null, null, coalesce(expire_ts, {by_default}))"))
        .select(*current.columns)
    )
