"""How evenly partitions were given out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import SKEW


def skew(generations: DataFrame) -> DataFrame:
    """One row for each member of each of ``generations`` whose assignment could be read."""
    return (
        generations.where("not is_tombstone")
        .selectExpr(
            "log_partition",
            "log_offset",
            "append_ts",
            "`group`",
            "generation",
            """transform(filter(members, m -> m.assigned is not null), m -> struct(
                m.member_id as member,
                m.client_id as client_id,
                aggregate(m.assigned, 0, (sum, a) -> sum + size(a.partitions)) as partitions)) as shares""",
        )
        .where("size(shares) > 0")
        .select(
            "*",
            F.expr("aggregate(shares, 0, (sum, s) -> sum + s.partitions) / size(shares)").alias("fair_share"),
            F.expr("inline(shares)"),
        )
        .select(*SKEW.names)
    )
