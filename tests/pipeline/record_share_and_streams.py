"""Makes ``recordings/share-and-streams.jsonl``: a share group and a streams group in the log of a real Kafka.

``python -m tests.pipeline.record_share_and_streams`` starts a broker as a child process, and tells it the story of
``ShareAndStreamsStory.java`` with Kafka's own clients.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.pipeline.record import TOPICS, fill
from tests.real_kafka.kafka_java import DOCKER_KAFKA
from tests.real_kafka.process import KafkaProcess

HERE = Path(__file__).parent
INTO = HERE / "recordings" / "share-and-streams.jsonl"
CLASS_PATH = os.pathsep.join(f"{DOCKER_KAFKA / name}/*" for name in ("libs", "libs-4.3.1-streams"))
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def main() -> None:
    with KafkaProcess(PROPERTIES) as broker, tempfile.TemporaryDirectory() as folder:
        bootstrap = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        topics = [NewTopic(name, count, 1) for name, count in {**TOPICS, "copies": 2}.items()]
        for future in admin.create_topics(topics).values():
            future.result()
        fill(bootstrap)
        story = ["java", "-cp", CLASS_PATH, str(HERE / "ShareAndStreamsStory.java"), bootstrap, folder]
        subprocess.run(story, check=True)
        dump = [sys.executable, "-m", "groupcoord", "offsets", "dump", bootstrap, "--raw"]
        INTO.write_bytes(subprocess.run(dump, stdout=subprocess.PIPE, check=True).stdout)


if __name__ == "__main__":
    main()
