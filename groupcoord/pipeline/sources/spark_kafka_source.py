"""The source ``connector:HOST:PORT``: reads ``__consumer_offsets`` with Spark's own Kafka source (``spark-sql-kafka``), whose
jars ``--packages`` fetches.

Two settings are needed: ``spark.sql.streaming.kafka.useDeprecatedOffsetFetching=true``, without which Spark silently returns no
rows of internal topics; and ``assign`` instead of ``subscribe``, which would join a group and so write to
``__consumer_offsets``. Where partitions begin and end is asked on the driver, with the Java consumer that the connector brings.
Sources: Spark's Kafka integration guide, KIP-98.
"""

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from py4j.java_gateway import JavaClass, is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline.errors import PipelineError, plain_reason
from groupcoord.pipeline.sources.end_offsets import EarlierEnds, as_of, end_offset_rows
from groupcoord.pipeline.sources.kafka_source import TOPIC, Bounds, ClusterUnavailableError

OLD_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
_FOR_CLIENTS = "kafka."
"""Begins the names of those options of Spark's source that are properties of Kafka's Java clients."""
_NO_CONNECTOR = (
    "Spark's Kafka connector is not there: --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION fetches it, VERSION "
    "being that of Spark; or read by kafka:HOST:PORT, which needs none"
)
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_PARTITION = re.compile(r"Partition\(topic = ([^,]+), partition = (\d+), leader = (\w+),")
"""A partition as ``PartitionInfo.toString`` gives it; its leader is an id, or ``none``."""
_OFFSET = re.compile(r"[{ ]([^ ]+)-(\d+)=(\d+)")
"""An entry of a Java map from TopicPartition to an offset, as text: one call instead of several for each partition."""
Place = tuple[str, int]


