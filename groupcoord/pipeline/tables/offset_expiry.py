"""Computes when committed offsets will expire, if the group does not change until then.

Kafka removes offsets that were not needed for ``offsets.retention.minutes`` (KIP-211). In an empty classic group this time
counts from when the group became empty; for a topic that no member subscribes to, and in a group that only commits, from the
commit. An offset whose commit has an expiration time (value version 1) expires then. In a group with members nothing expires
unless they are consumers and all their subscriptions can be read. An offset with a pending transactional commit expires
later; that is not considered here. Sources: ``OffsetExpirationConditionImpl``, ``ClassicGroup.offsetExpirationCondition``,
``OffsetMetadataManager.cleanupExpiredOffsets``.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import LATEST_MS

RETENTION_MS = 7 * 86_400_000
"""The default of ``offsets.retention.minutes``, in ms."""
_BASE = """case
    when kind = 'share' then null
    when kind is null or kind = 'simple' or (kind = 'classic' and protocol_type = '') then commit_ts
    when kind = 'classic' and state = 'Empty' then coalesce(state_ts, commit_ts)
    when kind = 'classic' and protocol_type <> 'consumer' then null
    when subscribed is null or array_contains(subscribed, topic) then null
    else commit_ts
    end"""


def with_expiry(current: DataFrame, groups: DataFrame, retention_ms: int | None) -> DataFrame:
    """Set ``expire_ts`` in ``current`` (CURRENT_OFFSETS); null: the offset does not expire as long as ``groups``
    (CURRENT_GROUPS) stay as they are. If ``retention_ms`` is None, Kafka's default is used."""
    retention = RETENTION_MS if retention_ms is None else retention_ms
    of_group = groups.selectExpr(
        *("`group`", "kind", "state", "coalesce(protocol_type, '') as protocol_type", "state_ts"),
        "flatten(members.topics) as subscribed",  # null if the topics of any member are null
    )
    by_default = f"timestamp_millis(least(unix_millis(base) + {retention}, {LATEST_MS}))"
    return (
        current.join(of_group, "group", "left")
        .withColumn("base", F.expr(_BASE))
        .withColumn("expire_ts", F.expr(f"if(base is null, null, coalesce(expire_ts, {by_default}))"))
        .select(*current.columns)
    )
