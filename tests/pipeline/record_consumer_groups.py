"""Makes ``recordings/consumer-groups.jsonl``: lives of groups of KIP-848 in the ``__consumer_offsets`` of a real Kafka.

``python -m tests.pipeline.record_consumer_groups`` starts a broker as a child process and tells it the stories below with real
clients: members come, give partitions back, leave, or fall silent; a topic grows and is wanted no longer; a static member goes
and comes back; and a classic group becomes a consumer group and a classic one again, while it has members.
"""

import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.pipeline.record import TOPICS, commit_all, fill, is_shared, until
from tests.real_kafka.process import KafkaProcess

INTO = Path(__file__).parent / "recordings" / "consumer-groups.jsonl"
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.migration.policy": "bidirectional",
}
CLASSIC = {"group.protocol": "classic", "partition.assignment.strategy": "range"}


def main() -> None:
    with KafkaProcess(PROPERTIES) as broker:
        bootstrap = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
            future.result()
        fill(bootstrap)
        _come_and_go(bootstrap, admin)
        _a_static_member(bootstrap)
        _there_and_back(bootstrap)
        dump = [sys.executable, "-m", "groupcoord", "offsets", "dump", bootstrap, "--raw"]
        INTO.write_bytes(subprocess.run(dump, stdout=subprocess.PIPE, check=True).stdout)


def _consumer(bootstrap: str, group: str, name: str, **said: str) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,
            "group.protocol": "consumer",
            **said,
        }
    )
    made.subscribe(list(TOPICS))
    return made


def _come_and_go(bootstrap: str, admin: AdminClient) -> None:
    alice = _consumer(bootstrap, "shop", "alice")
    _rest([alice], 9)
    commit_all([alice])
    bob = _consumer(bootstrap, "shop", "bob")
    _rest([alice, bob], 9)
    carol = _consumer(bootstrap, "shop", "carol")
    _rest([alice, bob, carol], 9)
    commit_all([alice, bob, carol])
    admin.create_partitions([NewPartitions("payments", 6)])["payments"].result()
    _rest([alice, bob, carol], 12)
    carol.subscribe(["orders"])
    until([alice, bob, carol], lambda: {one.topic for one in carol.assignment()} == {"orders"})
    bob.close()
    _rest([alice, carol], 12)
    mallory = multiprocessing.get_context("spawn").Process(target=_poll, args=(bootstrap, "shop", "mallory"))
    mallory.start()
    until([alice, carol], lambda: 0 < len(alice.assignment()) + len(carol.assignment()) < 12)
    mallory.kill()
    _rest([alice, carol], 12)
    commit_all([alice, carol])
    alice.close()
    carol.close()


def _poll(*whom: Any) -> None:
    member = _consumer(*whom)
    while True:
        member.poll(0.1)


def _a_static_member(bootstrap: str) -> None:
    dave = _consumer(bootstrap, "stall", "dave", **{"group.instance.id": "till-1"})
    erin = _consumer(bootstrap, "stall", "erin", **{"group.instance.id": "till-2"})
    _rest([dave, erin], 12)
    commit_all([dave, erin])
    erin.close()
    erin = _consumer(bootstrap, "stall", "erin", **{"group.instance.id": "till-2"})
    _rest([dave, erin], 12)
    erin.close()
    _rest([dave], 12)  # the other one is away too long
    dave.close()


def _there_and_back(bootstrap: str) -> None:
    frank, grace = (_consumer(bootstrap, "moving", name, **CLASSIC) for name in ("frank", "grace"))
    _rest([frank, grace], 12)
    commit_all([frank, grace])
    heidi = _consumer(bootstrap, "moving", "heidi")
    _rest([frank, grace, heidi], 12)
    commit_all([frank, grace, heidi])
    frank.close()
    _rest([grace, heidi], 12)
    heidi.close()  # the last one that is not classic
    _rest([grace], 12)
    commit_all([grace])
    grace.close()


def _rest(members: list[Consumer], partitions: int) -> None:
    until(members, lambda: is_shared(members, partitions))


if __name__ == "__main__":
    main()