class ConnectorCluster:
    """The cluster of ``connector:``. ``options`` are those of Spark's Kafka source (``kafka.security.protocol`` …).

    The methods that ask the cluster need a running Spark with the connector, and raise PipelineError, ClusterUnavailableError
    if it may work later.
    """

    def __init__(self, bootstrap: str, options: Mapping[str, str]) -> None:
        self.bootstrap = bootstrap
        self._options = dict(options)

    def read(self, spark: SparkSession, log: Bounds) -> DataFrame:
        """The records of ``log`` as LOG. Raises PipelineError."""
        ends = {str(partition): end for partition, (_, end) in log.items()}
        return _log(spark, spark.read, {**self._settings(log), "endingOffsets": json.dumps({TOPIC: ends})})

    def stream(self, spark: SparkSession) -> DataFrame:
        """The log as an endless stream, from its beginning; records deleted meanwhile are skipped. Raises PipelineError."""
        first = {"startingOffsets": "earliest", "failOnDataLoss": "false"}
        return _log(spark, spark.readStream, {**first, **self._settings(self.log_bounds())})

    def log_bounds(self, *, is_stable: bool = False) -> Bounds:
        """The first offset and the end of each partition of the log; with ``is_stable`` the last stable offset is its end."""
        with self._consumer("read_committed" if is_stable else "read_uncommitted") as consumer:
            places, led = ({place for place in of if place[0] == TOPIC} for of in _partitions(consumer))
            if not places:
                raise ClusterUnavailableError(
                    f"{self.bootstrap} has no topic {TOPIC}: no group has ever committed there, or it may not be described"
                )
            for topic, partition in sorted(places - led):
                raise ClusterUnavailableError(f"{topic}-{partition} has no leader")
            starts, ends = _starts(consumer, places), _ends(consumer, places)
        return {partition: (starts[topic, partition], ends[topic, partition]) for topic, partition in sorted(places)}

    def latest_ends(self, places: Collection[Place] | None) -> dict[Place, int]:
        """The ends of ``places`` (None: of all partitions), without those that have no leader or may not be described."""
        with self._consumer("read_uncommitted") as consumer:
            _, led = _partitions(consumer)
            return _ends(consumer, led if places is None else led.intersection(places))

    def end_offsets(self, current: DataFrame, now_ms: int, earlier: EarlierEnds | None) -> DataFrame:
        """END_OFFSETS of the partitions in ``current`` (CURRENT_OFFSETS), without open transactions and unread records. With
        ``earlier``, ``now_ms`` is the time of these ends."""
        # At most as many rows as the cluster has partitions.
        wanted = {(row["topic"], row["partition"]) for row in current.select("topic", "partition").distinct().collect()}
        with self._consumer("read_uncommitted") as consumer:
            places = wanted & _partitions(consumer)[1]
            starts, ends = _starts(consumer, places), as_of(earlier, _ends(consumer, places))
        return current.sparkSession.createDataFrame(end_offset_rows(starts, ends, now_ms))

    def _settings(self, log: Bounds) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.fetch.max.wait.ms": "10",
            "kafka.max.poll.records": "10000",
            "kafka.max.partition.fetch.bytes": "16777216",
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({TOPIC: sorted(log)}),
            **self._options,
        }

    @contextlib.contextmanager
    def _consumer(self, isolation_level: str) -> Iterator[Any]:
        """A Java consumer without a group."""
        java = _java()
        make = java.org.apache.kafka.clients.consumer.KafkaConsumer
        if not isinstance(make, JavaClass):
            raise PipelineError(_NO_CONNECTOR)
        given = {name: value for name, value in self._options.items() if name.startswith(_FOR_CLIENTS)}
        properties = java.java.util.Properties()
        for name, value in {
            "default.api.timeout.ms": "30000",
            **{name.removeprefix(_FOR_CLIENTS): value for name, value in given.items()},
            "bootstrap.servers": self.bootstrap,
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
            "allow.auto.create.topics": "false",
            "isolation.level": isolation_level,
        }.items():
            properties.put(name, value)
        try:
            with contextlib.closing(make(properties)) as consumer:
                yield consumer
        except Py4JJavaError as problem:
            reason = f"{self.bootstrap}: {plain_reason(problem)}"
            may_pass = java.org.apache.kafka.common.errors.RetriableException
            is_retriable = is_instance_of(SparkContext.getOrCreate()._gateway, problem.java_exception, may_pass)  # noqa: SLF001
            raise (ClusterUnavailableError if is_retriable else PipelineError)(reason) from None


def _partitions(consumer: Any) -> tuple[set[Place], set[Place]]:
    """The partitions of all topics that may be described, and those of them that have a leader."""
    found = {(topic, int(number)): leader for topic, number, leader in _PARTITION.findall(_text(consumer.listTopics()))}
    return set(found), {place for place, leader in found.items() if leader != "none"}


def _starts(consumer: Any, places: Collection[Place]) -> dict[Place, int]:
    return _offsets(consumer.beginningOffsets(_java_places(places)))


def _ends(consumer: Any, places: Collection[Place]) -> dict[Place, int]:
    return _offsets(consumer.endOffsets(_java_places(places)))


def _offsets(found: Any) -> dict[Place, int]:
    return {(topic, int(partition)): int(offset) for topic, partition, offset in _OFFSET.findall(_text(found))}


def _java_places(places: Collection[Place]) -> Any:
    found = _java().java.util.ArrayList()
    for topic, partition in places:
        found.add(_java().org.apache.kafka.common.TopicPartition(topic, partition))
    return found


def _text(found: Any) -> str:
    return str(_java().java.util.Objects.toString(found))


def _java() -> Any:
    return SparkContext.getOrCreate()._jvm  # noqa: SLF001 - the way to Java


def _log(spark: SparkSession, reader: Any, settings: Mapping[str, str]) -> DataFrame:
    spark.conf.set(OLD_OFFSET_FETCHING, "true")
    rows = reader.format("kafka").options(**settings).load()
    return rows.select(
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        "key",
        "value",
        F.col("timestamp").alias("append_ts"),
    )
