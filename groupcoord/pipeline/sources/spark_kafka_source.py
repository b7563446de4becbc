"""The source ``connector:HOST:PORT``: reads ``__consumer_offsets`` with Spark's own Kafka source (``spark-sql-kafka``), whose
jars ``--packages`` fetches.

Two settings are needed: ``spark.sql.streaming.kafka.useDeprecatedOffsetFetching=true``, without which Spark silently returns no
rows of internal topics; and ``assign`` instead of ``subscribe``, which would join a group and so write to
``__consumer_offsets``. Sources: Spark's Kafka integration guide, KIP-98.
"""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline.errors import PipelineError

TOPIC = "__consumer_offsets"
DEFAULT_PARTITIONS = 50
"""The default of the option ``partitions``, and of ``offsets.topic.num.partitions``."""
MOST_PARTITIONS = 100_000
OLD_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


def read(spark: SparkSession, bootstrap: str, options: Mapping[str, str]) -> DataFrame:
    """The records as LOG. ``options`` are those of Spark's Kafka source (``kafka.security.protocol`` …). Raises
    PipelineError."""
    return _log(spark, spark.read, _settings(bootstrap, options))


def stream(spark: SparkSession, bootstrap: str, options: Mapping[str, str]) -> DataFrame:
    """The log as an endless stream, from its beginning; records deleted meanwhile are skipped. Raises PipelineError."""
    first = {"startingOffsets": "earliest", "failOnDataLoss": "false"}
    return _log(spark, spark.readStream, {**first, **_settings(bootstrap, options)})


def _settings(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    own = {key: value for key, value in options.items() if key != "partitions"}
    partitions = options.get("partitions", str(DEFAULT_PARTITIONS))
    if not (partitions.isascii() and partitions.isdecimal() and 0 < int(partitions) <= MOST_PARTITIONS):
        raise PipelineError(f"partitions={partitions} is not a number of partitions")
    return {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.poll.records": "10000",
        "kafka.max.partition.fetch.bytes": "16777216",
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({TOPIC: list(range(int(partitions)))}),
        **own,
    }


def _log(spark: SparkSession, reader: Any, settings: Mapping[str, str]) -> DataFrame:
    spark.conf.set(OLD_OFFSET_FETCHING, "true")
    try:
        rows = reader.format("kafka").options(**settings).load()
    except PySparkException as problem:
        if "DATA_SOURCE" in (problem.getCondition() or ""):
            raise PipelineError(
                "Spark's Kafka connector is not there: --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION fetches "
                "it, VERSION being that of Spark; or read by kafka:HOST:PORT, which needs none"
            ) from None
        raise
    return rows.select(
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        "key",
        "value",
        F.col("timestamp").alias("append_ts"),
    )
