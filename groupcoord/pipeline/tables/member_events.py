"""The table members: when each member joined, settled (got its assignment of a new generation or epoch) and left. Events of
classic groups are derived here from generations; those of other groups come from ``modern_group_history.py``."""

from pyspark.sql import DataFrame

from groupcoord.pipeline.schemas import MEMBERS
from groupcoord.pipeline.tables.ownership_changes import IDENTITY, IN_GROUP

_PARTITIONS = "aggregate(m.assigned, 0, (sum, a) -> sum + size(a.partitions))"
_EVENT = """case
    when next_kind <> 'classic' then 'converted'
    when instance_id is not null and array_contains(next_whos, who) then 'replaced'
    else 'left' end"""
_IN_LIFE = "over (partition by `group`, member order by log_offset)"


def members(generations: DataFrame, played: DataFrame) -> DataFrame:
    """MEMBERS of the classic groups in ``generations`` (of all kinds of groups), together with ``played``, the MEMBERS of other
    groups."""
    in_order = generations.selectExpr(
        "*",
        f"row_number() {IN_GROUP} as number",
        *(f"lead({name}) {IN_GROUP} as next_{name}" for name in ("log_partition", "log_offset", "append_ts")),
        f"lead(is_tombstone) {IN_GROUP} as is_end_next",
        f"lead(append_ts, 2) {IN_GROUP} as append_ts_after_next",
        f"lead(kind, 2) {IN_GROUP} as kind_after_next",
        f"lead(transform(members, m -> {IDENTITY})) {IN_GROUP} as next_whos",
    ).selectExpr(
        "*",
        # If a classic group is converted to another kind, its tombstone is followed by a target assignment of that kind.
        "if(is_end_next, if(next_append_ts = append_ts_after_next, kind_after_next, null), 'classic') as next_kind",
    )
    there = in_order.where("kind = 'classic' and not is_tombstone").selectExpr(
        "* except (members)",
        f"""inline(transform(members, m -> struct(m.member_id as member, m.client_id, m.instance_id, {IDENTITY} as who,
            {_PARTITIONS} as partitions, xxhash64(m.assigned) as given)))""",
    )
    beside = there.selectExpr(
        "*",
        f"coalesce(lag(number) {_IN_LIFE} = number - 1, false) as was_there",
        f"lag(given) {_IN_LIFE} = given as is_same",
        f"coalesce(lead(number) {_IN_LIFE} = number + 1, false) as stays",
    )
    changes = beside.where("not was_there or not is_same").selectExpr(
        "*", "if(was_there, 'settled', 'joined') as event", "generation as member_epoch", "partitions as target"
    )
    ends = beside.where("not stays and next_log_offset is not null").selectExpr(
        "`group`",
        "kind",
        "next_log_partition as log_partition",
        "next_log_offset as log_offset",
        "next_append_ts as append_ts",
        "member",
        "client_id",
        "instance_id",
        f"{_EVENT} as event",
        "0 as partitions",
        "0 as target",
    )
    classic = changes.unionByName(ends, allowMissingColumns=True).selectExpr(
        *("*", "true as is_classic", "true as is_settled", "0 as revoking"),
        f"if(event in ('joined', 'settled'), lead(append_ts) {_IN_LIFE}, null) as until_ts",
    )
    return classic.select(*MEMBERS.names).unionByName(played)
