"""One generation compared with the one before: who came, who went, what moved, what need not have moved."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import REBALANCES
from groupcoord.pipeline.tables.causes import CAUSE
from groupcoord.pipeline.tables.latest import PLACE
from groupcoord.pipeline.tables.ownership import IDENTITY

_SIZE = "aggregate(coalesce(m.assigned, array()), 0, (sum, a) -> sum + size(a.partitions))"


def rebalances(generations: DataFrame, owned: DataFrame) -> DataFrame:
    """Of ``generations``, those that begin, compared with the one before; ``owned`` is what ``ownership.owners`` gives of
    them."""
    compared = _compared(generations)
    return (
        compared.join(owned.where("moved is not null").select(*PLACE, "moved", "kept", "could_stay"), PLACE)
        .select(
            "*",
            F.expr("cast(greatest(0, could_stay - kept) as int)").alias("moved_needlessly"),
            F.expr(CAUSE).alias("likely_cause"),
        )
        .select(*REBALANCES.names)
    )


def _compared(generations: DataFrame) -> DataFrame:
    """Each generation beside the record before it.

    No rebalance are a further record of the same generation, and generation 0, with which a group is made.
    """
    said = generations.select(
        *PLACE,
        "group",
        "generation",
        "is_tombstone",
        "protocol",
        "leader",
        "state_ts",
        "append_ts",
        F.expr("coalesce(append_ts, state_ts)").alias("at"),
        F.expr(f"transform(members, m -> {IDENTITY})").alias("whos"),
        F.expr(
            "transform(members, m -> struct(m.member_id as id, "
            f"{IDENTITY} as who, coalesce(m.instance_id, m.client_id) as name, m.client_id as client, m.client_host as host))"
        ).alias("people"),
        F.expr("array_distinct(flatten(transform(members, m -> coalesce(m.topics, array()))))").alias("topics"),
        F.expr(f"transform(members, m -> {_SIZE})").alias("shares"),
    )
    in_group = Window.partitionBy("group").orderBy("log_offset")
    carried = ("generation", "is_tombstone", "protocol", "leader", "at", "whos", "people", "topics", "shares")
    beside = said.select("*", *(F.lag(name).over(in_group).alias(f"old_{name}") for name in carried))
    begins = beside.where(
        "not is_tombstone and (generation > 0 or size(people) > 0) "
        "and (old_is_tombstone is null or old_is_tombstone or generation <> old_generation)"
    )
    return (
        begins.select(
            "*",
            # There was nobody before the first generation, nor after a group's end; but before any other there was somebody.
            F.expr("old_is_tombstone is null and generation > 1").alias("is_unknown"),
            F.expr("coalesce(old_people, array())").alias("old_folk"),
        )
        .selectExpr(
            *PLACE,
            "`group`",
            "generation",
            "at",
            "whos",
            "people",
            "old_folk",
            "is_unknown",
            "topics",
            "old_topics",
            "old_generation as previous_generation",
            "if(old_generation is null, null, cast(greatest(0, generation - old_generation - 1) as int)) as hidden_generations",
            "unix_millis(append_ts) - unix_millis(state_ts) as assign_and_sync_ms",
            "if(is_unknown, null, size(old_folk)) as members_before",
            "size(people) as members_after",
            "if(is_unknown, null, filter(people, p -> not array_contains(transform(old_folk, o -> o.who), p.who))) "
            "as newcomers",
            "if(is_unknown, null, filter(old_folk, o -> not array_contains(whos, o.who))) as leavers",
            "old_leader as leader_before",
            "leader as leader_after",
            "old_protocol as protocol_before",
            "protocol as protocol_after",
            "aggregate(shares, 0, (sum, share) -> sum + share) as partitions_total",
            "aggregate(old_shares, 0, (sum, share) -> sum + share) as old_total",
            "coalesce(array_max(shares) - array_min(shares), 0) as imbalance",
            "(unix_millis(at) - unix_millis(old_at)) / 1000.0D as seconds_since_previous",
        )
        .select(
            "*",
            F.expr("transform(newcomers, p -> p.id)").alias("joined"),
            F.expr("transform(leavers, p -> p.id)").alias("left"),
        )
    )
