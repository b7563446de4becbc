"""Rebalances that come one after the other: a group that is busy with itself."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import STORMS

FEWEST = 5
"""So many rebalances make a storm."""
APART_S = 60
"""So far apart they may be, at most."""


def storms(rebalances: DataFrame) -> DataFrame:
    """Runs of at least FEWEST rebalances of a group, none more than APART_S behind the one before."""
    in_group = Window.partitionBy("group").orderBy("log_offset")
    starts = F.sum(F.when(F.col("seconds_since_previous") <= APART_S, 0).otherwise(1)).over(in_group)
    runs = rebalances.select("*", starts.alias("run"))
    causes = (
        runs.groupBy("group", "run", "likely_cause")
        .agg(F.count("*").alias("times"))
        .groupBy("group", "run")
        .agg(F.sort_array(F.collect_list(F.struct(-F.col("times"), "likely_cause"))).alias("counted"))
        .select("group", "run", F.expr("transform(counted, c -> c.likely_cause)").alias("likely_causes"))
    )
    return (
        runs.groupBy("group", "run")
        .agg(
            F.min("log_partition").alias("log_partition"),
            F.min("at").alias("from"),
            F.max("at").alias("to"),
            F.count("*").cast("int").alias("rebalances"),
            F.coalesce(F.sum("hidden_generations"), F.lit(0)).cast("int").alias("hidden_generations"),
            F.min("members_after").alias("members_lowest"),
            F.max("members_after").alias("members_highest"),
            F.sum("moved").cast("int").alias("moved"),
        )
        .where(F.col("rebalances") >= FEWEST)
        .join(causes, ["group", "run"])
        .select(*STORMS.names)
    )
