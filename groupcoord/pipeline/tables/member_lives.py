"""The lives of members of classic groups, from one generation to the next, told as those of other groups are."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import MEMBERS
from groupcoord.pipeline.tables.ownership_changes import IDENTITY

_PARTITIONS = "aggregate(m.assigned, 0, (sum, a) -> sum + size(a.partitions))"
_EVENT = """case
    when next_kind <> 'classic' then 'converted'
    when instance_id is not null and array_contains(next_whos, who) then 'replaced'
    else 'left' end"""


def members(generations: DataFrame, played: DataFrame) -> DataFrame:
    """MEMBERS: of the classic groups in ``generations`` (those of all kinds), and those that were ``played`` of others."""
    in_group = Window.partitionBy("group").orderBy("log_offset")
    in_order = generations.select(
        "*",
        F.row_number().over(in_group).alias("number"),
        *(F.lead(name).over(in_group).alias(f"next_{name}") for name in ("log_partition", "log_offset", "append_ts")),
        F.lead("is_tombstone").over(in_group).alias("is_end_next"),
        # At the end of a classic group that goes on as one of another kind, what comes then is a target assignment.
        F.when(
            F.lead("append_ts", 1).over(in_group) == F.lead("append_ts", 2).over(in_group),
            F.lead("kind", 2).over(in_group),
        ).alias("kind_after_end"),
        F.lead(F.expr(f"transform(members, m -> {IDENTITY})")).over(in_group).alias("next_whos"),
    ).selectExpr("*", "if(is_end_next, kind_after_end, 'classic') as next_kind")
    there = in_order.where("kind = 'classic' and not is_tombstone").selectExpr(
        "* except (members)",
        f"""inline(transform(members, m -> struct(m.member_id as member, m.client_id, m.instance_id, {IDENTITY} as who,
            {_PARTITIONS} as partitions, xxhash64(m.assigned) as given)))""",
    )
    in_life = Window.partitionBy("group", "member").orderBy("log_offset")
    beside = there.select(
        "*",
        F.coalesce(F.lag("number").over(in_life) == F.col("number") - 1, F.lit(False)).alias("was_there"),  # noqa: FBT003
        (F.lag("given").over(in_life) == F.col("given")).alias("is_same"),
        F.coalesce(F.lead("number").over(in_life) == F.col("number") + 1, F.lit(False)).alias("stays"),  # noqa: FBT003
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
    until = F.when(F.col("event").isin("joined", "settled"), F.lead("append_ts").over(in_life))
    classic = changes.unionByName(ends, allowMissingColumns=True).select(
        "*",
        F.lit(True).alias("is_classic"),  # noqa: FBT003
        F.lit(True).alias("is_settled"),  # noqa: FBT003
        F.lit(0).alias("revoking"),
        until.alias("until_ts"),
    )
    return classic.select(*MEMBERS.names).unionByName(played)
