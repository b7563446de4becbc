"""The table members: when each member joined, settled (got its assignment of a new generation or epoch) and left. Events of
classic groups are derived here from generations; those of other groups come from ``modern_group_history.py``."""

from pyspark.sql import DataFrame

from groupcoord.pipeline.schemas import MEMBERS
from groupcoord.pipeline.tables.ownership_changes import IN_GROUP

_EVENTS = """stack(2,
    log_partition, log_offset, append_ts, case when not was_there then 'joined' when not is_same then 'settled' end,
    generation, partitions, partitions,
    next_log_partition, next_log_offset, next_append_ts, case when stays or next_log_offset is null then null
    when next_kind <> 'classic' then 'converted' when is_replaced then 'replaced' else 'left' end,
    int(null), 0, 0) as (log_partition, log_offset, append_ts, event, member_epoch, partitions, target)"""
"""SQL: what happened to a member in a generation, and what after it; where ``event`` is null, nothing did."""
_IN_LIFE = "over (partition by `group`, member order by log_offset)"


def members(assignments: DataFrame, played: DataFrame) -> DataFrame:
    """MEMBERS of the classic groups in ``assignments`` (ASSIGNMENTS), together with ``played``, the MEMBERS of other groups."""
    in_order = assignments.selectExpr(
        "*",
        f"row_number() {IN_GROUP} as number",
        *(f"lead({name}) {IN_GROUP} as next_{name}" for name in ("log_partition", "log_offset", "append_ts")),
        f"lead(is_tombstone) {IN_GROUP} as is_end_next",
        f"lead(append_ts, 2) {IN_GROUP} as append_ts_after_next",
        f"lead(kind, 2) {IN_GROUP} as kind_after_next",
        f"lead(members.who) {IN_GROUP} as next_whos",
    ).selectExpr(
        "*",
        # If a classic group is converted to another kind, its tombstone is followed by a target assignment of that kind.
        "if(is_end_next, if(next_append_ts = append_ts_after_next, kind_after_next, null), 'classic') as next_kind",
    )
    there = in_order.where("kind = 'classic' and not is_tombstone").selectExpr(
        "*",
        """inline(transform(members, m -> struct(m.member_id as member, m.client_id, m.instance_id, m.partitions,
            m.assigned_hash, m.instance_id is not null and array_contains(next_whos, m.who) as is_replaced)))""",
    )
    beside = there.selectExpr(
        "*",
        f"coalesce(lag(number) {_IN_LIFE} = number - 1, false) as was_there",
        f"lag(assigned_hash) {_IN_LIFE} = assigned_hash as is_same",
        f"coalesce(lead(number) {_IN_LIFE} = number + 1, false) as stays",
    )
    events = beside.selectExpr("`group`", "kind", "member", "client_id", "instance_id", _EVENTS).where(
        "event is not null"
    )
    classic = events.selectExpr(
        *("*", "true as is_classic", "true as is_settled", "0 as revoking"),
        f"if(event in ('joined', 'settled'), lead(append_ts) {_IN_LIFE}, null) as until_ts",
    )
    return classic.select(*MEMBERS.names).unionByName(played)
