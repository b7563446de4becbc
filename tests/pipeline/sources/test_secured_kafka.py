"""A run on a real Kafka that wants TLS and a login."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.sources.kafka_source import NAME, OffsetsSource
from groupcoord.pipeline.sources.topic_ends import ends_of_cluster
from tests.client.test_security_real_kafka import Secured, secured

__all__ = ["secured"]  # the fixture


def test_who_does_not_log_in_is_told_how(secured: Secured) -> None:
    with pytest.raises(
        PipelineError, match=r"closed the connection; it may want a login, which --command-config FILE is for$"
    ):
        plan_source(f"kafka:127.0.0.1:{secured.ports['LOGIN']}", {})


def test_the_log_and_the_ends_of_topics_are_read(spark: SparkSession, secured: Secured, tmp_path: Path) -> None:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"}
    properties = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(secured.authority.trusted), **login}
    bootstrap = f"127.0.0.1:{secured.ports['TLSLOGIN']}"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "late", **properties})
    consumer.commit(offsets=[TopicPartition("__consumer_offsets", 1, 5)], asynchronous=False)
    consumer.close()
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    options = {"bootstrap": bootstrap, "commandconfig": str(config)}
    spark.dataSource.register(OffsetsSource)
    keys = [bytes(row.key) for row in spark.read.format(NAME).options(**options).load().select("key").collect()]
    assert any(b"late" in key and b"__consumer_offsets" in key for key in keys)
    places = [("__consumer_offsets", 0, 0), ("nowhere", 0, 0)]
    wanted = spark.createDataFrame(places, "topic string, partition int, committed_offset bigint")
    [end] = ends_of_cluster(wanted, options, 1000).collect()
    assert (end.topic, end.partition) == ("__consumer_offsets", 0)
    plan = plan_source(f"kafka:{bootstrap}", {"commandconfig": str(config)}).surveyed(spark)
    assert plan.read(spark).count() > 0
