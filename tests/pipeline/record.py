"""Makes ``recordings/``: a small ``__consumer_offsets`` of a real Kafka, and what that broker then says is committed.

``python -m tests.pipeline.record HOST:PORT LOG_DIR`` tells the story below to a fresh broker that has
``offsets.topic.num.partitions=4`` and ``group.initial.rebalance.delay.ms=0`` and keeps its logs in LOG_DIR: classic groups
(eager, cooperative, static members), a group of KIP-848, offsets in transactions that were committed, aborted and left open,
and groups that only commit, of which one is deleted.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

INTO = Path(__file__).parent / "recordings" / "4.3.1"
TOPICS = {"orders": 6, "payments": 3}


def main(bootstrap: str, log_dir: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
        future.result()
    fill(bootstrap)
    for group, assignor in (("eager", "range"), ("cooperative", "cooperative-sticky")):
        _life(bootstrap, group, {"partition.assignment.strategy": assignor})
    _life(bootstrap, "static", {"partition.assignment.strategy": "range"}, static=True)
    _life(bootstrap, "modern", {"group.protocol": "consumer"})
    for group, end in (("tx-committed", "commit"), ("tx-aborted", "abort"), ("tx-open", None)):
        _transaction(bootstrap, group, end)
    for group in ("deleted", "kept"):
        _commit(bootstrap, group, [TopicPartition("orders", number, 10 + number) for number in range(3)])
    _commit(bootstrap, "kept", [TopicPartition("payments", 0, 7, metadata="wo Übermut herrscht")])
    admin.delete_consumer_groups(["deleted"])["deleted"].result()
    groups = sorted(listed.group_id for listed in admin.list_consumer_groups().result().valid)
    expected = {group: _committed(admin, group) for group in groups}
    shutil.rmtree(INTO, ignore_errors=True)
    for folder in sorted(Path(log_dir).glob("__consumer_offsets-*")):
        (INTO / folder.name).mkdir(parents=True)
        for log in folder.glob("*.log"):
            shutil.copy(log, INTO / folder.name)
    (INTO / "committed.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def fill(bootstrap: str) -> None:
    """Sixty records in each topic."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic, count in TOPICS.items():
        for number in range(60):
            producer.produce(topic, value=str(number), partition=number % count)
    producer.flush()


def _consumer(bootstrap: str, group: str, settings: dict[str, Any]) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(list(TOPICS))
    return consumer


def _life(bootstrap: str, group: str, settings: dict[str, Any], *, static: bool = False) -> None:
    """Two members, then three, then the first leaves; everybody commits in between; at last all leave."""
    all_partitions = sum(TOPICS.values())

    def named(number: int) -> dict[str, Any]:
        instance = {"group.instance.id": f"instance-{number}"} if static else {}
        return {**settings, "client.id": f"client-{number}", **instance}

    members = [_consumer(bootstrap, group, named(number)) for number in (1, 2)]
    until(members, lambda: is_shared(members, all_partitions))
    commit_all(members)
    members.append(_consumer(bootstrap, group, named(3)))
    until(members, lambda: is_shared(members, all_partitions))
    commit_all(members)
    members.pop(0).close()
    if not static:
        until(members, lambda: is_shared(members, all_partitions))
        commit_all(members)
    for member in members:
        member.close()


def is_shared(members: list[Consumer], total: int) -> bool:
    """Whether each of ``members`` has some of all ``total`` partitions."""
    shares = [len(member.assignment()) for member in members]
    return sum(shares) == total and min(shares) > 0


def until(members: list[Consumer], done: Callable[[], bool]) -> None:
    """Poll ``members`` until it is done, and still is when each has polled once more."""
    for _ in range(3000):
        for member in members:
            member.poll(0.02)
        if done():
            for member in members:
                member.poll(0.5)
            if done():
                return
    raise AssertionError("the group does not come to rest")


def commit_all(members: list[Consumer]) -> None:
    """Everybody commits what it has read."""
    for member in members:
        try:
            member.commit(asynchronous=False)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError._NO_OFFSET:
                raise


def _transaction(bootstrap: str, group: str, end: str | None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"id-{group}"})
    producer.init_transactions()
    consumer = _consumer(bootstrap, group, {"client.id": group})
    until([consumer], lambda: is_shared([consumer], sum(TOPICS.values())))
    producer.begin_transaction()
    offsets = [TopicPartition("orders", number, 3) for number in range(6)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
    if end == "commit":
        producer.commit_transaction()
    elif end == "abort":
        producer.abort_transaction()
    consumer.close()


def _commit(bootstrap: str, group: str, offsets: list[TopicPartition]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def _committed(admin: AdminClient, group: str) -> list[list[Any]]:
    [future] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    found = future.result().topic_partitions
    return sorted([one.topic, one.partition, one.offset, one.leader_epoch, one.metadata or ""] for one in found)


if __name__ == "__main__":
    main(*sys.argv[1:])
