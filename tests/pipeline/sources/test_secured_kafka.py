"""What a run reads of a real Kafka that wants TLS and a login."""

from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources import end_offsets
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.sources.kafka_source import OffsetsSource
from tests.client.test_security_real_kafka import Secured, secured

__all__ = ["secured"]  # the fixture


def test_who_does_not_log_in_is_told_how(secured: Secured) -> None:
    with pytest.raises(
        PipelineError, match=r"closed the connection; it may want a login, which --command-config FILE is for$"
    ):
        plan_source(f"kafka:127.0.0.1:{secured.ports['LOGIN']}", {})


def test_the_log_and_the_ends_of_topics_are_read(secured: Secured, tmp_path: Path) -> None:
    """By what tasks do, without Spark: that it gives them the options is what every run on a living cluster shows."""
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"}
    properties = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(secured.authority.trusted), **login}
    bootstrap = f"127.0.0.1:{secured.ports['TLSLOGIN']}"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "late", **properties})
    consumer.commit(offsets=[TopicPartition("__consumer_offsets", 1, 5)], asynchronous=False)
    consumer.close()
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    options = {"bootstrap": bootstrap, "commandconfig": str(config)}
    reader = OffsetsSource(options).reader(None)
    keys = [key for part in reader.partitions() for rows in reader.read(part) for key in rows["key"].to_pylist()]
    assert any(b"late" in key and b"__consumer_offsets" in key for key in keys)
    wanted = pa.RecordBatch.from_pylist(
        [{"topic": topic, "partition": 0, "committed": [0]} for topic in ("__consumer_offsets", "nowhere")]
    )
    [ends] = end_offsets._asking(options, 1000)(iter([wanted]))
    assert [(end["topic"], end["partition"]) for end in ends.to_pylist()] == [("__consumer_offsets", 0)]
    plan = plan_source(f"kafka:{bootstrap}", {"commandconfig": str(config)})
    assert plan.about is not None
    assert plan.about >= len(keys)
    assert plan.offsets_retention_ms
